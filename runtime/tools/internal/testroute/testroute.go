// Package testroute lets tests of the tools send connections for a public address to a server on the loopback. Being
// internal it can be filled by code under runtime/tools only, and only tests do.
//
// It weakens no check: names are resolved and addresses judged as always, and an address that is refused never reaches
// the table.
package testroute

import (
	"crypto/x509"
	"net/netip"
)

// Table maps addresses that passed all checks to the servers that play them.
type Table struct {
	to map[netip.AddrPort]string
	// Roots are the certificates that the servers are signed with.
	Roots *x509.CertPool
}

// New returns an empty table.
func New() *Table { return &Table{to: map[netip.AddrPort]string{}} }

// Add sends connections for public to the server at addr, a host:port.
func (t *Table) Add(public netip.AddrPort, addr string) { t.to[public] = addr }

// To finds the server that plays public. A nil table has none.
func (t *Table) To(public netip.AddrPort) (string, bool) {
	if t == nil {
		return "", false
	}
	addr, ok := t.to[public]
	return addr, ok
}

// Certificates is Roots, nil for a nil table.
func (t *Table) Certificates() *x509.CertPool {
	if t == nil {
		return nil
	}
	return t.Roots
}
