package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// SayOption changes a message of a person.
type SayOption func(*saying)

type saying struct {
	topic     int
	replyTo   int
	quote     string
	entities  []Entity
	auto      bool
	forward   json.RawMessage
	external  json.RawMessage
	sender    *wireChat
	files     []attach
	album     string
	noDeliver bool
}

type attach struct {
	kind, name, mime string
	data             []byte
}

// InTopic says it in a forum topic; 0 and 1 are General.
func InTopic(id int) SayOption { return func(s *saying) { s.topic = id } }

// ReplyTo replies to a message.
func ReplyTo(id int) SayOption { return func(s *saying) { s.replyTo = id } }

// Quoting replies with a selected part of the message.
func Quoting(text string) SayOption { return func(s *saying) { s.quote = text } }

// WithEntities replaces the entities that would be found in the text, whatever they say.
func WithEntities(e ...Entity) SayOption {
	return func(s *saying) { s.entities, s.auto = e, false }
}

// Forwarded marks the message as forwarded from u.
func Forwarded(u *User) SayOption {
	return func(s *saying) {
		s.forward, _ = json.Marshal(map[string]any{"type": "user", "date": 1, "sender_user": u})
	}
}

// ExternalReply replies to a message of another chat that u wrote; fields of ExternalReplyInfo may be added as JSON.
func ExternalReply(u *User, fields string) SayOption {
	return func(s *saying) {
		origin, _ := json.Marshal(map[string]any{"type": "user", "date": 1, "sender_user": u})
		if fields != "" {
			fields = "," + fields
		}
		s.external = json.RawMessage(`{"origin":` + string(origin) + fields + `}`)
	}
}

// AsChat says it in the name of the chat: an anonymous administrator.
func AsChat(c *Chat) SayOption { return func(s *saying) { w := c.wire; s.sender = &w } }

// Photo attaches a picture; the text becomes its caption, as with every file.
func Photo(data []byte) SayOption { return withFile("photo", "", "image/jpeg", data) }

// Document attaches a file with a name.
func Document(name, mime string, data []byte) SayOption {
	return withFile("document", name, mime, data)
}

// Voice attaches a voice note.
func Voice(data []byte) SayOption { return withFile("voice", "", "audio/ogg", data) }

// Audio attaches music.
func Audio(name string, data []byte) SayOption { return withFile("audio", name, "audio/mpeg", data) }

// Video attaches a video.
func Video(name string, data []byte) SayOption { return withFile("video", name, "video/mp4", data) }

// VideoNote attaches a round video; the API gives it no type.
func VideoNote(data []byte) SayOption { return withFile("video_note", "", "", data) }

// Animation attaches a GIF-like video.
func Animation(name string, data []byte) SayOption {
	return withFile("animation", name, "video/mp4", data)
}

// Sticker attaches a sticker with its emoji.
func Sticker(emoji string) SayOption { return withFile("sticker", emoji, "image/webp", []byte("RIFF")) }

func withFile(kind, name, mime string, data []byte) SayOption {
	return func(s *saying) { s.files = append(s.files, attach{kind, name, mime, data}) }
}

// Say makes u write text in the chat and delivers it to the bot, if privacy mode lets it. Mentions, commands and links
// get their entities. More than one file makes an album: use Album for captions of each.
func (c *Chat) Say(u *User, text string, opts ...SayOption) Message {
	o := saying{auto: true}
	for _, f := range opts {
		f(&o)
	}
	if o.auto {
		o.entities = autoEntities(text)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	m := c.said(u, text, &o)
	return c.view(m)
}

func (c *Chat) said(u *User, text string, o *saying) *stored {
	m := c.newMessage(u)
	w := m.wire
	w.ForwardOrigin, w.ExternalReply, w.SenderChat, w.MediaGroupID = o.forward, o.external, o.sender, o.album
	if o.replyTo != 0 {
		if to := c.byID[o.replyTo]; to != nil {
			w.ReplyTo = short(to.wire)
		}
	}
	if o.quote != "" {
		w.Quote = &textQuote{Text: o.quote, IsManual: true}
	}
	c.place(w, o.topic)
	if len(o.files) == 0 {
		w.Text, w.Entities = text, o.entities
	} else {
		w.Caption, w.CaptionEntities = text, o.entities
		for _, f := range o.files {
			m.attach(c.s, f)
		}
	}
	if !o.noDeliver && c.reaches(w) {
		c.s.push("message", w)
	}
	c.fire()
	return m
}

// reaches says whether privacy mode lets the bot see w (core.telegram.org/bots/features#privacy-mode).
func (c *Chat) reaches(w *wireMessage) bool {
	if !c.s.opt.Privacy || c.kind == Private {
		return true
	}
	text, ents := w.Text, w.Entities
	if text == "" {
		text, ents = w.Caption, w.CaptionEntities
	}
	for _, e := range ents {
		if e.Type == "bot_command" {
			return true
		}
	}
	return strings.Contains(strings.ToLower(text), "@"+strings.ToLower(c.s.opt.Username)) ||
		w.ReplyTo != nil && w.ReplyTo.From != nil && w.ReplyTo.From.ID == c.s.bot.ID
}

// AlbumItem is one file of an album.
type AlbumItem struct {
	Option  SayOption
	Caption string
}

// Album sends files as one album: a message for each, with the same media group.
func (c *Chat) Album(u *User, items ...AlbumItem) []Message {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.ids.album++
	group := fmt.Sprintf("1390000000%05d", c.s.ids.album)
	out := make([]Message, len(items))
	for i, it := range items {
		o := saying{album: group, entities: autoEntities(it.Caption)}
		it.Option(&o)
		out[i] = c.view(c.said(u, it.Caption, &o))
	}
	return out
}

// Edit makes the writer of a message change its text or caption.
func (c *Chat) Edit(id int, text string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	m := c.byID[id]
	if m == nil || m.deleted {
		return
	}
	w := *m.wire
	w.EditDate = c.s.opt.Now().Unix()
	if w.hasMedia() {
		w.Caption, w.CaptionEntities = text, autoEntities(text)
	} else {
		w.Text, w.Entities = text, autoEntities(text)
	}
	m.wire = &w
	m.edits++
	if c.reaches(&w) {
		c.s.push("edited_message", &w)
	}
	c.fire()
}

// Remove makes a person delete a message, for everyone. Telegram does not tell bots.
func (c *Chat) Remove(id int) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if m := c.byID[id]; m != nil {
		m.deleted = true
	}
	c.fire()
}

// Press is a press of a button.
type Press struct {
	ID       string
	Answered bool
	Notice   string
	Alert    bool
	old      bool
}

// ErrNoButton is returned by Chat.Press when nobody could press that.
var ErrNoButton = errors.New("no such button")

// Press makes u press the button with the given label or data on a message.
func (c *Chat) Press(u *User, id int, button string) (*Press, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	m := c.byID[id]
	if m == nil || m.deleted || m.wire.ReplyMarkup == nil {
		return nil, fmt.Errorf("press %q on message %d: %w", button, id, ErrNoButton)
	}
	for _, row := range m.wire.ReplyMarkup.Rows {
		for _, b := range row {
			if b.Text != button && b.Data != button || b.Data == "" {
				continue
			}
			c.s.ids.query++
			p := &Press{ID: fmt.Sprintf("48000000%08d", c.s.ids.query)}
			c.s.queries[p.ID] = p
			c.s.push("callback_query", map[string]any{
				"id": p.ID, "from": u, "message": m.wire, "chat_instance": fmt.Sprint(c.id), "data": b.Data,
			})
			return p, nil
		}
	}
	return nil, fmt.Errorf("press %q on message %d: %w", button, id, ErrNoButton)
}

// PressState is how a press stands now: whether it was answered, and how.
func (s *Server) PressState(id string) Press {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.queries[id]; p != nil {
		return *p
	}
	return Press{}
}

// Expire makes the answer of a press come too late.
func (s *Server) Expire(p *Press) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.old = true
}

func (s *Server) answerQuery(c *request) (any, *apiError) {
	if utf8.RuneCountInString(c.text("text")) > 200 {
		return nil, bad("MESSAGE_TOO_LONG")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.queries[c.text("callback_query_id")]
	if p == nil || p.old {
		return nil, bad("query is too old and response timeout expired or query ID is invalid")
	}
	p.Answered, p.Notice, p.Alert = true, c.text("text"), c.flag("show_alert")
	s.changed.fire()
	return true, nil
}
