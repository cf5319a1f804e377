// Package sse reads event streams (text/event-stream) as providers really send them.
//
// [Reader] accepts LF, CRLF and CR line ends in any mixture and split anywhere between reads, a leading byte order mark,
// comments, fields without the space after the colon, and a last event that no blank line follows. Memory is bounded by
// one event: a line or an event beyond the limit ends the stream with [ErrTooLarge].
//
// Use [Reader.Next] or [Reader.All] to read events. [NewBody] wraps a response body for a decoder that only knows the
// strict form; it emits LF line ends and a blank line after every event and nothing else.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxEvent is the default limit of one line and of one event's data in bytes.
const MaxEvent = 16 << 20

// keepCap is the largest buffer that is kept for the next event.
const keepCap = 256 << 10

// ErrTooLarge is wrapped by the error of a stream that holds a line or an event beyond the limit.
var ErrTooLarge = errors.New("event stream: event too large")

// Event is one dispatched event. Data is valid until the next call of Next; several data lines are joined by LF.
type Event struct {
	Type string
	Data []byte
}

// Reader parses an event stream. It is not safe for concurrent use.
type Reader struct {
	src    io.Reader
	max    int
	buf    []byte // unread input is buf[off:end]
	off    int
	end    int
	data   []byte
	skipLF bool // the last line ended with CR: an LF that follows belongs to it
	begun  bool // the first line was read
	err    error
}

// NewReader returns a reader of src with the limit [MaxEvent].
func NewReader(src io.Reader) *Reader { return NewReaderSize(src, MaxEvent) }

// NewReaderSize returns a reader of src that refuses lines and events longer than limit bytes.
func NewReaderSize(src io.Reader, limit int) *Reader {
	return &Reader{src: src, max: limit}
}

// Next returns the next event that has data. At the end of the stream it returns io.EOF, after dispatching an event
// that no blank line ended. Any other error is the source's, and drops the unfinished event.
func (r *Reader) Next() (Event, error) {
	if cap(r.data) > keepCap {
		r.data = nil
	}
	r.data = r.data[:0]
	var typ string
	has := false
	for {
		line, err := r.line()
		if err != nil {
			if errors.Is(err, io.EOF) && has {
				return Event{Type: typ, Data: r.data}, nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if has {
				return Event{Type: typ, Data: r.data}, nil
			}
			typ = ""
			continue
		}
		if line[0] == '{' {
			// Not a field. Proxies write a bare JSON error into a stream they have begun; a stricter reader would lose it.
			if has {
				continue
			}
			has, r.data = true, append(r.data, line...)
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		switch string(name) {
		case "data":
			if has {
				r.data = append(r.data, '\n')
			}
			has = true
			if len(r.data)+len(value) > r.max {
				r.err = fmt.Errorf("%w: more than %d bytes of data", ErrTooLarge, r.max)
				return Event{}, r.err
			}
			r.data = append(r.data, value...)
		case "event":
			typ = string(value)
		}
	}
}

// All returns the events as an iterator. A clean end yields no error.
func (r *Reader) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			ev, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// line returns the next line without its end; the slice is valid until the next call. The last line may lack an end.
func (r *Reader) line() ([]byte, error) {
	scanned := 0
	for {
		if r.skipLF && r.off < r.end {
			r.skipLF = false
			if r.buf[r.off] == '\n' {
				r.off++
			}
		}
		window := r.buf[r.off:r.end]
		if i := bytes.IndexAny(window[scanned:], "\r\n"); i >= 0 {
			i += scanned
			line := window[:i]
			r.skipLF = window[i] == '\r'
			r.off += i + 1
			return r.first(line), nil
		}
		scanned = len(window)
		if scanned > r.max {
			r.err = fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, r.max)
		}
		if r.err == nil {
			r.fill()
			continue
		}
		if errors.Is(r.err, io.EOF) && scanned > 0 {
			r.off = r.end
			return r.first(window), nil
		}
		return nil, r.err
	}
}

// first strips the byte order mark from the first line.
func (r *Reader) first(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

// fill reads once from the source. It sets r.err, or leaves at least one more byte unless the source returned none.
func (r *Reader) fill() {
	switch {
	case r.off == r.end:
		r.off, r.end = 0, 0
		if len(r.buf) > keepCap {
			r.buf = nil
		}
	case r.end == len(r.buf) && r.off > 0:
		r.end = copy(r.buf, r.buf[r.off:r.end])
		r.off = 0
	}
	if r.end == len(r.buf) {
		grown := make([]byte, max(4<<10, 2*len(r.buf)))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if err != nil {
			r.err = err
		}
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}
