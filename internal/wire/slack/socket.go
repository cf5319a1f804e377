package slack

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

type upgrader struct{ websocket.Upgrader }

func newUpgrader() *upgrader {
	// The SDK sends the Origin of api.slack.com.
	return &upgrader{websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}}
}

// maxSockets is how many connections an app may have.
const maxSockets = 10

func (s *Server) openConnection(r *request) (obj, *apiError) {
	ticket := s.id("ticket")
	s.tickets[ticket] = true
	s.opens = append(s.opens, s.opt.Now())
	return obj{"url": "ws://" + r.host + "/link?ticket=" + ticket}, nil
}

// sock is one connection.
type sock struct {
	s      *Server
	conn   *websocket.Conn
	out    chan any
	done   chan struct{}
	once   sync.Once
	frozen bool // the server's lock guards it
}

func (k *sock) close() {
	k.once.Do(func() { close(k.done) })
	_ = k.conn.Close()
}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	ok := s.tickets[ticket] && !s.closed && len(s.socks) < maxSockets
	delete(s.tickets, ticket) // good for one connection
	if ok {
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if !ok {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	defer s.wg.Done()
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	k := &sock{s: s, conn: conn, out: make(chan any, 10_000), done: make(chan struct{})}
	s.mu.Lock()
	n := len(s.socks) + 1
	k.out <- obj{
		"type": "hello", "num_connections": n, "connection_info": obj{"app_id": AppID},
		"debug_info": obj{"host": "wire", "approximate_connection_time": 18060},
	}
	s.socks = append(s.socks, k)
	if s.down || s.closed {
		k.close()
	}
	s.deliver()
	s.changed.fire()
	s.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(k.write)
	k.read()
	k.close()
	wg.Wait()
	s.mu.Lock()
	s.socks = slices.DeleteFunc(s.socks, func(o *sock) bool { return o == k })
	for _, e := range s.unacked {
		if e.to == k {
			e.to = nil
		}
	}
	s.deliver()
	s.changed.fire()
	s.mu.Unlock()
}

func (k *sock) write() {
	ping := time.NewTicker(k.s.opt.PingEvery)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-k.done:
			return
		case <-ping.C:
			if !k.isFrozen() {
				err = k.conn.WriteControl(websocket.PingMessage, []byte("Ping from wire"), time.Now().Add(time.Second))
			}
		case m := <-k.out:
			if !k.isFrozen() {
				err = k.conn.WriteJSON(m)
			}
		}
		if err != nil {
			k.close()
			return
		}
	}
}

func (k *sock) isFrozen() bool {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	return k.frozen
}

// read takes acknowledgements; pings of the client are answered unless the socket is frozen.
func (k *sock) read() {
	k.conn.SetPingHandler(func(data string) error {
		if k.isFrozen() {
			return nil
		}
		return k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
	})
	for {
		_, raw, err := k.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			ID      string          `json:"envelope_id"`
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(raw, &ack) == nil && ack.ID != "" && !k.isFrozen() {
			k.s.acked(ack.ID)
		}
	}
}

// envelope is an event on its way.
type envelope struct {
	ID            string `json:"envelope_id"`
	Type          string `json:"type"`
	Payload       any    `json:"payload"`
	AcceptsAnswer bool   `json:"accepts_response_payload"`
	Attempt       int    `json:"retry_attempt"`
	Reason        string `json:"retry_reason"`

	to    *sock
	sent  time.Time
	timer *time.Timer
}

func (e *envelope) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// push puts an event on its way. The lock is held.
func (s *Server) push(kind string, payload any) {
	s.unacked = append(s.unacked, &envelope{ID: s.id("env"), Type: kind, Payload: payload, AcceptsAnswer: kind != "events_api"})
	s.deliver()
	s.changed.fire()
}

// deliver sends what is not on its way to the newest live connection. The lock is held.
func (s *Server) deliver() {
	if s.closed || s.down {
		return
	}
	var to *sock
	for _, k := range s.socks {
		if !k.frozen {
			to = k
		}
	}
	if to == nil {
		return
	}
	for _, e := range s.unacked {
		if e.to == nil {
			s.send(e, to)
		}
	}
}

func (s *Server) send(e *envelope, to *sock) {
	if !e.sent.IsZero() {
		e.Attempt, e.Reason = e.Attempt+1, "timeout"
	}
	e.to, e.sent = to, s.opt.Now()
	e.stop()
	copied := *e
	select {
	case to.out <- &copied:
	default:
	}
	e.timer = time.AfterFunc(s.opt.AckTimeout, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.to != nil && slices.Contains(s.unacked, e) {
			e.to = nil
			s.deliver()
		}
	})
}

func (s *Server) acked(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unacked = slices.DeleteFunc(s.unacked, func(e *envelope) bool {
		if e.ID == id {
			e.stop()
		}
		return e.ID == id
	})
	s.changed.fire()
}

// Unacked is the number of events that were not acknowledged.
func (s *Server) Unacked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unacked)
}

// Sockets is the number of live connections.
func (s *Server) Sockets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.socks)
}

// Opens are the times of successful apps.connections.open.
func (s *Server) Opens() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.opens)
}

// Cut drops all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	socks := slices.Clone(s.socks)
	s.mu.Unlock()
	for _, k := range socks {
		k.close()
	}
}

// Lose drops all events that wait for an acknowledgement, as Slack does when nobody takes them for long.
func (s *Server) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.unacked {
		e.stop()
	}
	s.unacked = nil
}

// Freeze makes the connections that stand now half-open: they stay, but nothing comes and nothing is read.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.socks {
		k.frozen = true
		for _, e := range s.unacked {
			if e.to == k {
				e.to = nil
			}
		}
	}
	s.deliver()
}

// Disconnect announces the end of the connections: reason is warning, refresh_requested or link_disabled. All but a
// warning close them.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	socks := slices.Clone(s.socks)
	s.mu.Unlock()
	for _, k := range socks {
		k.out <- obj{"type": "disconnect", "reason": reason, "debug_info": obj{"host": "wire"}}
	}
}

// Resend delivers n more copies of the next event that is pushed, as retries of its payload under new envelopes.
func (s *Server) Resend(kind string, payload any, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range times {
		s.push(kind, payload)
	}
}
