package discord

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// session is what RESUME goes back to: all events since IDENTIFY.
type session struct {
	id      string
	intents int
	events  [][]byte // frames; seq is the index plus one
	conn    *conn
	dead    bool
}

// conn is one WebSocket.
type conn struct {
	ws    *websocket.Conn
	wmu   sync.Mutex // one writer at a time
	sess  *session
	sent  int // events of the session written
	wake  chan struct{}
	done  chan struct{}
	beats int
}

type frame struct {
	Op int             `json:"op"`
	D  json.RawMessage `json:"d"`
	S  *int            `json:"s"`
	T  *string         `json:"t"`
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

func (c *conn) write(op int, d any) {
	b, err := json.Marshal(map[string]any{"op": op, "d": d, "s": nil, "t": nil})
	if err != nil {
		panic(err)
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_ = c.ws.WriteMessage(websocket.TextMessage, b)
}

func (c *conn) close(code int, text string) {
	c.wmu.Lock()
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
	c.wmu.Unlock()
	_ = c.ws.Close()
}

// gateway serves one connection.
func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{ws: ws, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if q.Get("v") != "10" || q.Get("encoding") != "json" {
		c.close(4012, "Invalid API version.")
		return
	}
	s.mu.Lock()
	s.conns[c] = true
	s.changed.fire()
	s.mu.Unlock()
	written := make(chan struct{})
	go func() {
		defer close(written)
		s.writer(c)
	}()
	c.write(10, map[string]any{"heartbeat_interval": s.opt.Heartbeat.Milliseconds(), "_trace": []string{}})
	normal := s.reader(c)
	_ = ws.Close()
	close(c.done)
	<-written
	s.mu.Lock()
	delete(s.conns, c)
	if c.sess != nil {
		if c.sess.conn == c {
			c.sess.conn = nil
		}
		if normal { // closing with 1000 or 1001 ends the session (developers/events/gateway#initiating-a-disconnect)
			c.sess.dead = true
		}
	}
	s.changed.fire()
	s.mu.Unlock()
}

// reader handles what the client sends, until the connection ends; normal tells whether it closed with 1000 or 1001.
func (s *Server) reader(c *conn) (normal bool) {
	for {
		kind, b, err := c.ws.ReadMessage()
		if err != nil {
			return websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway)
		}
		var f frame
		if kind != websocket.TextMessage || json.Unmarshal(b, &f) != nil {
			c.close(4002, "Error while decoding payload.")
			return false
		}
		switch f.Op {
		case 1:
			s.mu.Lock()
			frozen := s.frozen
			c.beats++
			s.changed.fire()
			s.mu.Unlock()
			if !frozen {
				c.write(11, nil)
			}
		case 2, 6:
			if op := s.first(); op != 0 {
				c.write(op, false)
				continue
			}
			if f.Op == 6 {
				if !s.resume(c, f.D) {
					return false
				}
				continue
			}
			if !s.identify(c, f.D) {
				return false
			}
		case 3, 8:
		default:
			c.close(4001, "Unknown opcode.")
			return false
		}
	}
}

// first is the opcode to begin this connection with, 0 for none.
func (s *Server) first() (op int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.opt.SayFirst) > 0 {
		op, s.opt.SayFirst = s.opt.SayFirst[0], s.opt.SayFirst[1:]
	}
	return op
}

func (s *Server) identify(c *conn, d json.RawMessage) bool {
	var in struct {
		Token      string          `json:"token"`
		Intents    *int            `json:"intents"`
		Properties json.RawMessage `json:"properties"`
		Shard      *[2]int         `json:"shard"`
		Compress   bool            `json:"compress"`
		Large      int             `json:"large_threshold"`
		Presence   json.RawMessage `json:"presence"`
	}
	if json.Unmarshal(d, &in) != nil || len(in.Properties) == 0 {
		c.close(4002, "Error while decoding payload.")
		return false
	}
	if c.sess != nil {
		c.close(4005, "Already authenticated.")
		return false
	}
	if strings.TrimPrefix(in.Token, "Bot ") != s.opt.Token {
		c.close(4004, "Authentication failed.")
		return false
	}
	if in.Shard != nil && in.Shard[0] >= in.Shard[1] {
		c.close(4010, "Invalid shard.")
		return false
	}
	if in.Intents == nil || *in.Intents < 0 || *in.Intents >= 1<<26 {
		c.close(4013, "Invalid intent(s).")
		return false
	}
	if *in.Intents&privileged&^IntentMessageContent != 0 || s.opt.NoContent && *in.Intents&IntentMessageContent != 0 {
		c.close(4014, "Disallowed intent(s).")
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.identifies++
	sess := &session{id: "session" + s.snowflake(), intents: *in.Intents, conn: c}
	s.sessions[sess.id] = sess
	c.sess = sess
	guilds := []any{}
	for _, g := range s.guilds {
		guilds = append(guilds, map[string]any{"id": g.ID, "unavailable": true})
	}
	sess.push("READY", map[string]any{
		"v": 10, "user": s.bot, "guilds": guilds, "session_id": sess.id, "session_type": "normal", "private_channels": []any{},
		"resume_gateway_url": "", "application": map[string]any{"id": s.app, "flags": 1 << 19},
	})
	for _, g := range s.guilds {
		if sess.intents&IntentGuilds != 0 {
			sess.push("GUILD_CREATE", g.object())
		}
	}
	s.changed.fire()
	return true
}

func (s *Server) resume(c *conn, d json.RawMessage) bool {
	var in struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	if json.Unmarshal(d, &in) != nil {
		c.close(4002, "Error while decoding payload.")
		return false
	}
	if strings.TrimPrefix(in.Token, "Bot ") != s.opt.Token {
		c.close(4004, "Authentication failed.")
		return false
	}
	s.mu.Lock()
	sess := s.sessions[in.Session]
	if sess == nil || sess.dead {
		s.mu.Unlock()
		c.write(9, false)
		return true
	}
	if in.Seq > len(sess.events) {
		s.mu.Unlock()
		c.close(4007, "Invalid seq.")
		return false
	}
	if old := sess.conn; old != nil {
		_ = old.ws.Close()
	}
	s.resumes++
	sess.conn, c.sess, c.sent = c, sess, in.Seq
	sess.push("RESUMED", map[string]any{"_trace": []string{}})
	s.changed.fire()
	s.mu.Unlock()
	return true
}

// push is called with the lock held.
func (sess *session) push(t string, d any) {
	b, err := json.Marshal(map[string]any{"op": 0, "t": t, "s": len(sess.events) + 1, "d": d})
	if err != nil {
		panic(err)
	}
	sess.events = append(sess.events, b)
	if sess.conn != nil {
		select {
		case sess.conn.wake <- struct{}{}:
		default:
		}
	}
}

// writer sends the events of the session.
func (s *Server) writer(c *conn) {
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		for {
			s.mu.Lock()
			var next []byte
			if c.sess != nil && c.sess.conn == c && c.sent < len(c.sess.events) && !s.frozen {
				next = c.sess.events[c.sent]
				c.sent++
			}
			s.mu.Unlock()
			if next == nil {
				break
			}
			c.wmu.Lock()
			err := c.ws.WriteMessage(websocket.TextMessage, next)
			c.wmu.Unlock()
			if err != nil {
				return
			}
		}
	}
}

// dispatch sends an event to all sessions that asked for it. The lock is held; change may adapt the data to the session.
func (s *Server) dispatch(t string, intent int, d func(intents int) any) {
	for _, sess := range s.sessions {
		if sess.dead || intent != 0 && sess.intents&intent == 0 {
			continue
		}
		sess.push(t, d(sess.intents))
	}
	s.changed.fire()
}

// Cut drops the connections of the gateway without a word; their sessions can be resumed.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.ws.Close()
	}
}

// EndSessions makes every session unresumable: the next RESUME gets INVALID_SESSION.
func (s *Server) EndSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		sess.dead = true
	}
}

// Reconnect asks the clients to reconnect: op 7.
func (s *Server) Reconnect() { s.each(func(c *conn) { c.write(7, nil) }) }

// Invalidate tells the clients that their session is over: op 9.
func (s *Server) Invalidate(resumable bool) {
	if !resumable {
		s.EndSessions()
	}
	s.each(func(c *conn) { c.write(9, resumable) })
}

// CloseWith closes all connections with a code.
func (s *Server) CloseWith(code int) { s.each(func(c *conn) { c.close(code, "closed by the test") }) }

// AskHeartbeat asks for a heartbeat at once: op 1.
func (s *Server) AskHeartbeat() { s.each(func(c *conn) { c.write(1, nil) }) }

func (s *Server) each(f func(*conn)) {
	s.mu.Lock()
	var all []*conn
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// Freeze makes connections half-open: nothing comes any more, heartbeats are not answered, nothing is closed.
func (s *Server) Freeze(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = on
	if on {
		return
	}
	for c := range s.conns {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// Repeat sends the last n events of every session once more, with new sequence numbers.
func (s *Server) Repeat(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sess := range s.sessions {
		if sess.dead {
			continue
		}
		for _, b := range sess.events[max(0, len(sess.events)-n):] {
			var f struct {
				T string          `json:"t"`
				D json.RawMessage `json:"d"`
			}
			if json.Unmarshal(b, &f) == nil {
				sess.push(f.T, f.D)
			}
		}
	}
}

// SetDown makes the server drop every call and connection until it is up again.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.Cut()
	}
}

// Connected is the number of gateway connections that have a session; Identified and Resumed count all so far.
func (s *Server) Connected() (connected, identified, resumed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.sess != nil {
			connected++
		}
	}
	return connected, s.identifies, s.resumes
}
