package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caller calls a server like a bot.
type caller struct {
	t    *testing.T
	s    *Server
	base string
}

func serve(t *testing.T, o Options) *caller {
	s := New(o)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Cut()
		ts.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &caller{t, s, ts.URL + "/bot" + s.Token() + "/"}
}

type got struct {
	OK          bool
	Result      json.RawMessage
	ErrorCode   int `json:"error_code"`
	Description string
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	}
}

func (c *caller) call(method string, params map[string]any) got {
	c.t.Helper()
	body, _ := json.Marshal(params)
	resp, err := http.Post(c.base+method, "application/json", bytes.NewReader(body))
	return c.read(resp, err)
}

func (c *caller) read(resp *http.Response, err error) got {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var g got
	if err := json.NewDecoder(resp.Body).Decode(&g); err != nil {
		c.t.Fatal(err)
	}
	return g
}

func TestRefusals(t *testing.T) {
	c := serve(t, Options{})
	ann := c.s.Person("Ann", "ann")
	dm, group, forum := c.s.DM(ann), c.s.Group("G"), c.s.Forum("F")
	theirs := dm.Say(ann, "mine")
	mine := c.call("sendMessage", map[string]any{"chat_id": dm.ID(), "text": "hello"})
	var m struct {
		ID int `json:"message_id"`
	}
	_ = json.Unmarshal(mine.Result, &m)
	edit := func(id int, text string) map[string]any {
		return map[string]any{"chat_id": dm.ID(), "message_id": id, "text": text}
	}
	keys := func(data string) map[string]any {
		return map[string]any{"inline_keyboard": [][]map[string]string{{{"text": "x", "callback_data": data}}}}
	}
	tests := []struct {
		method string
		params map[string]any
		code   int
		want   string
	}{
		{"sendMessage", map[string]any{"text": "x"}, 400, "Bad Request: chat_id is empty"},
		{"sendMessage", map[string]any{"chat_id": 1, "text": "x"}, 400, "Bad Request: chat not found"},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": " \n "}, 400, "Bad Request: message text is empty"},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": strings.Repeat("👋", 2049)}, 400, "Bad Request: message is too long"},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": strings.Repeat("👋", 2048)}, 200, ""},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": "<b>" + strings.Repeat("x", 4096) + "</b>", "parse_mode": "HTML"}, 200, ""},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": "<b>x", "parse_mode": "HTML"}, 400, "Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"b\""},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": "x", "reply_markup": keys(strings.Repeat("é", 33))}, 400, "Bad Request: BUTTON_DATA_INVALID"},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": "x", "reply_markup": keys("")}, 400, "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": "x", "reply_parameters": map[string]any{"message_id": 9999}}, 400, "Bad Request: message to be replied not found"},
		{"sendMessage", map[string]any{"chat_id": dm.ID(), "text": "x", "reply_parameters": map[string]any{"message_id": 9999, "allow_sending_without_reply": true}}, 200, ""},
		{"sendMessage", map[string]any{"chat_id": forum.ID(), "text": "x", "message_thread_id": 1}, 400, "Bad Request: message thread not found"},
		{"sendMessage", map[string]any{"chat_id": forum.ID(), "text": "x"}, 200, ""},
		{"sendChatAction", map[string]any{"chat_id": forum.ID(), "action": "typing", "message_thread_id": 1}, 200, ""},
		{"sendChatAction", map[string]any{"chat_id": dm.ID(), "action": "dancing"}, 400, "Bad Request: wrong parameter action in request"},
		{"editMessageText", edit(m.ID, "hello"), 400, "Bad Request: " + textNotModified},
		{"editMessageText", edit(m.ID, "hello!"), 200, ""},
		{"editMessageText", edit(9999, "x"), 400, "Bad Request: message to edit not found"},
		{"editMessageText", edit(theirs.ID, "x"), 400, "Bad Request: message can't be edited"},
		{"editMessageText", edit(0, "x"), 400, "Bad Request: message identifier is not specified"},
		{"editMessageCaption", map[string]any{"chat_id": dm.ID(), "message_id": m.ID, "caption": "x"}, 400, "Bad Request: there is no caption in the message to edit"},
		{"deleteMessage", map[string]any{"chat_id": dm.ID(), "message_id": m.ID}, 200, ""},
		{"deleteMessage", map[string]any{"chat_id": dm.ID(), "message_id": m.ID}, 400, "Bad Request: message to delete not found"},
		{"answerCallbackQuery", map[string]any{"callback_query_id": "1"}, 400, "Bad Request: query is too old and response timeout expired or query ID is invalid"},
		{"setMyCommands", map[string]any{"commands": []Command{{"Bad", "x"}}}, 400, "Bad Request: BOT_COMMAND_INVALID"},
		{"sendRichMessage", map[string]any{"chat_id": dm.ID()}, 404, "Not Found: method not found"},
		{"GETME", nil, 200, ""},
	}
	for _, tt := range tests {
		g := c.call(tt.method, tt.params)
		if g.OK != (tt.code == 200) || !g.OK && g.ErrorCode != tt.code || g.Description != tt.want {
			t.Errorf("%s %v: %d %s, want %d %s", tt.method, tt.params, g.ErrorCode, g.Description, tt.code, tt.want)
		}
	}
	for st, want := range map[State]string{
		Blocked: "Forbidden: bot was blocked by the user", Deactivated: "Forbidden: user is deactivated",
		Kicked: "Forbidden: bot was kicked from the group chat", ReadOnly: "Bad Request: not enough rights to send text messages to the chat",
	} {
		group.SetState(st)
		if g := c.call("sendMessage", map[string]any{"chat_id": group.ID(), "text": "x"}); g.Description != want {
			t.Errorf("%s: %s", st, g.Description)
		}
	}
	group.SetState(Open)
	super := group.Upgrade(ann)
	g := c.call("sendMessage", map[string]any{"chat_id": group.ID(), "text": "x"})
	if g.Parameters.MigrateTo != super.ID() || g.Description != "Bad Request: group chat was upgraded to a supergroup chat" {
		t.Errorf("upgraded: %+v", g)
	}
}

func TestTokens(t *testing.T) {
	c := serve(t, Options{})
	host, _, _ := strings.Cut(c.base, "/bot")
	for token, want := range map[string]int{"700001:other": 401, "nonsense": 404, "x:y": 404} {
		resp, err := http.Get(host + "/bot" + token + "/getMe")
		if g := c.read(resp, err); g.ErrorCode != want || resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", token, g.ErrorCode, want)
		}
	}
}

// Parameters may come as JSON, form, multipart or in the query.
func TestEncodings(t *testing.T) {
	c := serve(t, Options{})
	dm := c.s.DM(c.s.Person("Ann", ""))
	form := url.Values{"chat_id": {dm.Key()}, "text": {"by form"}, "disable_notification": {"true"}}
	if g := c.read(http.PostForm(c.base+"sendMessage", form)); !g.OK {
		t.Errorf("form: %+v", g)
	}
	form.Set("text", "by query")
	if g := c.read(http.Get(c.base + "sendMessage?" + form.Encode())); !g.OK {
		t.Errorf("query: %+v", g)
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("chat_id", dm.Key())
	_ = w.WriteField("caption", "by multipart")
	p, _ := w.CreateFormFile("document", "a.txt")
	_, _ = io.WriteString(p, "content")
	w.Close()
	if g := c.read(http.Post(c.base+"sendDocument", w.FormDataContentType(), &b)); !g.OK {
		t.Errorf("multipart: %+v", g)
	}
	got := dm.Messages()
	if len(got) != 3 || !got[0].Silent || got[2].Text != "by multipart" || string(got[2].Files[0].Data) != "content" {
		t.Errorf("messages: %+v", got)
	}
}

func TestUpdatesAreKeptUntilConfirmed(t *testing.T) {
	c := serve(t, Options{})
	ann := c.s.Person("Ann", "")
	for i := range 5 {
		c.s.DM(ann).Say(ann, fmt.Sprint(i))
	}
	ids := func(params map[string]any) (out []int64) {
		var us []struct {
			ID int64 `json:"update_id"`
		}
		_ = json.Unmarshal(c.call("getUpdates", params).Result, &us)
		for _, u := range us {
			out = append(out, u.ID)
		}
		return out
	}
	a := ids(map[string]any{"limit": 2})
	if b := ids(nil); len(a) != 2 || len(b) != 5 || a[0] != b[0] {
		t.Errorf("%v, then %v", a, b)
	}
	if b := ids(map[string]any{"offset": a[1] + 1}); len(b) != 3 || b[0] != a[1]+1 || c.s.Pending() != 3 {
		t.Errorf("after confirming: %v", b)
	}
	if b := ids(map[string]any{"offset": -1}); len(b) != 1 || b[0] != a[0]+4 {
		t.Errorf("the last only: %v", b)
	}
	if b := ids(map[string]any{"offset": a[0] + 5, "allowed_updates": []string{"callback_query"}}); len(b) != 0 {
		t.Errorf("nothing is left, got %v", b)
	}
	c.s.DM(ann).Say(ann, "not wanted")
	if n := c.s.Pending(); n != 0 {
		t.Errorf("%d updates of a kind that is not wanted", n)
	}
}

func TestLongPollConflictAndWebhook(t *testing.T) {
	c := serve(t, Options{})
	old := make(chan got)
	go func() { old <- c.call("getUpdates", map[string]any{"timeout": 50}) }()
	c.waitFor(func() bool { c.s.mu.Lock(); defer c.s.mu.Unlock(); return c.s.poll != nil })
	fresh := make(chan got)
	go func() { fresh <- c.call("getUpdates", map[string]any{"timeout": 50}) }()
	if g := <-old; g.ErrorCode != 409 || g.Description != "Conflict: "+textConflict {
		t.Errorf("older poll: %+v", g)
	}
	ann := c.s.Person("Ann", "")
	c.waitFor(func() bool { c.s.mu.Lock(); defer c.s.mu.Unlock(); return c.s.poll != nil })
	c.s.DM(ann).Say(ann, "wake up")
	if g := <-fresh; !g.OK || !strings.Contains(string(g.Result), "wake up") {
		t.Errorf("newer poll: %+v", g)
	}
	c.s.SetWebhook("https://e.org")
	if g := c.call("getUpdates", nil); g.ErrorCode != 409 || g.Description != "Conflict: "+textWebhook {
		t.Errorf("with a webhook: %+v", g)
	}
	if g := c.call("deleteWebhook", nil); !g.OK {
		t.Errorf("deleteWebhook: %+v", g)
	}
}

// waitFor looks at states inside the server that have no event.
func (c *caller) waitFor(ok func() bool) {
	for i := 0; !ok(); i++ {
		if i > 10_000 {
			c.t.Fatal("it did not happen")
		}
		<-time.After(time.Millisecond)
	}
}

func TestRates(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := serve(t, Options{Limits: RealLimits(), Now: func() time.Time { return now }})
	ann := c.s.Person("Ann", "")
	dm, group := c.s.DM(ann), c.s.Group("G")
	send := func(ch *Chat) got {
		return c.call("sendMessage", map[string]any{"chat_id": ch.ID(), "text": "x"})
	}
	for i := range 5 {
		if g := send(dm); !g.OK {
			t.Fatalf("message %d of the burst: %+v", i, g)
		}
	}
	if g := send(dm); g.ErrorCode != 429 || g.Parameters.RetryAfter != 1 || g.Description != "Too Many Requests: retry after 1" {
		t.Errorf("over the burst: %+v", g)
	}
	if g := send(dm); g.Parameters.RetryAfter != 2 {
		t.Errorf("asking too early does not prolong: %+v", g)
	}
	now = now.Add(2 * time.Second)
	if g := send(dm); !g.OK {
		t.Errorf("after the wait: %+v", g)
	}
	sent := 0
	for range 30 {
		now = now.Add(1100 * time.Millisecond)
		if send(group).OK {
			sent++
		}
	}
	if sent != 20 {
		t.Errorf("%d messages in a group within 33 s", sent)
	}
	if c.s.Counts()["429"] < 3 {
		t.Errorf("counts: %v", c.s.Counts())
	}
}

func TestPrivacyMode(t *testing.T) {
	c := serve(t, Options{Privacy: true})
	ann, g := c.s.Person("Ann", ""), c.s.Supergroup("G")
	g.Say(ann, "secret talk")
	g.Say(ann, "/help")
	g.Say(ann, "@Deer_Bot hi")
	if n := c.s.Pending(); n != 2 {
		t.Errorf("%d updates, want 2", n)
	}
}

func TestControlEndpoints(t *testing.T) {
	c := serve(t, Options{})
	host, _, _ := strings.Cut(c.base, "/bot")
	post := func(path, body string) string {
		resp, err := http.Post(host+"/control/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, resp.StatusCode, b)
		}
		return string(b)
	}
	post("say", `{"chat":4711,"text":"/start"}`)
	if c.s.Pending() != 1 {
		t.Error("the message did not reach the bot")
	}
	c.call("sendMessage", map[string]any{"chat_id": 4711, "text": "welcome", "reply_markup": map[string]any{
		"inline_keyboard": [][]map[string]string{{{"text": "Go", "callback_data": "go"}}},
	}})
	resp, err := http.Get(host + "/control/messages?chat=4711&wait=5s")
	if err != nil {
		t.Fatal(err)
	}
	var ms []Message
	_ = json.NewDecoder(resp.Body).Decode(&ms)
	resp.Body.Close()
	if len(ms) != 2 || ms[1].Text != "welcome" || ms[1].Buttons[0][0].Text != "Go" {
		t.Fatalf("messages: %+v", ms)
	}
	post("press", fmt.Sprintf(`{"chat":4711,"message":%d,"button":"Go"}`, ms[1].ID))
	post("edit", fmt.Sprintf(`{"chat":4711,"message":%d,"text":"/start again"}`, ms[0].ID))
	post("chat", `{"kind":"forum","title":"F","user":4711,"topics":["a"]}`)
	post("fault", `{"method":"getMe","code":500}`)
	if g := c.call("getMe", nil); g.ErrorCode != 500 {
		t.Errorf("fault: %+v", g)
	}
	post("reset", `{}`)
	if c.s.Pending() != 4 {
		t.Errorf("%d updates, want 4", c.s.Pending())
	}
}

func TestAwait(t *testing.T) {
	c := serve(t, Options{})
	dm := c.s.DM(c.s.Person("Ann", ""))
	go c.call("sendMessage", map[string]any{"chat_id": dm.ID(), "text": "done"})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if m, err := dm.Await(ctx, 0, func(m Message) bool { return m.Bot }); err != nil || m.Text != "done" {
		t.Errorf("%+v, %v", m, err)
	}
	cancel()
	if err := dm.WaitFor(ctx, func(ms []Message) bool { return len(ms) > 1 }); err == nil {
		t.Error("no error after the end of the context")
	}
}
