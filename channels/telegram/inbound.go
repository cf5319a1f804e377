package telegram

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"deerbot/channels"
)

// read decodes one update; nil when it is of no interest.
func (c *Channel) read(raw json.RawMessage) (int64, *channels.Inbound) {
	var u models.Update
	if err := json.Unmarshal(raw, &u); err != nil {
		// The SDK refuses a whole update for one kind of origin it does not know: keep what people wrote.
		if u, err = readPlain(raw); err != nil {
			c.log.Warn("an update cannot be read and is skipped", "update", u.ID, "error", c.hide.Replace(err.Error()))
			return u.ID, nil
		}
	}
	switch {
	case u.Message != nil:
		return u.ID, c.message(u.Message)
	case u.EditedMessage != nil:
		return u.ID, c.edited(u.EditedMessage)
	case u.CallbackQuery != nil:
		return u.ID, c.pressed(u.CallbackQuery)
	case u.MyChatMember != nil:
		c.log.Info("membership of the bot changed", "chat", u.MyChatMember.Chat.ID, "status", u.MyChatMember.NewChatMember.Type)
	}
	return u.ID, nil
}

// plainFields are those of a message that hold no union types.
var plainFields = []string{
	"message_id", "message_thread_id", "from", "sender_chat", "date", "chat", "is_topic_message",
	"edit_date", "media_group_id", "text", "entities", "caption", "caption_entities", "photo", "document", "voice", "audio",
	"video", "video_note", "animation", "migrate_to_chat_id",
}

// readPlain decodes an update with the plain fields of its message only.
func readPlain(raw json.RawMessage) (models.Update, error) {
	var full struct {
		ID      int64                      `json:"update_id"`
		Message map[string]json.RawMessage `json:"message"`
		Edited  map[string]json.RawMessage `json:"edited_message"`
	}
	u := models.Update{}
	err := json.Unmarshal(raw, &full)
	u.ID = full.ID
	if err != nil {
		return u, err
	}
	keep := func(fields map[string]json.RawMessage) (*models.Message, error) {
		if fields == nil {
			return nil, nil
		}
		plain := make(map[string]json.RawMessage)
		for _, f := range plainFields {
			if v, ok := fields[f]; ok {
				plain[f] = v
			}
		}
		body, err := json.Marshal(plain)
		if err != nil {
			return nil, err
		}
		m := new(models.Message)
		return m, json.Unmarshal(body, m)
	}
	if u.Message, err = keep(full.Message); err != nil {
		return u, err
	}
	u.EditedMessage, err = keep(full.Edited)
	return u, err
}

// message normalises a new message.
func (c *Channel) message(m *models.Message) *channels.Inbound {
	if m.MigrateToChatID != 0 {
		in := c.envelope(m)
		in.Kind, in.MovedTo = channels.KindMoved, strconv.FormatInt(m.MigrateToChatID, 10)
		return in
	}
	in := c.content(m)
	if in == nil {
		return nil
	}
	in.Kind, in.EventID = channels.KindMessage, in.MessageID
	return in
}

// edited normalises an edit. Telegram counts edit_date in seconds and sends edits for invisible changes too; the content
// is part of the id so that two edits of one second are two, and a redelivered one is one.
func (c *Channel) edited(m *models.Message) *channels.Inbound {
	in := c.content(m)
	if in == nil {
		return nil
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.Text + "\x00" + m.Caption))
	in.Kind, in.EventID = channels.KindEdit, fmt.Sprintf("edit:%d:%d:%08x", m.ID, m.EditDate, h.Sum32())
	return in
}

// envelope fills what every event of a message has.
func (c *Channel) envelope(m *models.Message) *channels.Inbound {
	in := &channels.Inbound{
		Place:     c.place(strconv.FormatInt(m.Chat.ID, 10), topicOf(m)),
		MessageID: strconv.Itoa(m.ID),
		EventID:   strconv.Itoa(m.ID),
		ChatKind:  chatKind(m.Chat.Type),
		ChatTitle: m.Chat.Title,
		Sender:    senderOf(m),
		SentAt:    time.Unix(int64(m.Date), 0).UTC(),
	}
	if m.EditDate != 0 {
		in.SentAt = time.Unix(int64(m.EditDate), 0).UTC()
	}
	if me := c.me.Load(); me != nil {
		in.BotName = me.username
	}
	return in
}

// content normalises what a person said; nil for service messages and channels.
func (c *Channel) content(m *models.Message) *channels.Inbound {
	if m.Chat.Type == models.ChatTypeChannel {
		return nil
	}
	text, ents := m.Text, m.Entities
	if text == "" {
		text, ents = m.Caption, m.CaptionEntities
	}
	in := c.envelope(m)
	md := mediaOf(m)
	in.Attachments, in.Note = md.attachments(m.ID), md.note()
	if text == "" && len(in.Attachments) == 0 && in.Note == "" {
		return nil // a service message
	}
	var me account
	if a := c.me.Load(); a != nil {
		me = *a
	}
	a := addressing(text, ents, me)
	in.Text, in.Mentioned, in.OtherFirst, in.LeadingCode = a.text, a.mentioned, a.otherFirst, a.leadingCode
	in.GroupID = m.MediaGroupID
	in.Quote = quoteOf(m, me)
	in.RepliesToBot = in.Quote != nil && in.Quote.FromBot && m.ReplyToMessage != nil
	if from := origin(m.ForwardOrigin); from != "" {
		in.Note = join(in.Note, "forwarded from "+from)
	}
	return in
}

// pressed normalises a pressed button. A message too old for Telegram has no topic any more.
func (c *Channel) pressed(q *models.CallbackQuery) *channels.Inbound {
	in := &channels.Inbound{
		Kind:    channels.KindAction,
		EventID: "cb:" + q.ID,
		Sender:  person(&q.From),
		Action:  &channels.Action{ID: q.ID, Data: q.Data},
		SentAt:  c.now().UTC(),
	}
	if me := c.me.Load(); me != nil {
		in.BotName = me.username
	}
	var chat models.Chat
	switch {
	case q.Message.Message != nil:
		m := q.Message.Message
		chat = m.Chat
		in.Place, in.MessageID = c.place(strconv.FormatInt(chat.ID, 10), topicOf(m)), strconv.Itoa(m.ID)
	case q.Message.InaccessibleMessage != nil:
		m := q.Message.InaccessibleMessage
		chat = m.Chat
		in.Place, in.MessageID = c.place(strconv.FormatInt(chat.ID, 10), ""), strconv.Itoa(m.MessageID)
	}
	if chat.ID == 0 || q.Data == "" || chat.Type == models.ChatTypeChannel {
		return nil // an inline message or a game: not ours
	}
	in.ChatKind, in.ChatTitle = chatKind(chat.Type), chat.Title
	return in
}

// topicOf is the forum topic of m: "" outside forums and in General. A reply in a group without topics has a
// message_thread_id too, which is none; is_topic_message tells.
func topicOf(m *models.Message) string {
	if !m.IsTopicMessage || m.MessageThreadID <= general {
		return ""
	}
	return strconv.Itoa(m.MessageThreadID)
}

// general is the thread of a forum's General topic; sends to it are refused (tdlib/telegram-bot-api#798).
const general = 1

func chatKind(t models.ChatType) string {
	if t == models.ChatTypePrivate {
		return "dm"
	}
	return "group"
}

// senderOf is who wrote m. Anonymous administrators, channels and forwarded channel posts speak as a chat: they have no
// person behind them that could be told apart, and count as bots.
func senderOf(m *models.Message) channels.Sender {
	if m.SenderChat != nil {
		return channels.Sender{
			ID: strconv.FormatInt(m.SenderChat.ID, 10), Name: m.SenderChat.Title, Handle: m.SenderChat.Username, Bot: true,
		}
	}
	if m.From == nil {
		return channels.Sender{ID: strconv.FormatInt(m.Chat.ID, 10), Name: m.Chat.Title, Bot: true}
	}
	return person(m.From)
}

func person(u *models.User) channels.Sender {
	return channels.Sender{
		ID: strconv.FormatInt(u.ID, 10), Name: fullName(u), Handle: u.Username, Bot: u.IsBot,
		Locale: strings.ToLower(u.LanguageCode),
	}
}

func fullName(u *models.User) string {
	if name := strings.TrimSpace(u.FirstName + " " + u.LastName); name != "" {
		return name
	}
	return u.Username
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
