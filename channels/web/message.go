package web

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/store"
)

// Who wrote a message.
const (
	fromUser = "user"
	fromBot  = "bot"
)

// body is what the log keeps of a message.
type body struct {
	From    string           `json:"from"`
	Text    string           `json:"text,omitempty"`   // as written, or in the dialect
	Format  string           `json:"format,omitempty"` // "html" only ever from the bot
	Plain   string           `json:"plain,omitempty"`
	Buttons [][]cards.Button `json:"buttons,omitempty"`
	Files   []fileInfo       `json:"files,omitempty"`
	ReplyTo string           `json:"reply_to,omitempty"`
	Silent  bool             `json:"silent,omitempty"`
	Locale  string           `json:"locale,omitempty"`
	Deleted bool             `json:"deleted,omitempty"`
}

// wireMessage is a message as the page gets it.
type wireMessage struct {
	ID        string           `json:"id"`
	Seq       uint64           `json:"seq"`
	Rev       uint64           `json:"rev"`
	From      string           `json:"from"`
	Deleted   bool             `json:"deleted,omitempty"`
	Text      string           `json:"text,omitempty"` // shown as text
	HTML      string           `json:"html,omitempty"` // shown as it is
	Buttons   [][]cards.Button `json:"buttons,omitempty"`
	Files     []wireFile       `json:"files,omitempty"`
	ReplyTo   string           `json:"reply_to,omitempty"`
	Silent    bool             `json:"silent,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	UpdatedAt time.Time        `json:"updated_at"`
}

type wireFile struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	MIME  string `json:"mime"`
	URL   string `json:"url"`
	Image bool   `json:"image,omitempty"` // may be shown inline
}

func decodeBody(m store.ChatMessage) (body, error) {
	var b body
	if err := json.Unmarshal(m.Body, &b); err != nil {
		return body{}, fmt.Errorf("web: message %s of chat %s: %w", m.ID, m.Chat, err)
	}
	return b, nil
}

// wire is the form of m for the page. A body that cannot be read is shown as an empty message of the bot.
func wire(m store.ChatMessage) wireMessage {
	b, err := decodeBody(m)
	if err != nil {
		b = body{From: fromBot}
	}
	w := wireMessage{ID: m.ID, Seq: m.Seq, Rev: m.Rev, From: b.From, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt}
	if b.Deleted {
		w.Deleted = true
		return w
	}
	w.Buttons, w.ReplyTo, w.Silent = b.Buttons, b.ReplyTo, b.Silent
	if b.From == fromBot && b.Format == "html" {
		w.HTML = b.Text
	} else {
		w.Text = b.Text
	}
	for _, f := range b.Files {
		w.Files = append(w.Files, wireFile{
			Name: f.Name, Size: f.Size, MIME: f.MIME, Image: f.Image,
			URL: "/chat/files/" + f.ID + "/" + url.PathEscape(f.Name),
		})
	}
	return w
}

func messageEvent(m store.ChatMessage) event {
	data, err := json.Marshal(wire(m))
	if err != nil { // cannot happen: strings and numbers only
		data = []byte("{}")
	}
	return event{id: m.Rev, name: "message", data: data}
}

func place(chat string) channels.Place { return channels.Place{Channel: Name, Chat: chat} }

// inbound is the event of a person's message.
func inbound(m store.ChatMessage, b body, sentAt time.Time) *channels.Inbound {
	in := &channels.Inbound{
		Kind:      channels.KindMessage,
		Place:     place(m.Chat),
		EventID:   "message:" + m.ID,
		MessageID: m.ID,
		ChatKind:  "dm",
		Sender:    channels.Sender{ID: SenderID, Name: SenderID, Locale: b.Locale},
		Text:      strings.TrimSpace(b.Text),
		SentAt:    sentAt,
	}
	for _, f := range b.Files {
		in.Attachments = append(in.Attachments, channels.Attachment{
			ID: f.ID, Kind: f.kind(), Name: f.Name, MIME: f.MIME, Size: f.Size,
		})
	}
	return in
}
