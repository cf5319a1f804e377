package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"deerbot/channels"
)

// event is a message as Slack tells it: of a message event, of app_mention and of the history.
type event struct {
	Type        string  `json:"type"`
	Subtype     string  `json:"subtype"`
	Channel     string  `json:"channel"`
	ChannelType string  `json:"channel_type"`
	User        string  `json:"user"`
	BotID       string  `json:"bot_id"`
	Username    string  `json:"username"`
	Text        string  `json:"text"`
	TS          string  `json:"ts"`
	ThreadTS    string  `json:"thread_ts"`
	ParentUser  string  `json:"parent_user_id"`
	DeletedTS   string  `json:"deleted_ts"`
	Edited      *edited `json:"edited"`
	Files       []file  `json:"files"`
	Message     *event  `json:"message"`
	Previous    *event  `json:"previous_message"`
	Attachments []share `json:"attachments"`
	BotProfile  struct {
		Name string `json:"name"`
	} `json:"bot_profile"`
	Metadata struct {
		Type    string `json:"event_type"`
		Payload struct {
			Key string `json:"key"`
		} `json:"event_payload"`
	} `json:"metadata"`
}

type edited struct {
	TS string `json:"ts"`
}

// share is a message that was forwarded into another.
type share struct {
	IsShare    bool   `json:"is_share"`
	AuthorName string `json:"author_name"`
	AuthorID   string `json:"author_id"`
	Text       string `json:"text"`
	TS         string `json:"ts"`
}

const maxQuote = 2000 // runes

// read decodes an envelope; nil when it is of no interest.
func (c *Channel) read(ctx context.Context, env *envelope) *channels.Inbound {
	ctx, cancel := context.WithTimeout(ctx, c.lookUp)
	defer cancel()
	var in *channels.Inbound
	var err error
	switch env.Type {
	case "events_api":
		in, err = c.readEvent(ctx, env.Payload)
	case "interactive":
		in, err = c.readPress(ctx, env.Payload)
	case "slash_commands":
		in, err = c.readCommand(ctx, env.Payload)
	}
	if err != nil {
		c.log.Warn("an event cannot be read and is skipped", "type", env.Type, "error", c.clean(err.Error()))
		return nil
	}
	return in
}

func (c *Channel) readEvent(ctx context.Context, raw json.RawMessage) (*channels.Inbound, error) {
	var outer struct {
		Event json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(raw, &outer); err != nil {
		return nil, err
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(outer.Event, &head); err != nil {
		return nil, err
	}
	if head.Type != "message" && head.Type != "app_mention" {
		return nil, nil
	}
	var ev event
	if err := json.Unmarshal(outer.Event, &ev); err != nil {
		return nil, err
	}
	return c.message(ctx, &ev), nil
}

// message normalises a message event.
func (c *Channel) message(ctx context.Context, ev *event) *channels.Inbound {
	switch ev.Subtype {
	case "message_changed":
		return c.changed(ctx, ev)
	case "message_deleted":
		return c.deleted(ctx, ev.Channel, first(ev.DeletedTS, tsOf(ev.Previous)), ev.Previous)
	case "", "file_share", "thread_broadcast", "bot_message", "me_message":
	default:
		return nil
	}
	in := c.content(ctx, ev)
	if in == nil {
		return nil
	}
	in.Kind, in.EventID = channels.KindMessage, ev.TS
	return in
}

func tsOf(ev *event) string {
	if ev == nil {
		return ""
	}
	return ev.TS
}

// changed normalises message_changed: only what a person changed. Slack sends it for link previews and for the bot's own
// edits too.
func (c *Channel) changed(ctx context.Context, ev *event) *channels.Inbound {
	m := ev.Message
	if m == nil {
		return nil
	}
	m.Channel, m.ChannelType = ev.Channel, ev.ChannelType
	if m.Subtype == "tombstone" { // the root of a thread was deleted
		return c.deleted(ctx, ev.Channel, m.TS, ev.Previous)
	}
	if m.Edited == nil {
		return nil
	}
	if p := ev.Previous; p != nil && p.Text == m.Text && len(p.Files) == len(m.Files) {
		return nil
	}
	return c.edit(ctx, m)
}

// edit normalises a message that was edited. Two edits of one second are two; a redelivered one is one.
func (c *Channel) edit(ctx context.Context, m *event) *channels.Inbound {
	in := c.content(ctx, m)
	if in == nil {
		return nil
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.Text))
	in.Kind, in.EventID = channels.KindEdit, fmt.Sprintf("edit:%s:%s:%08x", m.TS, m.Edited.TS, h.Sum32())
	in.SentAt = timeOf(m.Edited.TS, in.SentAt)
	return in
}

// deleted normalises a message that was taken back.
func (c *Channel) deleted(ctx context.Context, channel, ts string, before *event) *channels.Inbound {
	if ts == "" || channel == "" {
		return nil
	}
	in := &channels.Inbound{
		Kind: channels.KindRecall, EventID: "del:" + ts, MessageID: ts, ChatKind: chatKind(channel), SentAt: c.now().UTC(),
	}
	topic := ""
	if before != nil {
		if c.own(before) {
			return nil
		}
		me := c.who()
		topic = topicOf(before, strings.Contains(before.Text, "<@"+me.user) && me.user != "", isDM(channel))
		if before.User != "" {
			in.Sender = c.sender(ctx, before.User)
		}
	}
	in.Place = c.place(channel, topic)
	in.BotName = c.who().name
	return in
}

func (c *Channel) who() account {
	if me := c.me.Load(); me != nil {
		return *me
	}
	return account{}
}

// own reports whether the bot wrote ev.
func (c *Channel) own(ev *event) bool {
	me := c.who()
	return ev.User != "" && ev.User == me.user || ev.BotID != "" && ev.BotID == me.bot
}

// content normalises what somebody said; nil for the bot's own and for nothing.
func (c *Channel) content(ctx context.Context, ev *event) *channels.Inbound {
	if ev.Channel == "" || ev.TS == "" || c.own(ev) {
		return nil
	}
	me := c.who()
	said := c.decode(ctx, ev.Text)
	in := &channels.Inbound{
		MessageID: ev.TS, ChatKind: chatKind(ev.Channel), ChatTitle: c.title(ctx, ev.Channel), Sender: c.writer(ctx, ev),
		Text: said.text, Mentioned: said.mentioned, OtherFirst: said.otherFirst, LeadingCode: said.leadingCode,
		BotName: me.name, SentAt: timeOf(ev.TS, c.now()),
	}
	topic := topicOf(ev, said.mentioned, isDM(ev.Channel))
	in.Place = c.place(ev.Channel, topic)
	in.Attachments, in.Note = attachments(ev.Files)
	for i := range ev.Attachments {
		if a := &ev.Attachments[i]; a.IsShare && a.Text != "" {
			in.Quote = &channels.Quote{MessageID: a.TS, Author: a.AuthorName, Text: cut(c.decode(ctx, a.Text).text, maxQuote)}
			break
		}
	}
	if in.Text == "" && len(in.Attachments) == 0 && in.Note == "" && in.Quote == nil && !in.Mentioned {
		return nil
	}
	if topic != "" && topic != ev.TS {
		c.inThread(ctx, ev, in)
	}
	return in
}

func (c *Channel) decode(ctx context.Context, text string) spoken {
	return decode(text, c.who().user,
		func(id string) string { return c.person(ctx, id).name },
		func(id string) string { return c.title(ctx, id) })
}

// writer is who wrote ev. Whoever writes through an app counts as a bot.
func (c *Channel) writer(ctx context.Context, ev *event) channels.Sender {
	if ev.BotID == "" && ev.User != "" {
		return c.sender(ctx, ev.User)
	}
	return channels.Sender{ID: first(ev.User, ev.BotID, "unknown"), Name: first(ev.Username, ev.BotProfile.Name, ev.BotID), Bot: true}
}

// topicOf is the thread of ev. A mention outside threads opens one on itself. The root of a thread has its own ts as
// thread_ts once there are replies.
func topicOf(ev *event, mentioned, dm bool) string {
	switch {
	case ev.ThreadTS != "" && ev.ThreadTS != ev.TS:
		return ev.ThreadTS
	case mentioned && !dm:
		return ev.TS
	}
	return ""
}

func chatKind(channel string) string {
	if isDM(channel) {
		return "dm"
	}
	return "group"
}

// timeOf is the time of a ts.
func timeOf(ts string, or time.Time) time.Time {
	sec, frac, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || n <= 0 {
		return or.UTC()
	}
	micro, _ := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	return time.Unix(n, micro*1000).UTC()
}

// readPress normalises a pressed button.
func (c *Channel) readPress(ctx context.Context, raw json.RawMessage) (*channels.Inbound, error) {
	var p struct {
		Type string `json:"type"`
		User struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"user"`
		Channel   struct{ ID string } `json:"channel"`
		Container struct {
			Channel string `json:"channel_id"`
			TS      string `json:"message_ts"`
			Thread  string `json:"thread_ts"`
		} `json:"container"`
		Message struct {
			Thread string `json:"thread_ts"`
		} `json:"message"`
		ResponseURL string `json:"response_url"`
		Actions     []struct {
			Value string `json:"value"`
			TS    string `json:"action_ts"`
			ID    string `json:"action_id"`
		} `json:"actions"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	channel := first(p.Container.Channel, p.Channel.ID)
	if p.Type != "block_actions" || len(p.Actions) == 0 || p.Actions[0].Value == "" || channel == "" || p.User.ID == "" {
		return nil, nil
	}
	a, ts := p.Actions[0], p.Container.TS
	topic := first(p.Container.Thread, p.Message.Thread)
	if topic == ts { // the root of a thread stands outside of it
		topic = ""
	}
	in := &channels.Inbound{
		Kind: channels.KindAction, Place: c.place(channel, topic), EventID: "act:" + ts + ":" + a.TS + ":" + p.User.ID, MessageID: ts,
		ChatKind: chatKind(channel), ChatTitle: c.title(ctx, channel), Sender: c.sender(ctx, p.User.ID), BotName: c.who().name,
		SentAt: timeOf(a.TS, c.now()),
		Action: &channels.Action{ID: c.actions.keep(channel, p.User.ID, topic, a.TS, p.ResponseURL, c.now()), Data: a.Value},
	}
	if in.Sender.Name == p.User.ID && p.User.Name != "" {
		in.Sender.Name = p.User.Name
	}
	return in, nil
}

// readCommand normalises a slash command: /deer text is text, /deer-new is /new.
func (c *Channel) readCommand(ctx context.Context, raw json.RawMessage) (*channels.Inbound, error) {
	var p struct {
		Command  string `json:"command"`
		Text     string `json:"text"`
		Channel  string `json:"channel_id"`
		Name     string `json:"channel_name"`
		User     string `json:"user_id"`
		UserName string `json:"user_name"`
		Trigger  string `json:"trigger_id"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	if p.Channel == "" || p.User == "" || p.Command == "" {
		return nil, nil
	}
	text := c.decode(ctx, p.Text).text
	switch name, ok := strings.CutPrefix(p.Command, c.command); {
	case ok && name == "":
		if text == "" {
			text = "/help"
		}
	case ok && strings.HasPrefix(name, "-"):
		text = strings.TrimSpace("/" + name[1:] + " " + text)
	default:
		text = strings.TrimSpace(p.Command + " " + text)
	}
	in := &channels.Inbound{
		Kind: channels.KindMessage, Place: c.place(p.Channel, ""), EventID: "cmd:" + p.Trigger, ChatKind: chatKind(p.Channel),
		Sender: c.sender(ctx, p.User), Text: text, Mentioned: true, BotName: c.who().name, SentAt: c.now().UTC(),
	}
	if in.ChatKind == "group" {
		in.ChatTitle = p.Name
	}
	if in.Sender.Name == p.User && p.UserName != "" {
		in.Sender.Name = p.UserName
	}
	return in, nil
}

// cut shortens s to n runes.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
