// Package web fetches pages from the public internet for an agent that may have been told to look where it must not.
//
// # What is refused
//
// A URL is checked as text first ([Client.Check]): scheme, port, user information, spelling of the host, the lists of
// the configuration. Then its name is resolved once; when any address in the answer is not public, the name is refused.
// The connection goes to the very address that was checked, and is checked again by the operating system's view of it
// right before it is made, so an answer that changes between two queries changes nothing. Each redirect goes through all
// of it again. There is no proxy, no cookie and no credential, and no setting opens private addresses.
package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"deerbot/runtime/tools/internal/testroute"
)

// Defaults and limits.
const (
	Timeout      = 30 * time.Second // of a fetch with all its redirects
	MaxRedirects = 5
	MaxBody      = 5 << 20  // bytes on the wire
	MaxDecoded   = 20 << 20 // bytes after decompression
	maxHeader    = 64 << 10 // bytes
	maxURL       = 4096     // bytes
	dialTimeout  = 8 * time.Second
)

// Resolver finds the addresses of a name. [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config says what may be fetched. The zero Config allows every public host.
type Config struct {
	// Allow names the hosts that may be fetched, empty = every public one. "example.com" means the host and all below
	// it, "*.example.com" only those below. Deny is stronger. Neither opens private addresses.
	Allow, Deny []string
	Ports       []int         // default 80, 443, 8080, 8443
	Timeout     time.Duration // default and maximum [Timeout]
	UserAgent   string        // default "Mozilla/5.0 (compatible; deerbot)"
	Resolver    Resolver      // default the system's
	// TestRoute is nil outside tests of this module's tools, which alone can make one.
	TestRoute *testroute.Table
}

// Client fetches. It may be used by several goroutines at once and keeps no connections.
type Client struct {
	cfg       Config
	allow     []hostRule
	deny      []hostRule
	transport *http.Transport
}

// New makes a client. It fails when a port or a host of the lists is malformed.
func New(cfg Config) (*Client, error) {
	if len(cfg.Ports) == 0 {
		cfg.Ports = []int{80, 443, 8080, 8443}
	}
	if cfg.Timeout <= 0 || cfg.Timeout > Timeout {
		cfg.Timeout = Timeout
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "Mozilla/5.0 (compatible; deerbot)"
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	c := &Client{cfg: cfg}
	var errs []error
	for _, p := range cfg.Ports {
		if p < 1 || p > 65535 {
			errs = append(errs, fmt.Errorf("web: port %d is out of range", p))
		}
	}
	var err error
	if c.allow, err = hostRules(cfg.Allow); err != nil {
		errs = append(errs, fmt.Errorf("web: allow: %w", err))
	}
	if c.deny, err = hostRules(cfg.Deny); err != nil {
		errs = append(errs, fmt.Errorf("web: deny: %w", err))
	}
	c.transport = &http.Transport{
		Proxy:                  nil,
		DialContext:            c.dial,
		DisableKeepAlives:      true, // a connection serves one request: what was checked is what is used
		DisableCompression:     true, // decoded here, within bounds
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  20 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
	if roots := cfg.TestRoute.Certificates(); roots != nil {
		c.transport.TLSClientConfig = testTLS(roots)
	}
	return c, errors.Join(errs...)
}
