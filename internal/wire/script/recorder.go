package script

import (
	"net/http"
	"sync"
)

// Recorder numbers requests and keeps the last of them. Its zero value is ready and keeps 256.
type Recorder struct {
	Keep int // how many requests to keep, 0: 256, -1: none

	mu       sync.Mutex
	count    int
	refused  int
	requests []*Request
	open     sync.WaitGroup
}

// Add numbers r and keeps it.
func (c *Recorder) Add(r *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	r.N = c.count
	keep := c.Keep
	if keep == 0 {
		keep = 256
	}
	if keep < 0 {
		return
	}
	if len(c.requests) >= 2*keep {
		c.requests = append([]*Request(nil), c.requests[len(c.requests)-keep+1:]...)
	}
	c.requests = append(c.requests, r)
}

// Refuse counts a request that was not valid.
func (c *Recorder) Refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused++
}

// Requests returns the kept valid requests, oldest first.
func (c *Recorder) Requests() []*Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Request(nil), c.requests...)
}

// Last returns the last valid request, nil if none came.
func (c *Recorder) Last() *Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.requests) == 0 {
		return nil
	}
	return c.requests[len(c.requests)-1]
}

// Count returns how many valid requests came, and how many were refused as invalid.
func (c *Recorder) Count() (valid, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count, c.refused
}

// Track counts a request as open until the returned function is called.
func (c *Recorder) Track(*http.Request) (done func()) {
	c.open.Add(1)
	return c.open.Done
}

// Wait blocks until no request is open.
func (c *Recorder) Wait() { c.open.Wait() }
