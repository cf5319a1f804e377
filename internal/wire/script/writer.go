package script

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// Writer writes the events of a script with its delays and faults. Events without a delay are collected and sent
// together, so that an instant answer costs one packet.
type Writer struct {
	w     http.ResponseWriter
	req   *http.Request
	s     *Script
	buf   bytes.Buffer
	sent  int
	ended bool
}

// NewWriter sends the header of an event stream.
func NewWriter(w http.ResponseWriter, req *http.Request, s *Script) *Writer {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	for k, v := range s.Header {
		h.Set(k, v)
	}
	w.WriteHeader(http.StatusOK)
	out := &Writer{w: w, req: req, s: s}
	if s.CutAfter < 0 || s.StallAfter < 0 {
		out.put(nil)
	}
	return out
}

// Event writes one event; typ may be empty. It reports whether the stream goes on.
func (w *Writer) Event(typ string, data []byte) bool {
	if w.ended {
		return false
	}
	if w.s.ChunkDelay > 0 {
		w.flush()
		if !sleep(w.req, w.s.ChunkDelay) {
			w.ended = true
			return false
		}
	}
	eol := w.s.EOL
	if eol == "" {
		eol = "\n"
	}
	var b bytes.Buffer
	if w.s.Comments {
		b.WriteString(": PROCESSING" + eol + eol)
	}
	if typ != "" {
		b.WriteString("event: " + typ + eol)
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString(eol + eol)
	return w.put(b.Bytes())
}

// Await sends what was collected and waits for ch, if there is one, or until the client leaves.
func (w *Writer) Await(ch <-chan struct{}) {
	if ch == nil || w.ended {
		return
	}
	w.flush()
	select {
	case <-ch:
	case <-w.req.Context().Done():
		w.ended = true
	}
}

// Raw writes bytes as they are.
func (w *Writer) Raw(b []byte) bool { return !w.ended && w.put(b) }

// Close sends what was collected.
func (w *Writer) Close() {
	if !w.ended {
		w.flush()
	}
}

func (w *Writer) put(b []byte) bool {
	limit, cut := w.s.CutAfter, true
	if w.s.StallAfter != 0 {
		limit, cut = w.s.StallAfter, false
	}
	if limit != 0 && w.sent+len(b) >= limit {
		w.buf.Write(b[:max(0, limit-w.sent)])
		w.flush()
		w.ended = true
		if cut {
			panic(http.ErrAbortHandler) // closes the connection without the final chunk
		}
		<-w.req.Context().Done()
		return false
	}
	w.sent += len(b)
	w.buf.Write(b)
	if w.s.ChunkDelay > 0 || w.buf.Len() > 32<<10 {
		w.flush()
	}
	return true
}

func (w *Writer) flush() {
	_, _ = w.w.Write(w.buf.Bytes())
	w.buf.Reset()
	_ = http.NewResponseController(w.w).Flush()
}

// Wait sleeps before the answer begins. It reports false when the client left.
func Wait(req *http.Request, s *Script) bool {
	return s.FirstDelay <= 0 || sleep(req, s.FirstDelay)
}

func sleep(req *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-req.Context().Done():
		return false
	}
}

// SetHeaders applies the headers of a refusal.
func (e *Error) SetHeaders(h http.Header) {
	if e.RetryAfter != "" {
		h.Set("Retry-After", e.RetryAfter)
	}
	if strings.HasPrefix(strings.TrimSpace(e.Body), "<") {
		h.Set("Content-Type", "text/html")
		return
	}
	h.Set("Content-Type", "application/json")
}
