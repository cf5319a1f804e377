package telegram

import (
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"deerbot/channels"
)

// quoteOf is the message m replies to. In a topic every message replies to the one that opened it, which is no reply.
func quoteOf(m *models.Message, me account) *channels.Quote {
	var q *channels.Quote
	switch r := m.ReplyToMessage; {
	case r != nil && r.ForumTopicCreated == nil && (!m.IsTopicMessage || r.ID != m.MessageThreadID):
		s := senderOf(r)
		q = &channels.Quote{
			MessageID: strconv.Itoa(r.ID), Author: s.Name, FromBot: r.From != nil && r.From.ID == me.id, Text: r.Text,
		}
		if q.Text == "" {
			q.Text = r.Caption
		}
		describe(q, mediaOf(r), r.ID)
	case m.ExternalReply != nil:
		r := m.ExternalReply
		q = &channels.Quote{Author: origin(&r.Origin)}
		describe(q, mediaOfReply(r), r.MessageID)
	case m.ReplyToStory != nil:
		q = &channels.Quote{Author: m.ReplyToStory.Chat.Title, Text: "[story]"}
	}
	if m.Quote != nil && m.Quote.Text != "" {
		if q == nil {
			q = &channels.Quote{}
		}
		q.Text = m.Quote.Text
	}
	if q != nil {
		q.Text = shorten(strings.TrimSpace(q.Text), maxQuoteRune)
	}
	return q
}

// describe adds the files of a quoted message and names its medium.
func describe(q *channels.Quote, md media, msg int) {
	q.Attachments = md.attachments(msg)
	if medium := md.medium(); medium != "" {
		q.Text = strings.TrimSpace("[" + medium + "] " + q.Text)
	}
}

// origin names who wrote a forwarded message.
func origin(o *models.MessageOrigin) string {
	if o == nil {
		return ""
	}
	switch {
	case o.MessageOriginUser != nil:
		return fullName(&o.MessageOriginUser.SenderUser)
	case o.MessageOriginHiddenUser != nil:
		return o.MessageOriginHiddenUser.SenderUserName
	case o.MessageOriginChat != nil:
		return o.MessageOriginChat.SenderChat.Title
	case o.MessageOriginChannel != nil:
		return o.MessageOriginChannel.Chat.Title
	}
	return ""
}

// shorten cuts s to n runes.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
