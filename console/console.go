package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config configures the server.
type Config struct {
	Listen    string       // host:port; port 0 picks a free one
	Listener  net.Listener // used instead of Listen when not nil
	AuthToken string       // required unless the address is loopback

	Ready    func() Readiness     // nil: always ready
	Registry *prometheus.Registry // nil: no /metrics
	Chat     http.Handler         // the web chat at / and /chat/; nil: a page that says there is none
	API      http.Handler         // /api/; nil: 404

	Lang          string        // language of the login page: en, zh; anything else follows the browser
	ShutdownGrace time.Duration // how long requests under way may take at the end, 0 for 5 s
	Logger        *slog.Logger  // nil discards
	Now           func() time.Time
}

// Server is the HTTP server. Its methods are safe for concurrent use; Run may be called once.
type Server struct {
	cfg     Config
	log     *slog.Logger
	handler http.Handler

	mu sync.Mutex
	ln net.Listener

	ending  chan struct{} // closed when the shutdown begins: event streams end
	endOnce sync.Once
}

// New checks the configuration. It opens nothing.
func New(cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.ShutdownGrace <= 0 {
		cfg.ShutdownGrace = 5 * time.Second
	}
	if cfg.Listener == nil {
		host, _, err := net.SplitHostPort(cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("console: server.listen %q is not host:port: %w", cfg.Listen, err)
		}
		if cfg.AuthToken == "" && !loopbackName(host) {
			return nil, openError(cfg.Listen)
		}
	}
	s := &Server{cfg: cfg, log: cfg.Logger.With("component", "console"), ending: make(chan struct{})}
	h, err := s.routes()
	if err != nil {
		return nil, err
	}
	s.handler = h
	return s, nil
}

func openError(addr string) error {
	return fmt.Errorf("console: server.listen %s can be reached from other machines and server.auth_token is empty: "+
		"set server.auth_token, or listen on 127.0.0.1", addr)
}

// loopbackName reports whether host is certainly this machine only.
func loopbackName(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Listen opens the address, so that a port in use is known before anything else starts. Calling it again does nothing.
func (s *Server) Listen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln != nil {
		return nil
	}
	ln := s.cfg.Listener
	if ln == nil {
		var lc net.ListenConfig
		var err error
		if ln, err = lc.Listen(ctx, "tcp", s.cfg.Listen); err != nil {
			return fmt.Errorf("console: listen on %s: %w", s.cfg.Listen, err)
		}
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); ok && s.cfg.AuthToken == "" && !tcp.IP.IsLoopback() {
		return errors.Join(openError(ln.Addr().String()), ln.Close())
	}
	s.ln = ln
	return nil
}

// Addr is the address listened on, nil before Listen.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln == nil {
		return nil
	}
	return s.ln.Addr()
}

// URL is the address for a browser on this machine, "" before Listen.
func (s *Server) URL() string {
	addr := s.Addr()
	if addr == nil {
		return ""
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d/", tcp.Port)
	}
	return "http://" + addr.String() + "/"
}

// ServeHTTP serves one request, for tests without a listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run serves until ctx ends; then event streams end at once and other requests within the grace period. It returns nil
// after a shutdown on request. It listens first when that was not done.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(s.ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("console: serve: %w", err)
	case <-ctx.Done():
	}
	s.endOnce.Do(func() { close(s.ending) })
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ShutdownGrace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		s.log.Warn("requests were cut off at shutdown", "err", err)
		_ = srv.Close()
	}
	if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("console: serve: %w", err)
	}
	return nil
}
