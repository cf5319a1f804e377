package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"deerbot/internal/wire/anthropic"
	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
)

// shown is a message of the web chat as its page receives it.
type shown struct {
	ID    string `json:"id"`
	Rev   uint64 `json:"rev"`
	From  string `json:"from"`
	HTML  string `json:"html"`
	Files []struct {
		Name string `json:"name"`
		Size int64  `json:"size"`
		URL  string `json:"url"`
	} `json:"files"`
	Buttons [][]struct {
		Action string `json:"action"`
	} `json:"buttons"`
	Deleted bool `json:"deleted"`
}

// browser is what the page does: it posts, and follows the events from the last revision it saw.
type browser struct {
	t    *testing.T
	w    *world
	chat string
	rev  uint64
	now  map[string]shown // messages as last heard
	ids  []string         // in the order of their first appearance
}

func newBrowser(t *testing.T, w *world) *browser {
	return &browser{t: t, w: w, chat: uuid.NewString(), now: map[string]shown{}}
}

// bare runs the daemon with an empty environment but env, and a file that chooses the port and nothing else.
func (w *world) bare(env ...string) {
	w.t.Helper()
	if err := os.WriteFile(w.file(), []byte("server: {listen: \"127.0.0.1:0\"}\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	p := w.exec(env...)
	for deadline := time.Now().Add(patience); ; {
		if res, err := http.Get(p.url + "/readyz"); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-p.done:
			w.t.Fatalf("the daemon ended: %v\n%s", p.err, p.log)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not ready:\n%s", p.log)
		}
	}
}

func (b *browser) url(path string) string { return strings.TrimRight(b.w.p.url, "/") + path }

// post says something and returns once the daemon has committed it.
func (b *browser) post(text string) {
	b.t.Helper()
	body, err := json.Marshal(map[string]string{"client_id": uuid.NewString(), "text": text})
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := http.Post(b.url("/chat/api/conversations/"+b.chat+"/messages"), "application/json", bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		answer, _ := io.ReadAll(res.Body)
		b.t.Fatalf("posting: %s: %s", res.Status, answer)
	}
}

// until follows the event stream until a message of the bot is as done wants it.
func (b *browser) until(what string, done func(shown) bool) shown {
	b.t.Helper()
	for _, id := range b.ids {
		if m := b.now[id]; m.From == "bot" && done(m) {
			return m
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url("/chat/api/conversations/"+b.chat+"/events"), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", strconv.FormatUint(b.rev, 10))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	event := ""
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			b.t.Fatalf("%s did not come: %v\nshown: %s\nlog:\n%s", what, err, b.show(), b.w.p.log)
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "event":
			event = value
		case "data":
			if event != "message" {
				continue
			}
			var m shown
			if err := json.Unmarshal([]byte(value), &m); err != nil {
				b.t.Fatal(err)
			}
			b.hear(m)
			if m.From == "bot" && done(m) {
				return m
			}
		}
	}
}

func (b *browser) hear(m shown) {
	b.t.Helper()
	if m.Rev <= b.rev {
		b.t.Errorf("revision %d came after %d", m.Rev, b.rev)
	}
	b.rev = m.Rev
	if _, ok := b.now[m.ID]; !ok {
		b.ids = append(b.ids, m.ID)
	}
	b.now[m.ID] = m
}

// reload loads the conversation anew, as a page that was reloaded does, and returns what the bot said.
func (b *browser) reload() []shown {
	b.t.Helper()
	res, err := http.Get(b.url("/chat/api/conversations/" + b.chat + "/messages"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	var page struct{ Messages []shown }
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil {
		b.t.Fatal(err)
	}
	var out []shown
	for _, m := range page.Messages {
		if m.From == "bot" && !m.Deleted {
			out = append(out, m)
		}
	}
	return out
}

func (b *browser) show() string {
	var out strings.Builder
	for _, id := range b.ids {
		fmt.Fprintf(&out, "\n  %s: %.300q %v", b.now[id].From, b.now[id].HTML, b.now[id].Files)
	}
	return out.String()
}

// has is a condition for until.
func has(text string) func(shown) bool {
	return func(m shown) bool { return strings.Contains(m.HTML, text) }
}

// download fetches a file of a message.
func (b *browser) download(m shown) string {
	b.t.Helper()
	res, err := http.Get(b.url(m.Files[0].URL + "?download=1"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("download: %s, %v", res.Status, err)
	}
	if d := res.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") {
		b.t.Errorf("Content-Disposition is %q", d)
	}
	return string(got)
}

// TestWebRehearsal: with nothing configured the rehearsal answers in the browser, says what it is, and writes a file that
// can be downloaded; all of it is there after a kill.
func TestWebRehearsal(t *testing.T) {
	t.Parallel()
	if c, err := net.DialTimeout("tcp", "127.0.0.1:11434", time.Second); err == nil {
		c.Close()
		t.Skip("an Ollama runs here, and would be used")
	}
	w := newWorld(t, telegram.Options{}, echo)
	w.bare()
	b := newBrowser(t, w)
	b.post("Compare three wasm runtimes and write me a small report")
	b.until("the answer", has("no language model is connected"))
	file := b.until("the file", func(m shown) bool { return len(m.Files) > 0 })
	got := b.download(file)
	if !strings.Contains(got, "> Compare three wasm runtimes and write me a small report") || int64(len(got)) != file.Files[0].Size {
		t.Errorf("the file is %q, announced with %d bytes", got, file.Files[0].Size)
	}
	onDisk, err := filepath.Glob(filepath.Join(w.dir, "data", "threads", "*", "outputs", file.Files[0].Name))
	if err != nil || len(onDisk) != 1 {
		t.Fatalf("files of the thread: %v, %v", onDisk, err)
	}
	if want, _ := os.ReadFile(onDisk[0]); string(want) != got {
		t.Errorf("downloaded %q, the agent wrote %q", got, want)
	}
	if !strings.Contains(b.show(), "Rehearsal: ") {
		t.Errorf("the answer is not labelled: %s", b.show())
	}
	before := b.reload()

	w.p.kill()
	w.bare()
	after := b.reload()
	if len(before) != 2 || len(after) != len(before) {
		t.Errorf("%d messages before the kill, %d after it; want 2", len(before), len(after))
	}
	if again := b.download(file); again != got {
		t.Errorf("after the kill the file is %q", again)
	}
	b.post("/whoami")
	b.until("the answer of a command", has("local"))
	w.stop()
}

// TestWebKilledMidAnswer: killed in the middle of an answer, the daemon goes on by itself at the next start; the page
// catches up from the last revision it saw, and the answer is there once. The model is the one behind OPENAI_BASE_URL.
func TestWebKilledMidAnswer(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	drawn, never := make(chan struct{}), make(chan struct{})
	w := newWorld(t, telegram.Options{}, func(*script.Request) script.Script {
		if calls.Add(1) == 1 { // the first call stays open until the kill
			return script.Script{Parts: []script.Part{
				{Text: "the first half"}, {Text: " and a little", Wait: drawn}, {Text: " and never this", Wait: never},
			}}
		}
		return script.Text("the whole answer")
	})
	w.llm.NoAuth = true
	t.Cleanup(func() { close(never) })
	env := "OPENAI_BASE_URL=" + w.llmURL + "/v1"
	w.bare(env)
	b := newBrowser(t, w)
	b.post("go on")
	card := b.until("the live card", has("the first half"))
	close(drawn)
	b.until("an edit of the card", has("and a little"))
	if len(card.Buttons) == 0 || !strings.HasPrefix(card.Buttons[0][0].Action, "stop") {
		t.Errorf("the card has the buttons %v, want one that stops", card.Buttons)
	}

	w.p.kill()
	w.bare(env)
	b.until("the rest", func(m shown) bool {
		return strings.Contains(m.HTML, "the whole answer") && len(m.Buttons) == 0
	})
	b.post("/status") // a command is answered after all that was to be said before it
	b.until("the status", has("Nothing is running"))
	var all strings.Builder
	for _, m := range b.reload() {
		all.WriteString(m.HTML)
	}
	text := all.String()
	if n := strings.Count(text, "the whole answer"); n != 1 {
		t.Errorf("the answer is there %d times: %s", n, text)
	}
	if strings.Contains(text, "the first half") {
		t.Errorf("the cut attempt is still shown: %s", text)
	}
	if !strings.Contains(text, "Picked up after a restart") {
		t.Errorf("the restart is not told: %s", text)
	}
	if got := w.llm.Last(); got == nil || got.Model != "wire" || got.Header.Get("Authorization") != "" {
		t.Errorf("the model was asked with %+v", got)
	}
	w.stop()
}

// TestWebAnthropic: ANTHROPIC_BASE_URL alone makes that server the model.
func TestWebAnthropic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, echo)
	llm := &anthropic.Server{Respond: echo}
	srv := httptest.NewServer(llm)
	t.Cleanup(srv.Close)
	w.bare("ANTHROPIC_BASE_URL="+srv.URL, "ANTHROPIC_API_KEY=k")
	b := newBrowser(t, w)
	b.post("good morning,\n\"you\" \U0001F469\u200d\U0001F4BB")
	b.until("the answer", has("re: good morning"))
	if got := llm.Last().LastUser(); got != "good morning,\n\"you\" \U0001F469\u200d\U0001F4BB" {
		t.Errorf("the model was told %q", got)
	}
	if n, refused := llm.Count(); n != 1 || refused != 0 {
		t.Errorf("%d requests, %d refused", n, refused)
	}
	w.stop()
}
