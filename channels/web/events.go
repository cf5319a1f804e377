package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"deerbot/store"
)

const (
	heartbeat    = 15 * time.Second // so that both ends notice a dead line
	writeTimeout = 20 * time.Second // a page that takes nothing for this long is gone
	maxStreams   = 256              // open event streams in all
	maxReplay    = 1000             // missed messages that are replayed; over it the page loads anew
	pageSize     = 100              // messages in one answer
	maxPageSize  = 500
)

// listMessages returns messages of a conversation and the revision as of which they are true: the latest ones, or those
// after or before a sequence number.
func (c *Channel) listMessages(w http.ResponseWriter, r *http.Request, chat string) {
	q := r.URL.Query()
	after, okAfter := number(q.Get("after"))
	before, okBefore := number(q.Get("before"))
	limit, okLimit := number(q.Get("limit"))
	if !okAfter || !okBefore || !okLimit {
		fail(w, http.StatusBadRequest, "bad_number", "after, before and limit are whole numbers")
		return
	}
	size := int(min(limit, maxPageSize))
	if size == 0 {
		size = pageSize
	}
	forward := q.Has("after")

	rm := c.rooms.lock(chat)
	defer c.rooms.unlock(chat, rm)
	var (
		page []store.ChatMessage
		rev  uint64
		more bool
	)
	err := c.each(r.Context(), chat, 0, func(m store.ChatMessage) bool {
		rev = max(rev, m.Rev)
		switch {
		case forward && m.Seq <= after, before > 0 && m.Seq >= before:
		case len(page) < size:
			page = append(page, m)
		case forward:
			more = true
		default:
			page, more = append(page[1:], m), true
		}
		return true
	})
	if err != nil {
		c.failStore(w, "list messages", err)
		return
	}
	out := make([]wireMessage, len(page))
	for i, m := range page {
		out[i] = wire(m)
	}
	reply(w, http.StatusOK, map[string]any{"messages": out, "rev": rev, "more": more})
}

func number(s string) (uint64, bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return n, err == nil
}

// events streams the changes of a conversation from a revision on: first what was missed, in order of revision, then what
// happens.
func (c *Channel) events(w http.ResponseWriter, r *http.Request, chat string) {
	from := r.Header.Get("Last-Event-ID")
	if from == "" {
		from = r.URL.Query().Get("after")
	}
	after, ok := number(from)
	if !ok {
		fail(w, http.StatusBadRequest, "bad_number", "after is a whole number")
		return
	}
	inbox, done := c.running()
	if inbox == nil {
		c.failStore(w, "events", errNotRunning)
		return
	}
	if c.streams.Add(1) > maxStreams {
		c.streams.Add(-1)
		w.Header().Set("Retry-After", "10")
		fail(w, http.StatusServiceUnavailable, "too_many_streams", "too many pages are open")
		return
	}
	defer c.streams.Add(-1)

	rm := c.rooms.lock(chat)
	missed, err := c.changedSince(r, chat, after)
	if err != nil {
		c.rooms.unlock(chat, rm)
		c.failStore(w, "events", err)
		return
	}
	sub := c.rooms.join(rm)
	c.rooms.unlock(chat, rm)
	defer c.rooms.leave(chat, rm, sub)

	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	out := newSSE(w)
	out.buf.WriteString("retry: 1000\n: ready\n\n")
	if len(missed) > maxReplay {
		out.add(event{name: "reset", data: []byte("{}")})
		missed = nil
	}
	for _, m := range missed {
		out.add(messageEvent(m))
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		if out.flush() != nil {
			return
		}
		select {
		case ev, ok := <-sub.events:
			if !ok {
				return
			}
			out.add(ev)
			for range len(sub.events) {
				if ev, ok := <-sub.events; ok {
					out.add(ev)
				}
			}
		case <-beat.C:
			out.buf.WriteString(": still here\n\n")
		case <-done:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// changedSince lists the messages with a revision over rev, in order of revision. The room is locked.
func (c *Channel) changedSince(r *http.Request, chat string, rev uint64) ([]store.ChatMessage, error) {
	var out []store.ChatMessage
	err := c.each(r.Context(), chat, 0, func(m store.ChatMessage) bool {
		if m.Rev > rev {
			out = append(out, m)
		}
		return len(out) <= maxReplay
	})
	slices.SortFunc(out, func(a, b store.ChatMessage) int {
		if a.Rev < b.Rev {
			return -1
		}
		return 1
	})
	return out, err
}

// sseWriter writes events to a page that may be slow.
type sseWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf bytes.Buffer
}

func newSSE(w http.ResponseWriter) *sseWriter {
	return &sseWriter{w: w, rc: http.NewResponseController(w)}
}

// add puts ev behind what waits. The data is JSON and so has no line breaks.
func (s *sseWriter) add(ev event) {
	if ev.id > 0 {
		s.buf.WriteString("id: " + strconv.FormatUint(ev.id, 10) + "\n")
	}
	s.buf.WriteString("event: " + ev.name + "\ndata: ")
	s.buf.Write(ev.data)
	s.buf.WriteString("\n\n")
}

func (s *sseWriter) flush() error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every test writer can
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return err
	}
	s.buf.Reset()
	return s.rc.Flush()
}

func jsonEvent(name string, v any) event {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte("{}")
	}
	return event{name: name, data: data}
}
