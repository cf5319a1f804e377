package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"deerbot/channels"
)

// orderSlack: Slack's events have no order, what is a little older than the newest may still be missing.
const orderSlack = 10 * time.Second

// gap notes, at a hello and before any event of the new connection, what to catch up with.
func (r *runner) gap() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, last := range r.c.threads.late(r.c.now()) {
		if _, ok := r.due[k]; !ok {
			r.due[k] = last
		}
	}
	return len(r.due) > 0
}

// next is a conversation to catch up with, the latest first.
func (r *runner) next() (k threadKey, last string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, ts := range r.due {
		if ts > last || ts == last && key.ts > k.ts {
			k, last, ok = key, ts, true
		}
	}
	return k, last, ok
}

// catchUp reads what was said while there was no connection. The inbox drops what it has. It ends with the connection;
// what is left is read after the next hello.
func (r *runner) catchUp(ctx context.Context) {
	for {
		k, last, ok := r.next()
		if !ok {
			return
		}
		err := r.missed(ctx, k, last)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.c.log.Info("what was said during a gap cannot be read", "chat", k.chat, "thread", k.ts, "error", err)
		}
		r.mu.Lock()
		delete(r.due, k)
		r.mu.Unlock()
	}
}

// missed offers the messages of one conversation since last to the inbox.
func (r *runner) missed(ctx context.Context, k threadKey, last string) error {
	p := params{"channel": k.chat, "oldest": before(last, orderSlack), "limit": "200"}
	method := "conversations.history"
	if k.ts != "" {
		method, p["ts"] = "conversations.replies", k.ts
	}
	var all []event
	for range 5 { // pages
		var out page
		if err := r.patiently(ctx, func() error { return r.c.call(ctx, method, p, &out) }); err != nil {
			return err
		}
		all = append(all, out.Messages...)
		if p["cursor"] = out.Meta.Next; !out.More || out.Meta.Next == "" {
			break
		}
	}
	slices.SortFunc(all, func(a, b event) int { return strings.Compare(a.TS, b.TS) })
	for i := range all {
		ev := &all[i]
		if ev.TS == k.ts && ev.TS <= last { // the root comes with every answer
			continue
		}
		ev.Channel = k.chat
		if !r.offer(ctx, ev, last) {
			return ctx.Err()
		}
	}
	return nil
}

type page struct {
	Messages []event `json:"messages"`
	More     bool    `json:"has_more"`
	Meta     struct {
		Next string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// offer hands a message of the history to the inbox, and its edit when that is news.
func (r *runner) offer(ctx context.Context, ev *event, last string) bool {
	look, cancel := context.WithTimeout(ctx, 10*r.c.lookUp)
	in := r.c.message(look, ev)
	if in != nil && ev.Edited != nil && ev.TS <= last {
		in = r.c.edit(look, ev)
	}
	cancel()
	if in == nil {
		return true
	}
	if !r.take(ctx, in) {
		return false
	}
	r.c.threads.saw(in, r.c.now())
	return true
}

// patiently makes a call again after a rate limit or a failure that may pass.
func (r *runner) patiently(ctx context.Context, call func() error) error {
	for n := 0; ; n++ {
		err := call()
		var limited *channels.RateLimited
		var passing *channels.Transient
		var wait time.Duration
		switch {
		case errors.As(err, &limited):
			wait = limited.RetryAfter
		case errors.As(err, &passing):
			wait = min(r.c.retryMin<<min(n, 16), r.c.retryMax)
		default:
			return err
		}
		if n == 5 {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// before is the ts d before ts.
func before(ts string, d time.Duration) string {
	sec, frac, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(sec, 10, 64)
	if err != nil {
		return ts
	}
	return fmt.Sprintf("%d.%s", n-int64(d/time.Second), frac)
}
