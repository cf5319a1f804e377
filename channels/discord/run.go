package discord

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"deerbot/channels"
)

// intents are what is asked for (docs.discord.com/developers/events/gateway#gateway-intents). Message Content is the one
// that has to be switched on for the bot.
const intents = discordgo.IntentsGuilds | discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages |
	discordgo.IntentsMessageContent

// run is one Run.
type run struct {
	c     *Channel
	inbox channels.Inbox
	ctx   context.Context // of Run: what is being stored is not broken off by a lost connection
	acks  sync.WaitGroup

	started time.Time // when a new session was started last

	gateway string // address of the gateway for new sessions
	fails   int    // short connections in a row
	missed  string // where the gap began whose guilds are still to come, "" for none
}

// Run implements channels.Channel.
func (c *Channel) Run(ctx context.Context, inbox channels.Inbox) error {
	c.stopped.Store(false)
	r := &run{c: c, inbox: inbox, ctx: ctx}
	defer func() {
		r.acks.Wait()
		c.save(true)
		c.stopped.Store(true)
		c.client.CloseIdleConnections()
	}()
	c.load()
	err := r.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	c.trouble(err.Error())
	return err
}

// run returns when ctx ended or trying again cannot help.
func (r *run) run(ctx context.Context) error {
	if err := r.retry(ctx, r.identify); err != nil {
		return err
	}
	for {
		began := time.Now()
		err := r.life(ctx)
		if ctx.Err() != nil || channels.IsFatal(err) {
			return err
		}
		if time.Since(began) > steady {
			r.fails = 0
		}
		var wait time.Duration
		if errors.Is(err, errReconnect) && r.fails == 0 { // it happens every day
			r.fails++
			r.c.log.Debug("discord asked to reconnect")
		} else {
			wait = r.pause(err)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// steady is how long a connection has to last before its end is no sign of a lasting trouble. New sessions are counted:
// a loop of short ones would use up the day's thousand.
const steady = time.Minute

// retry calls f until it succeeds or cannot.
func (r *run) retry(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil || channels.IsFatal(err) || ctx.Err() != nil {
			return err
		}
		if err := sleep(ctx, r.pause(err)); err != nil {
			return err
		}
	}
}

// identify asks who the bot is; it finds a bad token before the gateway does.
func (r *run) identify(ctx context.Context) error {
	var u discordgo.User
	if err := r.c.call(ctx, api{name: "get user", method: "GET", path: "/users/@me"}, &u); err != nil {
		return err
	}
	if u.ID == "" {
		return &channels.Transient{Err: &failure{name: "get user", text: "the answer is not Discord's; is api_url right?"}}
	}
	a := account{id: u.ID, name: u.Username}
	if old := r.c.me.Load(); old != nil {
		a.app = old.app
	}
	r.c.me.Store(&a)
	r.c.named("@" + u.Username)
	r.fails = 0
	r.c.log.Info("discord knows the bot", "bot", u.Username)
	return nil
}

// address finds the gateway and waits when no session may be started.
func (r *run) address(ctx context.Context) error {
	var g struct {
		URL   string `json:"url"`
		Limit struct {
			Total      int `json:"total"`
			Remaining  int `json:"remaining"`
			ResetAfter int `json:"reset_after"`
		} `json:"session_start_limit"`
	}
	if err := r.c.call(ctx, api{name: "find gateway", method: "GET", path: "/gateway/bot"}, &g); err != nil {
		return err
	}
	if !gatewayURL(g.URL) {
		return &channels.Transient{Err: &failure{name: "find gateway", text: "the answer is not Discord's; is api_url right?"}}
	}
	if g.Limit.Total > 0 && g.Limit.Remaining <= 0 {
		return &channels.RateLimited{
			RetryAfter: time.Duration(max(g.Limit.ResetAfter, 1000)) * time.Millisecond, Account: true,
			Err: &failure{name: "find gateway", text: "no session may be started any more today"},
		}
	}
	r.gateway = g.URL
	return nil
}

func gatewayURL(s string) bool {
	return strings.HasPrefix(s, "wss://") || strings.HasPrefix(s, "ws://")
}

// pause notes what went wrong and returns how long to wait.
func (r *run) pause(err error) time.Duration {
	c := r.c
	if limited, ok := errors.AsType[*channels.RateLimited](err); ok {
		c.trouble("discord asks to wait: " + err.Error())
		return limited.RetryAfter
	}
	c.trouble(err.Error())
	if errors.Is(err, errInvalid) {
		return c.identifyWait/2 + rand.N(c.identifyWait/2+1)
	}
	d := min(c.retryMin<<min(r.fails, 16), c.retryMax)
	r.fails++
	return d/2 + rand.N(d/2+1)
}

// fatal close codes (docs.discord.com/developers/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes) and
// what to do.
var fatal = map[int]string{
	4004: "discord refuses the bot token (it was reset or mistyped)",
	4010: "discord refuses the shard",
	4011: "the bot is in too many guilds for one connection (sharding required)",
	4012: "discord does not take this version of the gateway any more: deerbot has to be updated",
	4013: "discord does not know the intents asked for: deerbot has to be updated",
	4014: "the bot may not read messages: switch on MESSAGE CONTENT INTENT at discord.com/developers/applications, your application, Bot, Privileged Gateway Intents",
}

var (
	errReconnect = errors.New("discord asked to reconnect")
	errInvalid   = errors.New("the session with discord is over; a new one is started")
)

// closed is the error of a close code.
func (r *run) closed(code int, text string) error {
	f := &failure{name: "gateway", text: fmt.Sprintf("closed with %d %s", code, r.c.hide.Replace(shorten(text, 200)))}
	if why := fatal[code]; why != "" {
		return &channels.Fatal{Err: fmt.Errorf("%s: %w", why, f)}
	}
	if code == 4007 || code == 4009 || code == 4003 {
		r.c.track.end()
	}
	return &channels.Transient{Err: f}
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
