package telegram

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// target finds the chat of a call and checks that the bot may write there. The lock is held.
func (s *Server) target(c *request) (*Chat, *apiError) {
	raw := c.text("chat_id")
	if raw == "" {
		return nil, bad("chat_id is empty")
	}
	id, err := strconv.ParseInt(raw, 10, 64)
	ch := s.chats[id]
	if err != nil || ch == nil {
		return nil, bad("chat not found")
	}
	name := "group"
	if ch.kind == Supergroup {
		name = "supergroup"
	}
	switch {
	case ch.movedTo != 0:
		e := bad("group chat was upgraded to a supergroup chat")
		e.MigrateTo = ch.movedTo
		return nil, e
	case ch.state == Blocked:
		return nil, forbidden("bot was blocked by the user")
	case ch.state == Deactivated:
		return nil, forbidden("user is deactivated")
	case ch.state == Kicked:
		return nil, forbidden("bot was kicked from the " + name + " chat")
	case ch.state == Deleted:
		return nil, forbidden("the group chat was deleted")
	case ch.state == ReadOnly:
		return nil, bad("not enough rights to send text messages to the chat")
	}
	return ch, nil
}

// thread checks message_thread_id. General (1) is refused on sends (tdlib/telegram-bot-api#798).
func (c *Chat) thread(r *request) (int, *apiError) {
	id := r.num("message_thread_id")
	if id == 0 {
		return 0, nil
	}
	if _, ok := c.topics[id]; !ok {
		return 0, bad("message thread not found")
	}
	return id, nil
}

type replyParameters struct {
	MessageID int    `json:"message_id"`
	Allow     bool   `json:"allow_sending_without_reply"`
	Quote     string `json:"quote"`
}

// reply finds the message to reply to.
func (c *Chat) reply(r *request) (*wireMessage, *apiError) {
	p := replyParameters{MessageID: r.num("reply_to_message_id"), Allow: r.flag("allow_sending_without_reply")}
	if raw := r.text("reply_parameters"); raw != "" {
		if json.Unmarshal([]byte(raw), &p) != nil {
			return nil, bad("can't parse reply parameters JSON object")
		}
	}
	if p.MessageID == 0 {
		return nil, nil
	}
	if m := c.byID[p.MessageID]; m != nil && !m.deleted {
		return short(m.wire), nil
	}
	if p.Allow {
		return nil, nil
	}
	return nil, bad("message to be replied not found")
}

// begin does what all sends share and adds the bot's message. The lock is held.
func (s *Server) begin(c *request, markup *keyboard) (*Chat, *stored, *apiError) {
	ch, e := s.target(c)
	if e != nil {
		return nil, nil, e
	}
	topic, e := ch.thread(c)
	if e != nil {
		return nil, nil, e
	}
	to, e := ch.reply(c)
	if e != nil {
		return nil, nil, e
	}
	if e := s.limit(ch); e != nil {
		return nil, nil, e
	}
	m := ch.newMessage(&s.bot)
	m.wire.ReplyTo = to
	ch.place(m.wire, topic)
	m.wire.ReplyMarkup = markup
	m.silent = c.flag("disable_notification")
	c.Message = m.wire.ID
	return ch, m, nil
}

func (s *Server) sendMessage(c *request) (any, *apiError) {
	text, ents, e := formatted(c.text("text"), c.text("parse_mode"), c.text("entities"), maxText, "message is too long")
	if e == nil && text == "" {
		e = bad("message text is empty")
	}
	markup, e2 := parseKeyboard(c.text("reply_markup"))
	if e == nil {
		e = e2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e != nil {
		if _, gone := s.target(c); gone != nil {
			e = gone
		}
		return nil, e
	}
	ch, m, e := s.begin(c, markup)
	if e != nil {
		return nil, e
	}
	m.wire.Text, m.wire.Entities = text, ents
	ch.fire()
	return m.wire, nil
}

const textNotModified = "message is not modified: specified new message content and reply markup are exactly the same " +
	"as a current content and reply markup of the message"

// editable finds the message an edit is for. The lock is held.
func (s *Server) editable(c *request) (*Chat, *stored, *apiError) {
	ch, e := s.target(c)
	if e != nil {
		return nil, nil, e
	}
	id := c.num("message_id")
	if id <= 0 {
		return nil, nil, bad("message identifier is not specified")
	}
	m := ch.byID[id]
	if m == nil || m.deleted {
		return nil, nil, bad("message to edit not found")
	}
	if m.wire.From.ID != s.bot.ID {
		return nil, nil, bad("message can't be edited")
	}
	return ch, m, nil
}

// change replaces the message by the edited copy; results handed out before stay as they were.
func (s *Server) change(ch *Chat, m *stored, w wireMessage) (any, *apiError) {
	same := w.Text == m.wire.Text && slices.EqualFunc(w.Entities, m.wire.Entities, sameEntity) &&
		w.Caption == m.wire.Caption && slices.EqualFunc(w.CaptionEntities, m.wire.CaptionEntities, sameEntity) &&
		sameKeyboard(w.ReplyMarkup, m.wire.ReplyMarkup)
	if same {
		return nil, bad(textNotModified)
	}
	if e := s.limit(ch); e != nil {
		return nil, e
	}
	w.EditDate = s.opt.Now().Unix()
	m.wire = &w
	m.edits++
	ch.fire()
	return &w, nil
}

func sameEntity(a, b Entity) bool {
	return a.Type == b.Type && a.Offset == b.Offset && a.Length == b.Length && a.URL == b.URL && a.Language == b.Language
}

func sameKeyboard(a, b *keyboard) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Rows, b.Rows, slices.Equal[[]Button])
}

func (s *Server) editText(c *request) (any, *apiError) {
	text, ents, e := formatted(c.text("text"), c.text("parse_mode"), c.text("entities"), maxText, "message is too long")
	if e == nil && text == "" {
		e = bad("message text is empty")
	}
	return s.edit(c, e, func(m *wireMessage) *apiError {
		if m.hasMedia() {
			return bad("there is no text in the message to edit")
		}
		m.Text, m.Entities = text, ents
		return nil
	})
}

func (s *Server) editCaption(c *request) (any, *apiError) {
	text, ents, e := formatted(c.text("caption"), c.text("parse_mode"), c.text("caption_entities"), maxCaption, "message caption is too long")
	return s.edit(c, e, func(m *wireMessage) *apiError {
		if !m.hasMedia() {
			return bad("there is no caption in the message to edit")
		}
		m.Caption, m.CaptionEntities = text, ents
		return nil
	})
}

func (s *Server) editMarkup(c *request) (any, *apiError) {
	return s.edit(c, nil, func(*wireMessage) *apiError { return nil })
}

// edit carries out one of the edits; without reply_markup the keyboard goes, as on the real server.
func (s *Server) edit(c *request, e *apiError, apply func(*wireMessage) *apiError) (any, *apiError) {
	markup, e2 := parseKeyboard(c.text("reply_markup"))
	if e == nil {
		e = e2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, m, e3 := s.editable(c)
	if e3 != nil {
		return nil, e3
	}
	if e != nil {
		return nil, e
	}
	w := *m.wire
	if e := apply(&w); e != nil {
		return nil, e
	}
	w.ReplyMarkup = markup
	return s.change(ch, m, w)
}

func (s *Server) deleteMessage(c *request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, e := s.target(c)
	if e != nil {
		return nil, e
	}
	m := ch.byID[c.num("message_id")]
	if m == nil || m.deleted {
		return nil, bad("message to delete not found")
	}
	if m.wire.From.ID != s.bot.ID && ch.kind != Private {
		return nil, bad("message can't be deleted")
	}
	m.deleted = true
	ch.fire()
	return true, nil
}

// actions are those of sendChatAction (core.telegram.org/bots/api#sendchataction).
var chatActions = strings.Fields("typing upload_photo record_video upload_video record_voice upload_voice " +
	"upload_document choose_sticker find_location record_video_note upload_video_note")

func (s *Server) chatAction(c *request) (any, *apiError) {
	action := c.text("action")
	if !slices.Contains(chatActions, action) {
		return nil, bad("wrong parameter action in request")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, e := s.target(c)
	if e != nil {
		return nil, e
	}
	topic := c.num("message_thread_id")
	if topic != 1 { // General is wanted here
		if topic, e = ch.thread(c); e != nil {
			return nil, e
		}
	}
	ch.actions = append(ch.actions, ActionSeen{At: c.At, Topic: topic, Action: action})
	ch.fire()
	return true, nil
}

func (s *Server) setReaction(c *request) (any, *apiError) {
	var kinds []struct{ Type, Emoji string }
	if raw := c.text("reaction"); raw != "" && json.Unmarshal([]byte(raw), &kinds) != nil {
		return nil, bad("can't parse reaction types JSON object")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, e := s.target(c)
	if e != nil {
		return nil, e
	}
	m := ch.byID[c.num("message_id")]
	if m == nil || m.deleted {
		return nil, bad("message to react not found")
	}
	m.reactions = ""
	if len(kinds) > 0 {
		m.reactions = kinds[0].Emoji
	}
	ch.fire()
	return true, nil
}
