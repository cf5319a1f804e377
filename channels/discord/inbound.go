package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"deerbot/channels"
)

// message is what is read of one. It is not the SDK's, which refuses a whole message for one component it does not know.
type message struct {
	ID          string                         `json:"id"`
	ChannelID   string                         `json:"channel_id"`
	GuildID     string                         `json:"guild_id"`
	Author      *discordgo.User                `json:"author"`
	Member      *member                        `json:"member"`
	Content     string                         `json:"content"`
	Timestamp   time.Time                      `json:"timestamp"`
	Edited      *time.Time                     `json:"edited_timestamp"`
	Mentions    []*mention                     `json:"mentions"`
	Attachments []*discordgo.MessageAttachment `json:"attachments"`
	Type        discordgo.MessageType          `json:"type"`
	WebhookID   string                         `json:"webhook_id"`
	Flags       discordgo.MessageFlags         `json:"flags"`
	Reference   *struct {
		Type      int    `json:"type"`
		MessageID string `json:"message_id"`
		ChannelID string `json:"channel_id"`
	} `json:"message_reference"`
	Referenced *message `json:"referenced_message"`
	Snapshots  []struct {
		Message struct {
			Content     string                         `json:"content"`
			Attachments []*discordgo.MessageAttachment `json:"attachments"`
			Stickers    []sticker                      `json:"sticker_items"`
		} `json:"message"`
	} `json:"message_snapshots"`
	Stickers []sticker `json:"sticker_items"`
	Poll     *struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
	} `json:"poll"`
}

type member struct {
	Nick string          `json:"nick"`
	User *discordgo.User `json:"user"`
}

type mention struct {
	discordgo.User
	Member *member `json:"member"`
}

type sticker struct {
	Name string `json:"name"`
}

const (
	forward      = 1 // type of a reference
	voiceMessage = discordgo.MessageFlags(1 << 13)
	hasThread    = discordgo.MessageFlagsHasThread
)

// read normalises one dispatch; none when it is of no interest. It fails only when trying again may help.
func (c *Channel) read(ctx context.Context, kind string, data json.RawMessage) ([]*channels.Inbound, error) {
	switch kind {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			c.log.Warn("a message cannot be read and is skipped", "error", c.hide.Replace(err.Error()))
			return nil, nil
		}
		in, err := c.message(ctx, &m, kind == "MESSAGE_UPDATE")
		if in == nil {
			return nil, err
		}
		return []*channels.Inbound{in}, err
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		return c.deleted(ctx, data)
	case "INTERACTION_CREATE":
		return c.interaction(ctx, data)
	}
	return nil, nil
}

// place finds where a message is: the thread of a channel, the channel, the direct messages.
func (c *Channel) place(ctx context.Context, channelID, guildID string) (channels.Place, *room, error) {
	if guildID == "" {
		if r := c.names.room(channelID); r != nil {
			guildID = r.Guild
		}
	}
	if guildID == "" { // events of guilds say so
		return place("", channelID, ""), &room{ID: channelID, Type: discordgo.ChannelTypeDM}, nil
	}
	r, err := c.room(ctx, channelID, guildID)
	if err != nil {
		return channels.Place{}, nil, err
	}
	if r.thread() && r.Parent != "" {
		return place(guildID, r.Parent, channelID), r, nil
	}
	return place(guildID, channelID, ""), r, nil
}

// spoken tells which messages people write; others are notices of Discord.
func spoken(t discordgo.MessageType) bool {
	return t == discordgo.MessageTypeDefault || t == discordgo.MessageTypeReply
}

func (c *Channel) message(ctx context.Context, m *message, edit bool) (*channels.Inbound, error) {
	me := c.me.Load()
	if me != nil && m.Author != nil && m.Author.ID == me.id {
		c.sent.add(m.ID)
		return nil, nil
	}
	if me == nil || m.Author == nil || !spoken(m.Type) || !snowflake(m.ID) || !snowflake(m.ChannelID) {
		return nil, nil
	}
	if edit && m.Edited == nil {
		return nil, nil // a preview was added, a thread was made: nobody wrote
	}
	p, r, err := c.place(ctx, m.ChannelID, m.GuildID)
	if err != nil {
		return nil, err
	}
	in := &channels.Inbound{
		Kind: channels.KindMessage, Place: p, EventID: m.ID, MessageID: m.ID, ChatKind: "group", ChatTitle: c.title(ctx, r),
		Sender: channels.Sender{
			ID: m.Author.ID, Name: displayName(m.Author, m.Member), Handle: m.Author.Username, Bot: m.Author.Bot || m.WebhookID != "",
		},
		BotName: me.name, SentAt: m.Timestamp.UTC(),
	}
	if p.Workspace == "" {
		in.ChatKind = "dm"
	}
	if edit {
		in.Kind, in.SentAt = channels.KindEdit, m.Edited.UTC()
		in.EventID = fmt.Sprintf("edit:%s:%d", m.ID, m.Edited.UnixMicro())
	}
	a := c.addressing(m)
	in.Text, in.Mentioned, in.OtherFirst, in.LeadingCode = a.text, a.mentioned, a.otherFirst, a.leadingCode
	in.Attachments = attachments(m, m.Attachments)
	c.quote(m, in, me)
	for _, s := range m.Stickers {
		in.Note = join(in.Note, "a sticker was sent: "+s.Name, "; ")
	}
	if m.Poll != nil {
		in.Note = join(in.Note, "a poll was sent: "+m.Poll.Question.Text, "; ")
	}
	if in.Text == "" && len(in.Attachments) == 0 && in.Note == "" && in.Quote == nil && !in.Mentioned {
		return nil, nil // nothing that could be read: no content without the intent
	}
	if p.Topic == "" && p.Workspace != "" {
		return in, c.openThread(ctx, m, r, in)
	}
	return in, nil
}

// quote adds the message replied to, or what was forwarded.
func (c *Channel) quote(m *message, in *channels.Inbound, me *account) {
	switch ref := m.Referenced; {
	case m.Reference != nil && m.Reference.Type == forward:
		q := &channels.Quote{}
		for _, s := range m.Snapshots {
			q.Text = join(q.Text, s.Message.Content, "\n")
			q.Attachments = append(q.Attachments, attachments(m, s.Message.Attachments)...)
			for _, st := range s.Message.Stickers {
				q.Text = join(q.Text, "[sticker "+st.Name+"]", " ")
			}
		}
		q.Text = shorten(strings.TrimSpace(q.Text), maxQuoteRune)
		in.Quote, in.Note = q, join(in.Note, "a message was forwarded", "; ")
	case m.Type == discordgo.MessageTypeReply && m.Reference != nil && ref != nil && ref.Author != nil:
		if ref.ChannelID == "" {
			ref.ChannelID = m.Reference.ChannelID
		}
		q := &channels.Quote{
			MessageID: ref.ID, Author: displayName(ref.Author, ref.Member), FromBot: ref.Author.ID == me.id,
			Text:        shorten(strings.TrimSpace(c.addressing(ref).text), maxQuoteRune),
			Attachments: attachments(ref, ref.Attachments),
		}
		if q.FromBot {
			q.Text = shorten(strings.TrimSpace(ref.Content), maxQuoteRune)
		}
		in.Quote, in.RepliesToBot = q, q.FromBot
	case m.Type == discordgo.MessageTypeReply && m.Reference != nil:
		in.Quote = &channels.Quote{MessageID: m.Reference.MessageID, Text: "[deleted message]"}
	}
}

func attachments(m *message, files []*discordgo.MessageAttachment) []channels.Attachment {
	var out []channels.Attachment
	for _, f := range files {
		if f == nil {
			continue
		}
		kind, _, err := mime.ParseMediaType(f.ContentType)
		if err != nil {
			kind = ""
		}
		a := channels.Attachment{
			ID: attachmentID(m.ChannelID, m.ID, f.ID), Kind: "document", Name: f.Filename, MIME: kind, Size: int64(f.Size),
		}
		switch {
		case m.Flags&voiceMessage != 0:
			a.Kind = "voice"
		case strings.HasPrefix(kind, "image/"):
			a.Kind = "image"
		case strings.HasPrefix(kind, "audio/"):
			a.Kind = "audio"
		case strings.HasPrefix(kind, "video/"):
			a.Kind = "video"
		}
		out = append(out, a)
	}
	return out
}

// openThread moves in to the thread of its message: one that is there, or a new one for a mention. A thread made from a
// message has that message's id, so a repeated event finds the same.
func (c *Channel) openThread(ctx context.Context, m *message, r *room, in *channels.Inbound) error {
	if m.Flags&hasThread != 0 || c.names.room(m.ID) != nil {
		in.Place.Topic = m.ID
		return nil
	}
	if in.Kind != channels.KindMessage || !in.Mentioned || in.Sender.Bot || c.thread != ThreadAuto || !r.threads() ||
		c.names.refuses(r.ID) || c.wants != nil && !c.wants(in) {
		return nil
	}
	const name = "start thread"
	var t room
	var err error
	for n := range 3 { // not for long: everybody's messages wait
		t = room{}
		err = c.call(ctx, api{
			name: name, method: "POST", path: "/channels/" + m.ChannelID + "/messages/" + m.ID + "/threads",
			body: map[string]any{"name": threadName(in), "auto_archive_duration": 1440}, limit: 5 * time.Second,
		}, &t)
		if _, again := errors.AsType[*channels.Transient](err); !again || sleep(ctx, c.retryMin<<n) != nil {
			break
		}
	}
	switch {
	case err == nil:
		t.Guild = or(t.Guild, m.GuildID)
		c.names.putRoom(&t)
		in.Place.Topic = m.ID
	case refused(err, codeThreadExists):
		in.Place.Topic = m.ID
	case ctx.Err() != nil || channels.IsFatal(err):
		return err
	default: // it stays in the channel
		if !passing(err) && !refused(err, codeUnknownMessage, codeTooManyThreads) {
			c.names.refuse(r.ID)
		}
		c.log.Info("no thread is opened for a mention", "channel", r.ID, "error", err.Error())
	}
	return nil
}

// threadName is the beginning of the text.
func threadName(in *channels.Inbound) string {
	s := strings.Join(strings.FieldsFunc(in.Text, func(r rune) bool { return r <= ' ' || r == 0x7F }), " ")
	if s = shorten(s, 80); s == "" {
		s = or(in.Sender.Name, "thread")
	}
	return shorten(s, 45) // names count UTF-16 units, at most two for each rune
}

// deleted normalises deletions.
func (c *Channel) deleted(ctx context.Context, data json.RawMessage) ([]*channels.Inbound, error) {
	var d struct {
		ID        string   `json:"id"`
		IDs       []string `json:"ids"`
		ChannelID string   `json:"channel_id"`
		GuildID   string   `json:"guild_id"`
	}
	if json.Unmarshal(data, &d) != nil || !snowflake(d.ChannelID) {
		return nil, nil
	}
	p, r, err := c.place(ctx, d.ChannelID, d.GuildID)
	if err != nil {
		return nil, err
	}
	var out []*channels.Inbound
	for _, id := range append(d.IDs, d.ID) {
		if id == "" || c.sent.has(id) {
			continue
		}
		in := &channels.Inbound{
			Kind: channels.KindRecall, Place: p, EventID: "del:" + id, MessageID: id, ChatKind: "group", ChatTitle: c.title(ctx, r),
			SentAt: c.now().UTC(),
		}
		if p.Workspace == "" {
			in.ChatKind = "dm"
		}
		if p.Topic == "" && c.names.room(id) != nil {
			in.Place.Topic = id
		}
		if me := c.me.Load(); me != nil {
			in.BotName = me.name
		}
		out = append(out, in)
	}
	return out, nil
}
