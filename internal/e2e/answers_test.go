package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"deerbot/channels"
	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
	"deerbot/store"
	"deerbot/store/boltstore"
)

// slow is an answer that is written for some time, so that a live card shows it.
func slow(text string, chunk int, delay time.Duration) script.Script {
	return script.Script{Parts: []script.Part{{Text: text}}, ChunkSize: chunk, ChunkDelay: delay}
}

// stages is an answer whose later parts wait for their gates.
func stages(first string, more ...any) script.Script {
	s := script.Script{Parts: []script.Part{{Text: first}}}
	for i := 0; i+1 < len(more); i += 2 {
		s.Parts = append(s.Parts, script.Part{Wait: more[i].(*gate).ch, Text: more[i+1].(string)})
	}
	return s
}

// place is a chat as the store names it.
func place(c *telegram.Chat) channels.Place {
	return channels.Place{Channel: "telegram", Chat: fmt.Sprint(c.ID())}
}

// finals are the records of the answers of a chat's runs, newest first.
func finals(t *testing.T, s *boltstore.Store, p channels.Place) []store.Outgoing {
	t.Helper()
	ctx := context.Background()
	conv, err := s.Conversation(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := s.ThreadRuns(ctx, conv.ThreadID, 100)
	if err != nil {
		t.Fatal(err)
	}
	var out []store.Outgoing
	for _, r := range runs {
		if rec, err := s.Outgoing(ctx, "run/"+r.ID+"/final"); err == nil {
			out = append(out, rec)
		}
	}
	return out
}

// Prose with an odd underscore is valid at once; a refused format is followed by one plain send of the same words.
func TestC001FormatRefused(t *testing.T) {
	t.Parallel()
	const prose = "The output dir is build_out and it is fine."
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script { return script.Text(prose) })
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "where").ID, prose)
	if n := len(w.tg.Calls("sendMessage", dm.ID())); n != 1 {
		t.Errorf("%d sends of valid text", n)
	}
	w.tg.ResetCalls()
	w.tg.Fail(telegram.Fault{Method: "sendMessage", Code: 400, Description: "Bad Request: can't parse entities: Can't find end of the entity starting at byte offset 23"})
	w.answer(dm, dm.Say(ann, "again").ID, prose)
	calls := w.tg.Calls("sendMessage", dm.ID())
	if len(calls) != 2 {
		t.Fatalf("%d sends, want a refused and a plain one", len(calls))
	}
	if calls[1].Params["parse_mode"] != "" || calls[1].Params["text"] != prose {
		t.Errorf("the retry is %q as %q", calls[1].Params["text"], calls[1].Params["parse_mode"])
	}
	if got := said(dm); len(got) != 2 || got[1] != prose {
		t.Errorf("shown: %q", got)
	}
}

// A 429 for an edit while the model writes: after the wait the whole answer is there.
func TestC040RateLimitDuringStream(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	tail := strings.Repeat("more of it. ", 75) + "The end."
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script { return stages("It begins. ", g, tail) })
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	asked := dm.Say(ann, "go")
	w.answer(dm, asked.ID, "It begins.")
	w.tg.Fail(telegram.Fault{Method: "editMessageText", Code: 429, RetryAfter: 3})
	g.open()
	m := w.answer(dm, asked.ID, "The end.")
	if want := "It begins. " + tail; m.Text != want {
		t.Errorf("the answer is %q", m.Text)
	}
	if n := len(dm.BotMessages()); n != 1 {
		t.Errorf("%d messages: %s", n, show(dm))
	}
}

// However long an answer grows, no edit repeats the one before it.
func TestC043NoIdleEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script {
		var b strings.Builder
		for i := 0; b.Len() < 20000; i++ {
			fmt.Fprintf(&b, "Sentence number %d of the long answer.\n\n", i)
		}
		return slow(b.String()+"The last word.", 100, 20*time.Millisecond)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "go").ID, "The last word.")
	last := map[int]string{}
	edits := 0
	for _, c := range w.tg.Calls("", dm.ID()) {
		if c.Method != "editMessageText" && c.Method != "sendMessage" {
			continue
		}
		if c.Code != 200 {
			t.Errorf("refused: %s", c.Description)
		}
		if c.Method == "editMessageText" {
			edits++
			if last[c.Message] == c.Params["text"]+c.Params["reply_markup"] {
				t.Errorf("an edit changed nothing")
			}
		}
		last[c.Message] = c.Params["text"] + c.Params["reply_markup"]
	}
	if edits == 0 {
		t.Error("no edit of a stream of four seconds")
	}
}

// An edit is under way for two seconds when the model ends: the last accepted text is the whole answer.
func TestC044EditInFlight(t *testing.T) {
	t.Parallel()
	g1, g2 := newGate(t), newGate(t)
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script {
		return stages("First words.", g1, " Then more.", g2, " And the end.")
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	asked := dm.Say(ann, "go")
	w.answer(dm, asked.ID, "First words.")
	w.tg.Fail(telegram.Fault{Method: "editMessageText", Delay: 2 * time.Second})
	g1.open()
	time.AfterFunc(1200*time.Millisecond, g2.open) // the edit of "Then more." has begun and is not back
	w.answer(dm, asked.ID, "And the end.")
	w.answer(dm, dm.Say(ann, "/status").ID, "Tokens")
	calls := w.tg.Calls("editMessageText", dm.ID())
	if last := calls[len(calls)-1]; !strings.Contains(last.Params["text"], "And the end.") {
		t.Errorf("the last edit is %q", last.Params["text"])
	}
	if n := count(dm, "First words. Then more. And the end."); n != 1 {
		t.Errorf("shown: %s", show(dm))
	}
}

// Errors of edits are told apart: a deleted card gives a new message, all others are tried again. One answer, no
// placeholder.
func TestC045EditErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault telegram.Fault
	}{
		{"gone", telegram.Fault{Times: 1, Code: 400, Description: "Bad Request: message to edit not found"}},
		{"limited", telegram.Fault{Times: 3, Code: 429, RetryAfter: 1}},
		{"gateway", telegram.Fault{Times: 3, Code: 502, Description: "Bad Gateway"}},
		{"page", telegram.Fault{Times: 2, Code: 502, Body: "<html>bad gateway</html>"}},
		{"cut", telegram.Fault{Times: 2, Drop: telegram.DropBefore}},
		{"answer lost", telegram.Fault{Times: 2, Drop: telegram.DropAfter}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script { return stages("It begins.", g, " It ends.") })
			w.start()
			ann := w.tg.Person("Ann", "ann")
			dm := w.tg.DM(ann)
			asked := dm.Say(ann, "go")
			card := w.answer(dm, asked.ID, "It begins.")
			c.fault.Method = "editMessageText"
			if c.name == "gone" {
				dm.Remove(card.ID)
			} else {
				w.tg.Fail(c.fault)
			}
			g.open()
			w.answer(dm, asked.ID, "It begins. It ends.")
			w.answer(dm, dm.Say(ann, "/status").ID, "Tokens")
			if got := said(dm); len(got) != 2 || got[0] != "It begins. It ends." {
				t.Errorf("shown: %q", got)
			}
		})
	}
}

// A person deletes the card while the run goes on: it is edited no more, the answer comes once, as a new message.
func TestC046CardDeleted(t *testing.T) {
	t.Parallel()
	g1, g2 := newGate(t), newGate(t)
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script {
		return stages("It begins.", g1, " It goes on.", g2, " It ends.")
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	asked := dm.Say(ann, "go")
	card := w.answer(dm, asked.ID, "It begins.")
	dm.Remove(card.ID)
	g1.open()
	w.wait("the edit is refused", func() bool {
		for _, c := range w.tg.Calls("editMessageText", dm.ID()) {
			if c.Code == 400 {
				return true
			}
		}
		return false
	})
	g2.open()
	w.answer(dm, card.ID, "It begins. It goes on. It ends.")
	w.answer(dm, dm.Say(ann, "/status").ID, "Tokens")
	refused := 0
	for _, c := range w.tg.Calls("editMessageText", dm.ID()) {
		if c.Code == 400 {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d edits of a deleted message", refused)
	}
	if n := count(dm, "It ends."); n != 1 {
		t.Errorf("shown: %s", show(dm))
	}
}

// A streamed answer of 9,000 characters: the card becomes its first part, and no sentence comes twice.
func TestC047LongAnswerOnce(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	n := 0
	for ; b.Len() < 9000; n++ {
		fmt.Fprintf(&b, "This is sentence <%d> of the answer. ", n)
		if n%5 == 4 {
			b.WriteString("\n\n")
		}
	}
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script { return slow(b.String(), 60, 15*time.Millisecond) })
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	asked := dm.Say(ann, "go")
	card := w.answer(dm, asked.ID, "sentence")
	w.answer(dm, card.ID, fmt.Sprintf("sentence <%d>", n-1))
	all := strings.Join(said(dm), "\n")
	for i := range n {
		if c := strings.Count(all, fmt.Sprintf("sentence <%d>", i)); c != 1 {
			t.Errorf("sentence %d is there %d times", i, c)
		}
	}
	ms := dm.BotMessages()
	if len(ms) != 3 || ms[0].ID != card.ID || !strings.HasPrefix(ms[0].Text, "This is sentence <0>") {
		t.Errorf("%d messages: %s", len(ms), show(dm))
	}
}

// Four texts between tool calls: each is shown exactly once.
func TestC048BlocksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		n := 0
		for _, m := range r.Messages {
			n += len(m.Results)
		}
		s := script.Text(fmt.Sprintf("This is block %d.", n+1))
		if n < 3 {
			s.Parts = append(s.Parts, script.Part{Call: &script.Call{
				ID: fmt.Sprint("c", n), Name: "todo", Arguments: fmt.Sprintf(`{"todos":[{"text":"step %d","status":"pending"}]}`, n),
			}})
		}
		return s
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "go").ID, "This is block 4.")
	w.answer(dm, dm.Say(ann, "/status").ID, "Tokens")
	all := strings.Join(said(dm), "\n")
	for i := 1; i <= 4; i++ {
		if n := strings.Count(all, fmt.Sprintf("This is block %d.", i)); n != 1 {
			t.Errorf("block %d is there %d times:\n%s", i, n, all)
		}
	}
	w.legal()
}

// Thinking inside the text is never sent, not even the beginning of its tag.
func TestC050ThinkTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script {
		return slow("<think>secret plan\n\nof many words</think>Answer 42 is what it comes to.", 1, 50*time.Millisecond)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "go").ID, "Answer 42 is what it comes to.")
	for _, c := range w.tg.Calls("", dm.ID()) {
		for _, bad := range []string{"secret", "many words", "<thi", "&lt;t", "think>"} {
			if strings.Contains(c.Params["text"], bad) {
				t.Errorf("%s: %q", c.Method, c.Params["text"])
			}
		}
	}
	if n := len(dm.BotMessages()); n != 1 {
		t.Errorf("%d messages", n)
	}
}

// Results with nothing to see end in a short notice, without a refused call; the bot goes on.
func TestC051C052NothingToSee(t *testing.T) {
	t.Parallel()
	empties := []string{" \n\t", "", "<br>", "\n<br/>\n", "** **", "```\n```", "<p></p>", "\u200b\u200b"}
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		var i int
		if _, err := fmt.Sscanf(lastWords(r), "empty %d", &i); err != nil {
			return echo(r)
		}
		if len(r.LastResults()) == 0 && i == 0 {
			return script.Tool("c1", "todo", `{"todos":[{"text":"a","status":"pending"}]}`)
		}
		return script.Text(empties[i])
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	for i := range empties {
		asked := dm.Say(ann, fmt.Sprintf("empty %d", i))
		m, err := dm.Await(w.ctx(), asked.ID, func(m telegram.Message) bool { return m.Bot })
		if err != nil {
			t.Fatalf("nothing was said of %q: %s", empties[i], w.p.log)
		}
		if strings.TrimSpace(m.Text) == "" {
			t.Errorf("%q became %q", empties[i], m.Text)
		}
	}
	w.answer(dm, dm.Say(ann, "well").ID, "re: well")
	for _, c := range w.tg.Calls("", dm.ID()) {
		if c.Code == 400 {
			t.Errorf("refused: %s %s", c.Method, c.Description)
		}
	}
	w.legal()
}

// An answer's send is carried out but its confirmation is lost: it goes once more, marked. When the connection was never
// made, nothing is marked. When the second is lost too, there is no third, and the record says that it is not known.
func TestC059LostConfirmation(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if lastWords(r) == "three" {
			<-g.ch
		}
		return echo(r)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.tg.Fail(telegram.Fault{Method: "sendMessage", Drop: telegram.DropAfter})
	w.answer(dm, dm.Say(ann, "one").ID, "Possibly a second copy")
	if got := said(dm); len(got) != 2 || got[0] != "re: one" || !strings.HasPrefix(got[1], "re: one") {
		t.Errorf("shown: %q", got)
	}
	w.tg.Fail(telegram.Fault{Method: "sendMessage", Drop: telegram.DropAfter, Times: 2})
	w.answer(dm, dm.Say(ann, "two").ID, "Possibly a second copy")
	w.waitLog("outcome unknown")
	if n := count(dm, "re: two"); n != 2 {
		t.Errorf("%d copies: %s", n, show(dm))
	}
	asked := dm.Say(ann, "three")
	w.wait("typing", func() bool { return len(dm.Actions()) > 0 })
	w.unplug()
	w.waitLog("connection refused")
	g.open()
	w.waitLog("a message was not delivered")
	w.plug()
	if m := w.answer(dm, asked.ID, "re: three"); m.Text != "re: three" {
		t.Errorf("the answer is %q", m.Text)
	}
	if n := count(dm, "re: three"); n != 1 {
		t.Errorf("%d copies: %s", n, show(dm))
	}
	w.stop()
	w.look(func(s *boltstore.Store) {
		recs := finals(t, s, place(dm))
		if len(recs) != 3 {
			t.Fatalf("%d records", len(recs))
		}
		if r := recs[1]; r.Parts[0].State == store.DeliverySent || !strings.Contains(r.Error, "unknown") {
			t.Errorf("the record of two says %s %q", r.Parts[0].State, r.Error)
		}
		if r := recs[0]; r.Parts[0].State != store.DeliverySent || r.Error != "" {
			t.Errorf("the record of three says %s %q", r.Parts[0].State, r.Error)
		}
		left, err := s.UnsettledInbound(context.Background())
		if err != nil || len(left) != 0 {
			t.Errorf("unsettled: %v %v", left, err)
		}
	})
}

// The working sign fails in every way: the answer comes all the same, and the sign ends with the run.
func TestC060TypingFails(t *testing.T) {
	t.Parallel()
	for _, f := range []telegram.Fault{
		{Code: 429, RetryAfter: 2},
		{Code: 403, Description: "Forbidden: bot was kicked from the group chat"},
		{Drop: telegram.DropBefore},
		{Delay: 3 * time.Second},
		{Code: 502, Body: "<html>"},
	} {
		t.Run(fmt.Sprint(f.Code, f.Drop, f.Delay), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
				s := echo(r)
				s.FirstDelay = 600 * time.Millisecond
				return s
			})
			w.start()
			ann := w.tg.Person("Ann", "ann")
			dm := w.tg.DM(ann)
			f.Method, f.Times = "sendChatAction", -1
			w.tg.Fail(f)
			w.answer(dm, dm.Say(ann, "one").ID, "re: one")
			w.answer(dm, dm.Say(ann, "two").ID, "re: two")
			if n := len(dm.BotMessages()); n != 2 {
				t.Errorf("shown: %s", show(dm))
			}
		})
	}
}
