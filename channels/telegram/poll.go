package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
	"golang.org/x/sync/errgroup"

	"deerbot/channels"
	"deerbot/internal/crash"
)

// wanted are the updates asked for; it is sent with every poll, because Telegram keeps the last list.
var wanted = []string{
	models.AllowedUpdateMessage, models.AllowedUpdateEditedMessage, models.AllowedUpdateCallbackQuery,
	models.AllowedUpdateMyChatMember,
}

// account is who the bot is.
type account struct {
	id       int64
	username string
}

// Run implements channels.Channel.
func (c *Channel) Run(ctx context.Context, inbox channels.Inbox) error {
	c.stopped.Store(false)
	defer func() {
		c.stopped.Store(true)
		c.client.CloseIdleConnections()
	}()
	p := poller{c: c, inbox: inbox}
	err := p.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	c.trouble(err.Error())
	return err
}

// poller is one Run.
type poller struct {
	c     *Channel
	inbox channels.Inbox

	next    int64 // offset: the update after the last one accepted
	fails   int   // failed polls in a row
	webhook bool  // a webhook was deleted
}

// run returns when ctx ended or trying again cannot help.
func (p *poller) run(ctx context.Context) error {
	if err := p.identify(ctx); err != nil {
		return err
	}
	var wait time.Duration // the first poll and those after trouble return at once: they tell whether we are connected
	for {
		updates, err := p.fetch(ctx, wait)
		if err != nil {
			if channels.IsFatal(err) || ctx.Err() != nil {
				return err
			}
			if err := sleep(ctx, p.pause(ctx, err)); err != nil {
				return err
			}
			wait = 0
			continue
		}
		if p.next > 0 {
			crash.Point(crash.InboxAcked)
		}
		p.fails = 0
		p.c.well()
		wait = p.c.poll
		before := p.next
		if err := p.takeAll(ctx, updates); err != nil {
			return err
		}
		if len(updates) > 0 && p.next == before { // no ids: not a Bot API server
			if err := sleep(ctx, p.c.retryMax); err != nil {
				return err
			}
		}
	}
}

// identify asks who the bot is, until there is an answer.
func (p *poller) identify(ctx context.Context) error {
	for {
		var u models.User
		err := p.c.call(ctx, "getMe", struct{}{}, &u)
		if err == nil {
			p.c.me.Store(&account{id: u.ID, username: u.Username})
			p.c.named("@" + u.Username)
			p.fails = 0
			p.c.log.Info("telegram knows the bot", "bot", u.Username, "reads_all_group_messages", u.CanReadAllGroupMessages)
			return nil
		}
		if channels.IsFatal(err) || ctx.Err() != nil {
			return err
		}
		if err := sleep(ctx, p.pause(ctx, err)); err != nil {
			return err
		}
	}
}

func (p *poller) fetch(ctx context.Context, wait time.Duration) ([]json.RawMessage, error) {
	params := struct {
		Offset         int64    `json:"offset,omitempty"`
		Limit          int      `json:"limit"`
		Timeout        int      `json:"timeout"`
		AllowedUpdates []string `json:"allowed_updates"`
	}{p.next, 100, int(wait / time.Second), wanted}
	var updates []json.RawMessage
	// The margin is for the way; a dead connection is noticed by it.
	err := p.c.callFor(ctx, wait+10*time.Second, "getUpdates", params, &updates)
	return updates, err
}

// pause notes what went wrong and returns how long to wait.
func (p *poller) pause(ctx context.Context, err error) time.Duration {
	c := p.c
	var limited *channels.RateLimited
	var r *refusal
	switch {
	case errors.As(err, &limited):
		c.trouble("telegram asks to wait: " + err.Error())
		return limited.RetryAfter
	case refused(err, textWebhook):
		if p.webhook {
			c.trouble("a webhook is set again and again for this bot: something else uses the token")
			return c.conflictWait
		}
		if err := c.call(ctx, "deleteWebhook", bot.DeleteWebhookParams{}, nil); err != nil {
			c.trouble("a webhook is set and could not be deleted: " + err.Error())
			break
		}
		p.webhook = true
		c.log.Warn("a webhook was set for this bot; it was deleted so that updates can be polled")
		return 0
	case errors.As(err, &r) && r.code == 409:
		c.conflicted("another process polls with this token; messages go to one of the two: " + r.text)
		return c.conflictWait
	default:
		c.trouble(err.Error())
	}
	d := min(c.retryMin<<min(p.fails, 16), c.retryMax)
	p.fails++
	return d/2 + rand.N(d/2+1)
}

// takeAtOnce bounds the chats whose updates are handed over side by side: each hand-over waits for a commit, and commits
// that wait together are made together.
const takeAtOnce = 64

// takeAll hands a batch to the inbox, each chat's updates in order and the chats side by side, and moves the offset when
// all of it is accepted. When ctx ends before, the offset stays: what was accepted comes again, and is known then.
func (p *poller) takeAll(ctx context.Context, updates []json.RawMessage) error {
	var (
		chats = map[string][]*channels.Inbound{}
		order []string
		next  = p.next
		moved bool
	)
	for _, raw := range updates {
		id, in := p.c.read(raw)
		next = max(next, id+1)
		if in == nil {
			continue
		}
		if chats[in.Place.Chat] == nil {
			order = append(order, in.Place.Chat)
		}
		chats[in.Place.Chat] = append(chats[in.Place.Chat], in)
		moved = moved || in.Kind == channels.KindMoved
	}
	var g errgroup.Group
	g.SetLimit(takeAtOnce)
	if moved { // what comes from the new chat must find the old one's conversation there
		g.SetLimit(1)
	}
	for _, chat := range order {
		g.Go(func() error {
			for _, in := range chats[chat] {
				if err := p.take(ctx, in); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.next = next
	return nil
}

// take hands one event to the inbox until it is accepted.
func (p *poller) take(ctx context.Context, in *channels.Inbound) error {
	for n := 0; ; n++ {
		err := p.inbox.Accept(ctx, in)
		if err == nil {
			if n > 0 {
				p.c.well()
			}
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.c.trouble("messages cannot be stored: " + p.c.hide.Replace(err.Error()))
		d := min(p.c.retryMin<<min(n, 16), p.c.retryMax)
		if err := sleep(ctx, d/2+rand.N(d/2+1)); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
