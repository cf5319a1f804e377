package middleware

import (
	"sync"
	"time"
)

// Limits of the circuit breaker.
const (
	breakAfter = 5                // failed calls in a row
	breakFor   = 60 * time.Second // until one call may probe
)

// Breakers keeps one circuit breaker for each provider and model of the process, so that many runs do not each find out
// for themselves that a provider is down. It is safe for concurrent use.
type Breakers struct {
	now func() time.Time
	mu  sync.Mutex
	all map[breakerKey]*breaker
}

type breakerKey struct{ provider, model string }

// breaker is closed (calls pass), open until a time (none passes), or half open (one passes, the probe). It is half open
// when openUntil is set and over.
type breaker struct {
	failures  int
	openUntil time.Time
	probing   bool
}

// NewBreakers makes a set without failures. now may be nil.
func NewBreakers(now func() time.Time) *Breakers {
	if now == nil {
		now = time.Now
	}
	return &Breakers{now: now, all: map[breakerKey]*breaker{}}
}

// verdict is what an admitted call came to.
type verdict int

const (
	verdictNone    verdict = iota // says nothing of the provider: refused, throttled, cancelled
	verdictSuccess                //
	verdictFailure                // tried as often as allowed, and failed
)

// enter asks to make a call. It returns how long to wait when none may pass, else a function that must be called once
// with what the call came to.
func (bs *Breakers) enter(provider, model string) (done func(verdict), wait time.Duration) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	key := breakerKey{provider, model}
	b := bs.all[key]
	if b == nil {
		b = &breaker{}
		bs.all[key] = b
	}
	probe := false
	if !b.openUntil.IsZero() {
		if wait := b.openUntil.Sub(bs.now()); wait > 0 {
			return nil, wait
		}
		if b.probing {
			return nil, time.Second
		}
		b.probing, probe = true, true
	}
	return func(v verdict) {
		bs.mu.Lock()
		defer bs.mu.Unlock()
		if probe {
			b.probing = false
		}
		switch v {
		case verdictSuccess:
			b.failures, b.openUntil = 0, time.Time{}
		case verdictFailure:
			if !probe && !b.openUntil.IsZero() {
				return // began before it opened: that is counted already
			}
			if b.failures++; probe || b.failures >= breakAfter {
				b.openUntil = bs.now().Add(breakFor)
			}
		}
	}, 0
}
