package telegram

import (
	"fmt"
	"math"
	"time"
)

// Limits are the rates the server enforces. Telegram publishes about one message a second in a chat (bursts pass), 20 a
// minute in a group and 30 a second over all (core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this).
// Edits count as messages.
type Limits struct {
	ChatPerSecond  float64
	ChatBurst      int
	GroupPerMinute int
	PerSecond      int
}

// RealLimits are the published ones.
func RealLimits() *Limits {
	return &Limits{ChatPerSecond: 1, ChatBurst: 5, GroupPerMinute: 20, PerSecond: 30}
}

// bucket is a token bucket with a penalty.
type bucket struct {
	tokens  float64
	at      time.Time
	penalty time.Time // no call before
}

// take takes one token; when there is none it returns how long to wait.
func (b *bucket) take(now time.Time, perSecond float64, burst int) time.Duration {
	if perSecond <= 0 {
		return 0
	}
	if now.Before(b.penalty) { // asked too early: the penalty grows
		b.penalty = b.penalty.Add(time.Second)
		return b.penalty.Sub(now)
	}
	if b.at.IsZero() {
		b.tokens = float64(burst)
	} else {
		b.tokens = math.Min(float64(burst), b.tokens+now.Sub(b.at).Seconds()*perSecond)
	}
	b.at = now
	if b.tokens < 1 {
		wait := time.Duration((1 - b.tokens) / perSecond * float64(time.Second))
		b.penalty = now.Add(wait)
		return wait
	}
	b.tokens--
	return 0
}

// window holds the times of the calls of the last minute.
type window struct {
	times   []time.Time
	penalty time.Time
}

func (w *window) take(now time.Time, perMinute int) time.Duration {
	if perMinute <= 0 {
		return 0
	}
	if now.Before(w.penalty) {
		w.penalty = w.penalty.Add(time.Second)
		return w.penalty.Sub(now)
	}
	old := 0
	for old < len(w.times) && now.Sub(w.times[old]) >= time.Minute {
		old++
	}
	w.times = append(w.times[:0], w.times[old:]...)
	if len(w.times) >= perMinute {
		wait := w.times[0].Add(time.Minute).Sub(now)
		w.penalty = now.Add(wait)
		return wait
	}
	w.times = append(w.times, now)
	return 0
}

type rate struct{ account bucket }

// limit is called with the lock held, before a message or an edit in ch is carried out.
func (s *Server) limit(ch *Chat) *apiError {
	l := s.opt.Limits
	if l == nil {
		return nil
	}
	now := s.opt.Now()
	wait := s.rate.account.take(now, float64(l.PerSecond), l.PerSecond)
	if wait == 0 && l.ChatPerSecond > 0 {
		wait = ch.perChat.take(now, l.ChatPerSecond, max(l.ChatBurst, 1))
	}
	if wait == 0 && ch.kind != Private {
		wait = ch.perMinute.take(now, l.GroupPerMinute)
	}
	if wait == 0 {
		return nil
	}
	return tooMany(int(math.Ceil(wait.Seconds())))
}

func tooMany(seconds int) *apiError {
	return &apiError{Code: 429, Text: fmt.Sprintf("Too Many Requests: retry after %d", seconds), RetryAfter: seconds}
}
