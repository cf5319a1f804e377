package slack

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Fault makes calls go wrong. The zero fields match everything and change nothing.
type Fault struct {
	Method  string // "" for every method
	Channel string // "" for every channel
	Times   int    // calls to hit: 0 is one, <0 all until ClearFaults

	Hold       chan struct{} // wait until it is closed, before anything else
	DropBefore bool          // the request is read, nothing is carried out
	DropAfter  bool          // carried out, the answer is lost
	Error      string        // answer with this error instead of carrying out
	Needed     string        // with missing_scope
	RetryAfter time.Duration // answer 429
	Status     int           // answer with this HTTP status and Body
	Body       string
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

func (s *Server) takeFault(method, channel string) *Fault {
	for i, f := range s.faults {
		if f.Method != "" && f.Method != method || f.Channel != "" && f.Channel != channel {
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

func (f *Fault) wait(r *http.Request) {
	if f.Hold == nil {
		return
	}
	select {
	case <-f.Hold:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

func (f *Fault) answers() bool { return f.Error != "" || f.RetryAfter > 0 || f.Status > 0 }

func (f *Fault) text() string {
	switch {
	case f.RetryAfter > 0:
		return "ratelimited"
	case f.Status > 0:
		return fmt.Sprint("http ", f.Status)
	}
	return f.Error
}

func (f *Fault) write(w http.ResponseWriter) {
	switch {
	case f.RetryAfter > 0:
		writeLimited(w, f.RetryAfter)
	case f.Status > 0:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
	default:
		o := obj{"ok": false, "error": f.Error}
		if f.Needed != "" {
			o["needed"], o["provided"] = f.Needed, "chat:write"
		}
		write(w, o)
	}
}

func writeLimited(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, `{"ok":false,"error":"ratelimited"}`)
}

// Limits are the calls Slack allows.
type Limits struct {
	PerMinute [5]int        // by tier, per method; 0 is unlimited
	PostGap   time.Duration // between messages in one channel, after a burst of two
}

// RealLimits are those of docs.slack.dev/apis/web-api/rate-limits.
func RealLimits() *Limits {
	return &Limits{PerMinute: [5]int{1: 1, 2: 20, 3: 50, 4: 100}, PostGap: time.Second}
}

// limited notes a call and is how long it has to wait, 0 when it may go on.
func (s *Server) limited(name string, tier int, channel string) time.Duration {
	l := s.opt.Limits
	if l == nil {
		return 0
	}
	now := s.opt.Now()
	if name == "chat.postMessage" && l.PostGap > 0 {
		// The clock of a channel runs ahead by a gap for each message; a burst of two passes.
		next := s.posts[channel]
		if next.Before(now) {
			next = now
		}
		if next.Sub(now) > l.PostGap {
			return next.Sub(now) - l.PostGap
		}
		s.posts[channel] = next.Add(l.PostGap)
		return 0
	}
	per := l.PerMinute[tier]
	if per == 0 {
		return 0
	}
	used := s.used[name]
	for len(used) > 0 && now.Sub(used[0]) >= time.Minute {
		used = used[1:]
	}
	if len(used) >= per {
		s.used[name] = used
		return time.Minute - now.Sub(used[0])
	}
	s.used[name] = append(used, now)
	return 0
}

// SetDown makes the server unreachable until it is up again. Going down also cuts.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.Cut()
	}
}
