package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"deerbot/channels"
	"deerbot/internal/crash"
)

// Opcodes of the gateway.
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opHeartbeatAck   = 11
)

const (
	maxQueue      = 256      // events read and not stored; a full queue stops the reader
	maxFrame      = 32 << 20 // the GUILD_CREATE of a large guild has a few megabytes
	closeToResume = 4000     // a code after which the session can be resumed; 1000 and 1001 end it
	writeTimeout  = 10 * time.Second
	ackWait       = 10 * time.Second // for the acknowledgement of a heartbeat
)

type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

// life is one connection of the gateway, from dialling to its end.
type life struct {
	*run
	ws     *websocket.Conn
	wmu    sync.Mutex // one writer at a time
	queue  chan frame
	acked  atomic.Bool // the last heartbeat was acknowledged
	stuck  atomic.Bool // the reader waits for the queue, and reads no acknowledgement
	opened atomic.Bool // READY or an event came
	beat   chan struct{}
}

// life runs one connection and returns why it ended.
func (r *run) life(ctx context.Context) (err error) {
	c := r.c
	session, seq, address := c.track.session()
	if session == "" || !gatewayURL(address) {
		if r.gateway == "" || session == "" {
			if err := r.address(ctx); err != nil {
				return err
			}
		}
		if session == "" { // one in five seconds may be started
			if err := sleep(ctx, time.Until(r.started.Add(c.identifyWait))); err != nil {
				return err
			}
			r.started = time.Now()
		}
		address = r.gateway
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ws, err := c.dial(ctx, address)
	if err != nil {
		r.gateway = ""
		return err
	}
	l := &life{run: r, ws: ws, queue: make(chan frame, maxQueue), beat: make(chan struct{}, 1)}
	l.acked.Store(true)
	stop := context.AfterFunc(ctx, func() { l.close() })
	defer stop()

	every, err := l.hello(session, seq)
	if err != nil {
		l.close()
		return l.why(ctx, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.heartbeats(ctx, every); err != nil {
			cancel(err)
		}
	})
	wg.Go(func() {
		if err := l.consume(ctx); err != nil {
			cancel(err)
		}
	})
	err = l.readAll(ctx)
	cancel(err)
	l.close()
	wg.Wait()
	c.save(false)
	return l.why(ctx, err)
}

// why is the reason a connection ended: the first one, not what followed from it.
func (l *life) why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if ce, ok := errors.AsType[*websocket.CloseError](err); ok {
		return l.closed(ce.Code, ce.Text)
	}
	return err
}

// close ends the connection so that its session can be resumed. Without a memory for it, the end of Run ends the session.
func (l *life) close() {
	code := closeToResume
	if l.ctx.Err() != nil && l.c.memory == nil {
		code = websocket.CloseNormalClosure
		l.c.track.end()
	}
	_ = l.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
	_ = l.ws.Close()
}

func (c *Channel) dial(ctx context.Context, address string) (*websocket.Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, &channels.Transient{Err: &failure{name: "gateway", text: "its address is no URL"}}
	}
	u.RawQuery = "v=10&encoding=json"
	ctx, cancel := context.WithTimeout(ctx, c.openTimeout)
	defer cancel()
	ws, resp, err := c.dialer.DialContext(ctx, u.String(), map[string][]string{"User-Agent": {userAgent}})
	if err != nil {
		if resp != nil {
			resp.Body.Close()
			err = fmt.Errorf("HTTP %d: %w", resp.StatusCode, err)
		}
		return nil, &channels.Transient{Err: c.fail("gateway", err)}
	}
	ws.SetReadLimit(maxFrame)
	// The echo of 1000 or 1001, which gorilla sends by itself, would end a session that can be resumed.
	ws.SetCloseHandler(func(int, string) error {
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(closeToResume, ""), time.Now().Add(time.Second))
		return nil
	})
	return ws, nil
}

// hello reads the first frame and says who we are.
func (l *life) hello(session string, seq int64) (time.Duration, error) {
	_ = l.ws.SetReadDeadline(time.Now().Add(l.c.openTimeout))
	f, err := l.read()
	if err != nil {
		return 0, err
	}
	var h struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if f.Op != opHello || json.Unmarshal(f.Data, &h) != nil || h.Interval <= 0 {
		return 0, &channels.Transient{Err: &failure{name: "gateway", text: fmt.Sprintf("it began with op %d", f.Op)}}
	}
	if session != "" {
		err = l.write(opResume, map[string]any{"token": l.c.token(), "session_id": session, "seq": seq})
	} else {
		err = l.write(opIdentify, map[string]any{
			"token": l.c.token(), "intents": intents,
			"properties": map[string]string{"os": runtime.GOOS, "browser": "deerbot", "device": "deerbot"},
		})
	}
	return time.Duration(h.Interval) * time.Millisecond, err
}

func (l *life) write(op int, d any) error {
	b, err := json.Marshal(map[string]any{"op": op, "d": d})
	if err != nil {
		return err
	}
	l.wmu.Lock()
	defer l.wmu.Unlock()
	_ = l.ws.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := l.ws.WriteMessage(websocket.TextMessage, b); err != nil {
		return &channels.Transient{Err: l.c.fail("gateway", err)}
	}
	return nil
}

func (l *life) read() (frame, error) {
	var f frame
	kind, b, err := l.ws.ReadMessage()
	if err != nil {
		var ce *websocket.CloseError
		if errors.As(err, &ce) && ce.Code != websocket.CloseAbnormalClosure {
			return f, err
		}
		return f, &channels.Transient{Err: l.c.fail("gateway", err)}
	}
	if kind != websocket.TextMessage || json.Unmarshal(b, &f) != nil {
		return f, &channels.Transient{Err: &failure{name: "gateway", text: "a frame cannot be read"}}
	}
	return f, nil
}

// readAll reads frames until the connection ends.
func (l *life) readAll(ctx context.Context) error {
	for {
		f, err := l.read()
		if err != nil {
			return err
		}
		switch f.Op {
		case opDispatch:
			if !l.opened.Swap(true) { // from here on the heartbeats watch the connection
				_ = l.ws.SetReadDeadline(time.Time{})
			}
			if f.Type == "READY" {
				l.ready(f.Data)
			}
			l.c.heard(l.c.now())
			l.stuck.Store(len(l.queue) == cap(l.queue))
			select {
			case l.queue <- f:
			case <-ctx.Done():
				return ctx.Err()
			}
			l.stuck.Store(false)
		case opHeartbeat:
			select {
			case l.beat <- struct{}{}:
			default:
			}
		case opHeartbeatAck:
			l.acked.Store(true)
			l.c.heard(l.c.now())
		case opReconnect:
			return errReconnect
		case opInvalidSession:
			var resumable bool
			if err := json.Unmarshal(f.Data, &resumable); err != nil || !resumable {
				l.c.track.end()
			}
			return errInvalid
		}
	}
}

// ready begins a new session.
func (l *life) ready(data json.RawMessage) {
	var d struct {
		Session string          `json:"session_id"`
		URL     string          `json:"resume_gateway_url"`
		User    *discordgo.User `json:"user"`
		App     struct {
			ID string `json:"id"`
		} `json:"application"`
	}
	if json.Unmarshal(data, &d) != nil {
		return
	}
	l.c.track.begin(d.Session, or(d.URL, l.gateway))
	if d.User != nil && d.User.ID != "" {
		l.c.me.Store(&account{id: d.User.ID, name: d.User.Username, app: d.App.ID})
	}
}

// heartbeats keeps the connection alive, and ends it when one of them is not acknowledged in time: a dead connection says
// nothing by itself.
func (l *life) heartbeats(ctx context.Context, every time.Duration) error {
	wait, waiting := min(every/2, ackWait), false
	next := time.NewTimer(rand.N(every)) // the first one is jittered
	late := time.NewTimer(wait)
	late.Stop()
	defer next.Stop()
	defer late.Stop()
	for {
		select {
		case <-next.C:
			next.Reset(every)
		case <-l.beat: // Discord asks for one
		case <-late.C:
			if !l.acked.Load() && !l.stuck.Load() {
				return &channels.Transient{Err: &failure{name: "gateway", text: "the connection is dead: a heartbeat was not acknowledged"}}
			}
			waiting = false
			continue
		case <-ctx.Done():
			return nil
		}
		var d any
		if seq := l.c.track.seq(); seq > 0 {
			d = seq
		}
		if !waiting { // one that waits already is not given more time
			l.acked.Store(false)
			late.Reset(wait)
			waiting = true
		}
		if err := l.write(opHeartbeat, d); err != nil {
			return err
		}
	}
}

// consume takes the events in order.
func (l *life) consume(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-l.queue:
			if err := l.take(ctx, f); err != nil {
				return err
			}
		}
	}
}

// take handles one event, and then moves on the number from which RESUME goes on.
func (l *life) take(ctx context.Context, f frame) error {
	l.c.well()
	if err := l.handle(ctx, f); err != nil {
		return err
	}
	l.c.track.commit(f.Seq)
	crash.Point(crash.InboxAcked)
	l.c.save(f.Type == "READY")
	return nil
}

// handle does what an event asks for. Its errors end the connection: what could not be done is sent again.
func (l *life) handle(ctx context.Context, f frame) (err error) {
	defer func() {
		if p := recover(); p != nil { // one bad event must not stop all
			l.c.log.Error("an event cannot be handled and is skipped", "event", f.Type, "panic", l.c.hide.Replace(fmt.Sprint(p)))
			err = nil
		}
	}()
	n := &l.c.names
	switch f.Type {
	case "READY":
		l.missed = ""
		directs, horizon := l.c.track.directs()
		if l.c.track.listen(l.c.now()) {
			l.missed = horizon
			for _, ch := range directs {
				if err := l.fetch(ctx, ch, ""); err != nil {
					return err
				}
			}
		}
		return nil
	case "GUILD_CREATE":
		var g guild
		if json.Unmarshal(f.Data, &g) != nil || g.ID == "" {
			return nil
		}
		n.putGuild(&g)
		return l.catchUp(ctx, &g)
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var r room
		if json.Unmarshal(f.Data, &r) == nil && r.ID != "" {
			n.putRoom(&r)
		}
		return nil
	case "CHANNEL_DELETE", "THREAD_DELETE":
		var r room
		if json.Unmarshal(f.Data, &r) == nil {
			n.dropRoom(r.ID)
			l.c.track.forget(r.ID)
		}
		return nil
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE":
		var r struct {
			Role role `json:"role"`
		}
		if json.Unmarshal(f.Data, &r) == nil {
			n.putRole(r.Role)
		}
		return nil
	}
	return l.deliver(ctx, f.Type, f.Data)
}

// deliver normalises an event and hands it to the inbox until it is accepted. What is being stored is not broken off by
// the end of the connection.
func (l *life) deliver(ctx context.Context, kind string, data json.RawMessage) error {
	var ins []*channels.Inbound
	err := l.try(ctx, "a message cannot be placed: ", func() (err error) {
		ins, err = l.c.read(ctx, kind, data)
		return err
	})
	if err != nil {
		return err
	}
	for _, in := range ins {
		if err := l.try(ctx, "messages cannot be stored: ", func() error { return l.inbox.Accept(l.ctx, in) }); err != nil {
			return err
		}
		if kind == "INTERACTION_CREATE" {
			l.acks.Go(func() { l.c.acknowledge(context.WithoutCancel(l.ctx), in) })
		}
	}
	if kind == "MESSAGE_CREATE" {
		var m struct {
			ID        string `json:"id"`
			ChannelID string `json:"channel_id"`
			GuildID   string `json:"guild_id"`
		}
		if json.Unmarshal(data, &m) == nil && snowflake(m.ID) && snowflake(m.ChannelID) {
			l.c.track.see(m.ChannelID, m.ID, m.GuildID == "" && len(ins) > 0 && ins[0].Place.Workspace == "")
		}
	}
	return nil
}

// try calls f until it succeeds or ctx ends.
func (l *life) try(ctx context.Context, what string, f func() error) error {
	for n := 0; ; n++ {
		err := f()
		if err == nil {
			if n > 0 {
				l.c.well()
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if channels.IsFatal(err) {
			return err
		}
		l.c.trouble(what + l.c.hide.Replace(err.Error()))
		d := min(l.c.retryMin<<min(n, 16), l.c.retryMax)
		if limited, ok := errors.AsType[*channels.RateLimited](err); ok {
			d = 2 * limited.RetryAfter
		}
		if err := sleep(ctx, d/2+rand.N(d/2+1)); err != nil {
			return err
		}
	}
}
