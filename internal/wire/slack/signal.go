package slack

import "context"

// signal wakes those who wait for a change; without waiters it costs nothing. The server's lock guards it.
type signal struct{ ch chan struct{} }

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// WaitFor returns nil as soon as ok is true; it looks again after every call and every change. ok may use the whole API.
func (s *Server) WaitFor(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		ch := s.changed.wait()
		s.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
