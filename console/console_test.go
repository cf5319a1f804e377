package console_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"deerbot/console"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "correct-horse-battery"

// chat is a handler that tells who got through.
var chat = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "chat "+r.Method+" "+r.URL.Path)
})

func server(t *testing.T, change ...func(*console.Config)) *console.Server {
	t.Helper()
	cfg := console.Config{Listen: "127.0.0.1:0", Chat: chat}
	for _, fn := range change {
		fn(&cfg)
	}
	s, err := console.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func withToken(c *console.Config) { c.AuthToken = token }

// ask sends a request; header alternates names and values, Host sets the host.
func ask(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8420"
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOpenAddressNeedsAToken(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:8420", "example.org:80"} {
		_, err := console.New(console.Config{Listen: listen})
		if err == nil || !strings.Contains(err.Error(), "server.auth_token") {
			t.Errorf("%s without a token: %v", listen, err)
		}
		if _, err := console.New(console.Config{Listen: listen, AuthToken: token}); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:0", "[::1]:0", "127.8.8.8:0"} {
		if _, err := console.New(console.Config{Listen: listen}); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
	if _, err := console.New(console.Config{Listen: "8420"}); err == nil || !strings.Contains(err.Error(), "server.listen") {
		t.Errorf("not an address: %v", err)
	}
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server(t, func(c *console.Config) { c.Listener = ln })
	if err := s.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), "server.auth_token") {
		t.Errorf("an open listener without a token: %v", err)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	var rd console.Readiness
	s := server(t, withToken, func(c *console.Config) { c.Ready = func() console.Readiness { return rd } })
	if w := ask(s, "GET", "/healthz", ""); w.Code != 200 {
		t.Errorf("healthz: %d", w.Code)
	}
	get := func() (int, map[string]any) {
		w := ask(s, "GET", "/readyz", "")
		var out map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatalf("readyz: %v in %s", err, w.Body)
		}
		return w.Code, out
	}
	if code, out := get(); code != 200 || out["ready"] != true {
		t.Errorf("readyz: %d %v", code, out)
	}
	rd = console.Readiness{Missing: []string{"recovery"}, Failed: map[string]string{"slack": "the bot token is not valid"}}
	code, out := get()
	want := map[string]any{"ready": false, "missing": []any{"recovery"}, "failed": map[string]any{"slack": "the bot token is not valid"}}
	if diff := cmp.Diff(want, out); diff != "" || code != 503 {
		t.Errorf("readyz: %d (-want +got):\n%s", code, diff)
	}
}

func TestMetrics(t *testing.T) {
	if w := ask(server(t), "GET", "/metrics", ""); w.Code != 404 {
		t.Errorf("without a registry: %d", w.Code)
	}
	reg := prometheus.NewRegistry()
	withReg := func(c *console.Config) { c.Registry = reg }
	s := server(t, withReg)
	_ = server(t, withReg) // a reload must not trip over its own collectors
	if body := ask(s, "GET", "/metrics", "").Body.String(); !strings.Contains(body, "go_goroutines") || !strings.Contains(body, "process_resident_memory_bytes") {
		t.Errorf("metrics: %.400s", body)
	}
	s = server(t, withReg, withToken)
	if w := ask(s, "GET", "/metrics", ""); w.Code != 401 {
		t.Errorf("without the token: %d", w.Code)
	}
	if w := ask(s, "GET", "/metrics", "", "Authorization", "Bearer "+token); w.Code != 200 {
		t.Errorf("with the token: %d", w.Code)
	}
}

func TestForeignHostNamesAreRefused(t *testing.T) {
	s := server(t)
	for host, want := range map[string]int{
		"localhost:8420": 200, "127.0.0.1": 200, "[::1]:8420": 200, "LOCALHOST": 200,
		"evil.example:8420": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "192.168.0.7": 421, "": 421,
	} {
		for _, path := range []string{"/", "/healthz", "/chat/api/conversations"} {
			if w := ask(s, "GET", path, "", "Host", host); w.Code != want {
				t.Errorf("host %q %s: %d, want %d", host, path, w.Code, want)
			}
		}
	}
	if w := ask(server(t, withToken), "GET", "/", "", "Host", "deer.example", "Authorization", "Bearer "+token); w.Code != 200 {
		t.Errorf("a proxy's name with the token: %d", w.Code)
	}
}

func TestWritesOfOtherOriginsAreRefused(t *testing.T) {
	s := server(t)
	tests := []struct {
		name   string
		method string
		header []string
		want   int
	}{
		{"the page itself", "POST", []string{"Origin", "http://127.0.0.1:8420", "Sec-Fetch-Site", "same-origin"}, 200},
		{"curl", "POST", nil, 200},
		{"another site", "POST", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{"another port", "POST", []string{"Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "same-site"}, 403},
		{"old browser, another site", "DELETE", []string{"Origin", "https://evil.example"}, 403},
		{"no origin", "PATCH", []string{"Origin", "null"}, 403},
		{"a link from elsewhere", "GET", []string{"Sec-Fetch-Site", "cross-site"}, 200},
	}
	for _, tt := range tests {
		if w := ask(s, tt.method, "/chat/api/conversations", "{}", tt.header...); w.Code != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, w.Code, tt.want)
		}
	}
	w := ask(server(t, withToken), "POST", "/login", "token="+token, "Content-Type", "application/x-www-form-urlencoded",
		"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
	if w.Code != 403 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("login from another site: %d", w.Code)
	}
}

func TestEveryAnswerIsHardened(t *testing.T) {
	s := server(t, withToken)
	for _, path := range []string{"/", "/healthz", "/login", "/metrics", "/nothing"} {
		h := ask(s, "GET", path, "").Header()
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Frame-Options") != "DENY" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestPanicsAreCaughtAndLoggedWithoutSecrets(t *testing.T) {
	var log bytes.Buffer
	s := server(t, withToken, func(c *console.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Chat = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })
	})
	w := ask(s, "GET", "/x?token="+token, "", "Authorization", "Bearer "+token, "Cookie", "a=secret-cookie")
	if w.Code != 500 || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("answer: %d %s", w.Code, w.Body)
	}
	if out := log.String(); !strings.Contains(out, "boom") || strings.Contains(out, token) || strings.Contains(out, "secret-cookie") {
		t.Errorf("log: %s", out)
	}
}

// Event streams end when the shutdown begins, a write under way is finished, and then Run returns.
func TestShutdown(t *testing.T) {
	release := make(chan struct{})
	s := server(t, func(c *console.Config) {
		c.ShutdownGrace = 20 * time.Second
		c.Chat = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun\n")
			_ = http.NewResponseController(w).Flush()
			if r.Method == http.MethodGet {
				<-r.Context().Done()
				close(release)
				return
			}
			<-release
			if r.Context().Err() == nil {
				_, _ = io.WriteString(w, "finished\n")
			}
		})
	})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(s.URL()); err != nil || u.Host != s.Addr().String() {
		t.Errorf("URL %q, address %s", s.URL(), s.Addr())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	open := func(method, path, accept string) *bufio.Reader {
		req, err := http.NewRequest(method, s.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		br := bufio.NewReader(res.Body)
		if line, err := br.ReadString('\n'); line != "begun\n" {
			t.Fatalf("%q, %v", line, err)
		}
		return br
	}
	events := open("GET", "chat/api/conversations/x/events", "text/event-stream")
	write := open("POST", "chat/api/conversations", "*/*")
	cancel()
	if rest, err := io.ReadAll(events); err != nil || len(rest) != 0 {
		t.Errorf("event stream: %q, %v", rest, err)
	}
	if rest, err := io.ReadAll(write); err != nil || string(rest) != "finished\n" {
		t.Errorf("write: %q, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := client.Get(s.URL()); err == nil {
		t.Error("the server still answers")
	}
}

func TestPortInUseIsNamed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := server(t, func(c *console.Config) { c.Listen = ln.Addr().String() })
	if err := s.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("Listen: %v", err)
	}
}
