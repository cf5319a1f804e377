package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	anthropicsse "github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/google/go-cmp/cmp"
	openaisse "github.com/openai/openai-go/v3/packages/ssestream"
)

// list reads all events of r in a readable form.
func list(r io.Reader) ([]string, error) {
	out := []string{}
	for ev, err := range NewReader(r).All() {
		if err != nil {
			return out, err
		}
		out = append(out, ev.Type+"|"+string(ev.Data))
	}
	return out, nil
}

func TestReader(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want []string
	}{
		"LF":                    {"data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		"CRLF":                  {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
		"CR":                    {"data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		"mixed":                 {"data: a\r\n\ndata: b\n\r\n", []string{"|a", "|b"}},
		"BOM":                   {"\xef\xbb\xbfdata: a\n\n", []string{"|a"}},
		"comments":              {": x\n\n: y\ndata: a\n: z\n\n", []string{"|a"}},
		"no space":              {"data:a\n\n", []string{"|a"}},
		"only one space goes":   {"data:  a \n\n", []string{"| a "}},
		"type":                  {"event: t\ndata: a\n\ndata: b\n\n", []string{"t|a", "|b"}},
		"type without data":     {"event: t\n\ndata: b\n\n", []string{"|b"}},
		"several data lines":    {"data: a\ndata\ndata: b\n\n", []string{"|a\n\nb"}},
		"unknown fields":        {"id: 1\nretry: 5\nfoo\ndata: a\n\n", []string{"|a"}},
		"last event unfinished": {"data: a\n\nevent: t\ndata: b", []string{"|a", "t|b"}},
		"last line ended":       {"data: b\n", []string{"|b"}},
		"bare JSON":             {"{\"error\":1}\n\n", []string{"|{\"error\":1}"}},
		"empty data":            {"data:\n\n", []string{"|"}},
		"nothing":               {"", []string{}},
		"only blank lines":      {"\n\r\n\r", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, r := range map[string]io.Reader{
				"whole":     strings.NewReader(tc.in),
				"one byte":  iotest.OneByteReader(strings.NewReader(tc.in)),
				"with EOF":  iotest.DataErrReader(strings.NewReader(tc.in)),
				"through":   NewBody(io.NopCloser(strings.NewReader(tc.in))),
				"through 1": iotest.OneByteReader(NewBody(io.NopCloser(iotest.OneByteReader(strings.NewReader(tc.in))))),
			} {
				got, err := list(r)
				if err != nil {
					t.Errorf("%s: %v", kind, err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
			}
		})
	}
}

// TestEventIsNotHeldBack: a CR ends a line at once, without waiting for an LF that may never come.
func TestEventIsNotHeldBack(t *testing.T) {
	pr, pw := io.Pipe()
	defer pr.Close()
	go func() { _, _ = pw.Write([]byte("data: a\r\r")) }()
	ev, err := NewReader(pr).Next()
	if err != nil || string(ev.Data) != "a" {
		t.Errorf("event %q, error %v", ev.Data, err)
	}
}

func TestSourceError(t *testing.T) {
	broken := errors.New("reset")
	got, err := list(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("events %q, error %v; want the unfinished event dropped", got, err)
	}
}

// stream is an endless line of n bytes after "data: ", made while it is read.
type stream struct{ n int }

func (s *stream) Read(p []byte) (int, error) {
	if s.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), s.n, 32<<10)
	for i := range p[:n] {
		p[i] = 'x'
	}
	s.n -= n
	return n, nil
}

func TestC131LongLine(t *testing.T) {
	const long = 3 << 20
	in := func(n int) io.Reader { return io.MultiReader(strings.NewReader("data: "), &stream{n}) }
	if got, err := list(in(long)); err != nil || len(got[0]) != long+1 {
		t.Errorf("3 MiB: %v", err)
	}
	if _, err := list(in(64 << 20)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("64 MiB: %v, want too large", err)
	}
	many := strings.Repeat("data: "+strings.Repeat("y", 1<<20)+"\n", 20)
	if _, err := list(strings.NewReader(many)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("20 lines of 1 MiB in one event: %v, want too large", err)
	}
}

// TestMemoryIsOneEvent reads 64 MiB of small events, without line ends that a naive reader knows.
func TestMemoryIsOneEvent(t *testing.T) {
	event := []byte("data: " + strings.Repeat("z", 1000) + "\r\r")
	r := NewReader(&repeat{event: event, n: 64 << 10})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for _, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	runtime.ReadMemStats(&after)
	if n != 64<<10 || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d events, %d bytes allocated", n, after.TotalAlloc-before.TotalAlloc)
	}
}

type repeat struct {
	event []byte
	n     int
	at    int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.event[r.at:])
	if r.at += n; r.at == len(r.event) {
		r.at, r.n = 0, r.n-1
	}
	return n, nil
}

// TestSDKDecoders: what [NewBody] emits suits the SDKs' decoders, also 3 MiB in one line.
func TestSDKDecoders(t *testing.T) {
	long := strings.Repeat("w", 3<<20)
	in := "\xef\xbb\xbf: hi\revent: t\rdata:" + long + "\r\rdata: last"
	response := func() *http.Response {
		return &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: NewBody(io.NopCloser(strings.NewReader(in)))}
	}
	want := []string{fmt.Sprint("t", len(long)), fmt.Sprint("", len("last"))}
	var got []string
	d := openaisse.NewDecoder(response())
	for d.Next() {
		got = append(got, fmt.Sprint(d.Event().Type, len(bytes.TrimSpace(d.Event().Data))))
	}
	if diff := cmp.Diff(want, got); diff != "" || d.Err() != nil {
		t.Errorf("openai: %v (-want +got):\n%s", d.Err(), diff)
	}
	got = nil
	a := anthropicsse.NewDecoder(response())
	for a.Next() {
		got = append(got, fmt.Sprint(a.Event().Type, len(bytes.TrimSpace(a.Event().Data))))
	}
	if diff := cmp.Diff(want, got); diff != "" || a.Err() != nil {
		t.Errorf("anthropic: %v (-want +got):\n%s", a.Err(), diff)
	}
}

// chop returns its input in pieces whose lengths follow from a seed.
type chop struct {
	rest []byte
	seed uint32
}

func (c *chop) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	c.seed = c.seed*1664525 + 1013904223
	n := copy(p[:min(len(p), 1+int(c.seed>>28))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{"data: a\r\n\r\ndata:b\r\revent: x\ndata\n\n", "\xef\xbb\xbf: c\n\n{\"error\":{}}\n\ndata: [DONE]", "\r\r\n\n\rdata: \r\ndata: x\n"} {
		f.Add([]byte(s), uint32(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint32) {
		want, err := list(bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		got, err := list(&chop{rest: in, seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("in pieces it reads differently:\n%s", diff)
		}
		if got, err = list(NewBody(io.NopCloser(&chop{rest: in, seed: seed + 1}))); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("in the strict form it reads differently:\n%s", diff)
		}
		if !bytes.ContainsRune(in, '\r') {
			if got, err = list(bytes.NewReader(bytes.ReplaceAll(in, []byte{'\n'}, []byte{'\r'}))); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("with CR it reads differently:\n%s", diff)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	event := []byte("data: " + strings.Repeat("z", 150) + "\n\n")
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	r := NewReader(&repeat{event: event, n: -1})
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
