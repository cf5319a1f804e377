package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// dial connects to a public address of addr, a host:port of the transport.
func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, refuse("the host cannot be read")
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, refuse("the port cannot be read")
	}
	addrs, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var last error
	for _, a := range addrs {
		conn, err := c.connect(ctx, netip.AddrPortFrom(a, uint16(port)))
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, ErrRefused) || ctx.Err() != nil {
			return nil, err
		}
		last = err
	}
	return nil, last
}

// resolve finds the addresses of host and refuses all of them when one is not public: a name that points inside is not
// to be trusted with its other answers.
func (c *Client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, CheckAddr(a)
	}
	// The dot keeps the resolver from trying the host's search domains.
	found, err := c.cfg.Resolver.LookupNetIP(ctx, "ip", host+".")
	if err != nil {
		dns, ok := errors.AsType[*net.DNSError](err)
		return nil, &lookupError{host: host, gone: ok && dns.IsNotFound}
	}
	if len(found) == 0 {
		return nil, &lookupError{host: host, gone: true}
	}
	addrs := make([]netip.Addr, len(found))
	for i, a := range found {
		addrs[i] = a.Unmap() // resolvers give IPv4 addresses in either form
		if err := CheckAddr(addrs[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", host, err)
		}
	}
	return addrs[:min(len(addrs), maxAddrs)], nil
}

const maxAddrs = 4 // addresses of a name that are tried

// lookupError says that a name has no address. It drops the resolver's own words, which name servers of this host.
type lookupError struct {
	host string
	gone bool // for good
}

func (e *lookupError) Error() string {
	if e.gone {
		return "there is no host " + e.host
	}
	return "the name " + e.host + " cannot be resolved now"
}

// connect dials one checked address. The control function sees the address the system is about to use.
func (c *Client) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second, ControlContext: control}
	target := to.String()
	if err := CheckAddr(to.Addr()); err != nil {
		return nil, err
	}
	if test, ok := c.cfg.TestRoute.To(to); ok {
		target, d.ControlContext = test, nil
	}
	return d.DialContext(ctx, "tcp", target)
}

// control refuses a connection by the address that was resolved last, whoever resolved it.
func control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return refuse("the network %s is not allowed", network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("the address cannot be read")
	}
	return CheckAddr(ap.Addr())
}

func testTLS(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
