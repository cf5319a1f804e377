package telegram

import (
	"encoding/json"
	"net/http"
	"time"
)

// queued is an update that was not confirmed yet.
type queued struct {
	id  int64
	raw json.RawMessage
}

// poll is a waiting getUpdates.
type poll struct {
	wake     chan struct{}
	conflict chan struct{} // closed by a newer poll
}

// maxPoll is the longest the server lets a poll wait (tdlib/telegram-bot-api, LONG_POLL_MAX_TIMEOUT).
const maxPoll = 50 * time.Second

const (
	textConflict = "terminated by other getUpdates request; make sure that only one bot instance is running"
	textWebhook  = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)

// optIn are the updates that come only when asked for (core.telegram.org/bots/api#getupdates).
var optIn = map[string]bool{"chat_member": true, "message_reaction": true, "message_reaction_count": true}

// push queues an update of the given kind. The lock is held.
func (s *Server) push(kind string, object any) {
	if s.allowed != nil && !s.allowed[kind] || s.allowed == nil && optIn[kind] {
		return
	}
	body, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	s.ids.update++
	raw := make([]byte, 0, len(body)+48)
	raw = append(raw, `{"update_id":`...)
	id, _ := json.Marshal(s.ids.update)
	raw = append(raw, id...)
	raw = append(raw, ',', '"')
	raw = append(raw, kind...)
	raw = append(raw, '"', ':')
	raw = append(raw, body...)
	raw = append(raw, '}')
	s.queue = append(s.queue, queued{id: s.ids.update, raw: raw})
	if s.poll != nil {
		select {
		case s.poll.wake <- struct{}{}:
		default:
		}
	}
}

// Inject queues an update of the given kind with any object: for shapes the control API does not make.
func (s *Server) Inject(kind string, object any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push(kind, object)
}

// Pending is the number of updates that are not confirmed.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// SetWebhook makes a webhook active: polls are refused until deleteWebhook.
func (s *Server) SetWebhook(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook = url
}

func (s *Server) deleteWebhook(c *request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook = ""
	if c.flag("drop_pending_updates") {
		s.queue = nil
	}
	return true, nil
}

func (s *Server) webhookInfo(*request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"url": s.webhook, "has_custom_certificate": false, "pending_update_count": len(s.queue)}, nil
}

func (s *Server) getUpdates(c *request) (any, *apiError) {
	offset, limit := int64(c.num("offset")), c.num("limit")
	if limit <= 0 || limit > 100 {
		limit = 100
	}
	wait := min(time.Duration(c.num("timeout"))*time.Second, maxPoll)
	s.mu.Lock()
	if s.webhook != "" {
		s.mu.Unlock()
		return nil, conflict(textWebhook)
	}
	if raw := c.text("allowed_updates"); raw != "" {
		var kinds []string
		if json.Unmarshal([]byte(raw), &kinds) != nil {
			s.mu.Unlock()
			return nil, bad("can't parse allowed updates JSON object")
		}
		s.allowed = nil
		if len(kinds) > 0 {
			s.allowed = make(map[string]bool, len(kinds))
			for _, k := range kinds {
				s.allowed[k] = true
			}
		}
	}
	if s.poll != nil {
		close(s.poll.conflict)
	}
	s.confirm(offset)
	p := &poll{wake: make(chan struct{}, 1), conflict: make(chan struct{})}
	s.poll = p
	defer func() {
		s.mu.Lock()
		if s.poll == p {
			s.poll = nil
		}
		s.mu.Unlock()
	}()
	if out := s.first(limit); len(out) > 0 || wait <= 0 {
		s.mu.Unlock()
		return out, nil
	}
	s.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.wake:
	case <-timer.C:
	case <-p.conflict:
		return nil, conflict(textConflict)
	case <-c.cut:
		s.record(c, 0, "cut")
		panic(http.ErrAbortHandler)
	case <-c.http.Context().Done():
		s.record(c, 0, "client left")
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-p.conflict:
		return nil, conflict(textConflict)
	default:
	}
	return s.first(limit), nil
}

// confirm forgets the updates below offset; a negative offset keeps that many of the latest.
func (s *Server) confirm(offset int64) {
	n := 0
	switch {
	case offset > 0:
		for n < len(s.queue) && s.queue[n].id < offset {
			n++
		}
	case offset < 0:
		n = max(0, len(s.queue)+int(offset))
	}
	if n > 0 {
		clear(s.queue[:n])
		s.queue = s.queue[n:]
		s.changed.fire()
	}
}

func (s *Server) first(limit int) []json.RawMessage {
	out := make([]json.RawMessage, min(limit, len(s.queue)))
	for i := range out {
		out[i] = s.queue[i].raw
	}
	return out
}
