package slack

import (
	"context"
	"slices"
	"sync"
	"time"

	"deerbot/channels"
)

// What is remembered of threads and conversations.
const (
	rootFor    = 10 * time.Minute
	seenFor    = time.Hour
	maxRoots   = 2000
	maxQuoted  = 10_000
	maxSeen    = 2000
	catchUpMax = 50 // conversations read after a gap
)

type threadKey struct{ chat, ts string }

// root is the first message of a thread.
type root struct {
	quote channels.Quote
	until time.Time
}

// seen is when a conversation was last heard of, and the newest message of it.
type seen struct {
	ts string
	at time.Time
}

// threads remembers the roots of threads, which of them the agent knows, and the conversations of late.
type threads struct {
	mu     sync.Mutex
	roots  map[threadKey]root
	quoted map[threadKey]bool
	seen   map[threadKey]seen
}

func newThreads() *threads {
	return &threads{roots: map[threadKey]root{}, quoted: map[threadKey]bool{}, seen: map[threadKey]seen{}}
}

// saw notes that the inbox has in.
func (t *threads) saw(in *channels.Inbound, now time.Time) {
	if in.Kind != channels.KindMessage || in.MessageID == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	chat, topic := in.Place.Chat, in.Place.Topic
	if topic != "" && (topic == in.MessageID || in.Quote != nil && in.Quote.MessageID == topic) {
		if len(t.quoted) >= maxQuoted {
			clear(t.quoted)
		}
		t.quoted[threadKey{chat, topic}] = true
	}
	if len(t.seen) >= maxSeen {
		for k, s := range t.seen {
			if now.Sub(s.at) > seenFor/4 {
				delete(t.seen, k)
			}
		}
	}
	for _, k := range []threadKey{{chat, ""}, {chat, topic}} {
		if s := t.seen[k]; s.ts < in.MessageID {
			t.seen[k] = seen{in.MessageID, now}
		}
	}
}

// late are the conversations heard of within the last hour, the latest ones if there are many, with the newest message
// of each.
func (t *threads) late(now time.Time) map[threadKey]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []threadKey
	for k, s := range t.seen {
		if now.Sub(s.at) > seenFor {
			delete(t.seen, k)
			continue
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b threadKey) int { return t.seen[b].at.Compare(t.seen[a].at) })
	out := map[threadKey]string{}
	for _, k := range keys[:min(len(keys), catchUpMax)] {
		out[k] = t.seen[k].ts
	}
	return out
}

// inThread fills what an event in a thread owes to the thread's root: whether it answers the bot, and once per thread the
// root's text.
func (c *Channel) inThread(ctx context.Context, ev *event, in *channels.Inbound) {
	k := threadKey{in.Place.Chat, in.Place.Topic}
	me := c.who()
	in.RepliesToBot = ev.ParentUser != "" && ev.ParentUser == me.user
	c.threads.mu.Lock()
	known := c.threads.quoted[k]
	c.threads.mu.Unlock()
	if known && ev.ParentUser != "" {
		return
	}
	q, ok := c.root(ctx, k)
	if !ok {
		return
	}
	in.RepliesToBot = in.RepliesToBot || q.FromBot
	if !known && in.Quote == nil && (q.Text != "" || len(q.Attachments) > 0) {
		in.Quote = &q
	}
}

// root looks up the first message of a thread; false when it is gone or Slack does not answer in time.
func (c *Channel) root(ctx context.Context, k threadKey) (channels.Quote, bool) {
	t, now := c.threads, c.now()
	t.mu.Lock()
	r, ok := t.roots[k]
	t.mu.Unlock()
	if ok && now.Before(r.until) {
		return r.quote, r.quote.MessageID != ""
	}
	var out struct {
		Messages []event `json:"messages"`
	}
	err := c.call(ctx, "conversations.replies", params{"channel": k.chat, "ts": k.ts, "limit": "1", "inclusive": "true"}, &out)
	r = root{until: now.Add(rootFor)}
	if err != nil {
		c.log.Debug("the root of a thread cannot be looked up", "chat", k.chat, "error", err)
		r.until = now.Add(retryFor)
	} else if len(out.Messages) > 0 && out.Messages[0].TS == k.ts && out.Messages[0].Subtype != "tombstone" {
		m := &out.Messages[0]
		r.quote = channels.Quote{MessageID: m.TS, FromBot: c.own(m), Text: cut(c.decode(ctx, m.Text).text, maxQuote)}
		if r.quote.FromBot {
			r.quote.Author = c.who().name
		} else {
			r.quote.Author = c.writer(ctx, m).Name
		}
		r.quote.Attachments, _ = attachments(m.Files)
	}
	t.mu.Lock()
	if len(t.roots) >= maxRoots {
		clear(t.roots)
	}
	t.roots[k] = r
	t.mu.Unlock()
	return r.quote, r.quote.MessageID != ""
}
