package sse

import (
	"bytes"
	"io"
)

// body is a strict event stream made from a lenient one.
type body struct {
	src  io.Closer
	r    *Reader
	out  bytes.Buffer
	fail error
}

// NewBody wraps a response body so that reading it gives the same events in the strict form: "event: type" when the
// event has one, one "data: " line per data line, a blank line. Closing it closes rc.
func NewBody(rc io.ReadCloser) io.ReadCloser {
	return &body{src: rc, r: NewReader(rc)}
}

// Read returns normalised bytes. It holds at most one event.
func (b *body) Read(p []byte) (int, error) {
	for b.out.Len() == 0 {
		if b.fail != nil {
			return 0, b.fail
		}
		ev, err := b.r.Next()
		if err != nil {
			b.fail = err
			continue
		}
		if b.out.Cap() > keepCap {
			b.out = bytes.Buffer{}
		}
		if ev.Type != "" {
			b.out.WriteString("event: ")
			b.out.WriteString(ev.Type)
			b.out.WriteByte('\n')
		}
		for line := range bytes.SplitSeq(ev.Data, []byte{'\n'}) {
			b.out.WriteString("data: ")
			b.out.Write(line)
			b.out.WriteByte('\n')
		}
		b.out.WriteByte('\n')
	}
	return b.out.Read(p)
}

// Close closes the wrapped body.
func (b *body) Close() error { return b.src.Close() }
