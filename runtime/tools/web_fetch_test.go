package tools

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"deerbot/runtime/sandbox"
	"deerbot/runtime/tools/internal/testroute"
	"deerbot/runtime/tools/web"
)

type oneAddr struct{}

func (oneAddr) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// newWebRig is a rig whose web_fetch reaches h under every name.
func newWebRig(t *testing.T, h http.HandlerFunc) *rig {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	routes := testroute.New()
	routes.Add(netip.MustParseAddrPort("93.184.216.34:80"), srv.Listener.Addr().String())
	list, err := Builtin(BuiltinConfig{Web: web.Config{Resolver: oneAddr{}, TestRoute: routes}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	if r.set, err = NewSet(list...); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWebFetch(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00"
	r := newWebRig(t, func(w http.ResponseWriter, req *http.Request) {
		kind, body := "text/html; charset=utf-8", ""
		switch req.URL.Path {
		case "/":
			body = "<title>A ]page</title><h1>Hello</h1><p>Words and <a href='/x'>a link</a>.</p>"
		case "/go":
			http.Redirect(w, req, "http://b.example/", http.StatusFound)
			return
		case "/json":
			kind, body = "application/json", `{"a":[1,2]}`
		case "/text":
			kind, body = "text/plain", "plain\nwords"
		case "/soft404":
			body = "<title>404 Not Found</title><p>Sorry, nothing here at all.</p>"
		case "/scripted":
			body = "<title>App</title><div id=root></div><script>run()</script>"
		case "/img", "/a/../../pic.png":
			kind, body = "image/png", png
		case "/report":
			kind, body = "application/octet-stream", "%PDF-1.7 \x00"
			w.Header().Set("Content-Disposition", `attachment; filename="../../AGENTS.md"`)
		case "/liar":
			kind, body = "text/html", png
		default:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, body)
	})
	get := func(p string) string { return r.ok("web_fetch", m{"url": "http://a.example" + p}) }
	if got := get("/"); !strings.HasPrefix(got, "URL: http://a.example/\nStatus: 200 OK\nType: text/html\nTitle: A )page\n\n# Hello") ||
		!strings.Contains(got, "[a link](http://a.example/x)") {
		t.Errorf("got %q", got)
	}
	if got := get("/go"); !strings.HasPrefix(got, "URL: http://b.example/\n") {
		t.Errorf("got %q", got)
	}
	if got := get("/json"); !strings.Contains(got, "Type: application/json\n\n{\n  \"a\": [\n") {
		t.Errorf("got %q", got)
	}
	if got := get("/text"); !strings.HasSuffix(got, "\n\nplain\nwords\n") {
		t.Errorf("got %q", got)
	}
	for p, want := range map[string]string{
		"/img": sandbox.Downloads + "/img.png", "/liar": sandbox.Downloads + "/liar.png", "/report": sandbox.Downloads + "/AGENTS.md",
	} {
		if got := get(p); !strings.Contains(got, "Saved to "+want+" (") {
			t.Errorf("%s: got %q", p, got)
		}
	}
	if got := get("/img"); !strings.Contains(got, "/img-2.png") || r.text(sandbox.Downloads+"/img-2.png") != png {
		t.Errorf("second download: %q", got)
	}
	r.fails("web_fetch", m{"url": "http://a.example/soft404"}, "is an error page", "404 Not Found")
	r.fails("web_fetch", m{"url": "http://a.example/none"}, "answered 404 Not Found")
	r.fails("web_fetch", m{"url": "http://a.example/scripted"}, "no readable text")
	r.fails("web_fetch", m{"url": "http://127.0.0.1/"}, "refused")
	r.fails("web_fetch", m{"url": ""}, "url must not be empty")
	r.fails("web_fetch", m{"link": "x"}, "link is not an argument", "url is required")
	tool, _ := r.set.Get("web_fetch")
	if !tool.Spec().Untrusted {
		t.Error("not marked as untrusted")
	}
	if got := tool.Spec().Line([]byte(`{"url":"https://u:secret@a.example/p?token=secret#secret"}`)); got != "https://a.example/p" {
		t.Errorf("line %q", got)
	}
}

func TestWebFetchLong(t *testing.T) {
	r := newWebRig(t, func(w http.ResponseWriter, req *http.Request) {
		for i := range 5000 {
			fmt.Fprintf(w, "line %d\n", i)
		}
	})
	if got := r.ok("web_fetch", m{"url": "http://a.example/"}); !strings.Contains(got, "line 4999") {
		t.Errorf("the tool itself cut: %q", got[len(got)-100:])
	}
	if _, err := Builtin(BuiltinConfig{Web: web.Config{Deny: []string{"http://x"}}}); err == nil {
		t.Error("a malformed list was accepted")
	}
}
