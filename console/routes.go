package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Readiness says whether the daemon can do its work.
type Readiness struct {
	Missing []string          `json:"missing,omitempty"` // what has not come up yet: store, recovery, channel slack …
	Failed  map[string]string `json:"failed,omitempty"`  // channel that failed for good -> why, without secrets
}

// Ready reports whether nothing is missing or failed.
func (r Readiness) Ready() bool { return len(r.Missing) == 0 && len(r.Failed) == 0 }

func (s *Server) routes() (http.Handler, error) {
	lg, err := newLogin(s)
	if err != nil {
		return nil, fmt.Errorf("console: login page: %w", err)
	}
	inner := http.NewServeMux() // needs the guard
	if s.cfg.Registry != nil {
		if err := addRuntimeMetrics(s.cfg.Registry); err != nil {
			return nil, fmt.Errorf("console: metrics: %w", err)
		}
		inner.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{}))
	} else {
		inner.Handle("/metrics", http.NotFoundHandler())
	}
	if s.cfg.API != nil {
		inner.Handle("/api/", s.cfg.API)
	} else {
		inner.Handle("/api/", http.NotFoundHandler())
	}
	chat := s.cfg.Chat
	if chat == nil {
		chat = http.HandlerFunc(noChat)
	}
	inner.Handle("/", chat)

	outer := http.NewServeMux()
	outer.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	outer.HandleFunc("GET /readyz", s.readyz)
	lg.mount(outer)
	outer.Handle("/", lg.guard(inner))
	return s.recovered(secureHeaders(s.ownName(s.sameOrigin(s.limitTime(outer))))), nil
}

func noChat(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("deerbot is running. The web chat is off (channels.web.enabled).\n"))
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	var rd Readiness
	if s.cfg.Ready != nil {
		rd = s.cfg.Ready()
	}
	body, err := json.Marshal(struct {
		Ready bool `json:"ready"`
		Readiness
	}{rd.Ready(), rd})
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if !rd.Ready() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(append(body, '\n'))
}

// recovered turns a panic of a handler into a 500 and a log line. The line has the place of the panic and the path, never
// the query or a header.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // the sentinel itself is panicked
				panic(v)
			}
			s.log.Error("handler panicked", "method", r.Method, "path", r.URL.Path,
				"panic", fmt.Sprintf("%.200v", v), "stack", string(debug.Stack()))
			w.Header().Set("Connection", "close")
			http.Error(w, "internal error", http.StatusInternalServerError) // nothing happens when the answer had begun
		}()
		next.ServeHTTP(w, r)
	})
}

// limitTime cancels event streams when the shutdown begins, and gives the body of every write a minute to arrive; a handler
// that takes uploads sets its own deadline. The server's ReadTimeout would end event streams, too.
func (s *Server) limitTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Minute)) // a test's writer cannot
		}
		if r.Method == http.MethodGet &&
			(strings.Contains(r.Header.Get("Accept"), "text/event-stream") || strings.HasSuffix(r.URL.Path, "/events")) {
			ctx, cancel := contextUntil(r.Context(), s.ending)
			defer cancel()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}
