package telegram_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"deerbot/channels"
	"deerbot/channels/telegram"

	wire "deerbot/internal/wire/telegram"
)

func TestBadTokenIsFatal(t *testing.T) {
	for token, want := range map[string]string{
		"700001:wrong": "refuses the bot token", "x:y": "does not know this bot token",
	} {
		r := setup(t, wire.Options{})
		c := r.channel(func(cfg *telegram.Config) { cfg.Token = token })
		err := c.Run(r.ctx(), r.in)
		var fatal *channels.Fatal
		if !errors.As(err, &fatal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", token, err)
		}
		if h := c.Health(); h.Connected || h.Trouble == "" {
			t.Errorf("health: %+v", h)
		}
	}
}

func TestTokenRevokedWhileRunning(t *testing.T) {
	r := setup(t, wire.Options{})
	r.s.Fail(wire.Fault{Method: "getUpdates", Code: 401, Description: "Unauthorized"})
	if err := r.c.Run(r.ctx(), r.in); !channels.IsFatal(err) {
		t.Errorf("Run: %v", err)
	}
}

func TestWebhookIsDeletedOnce(t *testing.T) {
	r := setup(t, wire.Options{})
	r.s.SetWebhook("https://example.org/hook")
	r.run()
	ann := r.s.Person("Ann", "ann")
	r.s.DM(ann).Say(ann, "hi")
	r.next()
	if n := len(r.s.Calls("deleteWebhook", 0)); n != 1 || !strings.Contains(r.log.String(), "webhook was set") {
		t.Errorf("%d calls of deleteWebhook; log:\n%s", n, r.log)
	}
	if c := r.s.Calls("deleteWebhook", 0)[0]; c.Params["drop_pending_updates"] != "" {
		t.Error("updates that waited were dropped")
	}
	r.s.SetWebhook("https://example.org/hook") // somebody fights for the bot: say so, do not fight
	r.s.Cut()
	r.eventually("trouble", func() bool { return strings.Contains(r.c.Health().Trouble, "webhook") })
	if n := len(r.s.Calls("deleteWebhook", 0)); n != 1 {
		t.Errorf("%d calls of deleteWebhook", n)
	}
}

func TestTwoPollers(t *testing.T) {
	r := start(t, wire.Options{})
	r.eventually("the first poll", func() bool { return r.c.Health().Connected })
	other := r.channel(func(cfg *telegram.Config) { cfg.ConflictWait = 10 * time.Millisecond })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- other.Run(ctx, r.in) }()
	r.eventually("the conflict", func() bool {
		return strings.Contains(r.c.Health().Trouble, "another process polls with this token")
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	ann := r.s.Person("Ann", "ann")
	r.s.DM(ann).Say(ann, "hi")
	r.next()
}

func TestPollObeysRetryAfter(t *testing.T) {
	r := setup(t, wire.Options{})
	r.s.Fail(wire.Fault{Method: "getUpdates", Code: 429, RetryAfter: 1})
	r.run()
	r.wait("two polls", func() bool { return len(r.s.Calls("getUpdates", 0)) >= 2 })
	calls := r.s.Calls("getUpdates", 0)
	if gap := calls[1].At.Sub(calls[0].At); gap < time.Second {
		t.Errorf("polled again after %v", gap)
	}
}

func TestPollParameters(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	r.s.DM(ann).Say(ann, "hi")
	r.next()
	r.wait("confirmation", func() bool { return r.s.Pending() == 0 })
	r.stop()
	r.wait("the record of the last poll", func() bool {
		calls := r.s.Calls("getUpdates", 0)
		return calls[len(calls)-1].Params["timeout"] == "50"
	})
	calls := r.s.Calls("getUpdates", 0)
	var allowed []string
	if err := json.Unmarshal([]byte(calls[0].Params["allowed_updates"]), &allowed); err != nil {
		t.Fatal(err)
	}
	if want := []string{"message", "edited_message", "callback_query", "my_chat_member"}; !slices.Equal(allowed, want) {
		t.Errorf("allowed updates %q", allowed)
	}
	if last := calls[len(calls)-1]; last.Params["timeout"] != "50" || last.Params["offset"] == "" {
		t.Errorf("last poll: %v", last.Params)
	}
}

// Nothing that waited while deerbot was down is dropped, and a batch larger than one answer comes whole.
func TestBacklog(t *testing.T) {
	r := setup(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	for i := range 350 {
		r.s.DM(ann).Say(ann, fmt.Sprint(i))
	}
	r.run()
	for i := range 350 {
		if in := r.next(); in.Text != fmt.Sprint(i) {
			t.Fatalf("event %d: %q", i, in.Text)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	_, err := telegram.New(telegram.Config{Token: "12:hush/x", APIURL: "ftp://x", Proxy: "gopher://u:pw@h"})
	for _, want := range []string{"token", "dialect", "api_url", "proxy"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if err != nil && (strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "pw")) {
		t.Errorf("error holds a secret: %v", err)
	}
}

// A redirect would carry the token to another host.
func TestC203_RedirectIsNotFollowed(t *testing.T) {
	const token = "123456:AAFakeTokenForTest"
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { leaked = append(leaked, q.URL.String()) }))
	defer other.Close()
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, other.URL+q.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer redirect.Close()
	r := setup(t, wire.Options{})
	c := r.channel(func(cfg *telegram.Config) { cfg.Token, cfg.APIURL = token, redirect.URL })
	_, err := c.Send(r.ctx(), channels.Place{Chat: "5"}, text("x"), "")
	var tr *channels.Transient
	if !errors.As(err, &tr) || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "AAFakeTokenForTest") {
		t.Errorf("error: %v", err)
	}
	if len(leaked) > 0 {
		t.Error("the redirect was followed")
	}
	c.Run(cancelled(), r.in)
}

// A proxy's password and the token in the text a server answers are hidden, too.
func TestC203_EchoedSecrets(t *testing.T) {
	r := setup(t, wire.Options{})
	p := channels.Place{Chat: "5"}
	r.s.Fail(wire.Fault{Method: "sendMessage", Code: 400, Description: "Bad Request: bot" + r.s.Token() + " what"})
	if _, err := r.c.Send(r.ctx(), p, text("x"), ""); err == nil || strings.Contains(err.Error(), r.s.Token()) {
		t.Errorf("error: %v", err)
	}
	c := r.channel(func(cfg *telegram.Config) { cfg.Proxy = "http://user:hunter2secret@127.0.0.1:1" })
	_, err := c.Send(r.ctx(), p, text("x"), "")
	if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v %+v", err, err, errors.Unwrap(err), c), "hunter2secret") {
		t.Errorf("error: %v", err)
	}
}

func TestProxyIsUsed(t *testing.T) {
	r := setup(t, wire.Options{})
	seen := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		seen <- q.URL.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	c := r.channel(func(cfg *telegram.Config) { cfg.Proxy, cfg.APIURL = proxy.URL, "http://telegram.invalid" })
	if _, err := c.Send(r.ctx(), channels.Place{Chat: "5"}, text("x"), ""); err == nil {
		t.Error("no error")
	}
	if host := <-seen; host != "telegram.invalid" {
		t.Errorf("the proxy was asked for %q", host)
	}
	c.Run(cancelled(), r.in)
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func unreachable(t *testing.T, r *rig) *channels.Transient {
	t.Helper()
	c := r.channel(func(cfg *telegram.Config) { cfg.APIURL = "http://127.0.0.1:1" })
	_, err := c.Send(r.ctx(), channels.Place{Chat: "5"}, text("x"), "")
	var tr *channels.Transient
	if !errors.As(err, &tr) {
		t.Fatalf("error: %v", err)
	}
	return tr
}
