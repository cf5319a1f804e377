package web

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrRefused is the cause of every refusal for the sake of safety, as opposed to pages that cannot be had.
var ErrRefused = errors.New("refused")

func refuse(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, a...))
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// special4 is what of IPv4 is not the public internet.
var special4 = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier-grade NAT, also some clouds' metadata
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, metadata
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.31.196.0/24", // AS112
	"192.52.193.0/24", // AMT
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"192.175.48.0/24", // AS112
	"198.18.0.0/15",   // benchmarking
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast
)

// global6 is the only part of IPv6 that is given to the public internet. Loopback, v4-mapped, NAT64, unique-local,
// site-local, link-local and multicast all lie outside of it.
var global6 = netip.MustParsePrefix("2000::/3")

// special6 is what of global6 is not the public internet.
var special6 = prefixes(
	"2001::/23",         // protocol assignments: Teredo, ORCHID, benchmarking
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4, which carries an IPv4 address
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

// CheckAddr refuses every address that is not on the public internet. Forms of IPv6 that carry an IPv4 address (v4-mapped,
// v4-compatible, NAT64, 6to4, Teredo, ISATAP) are refused whatever they carry.
func CheckAddr(a netip.Addr) error {
	switch {
	case !a.IsValid():
		return refuse("no address")
	case a.Zone() != "":
		return refuse("%s is not a public address", a.WithZone(""))
	case a.Is4():
		for _, p := range special4 {
			if p.Contains(a) {
				return refuse("%s is not a public address", a)
			}
		}
		return nil
	case a.Is4In6() || !global6.Contains(a) || isatap(a):
		return refuse("%s is not a public address", a)
	}
	for _, p := range special6 {
		if p.Contains(a) {
			return refuse("%s is not a public address", a)
		}
	}
	return nil
}

// isatap reports interface identifiers that carry an IPv4 address by RFC 5214.
func isatap(a netip.Addr) bool {
	b := a.As16()
	return (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
