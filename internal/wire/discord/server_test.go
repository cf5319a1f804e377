package discord_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	wire "deerbot/internal/wire/discord"
)

type client struct {
	t   *testing.T
	s   *wire.Server
	url string
	ch  *wire.Channel
	ann *wire.User
}

func serve(t *testing.T, o wire.Options) *client {
	s := wire.New(o)
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	s.SetHost(strings.TrimPrefix(ts.URL, "http://"))
	return &client{t: t, s: s, url: ts.URL, ch: s.Guild("Team").Text("general"), ann: s.Person("Ann", "ann")}
}

// call returns the status and the answer; a header "key: value" may change the request.
func (c *client) call(method, path, body string, header ...string) (int, map[string]any, http.Header) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+"/api/v10"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+c.s.Token())
	req.Header.Set("User-Agent", "DiscordBot (test, 1)")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range header {
		k, v, _ := strings.Cut(h, ": ")
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	var out map[string]any
	_ = json.Unmarshal(raw, &out)
	return resp.StatusCode, out, resp.Header
}

func TestRefusals(t *testing.T) {
	c := serve(t, wire.Options{})
	said := c.ch.Say(c.ann, "hi")
	at := "/channels/" + c.ch.ID
	button := func(label, id string) string {
		return fmt.Sprintf(`{"content":"x","components":[{"type":1,"components":[{"type":2,"style":1,"label":%q,"custom_id":%q}]}]}`, label, id)
	}
	tests := []struct {
		method, path, body string
		status, code       int
	}{
		{"POST", at + "/messages", `{"content":"hi"}`, 200, 0},
		{"POST", at + "/messages", `{"content":"` + strings.Repeat("z", 2001) + `"}`, 400, 50035},
		{"POST", at + "/messages", `{"content":"` + strings.Repeat("😀", 1001) + `"}`, 400, 50035},
		{"POST", at + "/messages", `{"content":" "}`, 400, 50006},
		{"POST", at + "/messages", `{"content":"x","unknown":1}`, 400, 50035},
		{"POST", at + "/messages", `{"content":`, 400, 50109},
		{"POST", at + "/messages", `{"content":"x","nonce":"` + strings.Repeat("n", 26) + `"}`, 400, 50035},
		{"POST", at + "/messages", `{"content":"x","message_reference":{"message_id":"1"}}`, 400, 50035},
		{"POST", at + "/messages", `{"content":"x","message_reference":{"message_id":"1","fail_if_not_exists":false}}`, 200, 0},
		{"POST", at + "/messages", button("ok", "a"), 200, 0},
		{"POST", at + "/messages", button("", "a"), 400, 50035},
		{"POST", at + "/messages", button("ok", strings.Repeat("a", 101)), 400, 50035},
		{"POST", "/channels/1/messages", `{"content":"x"}`, 404, 10003},
		{"PATCH", at + "/messages/" + said.ID, `{"content":"x"}`, 403, 50005},
		{"PATCH", at + "/messages/1", `{"content":"x"}`, 404, 10008},
		{"DELETE", at + "/messages/" + said.ID, "", 403, 50013},
		{"GET", at + "/messages?limit=101", "", 400, 50035},
		{"POST", at + "/messages/" + said.ID + "/threads", `{"name":""}`, 400, 50035},
		{"POST", at + "/messages/" + said.ID + "/threads", `{"name":"a thread"}`, 200, 0},
		{"POST", at + "/messages/" + said.ID + "/threads", `{"name":"a thread"}`, 400, 160004},
		{"POST", "/interactions/1/x/callback", `{"type":6}`, 404, 10062},
		{"GET", "/nothing", "", 404, 0},
	}
	for _, tt := range tests {
		status, body, h := c.call(tt.method, tt.path, tt.body)
		code, _ := body["code"].(float64)
		if status != tt.status || int(code) != tt.code {
			t.Errorf("%s %s %.60s: %d %v", tt.method, tt.path, tt.body, status, body)
		}
		if status == 200 && h.Get("X-RateLimit-Bucket") == "" {
			t.Errorf("%s: no rate limit headers", tt.path)
		}
	}
	_, body, _ := c.call("POST", at+"/messages", `{"content":"`+strings.Repeat("z", 2001)+`"}`)
	if raw, _ := json.Marshal(body); !strings.Contains(string(raw), `{"content":{"_errors":[{"code":"BASE_TYPE_MAX_LENGTH","message":"Must be 2000 or fewer in length."}]}}`) {
		t.Errorf("body %s", raw)
	}
	if status, _, _ := c.call("GET", "/users/@me", "", "Authorization: Bot wrong"); status != 401 {
		t.Errorf("wrong token: %d", status)
	}
	if status, _, _ := c.call("GET", "/users/@me", "", "User-Agent: curl"); status != 403 {
		t.Errorf("another user agent: %d", status)
	}
}

func TestPings(t *testing.T) {
	c := serve(t, wire.Options{})
	at := "/channels/" + c.ch.ID + "/messages"
	c.call("POST", at, `{"content":"@everyone <@`+c.ann.ID+`>"}`)
	if p := c.s.Pings(); len(p) != 2 {
		t.Errorf("pings without allowed_mentions: %+v", p)
	}
	c.call("POST", at, `{"content":"@everyone <@`+c.ann.ID+`>","allowed_mentions":{"parse":[]}}`)
	c.call("POST", at, `{"content":"@here <@`+c.ann.ID+`>","allowed_mentions":{"parse":["users"]}}`)
	if p := c.s.Pings(); len(p) != 3 {
		t.Errorf("pings: %+v", p)
	}
}

func TestNonce(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := serve(t, wire.Options{Now: func() time.Time { return now }})
	at := "/channels/" + c.ch.ID + "/messages"
	send := func(enforce bool) any {
		_, b, _ := c.call("POST", at, fmt.Sprintf(`{"content":"x","nonce":"n","enforce_nonce":%v}`, enforce))
		return b["id"]
	}
	first := send(true)
	if send(true) != first || send(false) == first {
		t.Error("nonce is not obeyed")
	}
	now = now.Add(6 * time.Minute)
	if send(true) == first {
		t.Error("a nonce is remembered for ever")
	}
}

func TestRateLimits(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := serve(t, wire.Options{Limits: true, Now: func() time.Time { return now }})
	at := "/channels/" + c.ch.ID + "/messages"
	for i := range 6 {
		status, body, h := c.call("POST", at, `{"content":"x"}`)
		switch {
		case i < 5 && (status != 200 || h.Get("X-RateLimit-Remaining") != fmt.Sprint(4-i)):
			t.Errorf("%d: %d %v", i, status, h)
		case i == 5 && (status != 429 || body["retry_after"] != 5.0 || body["global"] != false || h.Get("Retry-After") != "5"):
			t.Errorf("%d: %d %v %v", i, status, body, h)
		}
	}
	now = now.Add(5 * time.Second)
	if status, _, _ := c.call("POST", at, `{"content":"x"}`); status != 200 {
		t.Errorf("after the wait: %d", status)
	}
}

// gate is a raw connection of the gateway.
type gate struct {
	t  *testing.T
	ws *websocket.Conn
}

func (c *client) dial() *gate {
	ws, resp, err := websocket.DefaultDialer.DialContext(c.t.Context(), "ws"+strings.TrimPrefix(c.url, "http")+"/gateway?v=10&encoding=json", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	resp.Body.Close()
	c.t.Cleanup(func() { ws.Close() })
	g := &gate{c.t, ws}
	if f := g.read(); f.Op != 10 {
		c.t.Fatalf("began with %+v", f)
	}
	return g
}

type frame struct {
	Op int             `json:"op"`
	S  int             `json:"s"`
	T  string          `json:"t"`
	D  json.RawMessage `json:"d"`
}

func (g *gate) read() (f frame) {
	g.t.Helper()
	_ = g.ws.SetReadDeadline(time.Now().Add(5 * time.Second))
	if err := g.ws.ReadJSON(&f); err != nil {
		g.t.Fatalf("read: %v", err)
	}
	return f
}

func (g *gate) say(s string) {
	if err := g.ws.WriteMessage(websocket.TextMessage, []byte(s)); err != nil {
		g.t.Fatal(err)
	}
}

func (c *client) identify(intents int) *gate {
	g := c.dial()
	g.say(fmt.Sprintf(`{"op":2,"d":{"token":%q,"intents":%d,"properties":{"os":"linux"}}}`, c.s.Token(), intents))
	return g
}

func TestResume(t *testing.T) {
	c := serve(t, wire.Options{})
	g := c.identify(wire.IntentGuilds | wire.IntentGuildMessages | wire.IntentMessageContent)
	ready := g.read()
	var d struct {
		Session string `json:"session_id"`
	}
	if err := json.Unmarshal(ready.D, &d); err != nil || ready.T != "READY" || d.Session == "" {
		t.Fatalf("ready %+v", ready)
	}
	if f := g.read(); f.T != "GUILD_CREATE" {
		t.Fatalf("got %+v", f)
	}
	g.say(`{"op":1,"d":2}`)
	if f := g.read(); f.Op != 11 {
		t.Errorf("heartbeat got %+v", f)
	}
	c.s.Cut()
	c.ch.Say(c.ann, "one")
	c.ch.Say(c.ann, "two")
	resume := func(seq int, session string) *gate {
		g := c.dial()
		g.say(fmt.Sprintf(`{"op":6,"d":{"token":%q,"session_id":%q,"seq":%d}}`, c.s.Token(), session, seq))
		return g
	}
	g = resume(2, d.Session)
	for _, want := range []string{"MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"} {
		if f := g.read(); f.T != want {
			t.Errorf("got %s, want %s", f.T, want)
		}
	}
	if f := resume(2, "nonsense").read(); f.Op != 9 || string(f.D) != "false" {
		t.Errorf("got %+v", f)
	}
	_ = g.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
	if err := c.s.WaitFor(t.Context(), func() bool { n, _, _ := c.s.Connected(); return n == 0 }); err != nil {
		t.Fatal(err)
	}
	if f := resume(5, d.Session).read(); f.Op != 9 {
		t.Errorf("after 1000: %+v", f)
	}
}

func TestCloseCodes(t *testing.T) {
	c := serve(t, wire.Options{NoContent: true})
	for say, want := range map[string]int{
		`{"op":2,"d":{"token":"wrong","intents":1,"properties":{"os":"x"}}}`:                          4004,
		fmt.Sprintf(`{"op":2,"d":{"token":%q,"intents":32769,"properties":{"os":"x"}}}`, c.s.Token()): 4014,
		fmt.Sprintf(`{"op":2,"d":{"token":%q,"intents":-1,"properties":{"os":"x"}}}`, c.s.Token()):    4013,
		`{"op":99,"d":null}`: 4001,
		`nonsense`:           4002,
	} {
		g := c.dial()
		g.say(say)
		if _, _, err := g.ws.ReadMessage(); !websocket.IsCloseError(err, want) {
			t.Errorf("%s: %v, want %d", say, err, want)
		}
	}
}

// Without the content intent messages are empty, but for those that mention the bot.
func TestContentIntent(t *testing.T) {
	c := serve(t, wire.Options{})
	g := c.identify(wire.IntentGuildMessages)
	g.read()
	me := c.s.Bot()
	for _, say := range []string{"secret", me.Mention() + " hello"} {
		c.ch.Say(c.ann, say)
		var m struct {
			Content string `json:"content"`
		}
		if err := json.Unmarshal(g.read().D, &m); err != nil || (m.Content == "") != (say == "secret") {
			t.Errorf("%q comes as %q, %v", say, m.Content, err)
		}
	}
}
