package web

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deerbot/runtime/tools/internal/testroute"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names is a resolver with a fixed answer per query; the last answer stays.
type fakeDNS struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   []string
}

func (d *fakeDNS) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, host)
	host = strings.TrimSuffix(host, ".")
	list := d.answers[host]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.53", IsNotFound: true}
	}
	if len(list) > 1 {
		d.answers[host] = list[1:]
	}
	var out []netip.Addr
	for _, a := range list[0] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

const publicIP = "93.184.216.34"

// site is a server on the loopback that plays ok.example and other names, all at publicIP, and counts requests.
type site struct {
	*httptest.Server
	requests atomic.Int64
	dns      *fakeDNS
	client   *Client
}

func newSite(t *testing.T, cfg Config, h http.HandlerFunc) *site {
	t.Helper()
	s := &site{dns: &fakeDNS{answers: map[string][][]string{}}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	for _, n := range []string{"ok.example", "www.ok.example", "other.example"} {
		s.dns.answers[n] = [][]string{{publicIP}}
	}
	routes := testroute.New()
	for _, port := range []uint16{80, 443, 8080} {
		routes.Add(netip.AddrPortFrom(netip.MustParseAddr(publicIP), port), s.Listener.Addr().String())
	}
	cfg.Resolver, cfg.TestRoute = s.dns, routes
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.client = c
	return s
}

func TestGet(t *testing.T) {
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="a b.txt"`)
		fmt.Fprintf(w, "%s %s", r.Host, r.URL)
	})
	page, err := s.client.Get(t.Context(), " HTTP://OK.example.:8080/a?b=c#frag ")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(page.Body); got != "ok.example:8080 /a?b=c" {
		t.Errorf("the server saw %q", got)
	}
	if page.URL.String() != "http://ok.example:8080/a?b=c" || page.Status != 200 || page.Name != "a b.txt" {
		t.Errorf("got %+v", page)
	}
	if s.dns.asked[0] != "ok.example." {
		t.Errorf("asked for %q, which search domains may complete", s.dns.asked[0])
	}
}

func TestGetTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	dns := &fakeDNS{answers: map[string][][]string{"example.com": {{publicIP}}, "wrong.example": {{publicIP}}}}
	routes := testroute.New()
	routes.Add(netip.MustParseAddrPort(publicIP+":443"), srv.Listener.Addr().String())
	routes.Roots = x509.NewCertPool()
	routes.Roots.AddCert(srv.Certificate())
	c, err := New(Config{Resolver: dns, TestRoute: routes})
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.Get(t.Context(), "https://example.com/")
	if err != nil || string(page.Body) != "HTTP/2.0" {
		t.Errorf("got %v, %v", page, err)
	}
	if _, err := c.Get(t.Context(), "https://wrong.example/"); err == nil || !strings.Contains(err.Error(), "certificate of wrong.example") {
		t.Errorf("wrong name: %v", err)
	}
}

func TestC195RedirectToInternal(t *testing.T) {
	var location string
	var status int
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the server inside was asked for %s", r.URL)
	}))
	defer inside.Close()
	s := newSite(t, Config{Ports: []int{80, 443, 8080, portOfTest(t, inside)}}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hop" || r.URL.Path == "/" && !r.URL.Query().Has("two") {
			w.Header().Set("Location", location)
			w.WriteHeader(status)
			return
		}
		http.Redirect(w, r, "http://other.example/hop", http.StatusFound)
	})
	s.dns.answers["inside.example"] = [][]string{{"127.0.0.1"}}
	s.dns.answers["localtest.example"] = [][]string{{"10.1.2.3"}}
	for _, loc := range []string{
		"http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/latest", "file:///etc/passwd", "gopher://127.0.0.1/x",
		"//127.0.0.1/", inside.URL, "http://inside.example:" + fmt.Sprint(portOfTest(t, inside)), "http://localtest.example/",
		"http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://user@ok.example/", "http://ok.example:22/", "http://0x7f000001/",
		"ftp://ok.example/", "javascript:alert(1)", "data:text/plain,x",
	} {
		for _, status = range []int{301, 302, 303, 307, 308} {
			location = loc
			for _, start := range []string{"http://ok.example/", "http://ok.example/?two"} {
				before := s.requests.Load()
				_, err := s.client.Get(t.Context(), start)
				if !errors.Is(err, ErrRefused) {
					t.Errorf("%d to %s from %s: %v", status, loc, start, err)
				}
				if n := s.requests.Load() - before; n > 2 {
					t.Errorf("%d requests", n)
				}
			}
		}
	}
}

func portOfTest(t *testing.T, s *httptest.Server) int {
	t.Helper()
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func TestRedirects(t *testing.T) {
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err == nil && n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
			return
		}
		fmt.Fprint(w, "end")
	})
	page, err := s.client.Get(t.Context(), "http://ok.example/5")
	if err != nil || page.URL.Path != "/0" || s.requests.Load() != 6 {
		t.Errorf("five redirects: %v after %d requests", err, s.requests.Load())
	}
	s.requests.Store(0)
	if _, err := s.client.Get(t.Context(), "http://ok.example/6"); err == nil || !strings.Contains(err.Error(), "redirects") || s.requests.Load() != 6 {
		t.Errorf("six redirects: %v after %d requests", err, s.requests.Load())
	}
}

func TestC196Rebinding(t *testing.T) {
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "public") })
	tests := map[string][][]string{
		"rebind.example":  {{publicIP}, {"127.0.0.1"}},
		"both.example":    {{publicIP, "127.0.0.1"}},
		"both6.example":   {{publicIP, "::1"}},
		"mapped.example":  {{"::ffff:127.0.0.1"}},
		"private.example": {{"192.168.1.1"}},
	}
	maps.Copy(s.dns.answers, tests)
	// The first answer is public: the connection goes to it and to nothing else.
	page, err := s.client.Get(t.Context(), "http://rebind.example/")
	if err != nil || string(page.Body) != "public" {
		t.Fatalf("first answer: %v", err)
	}
	if n := len(s.dns.asked); n != 1 {
		t.Errorf("the name was resolved %d times for one connection", n)
	}
	before := s.requests.Load()
	for n := range tests {
		if _, err := s.client.Get(t.Context(), "http://"+n+"/"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", n, err)
		}
	}
	if n := s.requests.Load() - before; n != 0 {
		t.Errorf("%d requests came through", n)
	}
	// A resolver may give IPv4 addresses in their mapped form.
	s.dns.answers["wide.example"] = [][]string{{"::ffff:" + publicIP}}
	if _, err := s.client.Get(t.Context(), "http://wide.example/"); err != nil {
		t.Errorf("public address in mapped form: %v", err)
	}
}

// TestControl checks the last line: whatever was resolved, the dialer refuses by the address that it connects to.
func TestControl(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	d := net.Dialer{ControlContext: control}
	if conn, err := d.DialContext(t.Context(), "tcp", srv.Listener.Addr().String()); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, %v", conn, err)
	}
	for _, a := range []string{"127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "10.0.0.1:80", "x", ""} {
		if err := control(t.Context(), "tcp4", a, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", a, err)
		}
	}
	if err := control(t.Context(), "udp4", publicIP+":80", nil); !errors.Is(err, ErrRefused) {
		t.Errorf("udp: %v", err)
	}
	if err := control(t.Context(), "tcp4", publicIP+":80", nil); err != nil {
		t.Errorf("public: %v", err)
	}
}

func TestC198OddSpellings(t *testing.T) {
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {})
	s.dns.answers["7f000001.nip.io"] = [][]string{{"127.0.0.1"}}
	s.dns.answers["localhost"] = [][]string{{publicIP}}
	for _, u := range []string{
		"http://2130706433/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://127.1/", "http://0/", "http://localhost./",
		"http://7f000001.nip.io/", "http://user@127.0.0.1:80/", "http://100.64.0.1/",
		"http://127.0.0.1/", "http://127.0.0.1./", "http://0x7f000001/", "http://017700000001/", "http://1.1.1.0x1/",
		"http://08.8.8.8/", "http://1.2.3/", "http://１２７.０.０.１/", "http://127。0。0。1/", "http://①②⑦.0.0.1/",
		"http://[::1]/", "http://[::]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
		"http://[2002:7f00:1::]/", "http://[2001::1]/", "http://[fe80::1%25eth0]/", "http://[fc00::1]/", "http://[fec0::1]/",
		"http://[fd00:ec2::254]/", "http://169.254.169.254/", "http://metadata.google.internal/", "http://foo.localhost/",
		"http://intranet/", "http://printer.local/", "http://localhost/", "http://LOCALHOST/", "http://ok.example:6379/",
		"http://ok.example:/", "http://ok.example:0/", "http://ok.example:99999/", "http://a:b@ok.example/", "http://@ok.example/",
		"https:ok.example", "ok.example", "//ok.example/", "http:///x", "file:///etc/passwd", "gopher://ok.example/",
		"http://ok.example\\@127.0.0.1/", "http://ok.example\n/", "http://%31%32%37.0.0.1/", "http://exa mple.com/", "",
		"http://" + strings.Repeat("a", 64) + ".example/", "http://ok.example/" + strings.Repeat("a", 5000),
	} {
		if _, err := s.client.Get(t.Context(), u); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", u, err)
		}
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

func TestC199NoCredentialsAnywhere(t *testing.T) {
	var mu sync.Mutex
	var seen []http.Header
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Clone())
		mu.Unlock()
		w.Header().Set("Set-Cookie", "session=1; Path=/")
		w.Header().Set("Authorization", "Bearer x")
		if r.Host == "ok.example" {
			http.Redirect(w, r, "http://other.example/x", http.StatusFound)
			return
		}
		fmt.Fprint(w, "x")
	})
	for range 2 {
		if _, err := s.client.Get(t.Context(), "http://ok.example/"); err != nil {
			t.Fatal(err)
		}
	}
	allowed := map[string]bool{"User-Agent": true, "Accept": true, "Accept-Language": true, "Accept-Encoding": true, "Connection": true}
	for _, h := range seen {
		for k := range h {
			if !allowed[k] {
				t.Errorf("header %s was sent", k)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d requests", len(seen))
	}
}

func TestLists(t *testing.T) {
	dns := &fakeDNS{answers: map[string][][]string{}}
	tests := []struct {
		name        string
		allow, deny []string
		url         string
		ok          bool
	}{
		{"empty allows public", nil, nil, "http://ok.example/", true},
		{"allowed", []string{"ok.example"}, nil, "http://ok.example/", true},
		{"below", []string{"ok.example"}, nil, "http://a.b.ok.example/", true},
		{"case and dot", []string{"OK.Example."}, nil, "http://ok.example/", true},
		{"suffix is no subdomain", []string{"ok.example"}, nil, "http://notok.example/", false},
		{"only below", []string{"*.ok.example"}, nil, "http://ok.example/", false},
		{"only below, below", []string{"*.ok.example"}, nil, "http://a.ok.example/", true},
		{"other", []string{"ok.example"}, nil, "http://other.example/", false},
		{"deny", nil, []string{"ok.example"}, "http://ok.example/", false},
		{"deny below", nil, []string{"ok.example"}, "http://a.ok.example/", false},
		{"deny is stronger", []string{"ok.example"}, []string{"a.ok.example"}, "http://a.ok.example/", false},
		{"allow cannot open loopback", []string{"127.0.0.1", "localhost"}, nil, "http://127.0.0.1/", false},
		{"allow cannot open localhost", []string{"localhost"}, nil, "http://localhost/", false},
		{"address", []string{"1.1.1.1"}, nil, "http://1.1.1.1/", true},
		{"address 6", []string{"[2606:4700::1111]"}, nil, "http://[2606:4700:0::1111]/", true},
		{"international", []string{"bücher.example"}, nil, "http://xn--bcher-kva.example/", true},
		{"underscore and hyphens", nil, nil, "http://r3---sn_x.ok.example/", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(Config{Allow: tt.allow, Deny: tt.deny, Resolver: dns})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Check(tt.url); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, bad := range []string{"", "http://x.example", "a b", "x.example/path", "*", "1.2.3", "*.1.2.3.4"} {
		if _, err := New(Config{Deny: []string{bad}}); err == nil {
			t.Errorf("the entry %q was accepted", bad)
		}
	}
	if _, err := New(Config{Ports: []int{0, 70000}}); err == nil {
		t.Error("bad ports were accepted")
	}
}

func TestCheckAddr(t *testing.T) {
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:10::1",
		"2001:db8::1", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
		"2606:4700::5efe:7f00:1", "2606:4700::200:5efe:7f00:1", "4000::1",
	} {
		if err := CheckAddr(netip.MustParseAddr(a)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", a, err)
		}
	}
	for _, a := range []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
		"198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1",
	} {
		if err := CheckAddr(netip.MustParseAddr(a)); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
	if err := CheckAddr(netip.Addr{}); err == nil {
		t.Error("the zero address was accepted")
	}
	if err := CheckAddr(netip.MustParseAddr("2606:4700::1111%eth0")); err == nil {
		t.Error("a zone was accepted")
	}
}

func TestBodies(t *testing.T) {
	pack := func(name string, w io.Writer) io.WriteCloser {
		switch name {
		case "gzip":
			return gzip.NewWriter(w)
		case "zlib":
			return zlib.NewWriter(w)
		}
		f, _ := flate.NewWriter(w, 9)
		return f
	}
	zeros := make([]byte, 1<<20)
	s := newSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gzip", "/zlib", "/flate":
			w.Header().Set("Content-Encoding", map[string]string{"/gzip": "gzip"}[r.URL.Path])
			if r.URL.Path != "/gzip" {
				w.Header().Set("Content-Encoding", "Deflate")
			}
			z := pack(r.URL.Path[1:], w)
			io.WriteString(z, "packed")
			z.Close()
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 30 {
				z.Write(zeros)
			}
			z.Close()
		case "/twice":
			w.Header().Set("Content-Encoding", "gzip, gzip")
		case "/br":
			w.Header().Set("Content-Encoding", "br")
		case "/notgzip":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "this is no gzip stream at all")
		case "/exact":
			for range MaxBody >> 20 {
				w.Write(zeros)
			}
		case "/big":
			for range MaxBody>>20 + 1 {
				w.Write(zeros)
			}
		case "/claims":
			w.Header().Set("Content-Length", fmt.Sprint(MaxBody+1))
		case "/short":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "x")
		case "/headers":
			for i := range 200 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
			}
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "secret words of the error page")
		}
	})
	tests := []struct{ path, body, err string }{
		{"/gzip", "packed", ""},
		{"/zlib", "packed", ""},
		{"/flate", "packed", ""},
		{"/bomb", "", "larger than 5 MB"},
		{"/twice", "", "packed in a way"},
		{"/br", "", "packed in a way"},
		{"/notgzip", "", "packed in a way"},
		{"/big", "", "larger than"},
		{"/claims", "", "larger than"},
		{"/short", "", "closed the connection"},
		{"/headers", "", "cannot be read"},
		{"/none", "", "http://ok.example/none answered 404 Not Found"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			page, err := s.client.Get(t.Context(), "http://ok.example"+tt.path)
			if tt.err == "" {
				if err != nil || string(page.Body) != tt.body {
					t.Fatalf("got %v, %v", page, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
	if page, err := s.client.Get(t.Context(), "http://ok.example/exact"); err != nil || len(page.Body) != MaxBody {
		t.Errorf("a page of exactly the limit: %v", err)
	}
}

func TestTimeAndCancel(t *testing.T) {
	release := make(chan struct{})
	started := make(chan struct{}, 2)
	s := newSite(t, Config{Timeout: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		started <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	if _, err := s.client.Get(t.Context(), "http://ok.example/"); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("slow body: %v", err)
	}
	<-started
	c, err := New(Config{Resolver: s.dns, TestRoute: s.client.cfg.TestRoute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := c.Get(ctx, "http://ok.example/"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := c.Get(t.Context(), "http://nowhere.example/"); err == nil || err.Error() != "there is no host nowhere.example" {
		t.Errorf("unknown name: %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"http://ok.example/", "https://127.1/", "http://0x7f.1", "http://[::1]:80/", "http://a@b/", "http://１.1.1.1", "http://xn--a/"} {
		f.Add(s)
	}
	c, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := c.Check(raw)
		if err != nil {
			return
		}
		host := u.Hostname()
		if u.User != nil || u.Fragment != "" || (u.Scheme != "http" && u.Scheme != "https") || host == "" || host != strings.ToLower(host) {
			t.Fatalf("%q became %v", raw, u)
		}
		if a, err := netip.ParseAddr(host); err == nil && CheckAddr(a) != nil {
			t.Fatalf("%q names %v", raw, a)
		}
		again, err := c.Check(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q became %v, that became %v, %v", raw, u, again, err)
		}
	})
}
