package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"deerbot/channels"
	"deerbot/channels/web"
	"deerbot/store"
)

func (f *fixture) text(path string, header ...string) (*http.Response, string) {
	f.t.Helper()
	req, err := http.NewRequest(http.MethodGet, f.srv.URL+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	return res, string(data)
}

// The page loads only what the server itself has, and none of it is inline, so that the policy can forbid all else.
func TestPageIsSelfContained(t *testing.T) {
	f := start(t)
	res, page := f.text("/")
	h := res.Header
	csp := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("policy %q lacks %s", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("headers %v", h)
	}
	if m := regexp.MustCompile(`(?i)<script(?:[^>]*)>[^<]|\son\w+=|\sstyle=|javascript:|https?://`).FindString(page); m != "" {
		t.Errorf("the page has %q inside", m)
	}
	for _, ref := range regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(ref[1], "/chat/static/") {
			t.Errorf("the page loads %s", ref[1])
		}
		code, h := f.get(ref[1])
		if code != http.StatusOK || !strings.Contains(h.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, cache %q", ref[1], code, h.Get("Cache-Control"))
		}
	}
	entries, err := os.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	imported := regexp.MustCompile(`(?:from|import) '([^']+)'`)
	foreign := regexp.MustCompile(`(?:https?:)?//[a-z0-9-]+\.[a-z]{2,}|url\(|@import|\beval\(|new Function`)
	for _, e := range entries {
		data, err := os.ReadFile(path.Join("static", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		src := strings.ReplaceAll(string(data), "http://www.w3.org/2000/svg", "") // a namespace, never loaded
		if m := foreign.FindString(src); m != "" {
			t.Errorf("%s has %q", e.Name(), m)
		}
		for _, m := range imported.FindAllStringSubmatch(src, -1) {
			if _, err := os.Stat(path.Join("static", m[1])); err != nil {
				t.Errorf("%s imports %s: %v", e.Name(), m[1], err)
			}
		}
	}
}

func TestPageLanguage(t *testing.T) {
	f := start(t)
	if _, page := f.text("/", "Accept-Language", "zh-TW,en"); !strings.Contains(page, `<html lang="zh" data-lang="">`) {
		t.Error("the page does not follow the browser")
	}
	fixed := start(t, func(c *web.Config) { c.Lang, c.LogoutURL = "en", "/logout" })
	_, page := fixed.text("/", "Accept-Language", "zh-TW,en")
	if !strings.Contains(page, `<html lang="en" data-lang="en">`) || !strings.Contains(page, `action="/logout"`) {
		t.Error("the page does not follow the configuration")
	}
}

// Every text of the page is there in both languages.
func TestPageTextsAreComplete(t *testing.T) {
	data, err := os.ReadFile("static/i18n.js")
	if err != nil {
		t.Fatal(err)
	}
	en, zh, ok := strings.Cut(string(data), "zh: {")
	if !ok {
		t.Fatal("no Chinese texts")
	}
	zh, _, _ = strings.Cut(zh, "\n};")
	keys := regexp.MustCompile(`(?m)(?:^\s+|', )(\w+): '`)
	names := func(s string) (out []string) {
		for _, m := range keys.FindAllStringSubmatch(s, -1) {
			out = append(out, m[1])
		}
		return out
	}
	if diff := cmp.Diff(names(en), names(zh)); diff != "" || len(names(en)) < 40 {
		t.Errorf("texts differ (-en +zh):\n%s", diff)
	}
	used := regexp.MustCompile(`data-i18n(?:-\w+)?="(\w+)"`)
	page, err := os.ReadFile("page.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range used.FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(en, " "+m[1]+": '") {
			t.Errorf("the page uses %q, which has no text", m[1])
		}
	}
}

func TestSendEditDelete(t *testing.T) {
	f := start(t)
	ctx := context.Background()
	chat := uuid.NewString()
	to := channels.Place{Channel: "web", Chat: chat}
	var gone *channels.Gone
	if _, err := f.ch.Send(ctx, to, message("x"), "k"); !errors.As(err, &gone) || gone.What != "chat" {
		t.Errorf("Send to nowhere: %v", err)
	}
	if status, out := f.do("POST", "/chat/api/conversations", m{"title": ""}); status != 201 {
		t.Fatalf("create: %d", status)
	} else {
		to.Chat = out["id"].(string)
	}
	ref, err := f.ch.Send(ctx, to, message("<p>one</p>"), "k")
	if err != nil {
		t.Fatalf("Send to an empty conversation: %v", err)
	}
	rev := f.rev(to.Chat)
	if again, err := f.ch.Send(ctx, to, message("two"), "k"); err != nil || again != ref || f.rev(to.Chat) != rev {
		t.Errorf("Send again: %v, %v", again, err)
	}
	if err := f.ch.Edit(ctx, ref, message("<p>one</p>")); err != nil || f.rev(to.Chat) != rev {
		t.Errorf("an edit without change wrote something, or failed: %v", err)
	}
	if err := f.ch.Edit(ctx, ref, message("<p>two</p>")); err != nil || f.rev(to.Chat) == rev {
		t.Errorf("Edit: %v", err)
	}
	if err := f.ch.Edit(ctx, channels.Ref{Place: to, ID: "b-none"}, message("x")); !errors.As(err, &gone) || gone.What != "message" {
		t.Errorf("Edit of nothing: %v", err)
	}
	var long *channels.TooLong
	if err := f.ch.Edit(ctx, ref, message(strings.Repeat("x", store.MaxValue+1))); !errors.As(err, &long) {
		t.Errorf("Edit over the limit: %v", err)
	}
	f.do("POST", api(to.Chat, "/messages"), m{"client_id": "client-1", "text": "mine"})
	var refused *channels.Refused
	if err := f.ch.Edit(ctx, channels.Ref{Place: to, ID: "client-1"}, message("x")); !errors.As(err, &refused) {
		t.Errorf("Edit of a person's message: %v", err)
	}
	for range 2 {
		if err := f.ch.Delete(ctx, ref); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if err := f.ch.Edit(ctx, ref, message("x")); !errors.As(err, &gone) {
		t.Errorf("Edit of a deleted message: %v", err)
	}
	f.log.Fail = func(string) error { return store.ErrFull }
	var passing *channels.Transient
	if _, err := f.ch.Send(ctx, to, message("x"), "k2"); !errors.As(err, &passing) || !errors.Is(err, store.ErrFull) {
		t.Errorf("Send with a full store: %v", err)
	}
	if status, out := f.do("POST", api(to.Chat, "/messages"), m{"client_id": "client-2", "text": "x"}); status != 503 || errCode(out) != "unavailable" {
		t.Errorf("post with a full store: %d %v", status, out)
	}
	f.log.Fail = nil
}

// Only the bot's HTML is HTML; a person's text is text whatever it looks like.
func TestTextsArriveAsText(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	f.do("POST", api(chat, "/messages"), m{"client_id": "client-1", "text": "<script>1</script>", "format": "html", "from": "bot"})
	f.send(chat, "<p>safe</p>", "k1")
	if _, err := f.ch.Send(context.Background(), channels.Place{Chat: chat}, channels.Message{Body: message("<b>").Body.AsPlain()}, "k2"); err != nil {
		t.Fatal(err)
	}
	_, out := f.do("GET", api(chat, "/messages"), nil)
	msgs := out["messages"].([]any)
	type shown struct{ From, Text, HTML any }
	var got []shown
	for _, v := range msgs {
		w := v.(map[string]any)
		got = append(got, shown{w["from"], w["text"], w["html"]})
	}
	want := []shown{{"user", "<script>1</script>", nil}, {"bot", nil, "<p>safe</p>"}, {"bot", "<b>", nil}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
