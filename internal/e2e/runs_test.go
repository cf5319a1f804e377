package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
)

// A second message during a run waits in the runtime, not in the platform: it is confirmed at once and answered once,
// after the first.
func TestC100SecondMessageDuringRun(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if lastWords(r) == "first" {
			<-g.ch
		}
		return echo(r)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	first := dm.Say(ann, "first")
	dm.Say(ann, "second")
	w.wait("both are confirmed while the first is worked on", func() bool { return w.tg.Pending() == 0 })
	w.answer(dm, dm.Say(ann, "/status").ID, "Messages waiting: 1")
	g.open()
	w.answer(dm, first.ID, "re: second")
	if count(dm, "re: first") != 1 || count(dm, "re: second") != 1 || w.asked("second") != 1 {
		t.Errorf("shown: %s", show(dm))
	}
}

// Two messages 50 ms apart, both with tools, in one chat, many times in several chats: the history stays legal.
func TestC116MessagesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if res := r.LastResults(); len(res) > 0 {
			return echo(r)
		}
		s := script.Tool("", "write_file", map[string]any{"path": "/mnt/user-data/workspace/a.txt", "content": "x"})
		s.Parts[0].Call.ID = fmt.Sprintf("call_%d", r.N)
		s.FirstDelay = 30 * time.Millisecond
		return s
	})
	w.start()
	for c := range 4 {
		u := w.tg.Person(fmt.Sprint("User ", c), "")
		dm := w.tg.DM(u)
		for i := range 6 {
			time.AfterFunc(time.Duration(i)*50*time.Millisecond, func() { dm.Say(u, fmt.Sprintf("message %d", i)) })
		}
	}
	for _, dm := range w.tg.Chats() {
		for i := range 6 {
			w.answer(dm, 0, fmt.Sprintf("re: message %d", i))
		}
		if n := len(dm.BotMessages()); n != 6 {
			t.Errorf("%d answers: %s", n, show(dm))
		}
	}
	w.legal()
}

// Stopped while a call is being written, and while several are: the next turn is legal.
func TestC117StopAtACall(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if lastWords(r) != "act" {
			return echo(r)
		}
		if len(r.LastResults()) == 0 {
			return script.Script{Parts: []script.Part{
				{Text: "I act now. "},
				{Call: &script.Call{ID: "t1", Name: "write_file", Arguments: `{"path":"/mnt/user-data/workspace/a.txt","content":"x"}`}},
			}}
		}
		return script.Script{Parts: []script.Part{
			{Text: "Once more. "},
			{Call: &script.Call{ID: "t2", Name: "write_file", Arguments: `{"path":"/mnt/user-data/workspace/b.txt","content":"x"}`}},
			{Wait: g.ch, Call: &script.Call{ID: "t3", Name: "write_file", Arguments: `{"path":"/mnt/user-data/workspace/c.txt","content":"x"}`}},
		}}
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "act").ID, "Once more.")
	w.answer(dm, dm.Say(ann, "/stop").ID, "Stopped.")
	w.answer(dm, dm.Say(ann, "continue").ID, "re: continue")
	w.answer(dm, dm.Say(ann, "and again").ID, "re: and again")
	w.legal()
}

// Killed after the first of two calls: after the restart every call has a result, in its place, for good.
func TestC118KilledBetweenCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if lastWords(r) == "act" && len(r.LastResults()) == 0 {
			return script.Script{Parts: []script.Part{
				{Call: &script.Call{ID: "t1", Name: "write_file", Arguments: `{"path":"/mnt/user-data/workspace/a.txt","content":"x"}`}},
				{Call: &script.Call{ID: "t2", Name: "write_file", Arguments: `{"path":"/mnt/user-data/workspace/b.txt","content":"x"}`}},
			}}
		}
		return echo(r)
	})
	w.start("DEERBOT_CRASH=tool.running:2")
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	asked := dm.Say(ann, "act")
	w.died()
	w.start()
	w.answer(dm, asked.ID, "re: act")
	for _, words := range []string{"new text", "and more"} {
		w.answer(dm, dm.Say(ann, words).ID, "re: "+words)
		results := 0
		for _, m := range w.llm.Last().Messages {
			results += len(m.Results)
		}
		if results != 2 {
			t.Errorf("%d results for two calls", results)
		}
	}
	w.legal()
}

// An overload inside a stream that began well is tried again and never shown.
func TestC147OverloadInStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if r.N == 1 {
			return script.Script{StreamError: &script.Error{Type: "overloaded_error", Message: "Overloaded"}}
		}
		return echo(r)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "hello").ID, "re: hello")
	if got := said(dm); len(got) != 1 || got[0] != "re: hello" {
		t.Errorf("shown: %q", got)
	}
	for _, c := range w.tg.Calls("", dm.ID()) {
		if strings.Contains(c.Params["text"], "overloaded_error") || strings.Contains(c.Params["text"], "{") {
			t.Errorf("shown: %q", c.Params["text"])
		}
	}
}

// An overload after a part of the answer: what is seen in the end is one attempt's text.
func TestC148RetryAfterPartialOutput(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if r.N == 1 {
			return script.Script{Parts: []script.Part{{Text: "The answer is 4"}, {Wait: g.ch, Text: " "}}, StreamError: &script.Error{Type: "overloaded_error", Message: "Overloaded"}}
		}
		return script.Text("The answer is 42.")
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	asked := dm.Say(ann, "hello")
	w.answer(dm, asked.ID, "The answer is 4")
	g.open()
	w.answer(dm, asked.ID, "The answer is 42.")
	if got := said(dm); len(got) != 1 || got[0] != "The answer is 42." {
		t.Errorf("shown: %q", got)
	}
}

// /stop while a file is fetched: the message reaches no model, the confirmation is the last of it, and what follows is
// answered.
func TestC151StopInPreparation(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"/stop", "/new"} {
		t.Run(how[1:], func(t *testing.T) {
			t.Parallel()
			files := newGate(t)
			w := newWorld(t, telegram.Options{}, echo)
			w.start()
			ann := w.tg.Person("Ann", "ann")
			dm := w.tg.DM(ann)
			w.tg.Fail(telegram.Fault{Method: "getFile", Hold: files.ch})
			dm.Say(ann, "listen", telegram.Voice([]byte("OggS")))
			w.wait("taken", func() bool { return w.tg.Pending() == 0 })
			m, err := dm.Await(w.ctx(), dm.Say(ann, how).ID, isBot)
			if err != nil || !strings.Contains(strings.ToLower(m.Text), "stopped") {
				t.Fatalf("the confirmation is %q %v", m.Text, err)
			}
			files.open()
			w.answer(dm, dm.Say(ann, "a new prompt").ID, "re: a new prompt")
			if n := len(dm.BotMessages()); n != 2 {
				t.Errorf("shown: %s", show(dm))
			}
			if n := w.asked("listen"); n != 0 {
				t.Errorf("%d requests of a stopped message", n)
			}
			if strings.Contains(string(w.llm.Last().Body), "listen") {
				t.Error("the stopped message is in the history")
			}
		})
	}
}

// Messages that wait behind a stopped run are listed by the confirmation and answered.
func TestStopKeepsWaitingMessages(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if words := lastWords(r); words != "end" {
			return stages("begun "+words+".", g, "")
		}
		return echo(r)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	first := dm.Say(ann, "first")
	dm.Say(ann, "second *one*")
	dm.Say(ann, "third one")
	w.answer(dm, first.ID, "begun first.")
	m := w.answer(dm, dm.Say(ann, "/stop").ID, "Stopped")
	if !strings.Contains(m.Text, "third one") || !strings.Contains(m.Text, "second *one*") {
		t.Errorf("the confirmation is %q", m.Text)
	}
	w.answer(dm, m.ID, "begun second")
	g.open()
	w.answer(dm, m.ID, "begun third")
	w.answer(dm, dm.Say(ann, "end").ID, "re: end")
	w.legal()
}

// while_running: interrupt ends the run in favour of the newer message; reject says that the message was not taken.
func TestWhileRunning(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"interrupt", "reject"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
				if lastWords(r) == "first" {
					return stages("I begin.", g, " I end.")
				}
				return echo(r)
			})
			w.tgOpts = "while_running: " + policy
			w.start()
			ann := w.tg.Person("Ann", "ann")
			dm := w.tg.DM(ann)
			first := dm.Say(ann, "first")
			w.answer(dm, first.ID, "I begin.")
			second := dm.Say(ann, "second")
			if policy == "reject" {
				w.answer(dm, second.ID, "was not taken")
				g.open()
				w.answer(dm, first.ID, "I begin. I end.")
				w.answer(dm, dm.Say(ann, "third").ID, "re: third")
				if n := w.asked("second"); n != 0 || count(dm, "re: second") != 0 {
					t.Errorf("a rejected message was worked on")
				}
			} else {
				w.answer(dm, second.ID, "re: second")
				w.answer(dm, first.ID, "I begin.\n\n")
				if count(dm, "I end.") != 0 {
					t.Errorf("the interrupted run went on: %s", show(dm))
				}
			}
			w.legal()
		})
	}
}

// /retry runs the last turn again from the state before it; after /new there is nothing to retry.
func TestRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		return script.Text(fmt.Sprintf("answer %d to %s", r.N, lastWords(r)))
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "/retry").ID, "othing")
	w.answer(dm, dm.Say(ann, "one").ID, "answer 1 to one")
	w.answer(dm, dm.Say(ann, "two").ID, "answer 2 to two")
	w.answer(dm, dm.Say(ann, "/retry").ID, "answer 3 to two")
	var got []string
	for _, m := range w.llm.Last().Messages {
		got = append(got, m.Role+": "+firstLine(m.Text))
	}
	if want := []string{"user: one", "assistant: answer 1 to one", "user: two"}; !slices.Equal(got, want) {
		t.Errorf("asked with %q", got)
	}
	w.answer(dm, dm.Say(ann, "three").ID, "answer 4 to three")
	if body := string(w.llm.Last().Body); strings.Contains(body, "answer 2") || !strings.Contains(body, "answer 3") {
		t.Error("the retried answer is not the one that counts")
	}
	w.legal()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// /files lists what was made and sends one again.
func TestFilesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if len(r.LastResults()) == 0 && lastWords(r) == "make" {
			return script.Tool("c1", "write_file", map[string]any{"path": "/mnt/user-data/outputs/plan.md", "content": "# Plan"})
		}
		return echo(r)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	file := func(after int) telegram.Message {
		t.Helper()
		m, err := dm.Await(w.ctx(), after, func(m telegram.Message) bool { return m.Bot && len(m.Files) > 0 })
		if err != nil {
			t.Fatalf("no file: %v %s\n%s", err, show(dm), w.p.log)
		}
		return m
	}
	w.answer(dm, dm.Say(ann, "/files").ID, "o files")
	file(dm.Say(ann, "make").ID)
	w.answer(dm, dm.Say(ann, "/files").ID, "plan.md")
	asked := dm.Say(ann, "/files 1")
	if m := file(asked.ID); string(m.Files[0].Data) != "# Plan" {
		t.Errorf("sent %q", m.Files[0].Data)
	}
	w.answer(dm, dm.Say(ann, "/files 7").ID, "1")
	// The file is gone: the person is told.
	for p := range w.outputs() {
		remove(t, p)
	}
	w.answer(dm, dm.Say(ann, "/files 1").ID, "no longer there")
}

// /model chooses for this chat, by word and by button, also after a restart.
func TestModelChoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script { return script.Text("I am " + r.Model) })
	w.models = w.model("main") + ", " + w.model("fast") + ", " + w.model("deep")
	w.start()
	ann, bob := w.tg.Person("Ann", "ann"), w.tg.Person("Bob", "bob")
	dm, other := w.tg.DM(ann), w.tg.DM(bob)
	w.answer(dm, dm.Say(ann, "who").ID, "I am wire-main")
	w.answer(dm, dm.Say(ann, "/model FAST").ID, "fast")
	w.answer(dm, dm.Say(ann, "who").ID, "I am wire-fast")
	w.answer(other, other.Say(bob, "who").ID, "I am wire-main")
	list := w.answer(dm, dm.Say(ann, "/models").ID, "deep")
	p, err := dm.Press(ann, list.ID, "deep")
	if err != nil {
		t.Fatal(err)
	}
	w.answer(dm, list.ID, "deep")
	w.wait("the press is answered", func() bool { return w.tg.PressState(p.ID).Answered })
	w.answer(dm, dm.Say(ann, "who").ID, "I am wire-deep")
	w.stop()
	w.start()
	w.answer(dm, dm.Say(ann, "who").ID, "I am wire-deep")
	if m := w.answer(dm, dm.Say(ann, "/model daep").ID, "deep"); len(m.Buttons) == 0 {
		t.Errorf("no choice is offered: %q", m.Text)
	}
}

// An answer of more than twelve messages goes as a file, with its beginning as a message.
func TestVeryLongAnswer(t *testing.T) {
	t.Parallel()
	long := "The beginning.\n\n" + strings.Repeat("A paragraph of words that fill the many pages of this report.\n\n", 1200) + "The very end."
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script { return script.Text(long) })
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	asked := dm.Say(ann, "go")
	m, err := dm.Await(w.ctx(), asked.ID, func(m telegram.Message) bool { return m.Bot && len(m.Files) > 0 })
	if err != nil {
		t.Fatalf("no file: %v %s", err, show(dm))
	}
	if m.Files[0].Name != "answer.md" || strings.TrimSpace(string(m.Files[0].Data)) != long {
		t.Errorf("%s has %d bytes of %d", m.Files[0].Name, len(m.Files[0].Data), len(long))
	}
	got := said(dm)
	if len(got) != 2 || !strings.HasPrefix(got[0], "The beginning.") || !strings.Contains(got[0], "answer.md") {
		t.Errorf("%d messages, the first is %.200q", len(got), got[0])
	}
}

// A run longer than answer_new_after: the card shrinks to a line, and the answer is a new message.
func TestAnswerAsNewMessage(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script { return stages("It begins.", g, " It ends.") })
	w.tgOpts = "answer_new_after: 1s"
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	card := w.answer(dm, dm.Say(ann, "go").ID, "It begins.")
	g.open()
	m := w.answer(dm, card.ID, "It begins. It ends.")
	w.answer(dm, dm.Say(ann, "/status").ID, "Tokens")
	line, _ := dm.Message(card.ID)
	if strings.Contains(line.Text, "It begins") || !strings.HasPrefix(line.Text, "done in") || len(line.Buttons) != 0 {
		t.Errorf("the card is %q %v", line.Text, line.Buttons)
	}
	if m.Silent {
		t.Error("nobody is notified")
	}
}

// Without a language model the rehearsal answers, and says so.
func TestRehearsalInTelegram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, nil)
	w.models = "{name: rehearsal, provider: rehearsal}"
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	m, err := dm.Await(w.ctx(), dm.Say(ann, "hello there").ID, isBot)
	if err != nil || !strings.Contains(strings.ToLower(m.Text), "rehearsal") {
		t.Errorf("%q %v", m.Text, err)
	}
	if n, _ := w.llm.Count(); n != 0 {
		t.Errorf("%d requests", n)
	}
}
