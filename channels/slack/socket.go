package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"deerbot/channels"
	"deerbot/internal/crash"
)

// maxFrame bounds what is read of one frame.
const maxFrame = 16 << 20

// Run implements channels.Channel.
func (c *Channel) Run(ctx context.Context, inbox channels.Inbox) error {
	c.stopped.Store(false)
	defer func() {
		c.stopped.Store(true)
		c.client.CloseIdleConnections()
	}()
	r := runner{c: c, inbox: inbox, queue: make(chan delivery, queueSize), due: map[threadKey]string{}}
	inner, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.work(inner) })
	err := r.run(inner)
	cancel()
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	c.trouble(err.Error())
	return err
}

// runner is one Run.
type runner struct {
	c     *Channel
	inbox channels.Inbox
	queue chan delivery

	mu  sync.Mutex
	due map[threadKey]string // conversations to catch up with, and the newest message known before the gap

	fails int  // connections in a row that did not last
	full  bool // the queue is full; said once
}

// delivery is an envelope on its way to the inbox.
type delivery struct {
	env  envelope
	link *link
}

// envelope is what Socket Mode sends.
type envelope struct {
	ID      string          `json:"envelope_id"`
	Type    string          `json:"type"`
	Reason  string          `json:"reason"`
	Payload json.RawMessage `json:"payload"`
}

// link is one socket.
type link struct {
	conn *websocket.Conn
	mu   sync.Mutex // of writing
	dead time.Duration
}

// ack acknowledges an envelope. A socket that is gone cannot take it: Slack sends the event again, and it is known then.
func (l *link) ack(id string) {
	if id == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(3 * time.Second))
	if err := l.conn.WriteJSON(map[string]string{"envelope_id": id}); err != nil {
		_ = l.conn.Close()
	}
}

func (l *link) alive() { _ = l.conn.SetReadDeadline(time.Now().Add(l.dead)) }

// run returns when ctx ended or trying again cannot help.
func (r *runner) run(ctx context.Context) error {
	for {
		if err := r.identify(ctx); err != nil {
			return err
		}
		start := time.Now()
		err := r.session(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if channels.IsFatal(err) {
			return err
		}
		if time.Since(start) >= r.c.retryMax { // it lasted: begin anew
			r.fails = 0
		}
		if err := r.pause(ctx, err); err != nil {
			return err
		}
	}
}

// pause notes what went wrong and waits. A connection that was taken and dropped at once counts as a failure too, else a
// server that does so would be called thousands of times a second.
func (r *runner) pause(ctx context.Context, err error) error {
	if limited, ok := errors.AsType[*channels.RateLimited](err); ok {
		r.c.trouble("slack asks to wait: " + err.Error())
		return sleep(ctx, limited.RetryAfter)
	}
	if err != nil {
		r.c.trouble(err.Error())
	}
	d := min(r.c.retryMin<<min(r.fails, 16), r.c.retryMax)
	if err == nil && r.fails == 0 {
		d = 0 // Slack asked for a new connection
	}
	r.fails++
	return sleep(ctx, d/2+rand.N(d/2+1))
}

// identify asks who the bot is, until there is an answer. It is asked before every connection: the app's token may be
// good and the bot's revoked.
func (r *runner) identify(ctx context.Context) error {
	c := r.c
	for {
		var who struct {
			Team   string `json:"team_id"`
			UserID string `json:"user_id"`
			BotID  string `json:"bot_id"`
			User   string `json:"user"`
		}
		err := c.call(ctx, "auth.test", nil, &who)
		if err == nil {
			if who.UserID == "" || who.Team == "" {
				return &channels.Fatal{Err: errors.New("auth.test: slack does not say who the bot is; is api_url right?")}
			}
			if c.me.Swap(&account{team: who.Team, user: who.UserID, bot: who.BotID, name: who.User}) == nil {
				c.log.Info("slack knows the bot", "bot", who.User, "team", who.Team)
			}
			c.named("@" + who.User)
			return nil
		}
		if channels.IsFatal(err) || ctx.Err() != nil {
			return err
		}
		if err := r.pause(ctx, err); err != nil {
			return err
		}
	}
}

// session is one socket from its opening to its end. A nil error is an end that Slack announced.
func (r *runner) session(ctx context.Context) error {
	c := r.c
	var open struct {
		URL string `json:"url"`
	}
	if err := c.callAs(ctx, true, "apps.connections.open", nil, &open); err != nil {
		return err
	}
	u, err := url.Parse(open.URL)
	if err != nil || u.Host == "" || u.Scheme != "wss" && (u.Scheme != "ws" || c.api.Scheme != "http") {
		return &channels.Transient{Err: c.fail("apps.connections.open", errors.New("the address of the socket is none"))}
	}
	conn, resp, err := c.dialer.DialContext(ctx, open.URL, http.Header{"Origin": {"https://api.slack.com"}}) //nolint:bodyclose // the dialer closes it
	if err != nil {
		if resp != nil {
			err = fmt.Errorf("%w (HTTP %d)", err, resp.StatusCode)
		}
		return &channels.Transient{Err: c.fail("socket", err)}
	}
	l := &link{conn: conn, dead: c.deadAfter}
	conn.SetReadLimit(maxFrame)
	l.alive()
	conn.SetPongHandler(func(string) error { l.alive(); return nil })
	conn.SetPingHandler(func(data string) error {
		l.alive()
		err := conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
		if errors.Is(err, websocket.ErrCloseSent) {
			err = nil
		}
		return err
	})
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { c.ping(ctx, l, done) })
	inner, cancel := context.WithCancel(ctx)
	defer func() {
		close(done)
		cancel()
		wg.Wait()
		_ = conn.Close()
	}()
	for {
		_, raw, err := conn.ReadMessage()
		if err != nil {
			return &channels.Transient{Err: c.fail("socket", err)}
		}
		l.alive()
		var env envelope
		if err := json.Unmarshal(raw, &env); err != nil {
			c.log.Warn("a frame cannot be read and is skipped", "error", c.clean(err.Error()))
			continue
		}
		switch env.Type {
		case "hello":
			c.well()
			if r.gap() {
				wg.Go(func() { r.catchUp(inner) })
			}
		case "disconnect":
			c.log.Debug("slack ends the connection", "reason", env.Reason)
			if env.Reason == "warning" { // it goes on for some seconds
				continue
			}
			if env.Reason == "link_disabled" {
				return &channels.Transient{Err: c.fail("socket", errors.New("the app's Socket Mode was switched off"))}
			}
			return nil
		default:
			r.enqueue(delivery{env, l})
		}
	}
}

// enqueue never blocks: a reader that waits answers no pings.
func (r *runner) enqueue(d delivery) {
	select {
	case r.queue <- d:
		r.full = false
	default:
		if !r.full {
			r.full = true
			r.c.log.Warn("too many events wait; slack will send what is left out again", "waiting", len(r.queue))
		}
	}
}

// ping asks for signs of life, and closes the socket when ctx ends.
func (c *Channel) ping(ctx context.Context, l *link, done <-chan struct{}) {
	t := time.NewTicker(c.pingEvery)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
			_ = l.conn.Close()
			return
		case <-t.C:
			if err := l.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)); err != nil {
				_ = l.conn.Close()
				return
			}
		}
	}
}

// work hands what is in the queue to the inbox, in order, and acknowledges what was taken.
func (r *runner) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-r.queue:
			in := r.c.read(ctx, &d.env)
			if ctx.Err() != nil {
				return // names may be missing
			}
			if in != nil {
				if !r.take(ctx, in) {
					return
				}
				crash.Point(crash.InboxAcked)
				r.c.threads.saw(in, r.c.now())
			}
			r.c.well()
			d.link.ack(d.env.ID)
		}
	}
}

// take offers an event to the inbox until it is accepted; false when ctx ended.
func (r *runner) take(ctx context.Context, in *channels.Inbound) bool {
	for n := 0; ; n++ {
		err := r.inbox.Accept(ctx, in)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		r.c.trouble("messages cannot be stored: " + r.c.clean(err.Error()))
		d := min(r.c.retryMin<<min(n, 16), r.c.retryMax)
		if sleep(ctx, d/2+rand.N(d/2+1)) != nil {
			return false
		}
	}
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
