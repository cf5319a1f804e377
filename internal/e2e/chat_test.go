package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
)

// A conversation with tools: a file goes in, a plan is made, a file is written and comes out, and the history is legal.
func TestConversationWithTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{Limits: telegram.RealLimits()}, func(r *script.Request) script.Script {
		if res := r.LastResults(); len(res) > 0 {
			switch {
			case strings.Contains(res[len(res)-1].Text, "alpha beta"):
				return script.Tool("c3", "present_files", map[string]any{"paths": []string{"/mnt/user-data/outputs/report.md"}})
			case len(r.Messages) < 5:
				return script.Tool("c2", "read_file", map[string]any{"path": "/mnt/user-data/uploads/" + uploadOf(r)})
			}
			return script.Text("Done. The **report** is attached.")
		}
		return script.Script{Parts: []script.Part{
			{Call: &script.Call{ID: "c0", Name: "todo", Arguments: `{"todos":[{"text":"read","status":"in_progress"},{"text":"write","status":"pending"}]}`}},
			{Call: &script.Call{ID: "c1", Name: "write_file", Arguments: `{"path":"/mnt/user-data/outputs/report.md","content":"# Report\n\nwords"}`}},
		}}
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	said := dm.Say(ann, "Please report on the file", telegram.Document("notes.txt", "text/plain", []byte("alpha beta\ngamma")))
	w.answer(dm, said.ID, "The report is attached")
	m, err := dm.Await(w.ctx(), said.ID, func(m telegram.Message) bool { return m.Bot && len(m.Files) > 0 })
	if err != nil {
		t.Fatalf("no file: %v %s\n%s", err, show(dm), w.p.log)
	}
	if string(m.Files[0].Data) != "# Report\n\nwords" || m.Files[0].Name != "report.md" {
		t.Errorf("file %q = %q", m.Files[0].Name, m.Files[0].Data)
	}
	if _, refused := w.llm.Count(); refused != 0 {
		t.Errorf("%d requests were refused as illegal", refused)
	}
	if n := w.tg.Counts()["429"]; n != 0 {
		t.Errorf("%d calls were over the limits", n)
	}
	w.stop()
}

func uploadOf(r *script.Request) string {
	for _, m := range r.Messages {
		if i := strings.Index(m.Text, "/mnt/user-data/uploads/"); i >= 0 {
			rest := m.Text[i+len("/mnt/user-data/uploads/"):]
			if j := strings.IndexAny(rest, " \n"); j >= 0 {
				return rest[:j]
			}
		}
	}
	return "missing"
}

// A 20 KB Markdown answer arrives whole: every word, fences closed in each message, nothing refused.
func TestLongMarkdownAnswer(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	n := 0
	for b.Len() < 20<<10 {
		fmt.Fprintf(&b, "## Part %d\n\nSome **bold%d** and `code%d` with [link%d](https://e.example/%d) and 中文**重点%d。**然后。\n\n", n, n, n, n, n, n)
		fmt.Fprintf(&b, "```go\nfunc f%d() int {\n\treturn %d // a < b && c\n}\n```\n\n- item%d\n  - nested%d\n\n", n, n, n, n)
		n++
	}
	w := newWorld(t, telegram.Options{Limits: telegram.RealLimits()}, func(*script.Request) script.Script {
		return script.Script{Parts: []script.Part{{Text: b.String()}}, ChunkSize: 400}
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	said := dm.Say(ann, "write much")
	w.answer(dm, said.ID, fmt.Sprintf("nested%d", n-1))
	var all strings.Builder
	for _, m := range dm.BotMessages() {
		all.WriteString(m.Text)
		all.WriteByte('\n')
	}
	for i := range n {
		for _, word := range []string{"bold", "code", "link", "重点", "item", "nested"} {
			if !strings.Contains(all.String(), fmt.Sprintf("%s%d", word, i)) {
				t.Fatalf("%s%d is missing in %d messages", word, i, len(dm.BotMessages()))
			}
		}
		if !strings.Contains(all.String(), fmt.Sprintf("return %d // a < b && c", i)) {
			t.Fatalf("code %d is missing", i)
		}
	}
	for _, c := range w.tg.Calls("", 0) {
		if c.Code == 400 {
			t.Errorf("refused: %s %s", c.Method, c.Description)
		}
	}
}

// /new forgets, before and after a restart; /status answers; the old thread's words never reach the new one. (C109, C110).
func TestC109NewForgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, echo)
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "my code word is plum").ID, "re: my code word is plum")
	w.answer(dm, dm.Say(ann, "/status").ID, "Tokens")
	said := dm.Say(ann, "/new")
	if _, err := dm.Await(w.ctx(), said.ID, func(m telegram.Message) bool { return m.Bot }); err != nil {
		t.Fatal(err)
	}
	w.answer(dm, dm.Say(ann, "what is it").ID, "re: what is it")
	if strings.Contains(string(w.llm.Last().Body), "plum") {
		t.Error("the model still knows after /new")
	}
	w.p.kill()
	w.start()
	w.answer(dm, dm.Say(ann, "and now").ID, "re: and now")
	if strings.Contains(string(w.llm.Last().Body), "plum") {
		t.Error("the restart undid /new")
	}
}

// /stop in the middle of a stream ends it at once, keeps the partial text, and nothing more of it comes.
func TestStopMidStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if strings.Contains(lastWords(r), "long") {
			return script.Script{Parts: []script.Part{{Text: strings.Repeat("word ", 4000)}}, ChunkSize: 10, ChunkDelay: 20 * time.Millisecond}
		}
		return echo(r)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	said := dm.Say(ann, "a long one")
	w.answer(dm, said.ID, "word word word")
	asked := time.Now()
	stop := dm.Say(ann, "/stop")
	confirmed, err := dm.Await(w.ctx(), stop.ID, func(m telegram.Message) bool { return m.Bot })
	if err != nil {
		t.Fatalf("no confirmation: %v", err)
	}
	if d := time.Since(asked); d > 2*time.Second {
		t.Errorf("stopping took %v", d)
	}
	before := dm.Messages()
	w.answer(dm, dm.Say(ann, "short").ID, "re: short")
	for _, m := range before {
		if now, ok := dm.Message(m.ID); ok && now.Text != m.Text {
			t.Errorf("message %d changed after the stop was confirmed (%d): %q -> %q", m.ID, confirmed.ID, m.Text, now.Text)
		}
	}
	if !strings.Contains(show(dm), "word word") {
		t.Error("the partial text is gone")
	}
}

// Two chats at once do not wait for each other.
func TestTwoChatsAtOnce(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if lastWords(r) == "slow" {
			<-hold
		}
		return echo(r)
	})
	w.start()
	ann, bob := w.tg.Person("Ann", "ann"), w.tg.Person("Bob", "bob")
	a, b := w.tg.DM(ann), w.tg.DM(bob)
	sa := a.Say(ann, "slow")
	w.answer(b, b.Say(bob, "quick").ID, "re: quick")
	close(hold)
	w.answer(a, sa.ID, "re: slow")
}

// A storm of 429s: every answer arrives once, no call is made before retry_after has passed. (C040, C041).
func TestC041RateStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		return script.Script{Parts: []script.Part{{Text: strings.Repeat("flood ", 300) + "end of " + lastWords(r)}}, ChunkSize: 20, ChunkDelay: 25 * time.Millisecond}
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.tg.Fail(telegram.Fault{Method: "editMessageText", Times: 3, Code: 429, RetryAfter: 2})
	w.tg.Fail(telegram.Fault{Method: "sendChatAction", Times: 1, Code: 429, RetryAfter: 1})
	said := dm.Say(ann, "go")
	w.answer(dm, said.ID, "end of go")
	if n := count(dm, "end of go"); n != 1 {
		t.Errorf("%d answers: %s", n, show(dm))
	}
	var until time.Time
	for _, c := range w.tg.Calls("", dm.ID()) {
		if c.At.Before(until) {
			t.Errorf("%s %v before the penalty was over", c.Method, until.Sub(c.At))
		}
		if c.Code == 429 {
			until = c.At.Add(time.Duration(c.RetryAfter) * time.Second)
		}
	}
}

// An edit refused as not modified is success: one message, no retry. (C037, C038).
func TestC037NotModified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		return script.Script{Parts: []script.Part{{Text: "slowly said"}}, ChunkSize: 3, ChunkDelay: 900 * time.Millisecond}
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.tg.Fail(telegram.Fault{Method: "editMessageText", Times: 2, Code: 400, Description: "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"})
	said := dm.Say(ann, "go")
	w.answer(dm, said.ID, "slowly said")
	if n := len(dm.BotMessages()); n != 1 {
		t.Errorf("%d messages: %s", n, show(dm))
	}
}

func count(c *telegram.Chat, text string) int {
	n := 0
	for _, m := range c.BotMessages() {
		if strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// A thousand times a message arrives in the very tail of the turn before it: every one is answered, once, in order.
func TestTailMessages(t *testing.T) {
	t.Parallel()
	const chats, turns = 10, 100
	w := newWorld(t, telegram.Options{CallLog: -1}, nil)
	type talk struct {
		dm   *telegram.Chat
		user *telegram.User
		next int
		mu   sync.Mutex
	}
	talks := map[string]*talk{}
	w.llm.Keep = -1
	w.llm.Respond = func(r *script.Request) script.Script {
		words := lastWords(r)
		var chat, n int
		if _, err := fmt.Sscanf(words, "chat %d message %d", &chat, &n); err == nil && n+1 < turns {
			tk := talks[fmt.Sprint(chat)]
			// The next message comes some instants around the end of this answer.
			time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, func() {
				tk.mu.Lock()
				defer tk.mu.Unlock()
				if tk.next == n+1 {
					tk.next++
					tk.dm.Say(tk.user, fmt.Sprintf("chat %d message %d", chat, n+1))
				}
			})
		}
		return echo(r)
	}
	for i := range chats {
		u := w.tg.Person(fmt.Sprintf("User %d", i), "")
		talks[fmt.Sprint(i)] = &talk{dm: w.tg.DM(u), user: u, next: 1}
	}
	w.start()
	for i := range chats {
		tk := talks[fmt.Sprint(i)]
		tk.dm.Say(tk.user, fmt.Sprintf("chat %d message 0", i))
	}
	for i := range chats {
		tk := talks[fmt.Sprint(i)]
		w.answer(tk.dm, 0, fmt.Sprintf("re: chat %d message %d", i, turns-1))
		var got []string
		for _, m := range tk.dm.BotMessages() {
			got = append(got, m.Text)
		}
		if len(got) != turns {
			t.Fatalf("chat %d: %d answers to %d messages", i, len(got), turns)
		}
		for n, text := range got {
			if want := fmt.Sprintf("re: chat %d message %d", i, n); text != want {
				t.Fatalf("chat %d: answer %d is %q", i, n, text)
			}
		}
	}
}
