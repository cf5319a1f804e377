package telegram

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// The control endpoints let a person or a test in another process play the people:
//
//	POST /control/person   {"name":"Ann","username":"ann"}                     -> user
//	POST /control/chat     {"kind":"private|group|supergroup|forum","user":1,"title":"T","topics":["a"]} -> chat
//	POST /control/say      {"chat":1001,"user":1001,"text":"hi","topic":0,"reply_to":0,"document":{"name","mime","data"}} -> message
//	POST /control/edit     {"chat":1001,"message":5,"text":"hello"}
//	POST /control/press    {"chat":1001,"user":1001,"message":6,"button":"Stop"}
//	POST /control/fault    a Fault, durations in nanoseconds
//	POST /control/reset    forget calls, counters and faults
//	POST /control/down     {"down":true}      POST /control/cut
//	GET  /control/chats    GET /control/messages?chat=1001&after=0&wait=10s    GET /control/calls?method=&chat=
//	GET  /control/counts   GET /control/pending
//
// A say with a chat that does not exist opens the private chat of that (new) user id.
type controlRequest struct {
	Name, Username string
	Kind, Title    string
	Topics         []string
	Chat, User     int64
	Text           string
	Topic          int
	ReplyTo        int `json:"reply_to"`
	Message        int
	Button         string
	Down           bool
	Document       *struct {
		Name, MIME string
		Data       []byte
	}
}

func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path[len("/control"):]
	if r.Method == http.MethodGet {
		s.controlGet(w, r, path)
		return
	}
	if path == "/fault" {
		var f Fault
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.Fail(f)
		reply(w, true)
		return
	}
	var q controlRequest
	if r.ContentLength != 0 {
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	s.controlPost(w, path, &q)
}

func (s *Server) controlPost(w http.ResponseWriter, path string, q *controlRequest) {
	u, ch := s.who(q)
	switch path {
	case "/person":
		reply(w, s.Person(q.Name, q.Username))
		return
	case "/chat":
		s.makeChat(w, q, u)
		return
	case "/reset":
		s.ClearFaults()
		s.ResetCalls()
		reply(w, true)
		return
	case "/down":
		s.SetDown(q.Down)
		reply(w, true)
		return
	case "/cut":
		s.Cut()
		reply(w, true)
		return
	}
	if ch == nil {
		http.Error(w, "no such chat", http.StatusNotFound)
		return
	}
	switch path {
	case "/say":
		opts := []SayOption{InTopic(q.Topic), ReplyTo(q.ReplyTo)}
		if d := q.Document; d != nil {
			opts = append(opts, Document(d.Name, d.MIME, d.Data))
		}
		reply(w, ch.Say(u, q.Text, opts...))
	case "/edit":
		ch.Edit(q.Message, q.Text)
		reply(w, true)
	case "/press":
		p, err := ch.Press(u, q.Message, q.Button)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		reply(w, p)
	default:
		http.Error(w, "no such control call", http.StatusNotFound)
	}
}

// who finds the user and the chat of a request, making the private chat of an unknown user.
func (s *Server) who(q *controlRequest) (*User, *Chat) {
	id := q.User
	if id == 0 && q.Chat > 0 {
		id = q.Chat
	}
	s.mu.Lock()
	u := s.users[id]
	if u == nil && id > 0 {
		u = &User{ID: id, FirstName: "User " + strconv.FormatInt(id, 10), LanguageCode: "en"}
		s.users[id] = u
	}
	ch := s.chats[q.Chat]
	s.mu.Unlock()
	if ch == nil && u != nil && (q.Chat == 0 || q.Chat == u.ID) {
		ch = s.DM(u)
	}
	return u, ch
}

type chatInfo struct {
	ID     int64          `json:"id"`
	Kind   Kind           `json:"kind"`
	Title  string         `json:"title,omitempty"`
	Topics map[string]int `json:"topics,omitempty"`
}

func (s *Server) makeChat(w http.ResponseWriter, q *controlRequest, u *User) {
	var ch *Chat
	switch q.Kind {
	case "group":
		ch = s.Group(q.Title)
	case "supergroup":
		ch = s.Supergroup(q.Title)
	case "forum":
		ch = s.Forum(q.Title)
	default:
		if u == nil {
			u = s.Person(q.Title, "")
		}
		ch = s.DM(u)
	}
	info := chatInfo{ID: ch.id, Kind: ch.kind, Title: ch.wire.Title}
	if ch.topics != nil && u != nil {
		info.Topics = make(map[string]int)
		for _, name := range q.Topics {
			info.Topics[name] = ch.Topic(u, name)
		}
	}
	reply(w, info)
}

func (s *Server) controlGet(w http.ResponseWriter, r *http.Request, path string) {
	v := r.URL.Query()
	id, _ := strconv.ParseInt(v.Get("chat"), 10, 64)
	switch path {
	case "/chats":
		out := []chatInfo{}
		for _, c := range s.Chats() {
			out = append(out, chatInfo{ID: c.id, Kind: c.kind, Title: c.wire.Title + c.wire.FirstName})
		}
		reply(w, out)
	case "/messages":
		ch := s.Chat(id)
		if ch == nil {
			http.Error(w, "no such chat", http.StatusNotFound)
			return
		}
		after, _ := strconv.Atoi(v.Get("after"))
		if d, err := time.ParseDuration(v.Get("wait")); err == nil {
			ctx, cancel := context.WithTimeout(r.Context(), min(d, time.Minute))
			defer cancel()
			_, _ = ch.Await(ctx, after, func(m Message) bool { return m.Bot })
		}
		reply(w, ch.since(after))
	case "/calls":
		reply(w, s.Calls(v.Get("method"), id))
	case "/counts":
		reply(w, s.Counts())
	case "/pending":
		reply(w, s.Pending())
	default:
		http.NotFound(w, r)
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
