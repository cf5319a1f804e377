package telegram

import (
	"context"
	"strconv"
	"time"
)

// Kind is a chat's type in the API.
type Kind string

// Kinds of chats.
const (
	Private    Kind = "private"
	Group      Kind = "group"
	Supergroup Kind = "supergroup"
)

// State is what stops the bot from writing in a chat.
type State string

// States of a chat, each answered as the real server does.
const (
	Open        State = ""
	Blocked     State = "blocked"     // the user blocked the bot
	Deactivated State = "deactivated" // the user's account is gone
	Kicked      State = "kicked"      // the bot was thrown out
	ReadOnly    State = "read_only"   // the bot may not write
	Deleted     State = "deleted"     // the group was deleted
)

// Chat is a chat of the bot with its people.
type Chat struct {
	s    *Server
	id   int64
	kind Kind
	wire wireChat
	peer *User // private: the other side

	state     State
	movedTo   int64
	messages  []*stored
	byID      map[int]*stored
	lastID    int // supergroups count for themselves
	topics    map[int]string
	actions   []ActionSeen
	perChat   bucket
	perMinute window
	changed   signal
}

// ActionSeen is a chat action ("typing") that was shown.
type ActionSeen struct {
	At     time.Time `json:"at"`
	Topic  int       `json:"topic,omitempty"`
	Action string    `json:"action"`
}

// stored is one message with what the API does not tell.
type stored struct {
	wire      *wireMessage
	files     []*storedFile
	edits     int
	silent    bool
	deleted   bool
	reactions string
}

// Person makes a user; name may be "First Last". Username may be empty.
func (s *Server) Person(name, username string) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.user++
	u := &User{ID: s.ids.user, FirstName: name, Username: username, LanguageCode: "en"}
	s.users[u.ID] = u
	return u
}

// Robot makes the account of another bot.
func (s *Server) Robot(name, username string) *User {
	u := s.Person(name, username)
	u.IsBot = true
	return u
}

// DM is u's private chat with the bot.
func (s *Server) DM(u *User) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.chats[u.ID]; ch != nil {
		return ch
	}
	ch := s.addChat(u.ID, Private, wireChat{FirstName: u.FirstName, LastName: u.LastName, Username: u.Username})
	ch.peer = u
	return ch
}

// Group makes a basic group with the bot in it.
func (s *Server) Group(title string) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.group++
	return s.addChat(-s.ids.group, Group, wireChat{Title: title})
}

// Supergroup makes a supergroup with the bot in it.
func (s *Server) Supergroup(title string) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addSuper(title)
}

func (s *Server) addSuper(title string) *Chat {
	s.ids.super++
	return s.addChat(-s.ids.super, Supergroup, wireChat{Title: title})
}

// Forum makes a supergroup with topics; General is always there.
func (s *Server) Forum(title string) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.addSuper(title)
	ch.wire.IsForum = true
	ch.topics = make(map[int]string)
	ch.lastID = 1 // message 1 is General
	return ch
}

func (s *Server) addChat(id int64, kind Kind, w wireChat) *Chat {
	w.ID, w.Type = id, string(kind)
	ch := &Chat{s: s, id: id, kind: kind, wire: w, byID: make(map[int]*stored)}
	s.chats[id] = ch
	return ch
}

// Chat finds a chat by its id.
func (s *Server) Chat(id int64) *Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chats[id]
}

// ID is the chat's id.
func (c *Chat) ID() int64 { return c.id }

// Key is the chat's id as text.
func (c *Chat) Key() string { return strconv.FormatInt(c.id, 10) }

// Kind is the chat's type.
func (c *Chat) Kind() Kind { return c.kind }

// IsForum reports whether the chat has topics.
func (c *Chat) IsForum() bool { return c.wire.IsForum }

// Topic opens a forum topic: a service message that every message of the topic then replies to, as on the real server.
func (c *Chat) Topic(u *User, name string) int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	m := c.newMessage(u)
	m.wire.ThreadID, m.wire.IsTopicMessage = m.wire.ID, true
	m.wire.TopicCreated = &topicCreated{Name: name, IconColor: 7322096}
	c.topics[m.wire.ID] = name
	c.s.push("message", m.wire)
	return m.wire.ID
}

// CloseTopic removes a topic: the bot's messages there are then refused.
func (c *Chat) CloseTopic(id int) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	delete(c.topics, id)
}

// SetState stops the bot from writing in the chat, or lets it again.
func (c *Chat) SetState(st State) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.state = st
}

// Upgrade turns a basic group into a supergroup, with the service messages of the real server, and returns it.
func (c *Chat) Upgrade(u *User) *Chat {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	n := c.s.addSuper(c.wire.Title)
	c.movedTo = n.id
	m := c.newMessage(u)
	m.wire.MigrateTo = n.id
	c.s.push("message", m.wire)
	m = n.newMessage(u)
	m.wire.MigrateFrom = c.id
	c.s.push("message", m.wire)
	return n
}

// newMessage adds an empty message of u. The lock is held.
func (c *Chat) newMessage(u *User) *stored {
	id := 0
	if c.kind == Supergroup {
		c.lastID++
		id = c.lastID
	} else {
		c.s.ids.message++
		id = c.s.ids.message
	}
	from := *u
	m := &stored{wire: &wireMessage{ID: id, From: &from, Date: c.s.opt.Now().Unix(), Chat: c.wire}}
	c.messages = append(c.messages, m)
	c.byID[id] = m
	c.fire()
	return m
}

func (c *Chat) fire() {
	c.changed.fire()
	c.s.changed.fire()
}

// place puts m into a topic. The lock is held.
func (c *Chat) place(m *wireMessage, topic int) {
	if topic == 0 || topic == 1 {
		return
	}
	m.ThreadID, m.IsTopicMessage = topic, true
	if m.ReplyTo == nil && c.byID[topic] != nil {
		m.ReplyTo = short(c.byID[topic].wire)
	}
}

// short is a message as reply_to_message tells it: without its own reply.
func short(m *wireMessage) *wireMessage {
	w := *m
	w.ReplyTo = nil
	return &w
}

// WaitFor returns nil as soon as ok says so of what a person sees; it looks again whenever the chat changes.
func (c *Chat) WaitFor(ctx context.Context, ok func([]Message) bool) error {
	return c.s.waitOn(ctx, &c.changed, func() bool { return ok(c.Messages()) })
}

// Await returns the first message after the given id that ok is true of. It is cheap in a long chat.
func (c *Chat) Await(ctx context.Context, after int, ok func(Message) bool) (Message, error) {
	var found Message
	err := c.s.waitOn(ctx, &c.changed, func() bool {
		for _, m := range c.since(after) {
			if ok(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found, err
}
