package discord

import (
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Drop says when a connection is cut without an answer.
type Drop int

// Drops.
const (
	NoDrop     Drop = iota
	DropBefore      // the request is read, nothing is carried out
	DropAfter       // carried out, the answer is lost
)

// Fault makes calls go wrong. The zero fields match everything and change nothing.
type Fault struct {
	Name    string // of the call, e.g. createMessage; "" for every call
	Channel string
	Times   int // calls to hit: 0 is one, <0 all until ClearFaults

	Hold       chan struct{} // wait until it is closed, before anything else
	Drop       Drop
	Status     int // answer with this error instead of carrying out
	Code       int
	Message    string
	RetryAfter float64 // seconds, of a 429
	Global     bool
	Body       string // answered raw with Status
}

// Fail adds a fault. Faults are tried in the order they were added.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// takeFault is called with the lock held.
func (s *Server) takeFault(c *request) *Fault {
	for i, f := range s.faults {
		if f.Name != "" && f.Name != c.name || f.Channel != "" && f.Channel != c.channel {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			}
		}
		return f
	}
	return nil
}

// obey reports whether the call is answered by f.
func (s *Server) obey(w http.ResponseWriter, r *http.Request, c *request, f *Fault) bool {
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if f.Drop == DropBefore {
		panic(http.ErrAbortHandler)
	}
	if f.Status == 0 {
		return false
	}
	e := &apiError{Status: f.Status, Code: f.Code, Message: f.Message, RetryAfter: f.RetryAfter, Global: f.Global, scope: "user"}
	if e.Message == "" {
		e.Message = strconv.Itoa(f.Status) + ": " + http.StatusText(f.Status)
	}
	if f.Global {
		e.scope = "global"
	}
	s.mu.Lock()
	s.record(c, e)
	s.changed.fire()
	s.mu.Unlock()
	if f.Body != "" {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
		return true
	}
	write(w, nil, e)
	return true
}

// bucket counts the calls of one route and channel in windows.
type bucket struct {
	reset time.Time
	used  int
}

// windows are the limits by route; others have a wide one (developers/topics/rate-limits: clients read the headers).
var windows = map[string]struct {
	limit int
	per   time.Duration
}{
	"createMessage": {5, 5 * time.Second},
	"editMessage":   {5, 5 * time.Second},
	"deleteMessage": {5, time.Second},
	"typing":        {5, 5 * time.Second},
	"listMessages":  {5, time.Second},
	"":              {50, time.Second},
}

const perSecond = 50 // over all routes (developers/topics/rate-limits#global-rate-limit)

// limit sets the headers and refuses what is too fast. The lock is held.
func (s *Server) limit(w http.ResponseWriter, c *request) *apiError {
	if c.path[0] == "interactions" || c.path[0] == "webhooks" {
		return nil
	}
	now := s.opt.Now()
	win, ok := windows[c.name]
	if !ok {
		win = windows[""]
	}
	take := func(key string, limit int, per time.Duration) (*bucket, bool) {
		b := s.buckets[key]
		if b == nil || !now.Before(b.reset) {
			b = &bucket{reset: now.Add(per)}
			s.buckets[key] = b
		}
		b.used++
		return b, b.used <= limit
	}
	key := c.name + ":" + c.channel
	b, ok := take(key, win.limit, win.per)
	after := b.reset.Sub(now).Seconds()
	h := w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(win.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, win.limit-b.used)))
	h.Set("X-RateLimit-Reset", strconv.FormatFloat(float64(b.reset.UnixMilli())/1000, 'f', 3, 64))
	h.Set("X-RateLimit-Reset-After", strconv.FormatFloat(after, 'f', 3, 64))
	h.Set("X-RateLimit-Bucket", "b-"+c.name)
	if !s.opt.Limits {
		return nil
	}
	if g, ok := take("global", perSecond, time.Second); !ok {
		return &apiError{Status: 429, Message: "You are being rate limited.", RetryAfter: round3(g.reset.Sub(now).Seconds()), Global: true, scope: "global"}
	}
	if !ok {
		return &apiError{Status: 429, Message: "You are being rate limited.", RetryAfter: round3(after), scope: "user"}
	}
	return nil
}

func round3(f float64) float64 { return math.Max(0.001, math.Ceil(f*1000)/1000) }
