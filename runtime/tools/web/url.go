package web

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Check reads a URL and refuses it when its text alone shows that it must not be fetched: another scheme than http and
// https, user information, a port that is not allowed, an IPv4 address in any but the usual spelling, an address or name
// that is not public, a host that the lists exclude. The URL that comes back has a plain lower-case host and no fragment.
func (c *Client) Check(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	switch {
	case raw == "":
		return nil, refuse("the url is empty")
	case !utf8.ValidString(raw):
		return nil, refuse("the url is not valid UTF-8")
	case len(raw) > maxURL:
		return nil, refuse("the url is longer than %d characters", maxURL)
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }):
		return nil, refuse("the url holds a blank, a control character or a backslash")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, refuse("the url cannot be read; it must look like https://example.com/page")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme == "":
		return nil, refuse("the url has no scheme; it must begin with https:// or http://")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse("the scheme %.20q is not allowed, only http and https", u.Scheme)
	case u.Opaque != "" || u.Host == "":
		return nil, refuse("the url has no host")
	case u.User != nil:
		return nil, refuse("the url holds a user name or password")
	}
	host, err := hostOf(u.Hostname())
	if err != nil {
		return nil, err
	}
	port := portOf(u)
	if !slices.Contains(c.cfg.Ports, port) {
		return nil, refuse("port %s is not allowed", u.Port())
	}
	if err := c.checkHost(host); err != nil {
		return nil, err
	}
	out := *u
	out.Fragment, out.RawFragment = "", ""
	out.Host = host
	if strings.Contains(host, ":") {
		out.Host = "[" + host + "]"
	}
	if u.Port() != "" {
		out.Host += ":" + strconv.Itoa(port)
	}
	return &out, nil
}

// portOf is the port of a URL, -1 when it is no number.
func portOf(u *url.URL) int {
	switch p := u.Port(); {
	case p != "":
		n, err := strconv.Atoi(p)
		if err != nil {
			return -1
		}
		return n
	case strings.HasSuffix(u.Host, ":"):
		return -1
	case u.Scheme == "http":
		return 80
	}
	return 443
}

// names is how browsers map names, without the rules on hyphens and underscores that real hosts break.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.CheckHyphens(false))

// hostOf normalises a host: lower case, international names in their ASCII form, no dot at the end, IP addresses in
// their usual spelling.
func hostOf(h string) (string, error) {
	if strings.Contains(h, ":") {
		a, err := netip.ParseAddr(h)
		if err != nil || a.Zone() != "" {
			return "", refuse("the host %.60q is no IPv6 address", h)
		}
		return a.String(), nil
	}
	h = strings.TrimSuffix(h, ".")
	if len(h) > 1024 { // more than any name in any spelling; mapping is not linear
		return "", refuse("the host is no name")
	}
	// This also turns wide digits and dots into plain ones, which the checks below then see.
	h, err := names.ToASCII(h)
	if err != nil || h == "" || len(h) > 253 {
		return "", refuse("the host is no name")
	}
	h = strings.TrimSuffix(strings.ToLower(h), ".")
	if again, err := names.ToASCII(h); err != nil || again != h {
		return "", refuse("the host is no name")
	}
	labels := strings.Split(h, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.ContainsFunc(l, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return "", refuse("the host %.60q is no name", h)
		}
	}
	// A name whose last label is a number is an IPv4 address to everybody, in one of many spellings. One is accepted.
	if last := labels[len(labels)-1]; numeric(last) {
		a, err := netip.ParseAddr(h)
		if err != nil {
			return "", refuse("the host %.60q is an address in an unusual spelling", h)
		}
		return a.String(), nil
	}
	return h, nil
}

// numeric reports whether a label is a decimal, octal or hexadecimal number.
func numeric(l string) bool {
	if strings.HasPrefix(l, "0x") {
		return strings.Trim(l[2:], "0123456789abcdef") == ""
	}
	return strings.Trim(l, "0123456789") == ""
}

// privateNames are never public, whatever a resolver says.
var privateNames = []string{
	"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "localdomain", "arpa",
	"onion", "test", "invalid", "svc", "cluster",
}

// checkHost judges a normalised host.
func (c *Client) checkHost(host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		if err := CheckAddr(a); err != nil {
			return err
		}
	} else {
		if !strings.Contains(host, ".") {
			return refuse("%s is not a public name", host)
		}
		for _, p := range privateNames {
			if host == p || strings.HasSuffix(host, "."+p) {
				return refuse("%s is not a public name", host)
			}
		}
	}
	match := func(r hostRule) bool { return r.match(host) }
	if slices.ContainsFunc(c.deny, match) {
		return refuse("%s is on the list of hosts that may not be fetched", host)
	}
	if len(c.allow) > 0 && !slices.ContainsFunc(c.allow, match) {
		return refuse("%s is not on the list of hosts that may be fetched", host)
	}
	return nil
}

// hostRule is an entry of an allow or deny list.
type hostRule struct {
	host string
	self bool // the host itself too
}

func hostRules(list []string) ([]hostRule, error) {
	var out []hostRule
	for _, s := range list {
		name, below := strings.CutPrefix(strings.TrimSpace(s), "*.")
		h, err := hostOf(strings.Trim(name, "[]"))
		if err != nil || below && numeric(h[strings.LastIndexByte(h, '.')+1:]) {
			return nil, fmt.Errorf("%q is no host", s)
		}
		out = append(out, hostRule{host: h, self: !below})
	}
	return out, nil
}

func (r hostRule) match(host string) bool {
	return r.self && host == r.host || strings.HasSuffix(host, "."+r.host)
}
