package telegram

import (
	"fmt"
	"io"
	"net/http"
	"strings"
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
	Method string // "" for every method
	Chat   int64  // 0 for every chat
	Times  int    // calls to hit: 0 is one, <0 all until ClearFaults

	Delay       time.Duration // before anything else
	Hold        chan struct{} // wait until it is closed, before anything else
	Drop        Drop
	Code        int    // answer with this error instead of carrying out
	Description string // of the answer; a 429 gets its own
	RetryAfter  int
	MigrateTo   int64
	Body        string // answered raw with Code as HTTP status, e.g. a gateway's page
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

// Cut drops every connection that waits in a call now.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// SetDown makes the server drop every call until it is up again. Going down also cuts.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.Cut()
	}
}

// takeFault returns the fault for c and counts it down. The lock is held.
func (s *Server) takeFault(c *request) *Fault {
	for i, f := range s.faults {
		if f.Method != "" && !strings.EqualFold(f.Method, c.Method) || f.Chat != 0 && f.Chat != c.Chat {
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

// obeyDelay waits as f says; a cut or a client that left ends the call.
func (s *Server) obeyDelay(r *http.Request, c *request, f *Fault) {
	if f.Delay == 0 && f.Hold == nil {
		return
	}
	var timer <-chan time.Time
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
	case <-f.Hold:
	case <-c.cut:
		s.record(c, 0, "cut")
		panic(http.ErrAbortHandler)
	case <-r.Context().Done():
		s.record(c, 0, "client left")
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) answerFault(w http.ResponseWriter, c *request, f *Fault) {
	if f.Body != "" {
		s.record(c, f.Code, "raw body")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Code)
		_, _ = io.WriteString(w, f.Body)
		return
	}
	e := &apiError{Code: f.Code, Text: f.Description, RetryAfter: f.RetryAfter, MigrateTo: f.MigrateTo}
	if e.Text == "" {
		e.Text = http.StatusText(f.Code)
		if f.RetryAfter > 0 {
			e.Text = fmt.Sprintf("Too Many Requests: retry after %d", f.RetryAfter)
		}
	}
	c.RetryAfter = e.RetryAfter
	s.record(c, e.Code, e.Text)
	write(w, nil, e)
}
