package bot

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"deerbot/channels"
)

// gate is the budget of outgoing calls over all surfaces of a chat. Finals wait only for penalties the platform has
// pronounced; they take their share of the buckets all the same, so that edits, which wait for the buckets, step back.
//
// The buckets follow what the platform documents (channels.Pace); where it says more, the adapter's RateLimited does.
type gate struct {
	now     func() time.Time
	persist func(scope string, until time.Time) // may be slow; called without locks

	mu       sync.Mutex
	blocked  map[string]time.Time
	chats    map[string]*chatBudget
	accounts map[string]*rate.Limiter
}

type chatBudget struct {
	gap    *rate.Limiter // nil: unlimited
	minute *rate.Limiter
	used   time.Time
}

func newGate(now func() time.Time, persist func(string, time.Time)) *gate {
	return &gate{
		now: now, persist: persist, blocked: map[string]time.Time{}, chats: map[string]*chatBudget{},
		accounts: map[string]*rate.Limiter{},
	}
}

// Limits of platforms hold per chat, not per topic.
func chatScope(p channels.Place) string {
	return p.Channel + "\x00" + p.Workspace + "\x00" + p.Chat
}

func accountScope(p channels.Place) string { return p.Channel + "\x00" + p.Workspace }

// penalize closes a scope for d.
func (g *gate) penalize(scope string, d time.Duration) {
	until := g.now().Add(d)
	g.mu.Lock()
	if g.blocked[scope].After(until) {
		g.mu.Unlock()
		return
	}
	g.blocked[scope] = until
	g.mu.Unlock()
	g.persist(scope, until)
}

// restore puts back penalties of an earlier process.
func (g *gate) restore(p map[string]time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.Copy(g.blocked, p)
}

// penalty is how long calls to p must wait.
func (g *gate) penalty(p channels.Place) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	var d time.Duration
	for _, scope := range []string{chatScope(p), accountScope(p)} {
		until, ok := g.blocked[scope]
		if !ok {
			continue
		}
		if left := until.Sub(now); left > 0 {
			d = max(d, left)
		} else {
			delete(g.blocked, scope)
		}
	}
	return d
}

// waitFinal returns when a final may be sent to p, and books the call.
func (g *gate) waitFinal(ctx context.Context, p channels.Place, pace channels.Pace) error {
	for {
		d := g.penalty(p)
		if d <= 0 {
			break
		}
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
	chat, account := g.buckets(p, pace)
	now := g.now()
	for _, l := range []*rate.Limiter{chat.gap, chat.minute, account} {
		if l != nil {
			l.ReserveN(now, 1) // taken on credit; the next edit waits for it
		}
	}
	return nil
}

// waitEdit returns when an edit that can wait may be sent to p, and books the call.
func (g *gate) waitEdit(ctx context.Context, p channels.Place, pace channels.Pace) error {
	chat, account := g.buckets(p, pace)
	for _, l := range []*rate.Limiter{account, chat.minute, chat.gap} {
		if l == nil {
			continue
		}
		if err := l.Wait(ctx); err != nil {
			return err
		}
	}
	for {
		d := g.penalty(p)
		if d <= 0 {
			return nil
		}
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
}

func (g *gate) buckets(p channels.Place, pace channels.Pace) (*chatBudget, *rate.Limiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if len(g.chats) > 4096 {
		for k, c := range g.chats {
			if now.Sub(c.used) > 5*time.Minute {
				delete(g.chats, k)
			}
		}
	}
	key := chatScope(p)
	c := g.chats[key]
	if c == nil {
		c = &chatBudget{}
		if pace.Gap > 0 {
			c.gap = rate.NewLimiter(rate.Every(pace.Gap), 1)
		}
		if pace.PerMinute > 0 {
			// A burst of a quarter, the rest spread: a full burst would leave the chat silent for most of a minute.
			c.minute = rate.NewLimiter(rate.Limit(float64(pace.PerMinute)*0.75/60), max(1, pace.PerMinute/4))
		}
		g.chats[key] = c
	}
	c.used = now
	var account *rate.Limiter
	if pace.PerSecond > 0 {
		key := accountScope(p)
		if account = g.accounts[key]; account == nil {
			account = rate.NewLimiter(rate.Limit(pace.PerSecond), max(1, int(pace.PerSecond)))
			g.accounts[key] = account
		}
	}
	return c, account
}

// sleep waits d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
