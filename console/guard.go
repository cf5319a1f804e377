package console

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// secureHeaders sets what every answer carries; handlers of pages set their own policy over it.
func secureHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
		next.ServeHTTP(w, r)
	})
}

// ownName refuses requests for a name that is not this machine's. Only without a token: with one, a foreign name has no
// session to abuse, and a proxy in front may well use its own.
func (s *Server) ownName(next http.Handler) http.Handler {
	if s.cfg.AuthToken != "" {
		return next
	}
	configured, _, _ := net.SplitHostPort(s.cfg.Listen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostName(r.Host)
		if !loopbackName(host) && (configured == "" || !strings.EqualFold(host, configured)) {
			http.Error(w, "this server answers only to localhost; set server.auth_token to use another name",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostName is the host of a Host header without port and brackets.
func hostName(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// sameOrigin refuses writes that a browser sends from a page of another origin.
func (s *Server) sameOrigin(next http.Handler) http.Handler {
	cop := http.NewCrossOriginProtection()
	cop.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.log.Warn("refused a write of another origin", "method", r.Method, "path", r.URL.Path)
		http.Error(w, "requests of other origins are refused", http.StatusForbidden)
	}))
	return cop.Handler(next)
}

// contextUntil is ctx, ended also when done closes.
func contextUntil(ctx context.Context, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
			cancel()
		case <-stop:
		}
	}()
	return ctx, func() {
		close(stop)
		<-ended
		cancel()
	}
}
