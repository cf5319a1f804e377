package telegram

import (
	"maps"
	"sort"
	"time"
)

// Message is a message as a person sees it now.
type Message struct {
	ID       int        `json:"id"`
	From     User       `json:"from"`
	Bot      bool       `json:"bot,omitempty"` // of the bot under test
	Topic    int        `json:"topic,omitempty"`
	ReplyTo  int        `json:"reply_to,omitempty"`
	Text     string     `json:"text,omitempty"` // rendered text or caption
	Entities []Entity   `json:"entities,omitempty"`
	Buttons  [][]Button `json:"buttons,omitempty"`
	Files    []File     `json:"files,omitempty"`
	Album    string     `json:"album,omitempty"`
	Edits    int        `json:"edits,omitempty"`
	Silent   bool       `json:"silent,omitempty"`
	Reaction string     `json:"reaction,omitempty"`
	At       time.Time  `json:"at"`
	Service  bool       `json:"service,omitempty"`
}

// File is a file of a message.
type File struct {
	Kind string `json:"kind"` // photo, document, voice …
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size"`
	Data []byte `json:"-"`
}

// Messages is the chat as a person sees it now, oldest first; deleted messages are not in it.
func (c *Chat) Messages() []Message { return c.since(0) }

// BotMessages are those of Messages the bot wrote.
func (c *Chat) BotMessages() []Message {
	var out []Message
	for _, m := range c.Messages() {
		if m.Bot {
			out = append(out, m)
		}
	}
	return out
}

// Message is one message as a person sees it now.
func (c *Chat) Message(id int) (Message, bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	m := c.byID[id]
	if m == nil || m.deleted {
		return Message{}, false
	}
	return c.view(m), true
}

func (c *Chat) since(after int) []Message {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	first := sort.Search(len(c.messages), func(i int) bool { return c.messages[i].wire.ID > after })
	out := make([]Message, 0, len(c.messages)-first)
	for _, m := range c.messages[first:] {
		if !m.deleted {
			out = append(out, c.view(m))
		}
	}
	return out
}

func (c *Chat) view(m *stored) Message {
	w := m.wire
	v := Message{
		ID: w.ID, From: *w.From, Bot: w.From.ID == c.s.bot.ID, Topic: w.ThreadID, Text: w.Text, Entities: w.Entities,
		Album: w.MediaGroupID, Edits: m.edits, Silent: m.silent, Reaction: m.reactions, At: time.Unix(w.Date, 0),
		Service: w.MigrateTo != 0 || w.MigrateFrom != 0 || w.TopicCreated != nil,
	}
	if w.Text == "" {
		v.Text, v.Entities = w.Caption, w.CaptionEntities
	}
	if w.ReplyTo != nil && w.ReplyTo.TopicCreated == nil {
		v.ReplyTo = w.ReplyTo.ID
	}
	if w.ReplyMarkup != nil {
		v.Buttons = w.ReplyMarkup.Rows
	}
	for _, f := range m.files {
		v.Files = append(v.Files, File{Kind: f.kind, Name: f.name, MIME: f.mime, Size: int64(len(f.data)), Data: f.data})
	}
	return v
}

// Actions are the chat actions shown so far.
func (c *Chat) Actions() []ActionSeen {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return append([]ActionSeen(nil), c.actions...)
}

// Calls are the calls kept in the log that match: method "" matches all, chat 0 matches all.
func (s *Server) Calls(method string, chat int64) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.log.calls {
		if (method == "" || c.Method == method) && (chat == 0 || c.Chat == chat) {
			out = append(out, c)
		}
	}
	return out
}

// Counts are the numbers of calls so far by "method code" and by "code"; "429" counts the refusals for rate.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.log.counts)
}

// ResetCalls forgets the calls and counters so far.
func (s *Server) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.calls, s.log.counts = nil, make(map[string]int)
}

// Chats are all chats, by id.
func (s *Server) Chats() []*Chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Chat, 0, len(s.chats))
	for _, c := range s.chats {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}
