package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/web"
	"deerbot/channels/web/internal/webtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// fixture is a running channel behind a real server.
type fixture struct {
	t     testing.TB
	ch    *web.Channel
	log   *webtest.Log
	inbox *webtest.Inbox
	dir   string
	srv   *httptest.Server
	stop  context.CancelFunc
}

func start(t testing.TB, change ...func(*web.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, log: &webtest.Log{}, inbox: &webtest.Inbox{}, dir: t.TempDir()}
	cfg := web.Config{Log: f.log, FilesDir: f.dir, Dialect: webtest.Dialect{}, MaxUpload: 1 << 20}
	for _, fn := range change {
		fn(&cfg)
	}
	var err error
	if f.ch, err = web.New(cfg); err != nil {
		t.Fatal(err)
	}
	f.srv = httptest.NewServer(f.ch)
	f.run()
	t.Cleanup(func() {
		f.stop()
		f.srv.Close()
	})
	return f
}

// run starts Run and waits until it takes messages.
func (f *fixture) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.ch.Run(ctx, f.inbox); err != nil {
			f.t.Errorf("Run: %v", err)
		}
	})
	f.stop = func() { cancel(); wg.Wait() }
	deadline := time.Now().Add(5 * time.Second)
	for !f.ch.Health().Connected {
		if time.Now().After(deadline) {
			f.t.Fatal("the channel does not come up")
		}
		time.Sleep(time.Millisecond) // waits for another goroutine's start, which tells nobody
	}
}

// do sends a request and decodes the answer.
func (f *fixture) do(method, path string, body any) (int, map[string]any) {
	f.t.Helper()
	var r io.Reader
	ct := ""
	switch b := body.(type) {
	case nil:
	case *form:
		r, ct = &b.buf, b.w.FormDataContentType()
	default:
		data, err := json.Marshal(b)
		if err != nil {
			f.t.Fatal(err)
		}
		r, ct = bytes.NewReader(data), "application/json"
	}
	req, err := http.NewRequest(method, f.srv.URL+path, r)
	if err != nil {
		f.t.Fatal(err)
	}
	if ct != "" {
		req.Header.Set("Content-Type", ct)
	}
	req.Header.Set("Accept-Language", "zh-CN,zh;q=0.9,en;q=0.8")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	var out map[string]any
	_ = json.NewDecoder(res.Body).Decode(&out)
	return res.StatusCode, out
}

func api(chat, rest string) string { return "/chat/api/conversations/" + chat + rest }

type m = map[string]any

type form struct {
	buf bytes.Buffer
	w   *multipart.Writer
}

func newForm(t testing.TB, fields ...string) *form {
	t.Helper()
	f := &form{}
	f.w = multipart.NewWriter(&f.buf)
	for i := 0; i < len(fields); i += 2 {
		if err := f.w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *form) file(name, content string) *form {
	w, _ := f.w.CreateFormFile("file", name)
	_, _ = io.WriteString(w, content)
	return f
}

func (f *form) done() *form {
	_ = f.w.Close()
	return f
}

func errCode(out map[string]any) string {
	e, _ := out["error"].(map[string]any)
	code, _ := e["code"].(string)
	return code
}

// send has the bot say something.
func (f *fixture) send(chat, text, key string) channels.Ref {
	f.t.Helper()
	ref, err := f.ch.Send(context.Background(), channels.Place{Channel: "web", Chat: chat}, message(text), key)
	if err != nil {
		f.t.Fatalf("Send: %v", err)
	}
	return ref
}

func message(text string) channels.Message {
	return channels.Message{Body: cards.Body{Text: text, Format: "html", Plain: text}}
}

func TestNewNamesEveryFault(t *testing.T) {
	_, err := web.New(web.Config{MaxUpload: -1})
	if err == nil {
		t.Fatal("an empty configuration was taken")
	}
	for _, want := range []string{"Log", "FilesDir", "Dialect", "MaxUpload"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %s", err, want)
		}
	}
}

func TestPostIsCommittedBeforeItIsAnswered(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	body := m{"client_id": "client-1", "text": "  hello <b>there</b>\n"}
	status, out := f.do("POST", api(chat, "/messages"), body)
	if status != http.StatusAccepted {
		t.Fatalf("first post: status %d, %v", status, out)
	}
	got := f.inbox.Got()
	if len(got) != 1 {
		t.Fatalf("the inbox has %d events, want 1", len(got))
	}
	in := got[0]
	if in.Place != (channels.Place{Channel: "web", Chat: chat}) || in.Text != "hello <b>there</b>" || in.ChatKind != "dm" ||
		in.Kind != channels.KindMessage || in.Sender.ID != "local" || in.Sender.Locale != "zh-CN" || in.MessageID != "client-1" {
		t.Errorf("inbound is %+v", in)
	}
	status, again := f.do("POST", api(chat, "/messages"), body)
	if status != http.StatusOK {
		t.Errorf("second post: status %d", status)
	}
	a, _ := json.Marshal(out)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Errorf("second answer differs:\n%s\n%s", a, b)
	}
	if n := len(f.inbox.Got()); n != 1 {
		t.Errorf("the inbox has %d events after a second post", n)
	}
	_, list := f.do("GET", api(chat, "/messages"), nil)
	if msgs := list["messages"].([]any); len(msgs) != 1 {
		t.Errorf("the log has %d messages", len(msgs))
	}
	_, convs := f.do("GET", "/chat/api/conversations", nil)
	first := convs["conversations"].([]any)[0].(map[string]any)
	if first["title"] != "hello <b>there</b>" || first["id"] != chat {
		t.Errorf("conversation is %v", first)
	}
}

func TestPostWhenTheInboxRefuses(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	f.inbox.Refuse(func(*channels.Inbound) error { return errors.New("disk full") })
	p := func() *form {
		return newForm(t, "client_id", "client-1", "text", "keep me").file("a.txt", "abc").done()
	}
	status, out := f.do("POST", api(chat, "/messages"), p())
	if status != http.StatusServiceUnavailable || errCode(out) != "unavailable" {
		t.Fatalf("status %d, %v", status, out)
	}
	_, list := f.do("GET", api(chat, "/messages"), nil)
	if got := list["messages"].([]any)[0].(map[string]any); got["deleted"] != true || got["text"] != nil {
		t.Errorf("a message that was not taken stays visible: %v", got)
	}
	f.inbox.Refuse(nil)
	if status, _ = f.do("POST", api(chat, "/messages"), p()); status != http.StatusAccepted {
		t.Fatalf("retry: status %d", status)
	}
	got := f.inbox.Got()
	if len(got) != 1 || got[0].Text != "keep me" || len(got[0].Attachments) != 1 {
		t.Fatalf("inbox after retry: %+v", got)
	}
	r, err := f.ch.Fetch(context.Background(), got[0].Attachments[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if data, _ := io.ReadAll(r); string(data) != "abc" {
		t.Errorf("file holds %q", data)
	}
}

func TestPostWhileNotRunning(t *testing.T) {
	f := start(t)
	f.stop()
	status, _ := f.do("POST", api(uuid.NewString(), "/messages"), m{"client_id": "client-1", "text": "x"})
	if status != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", status)
	}
	if len(f.inbox.Got()) != 0 {
		t.Error("a message was taken while not running")
	}
}

func TestPostRefusals(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	many := newForm(t, "client_id", "client-1")
	for range 11 {
		many.file("a.txt", "x")
	}
	tests := []struct {
		name   string
		path   string
		body   any
		status int
		code   string
	}{
		{"no id", api(chat, "/messages"), m{"text": "x"}, 400, "client_id"},
		{"id of the bot's form", api(chat, "/messages"), m{"client_id": "b-0123456789", "text": "x"}, 400, "client_id"},
		{"empty", api(chat, "/messages"), m{"client_id": "client-1", "text": " \n "}, 400, "empty"},
		{"text over 64 KB", api(chat, "/messages"), m{"client_id": "client-1", "text": strings.Repeat("x", web.MaxText+1)}, 413, "text_too_long"},
		{"long text in a form", api(chat, "/messages"), newForm(t, "client_id", "client-1", "text", strings.Repeat("é", web.MaxText)).done(), 413, "text_too_long"},
		{"huge JSON", api(chat, "/messages"), m{"client_id": "client-1", "text": strings.Repeat("x", 9*web.MaxText)}, 413, "too_large"},
		{"file too large", api(chat, "/messages"), newForm(t, "client_id", "client-1").file("a", strings.Repeat("x", 1<<20+1)).done(), 413, "file_too_large"},
		{"too many files", api(chat, "/messages"), many.done(), 413, "too_many_files"},
		{"file before id", api(chat, "/messages"), newForm(t).file("a", "x").done(), 400, "client_id"},
		{"cut form", api(chat, "/messages"), newForm(t, "client_id", "client-1").file("a", "x"), 400, "bad_form"},
		{"not a conversation", api("..%2f..", "/messages"), m{"client_id": "client-1", "text": "x"}, 404, "no_conversation"},
		{"id in another form", api("{"+chat+"}", "/messages"), m{"client_id": "client-1", "text": "x"}, 404, "no_conversation"},
		{"action of nothing", api(chat, "/actions"), m{"client_id": "client-1", "message_id": "b-1", "action": "stop:1"}, 404, "not_found"},
		{"action too long", api(chat, "/actions"), m{"client_id": "client-1", "message_id": "b-1", "action": strings.Repeat("x", 65)}, 400, "bad_action"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, out := f.do("POST", tt.path, tt.body)
			if status != tt.status || errCode(out) != tt.code {
				t.Errorf("got %d %v, want %d %s", status, out, tt.status, tt.code)
			}
		})
	}
	if n := len(f.inbox.Got()); n != 0 {
		t.Errorf("the inbox has %d events", n)
	}
	if left := filesIn(t, f.dir); len(left) != 0 {
		t.Errorf("refused uploads left %v", left)
	}
}

func TestTextAtTheLimitIsTaken(t *testing.T) {
	f := start(t)
	text := strings.Repeat("\u0001", web.MaxText) // six bytes each in JSON
	if status, out := f.do("POST", api(uuid.NewString(), "/messages"), m{"client_id": "client-1", "text": text}); status != 202 {
		t.Errorf("status %d, %v", status, out)
	}
}

func TestActionReachesTheInboxOnceAndIsAnswered(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	f.do("POST", api(chat, "/messages"), m{"client_id": "client-1", "text": "go"})
	ref := f.send(chat, "<p>card</p>", "k1")
	s := f.listen(chat, "0", "")
	defer s.close()
	press := m{"client_id": "press-0001", "message_id": ref.ID, "action": "stop:r1"}
	for range 2 {
		if status, out := f.do("POST", api(chat, "/actions"), press); status != http.StatusAccepted {
			t.Fatalf("status %d, %v", status, out)
		}
	}
	got := f.inbox.Got()
	if len(got) != 2 || got[1].Kind != channels.KindAction || got[1].MessageID != ref.ID || got[1].Action.Data != "stop:r1" {
		t.Fatalf("inbox: %+v", got)
	}
	if err := f.ch.AnswerAction(context.Background(), got[1].Action.ID, "Stopping"); err != nil {
		t.Fatal(err)
	}
	for {
		ev, ok := s.next()
		if !ok {
			t.Fatal("no notice came")
		}
		if ev.name == "notice" {
			if !strings.Contains(ev.data, `"text":"Stopping"`) || !strings.Contains(ev.data, `"action_id":"press-0001"`) {
				t.Errorf("notice is %s", ev.data)
			}
			break
		}
	}
	if status, out := f.do("POST", api(chat, "/actions"), m{"client_id": "press-0002", "message_id": "client-1", "action": "x"}); status != 409 {
		t.Errorf("a button on a person's message: %d %v", status, out)
	}
}

// stream is a reader of the event stream.
type stream struct {
	res *http.Response
	br  *bufio.Reader
	end context.CancelFunc
}

type sseEvent struct{ id, name, data string }

func (f *fixture) listen(chat, after, lastEventID string) *stream {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	path := api(chat, "/events")
	if after != "" {
		path += "?after=" + after
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.srv.URL+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		f.t.Fatalf("events: status %d", res.StatusCode)
	}
	return &stream{res: res, br: bufio.NewReader(res.Body), end: cancel}
}

func (s *stream) close() {
	s.end()
	_ = s.res.Body.Close()
}

// next returns the next event, false at the end of the stream.
func (s *stream) next() (sseEvent, bool) {
	var ev sseEvent
	for {
		line, err := s.br.ReadString('\n')
		if err != nil {
			return ev, false
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && ev.name != "":
			return ev, true
		case strings.HasPrefix(line, "id: "):
			ev.id = line[4:]
		case strings.HasPrefix(line, "event: "):
			ev.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			ev.data = line[6:]
		}
	}
}
