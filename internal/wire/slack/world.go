package slack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// User is somebody of the workspace.
type User struct {
	ID, Name, RealName string
	Locale             string
	Bot                bool
	BotID              string
}

// Person makes a person.
func (s *Server) Person(realName, name string) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &User{ID: s.id("U"), Name: name, RealName: realName, Locale: "en-US"}
	s.users[u.ID] = u
	return u
}

// Robot makes another app's bot.
func (s *Server) Robot(name string) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &User{ID: s.id("U"), Name: name, RealName: name, Bot: true, BotID: s.id("B")}
	s.users[u.ID] = u
	return u
}

// Channel is a conversation.
type Channel struct {
	s        *Server
	id, name string
	kind     string // channel, group, im, mpim
	user     string // of an im
	member   bool   // the bot is in it
	archived bool
	messages []*message
}

// ID is the channel's id.
func (c *Channel) ID() string { return c.id }

func (s *Server) conversation(prefix, name, kind string) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Channel{s: s, id: s.id(prefix), name: name, kind: kind, member: true}
	s.channels[c.id] = c
	return c
}

// Public makes a public channel with the bot in it.
func (s *Server) Public(name string) *Channel { return s.conversation("C", name, "channel") }

// Private makes a private channel with the bot in it.
func (s *Server) Private(name string) *Channel { return s.conversation("G", name, "group") }

// Group makes a direct message of several people and the bot.
func (s *Server) Group(name string) *Channel { return s.conversation("G", name, "mpim") }

// DM is the direct messages of u and the bot.
func (s *Server) DM(u *User) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dm(u.ID)
}

func (s *Server) dm(user string) *Channel {
	for _, c := range s.channels {
		if c.kind == "im" && c.user == user {
			return c
		}
	}
	c := &Channel{s: s, id: s.id("D"), kind: "im", user: user, member: true}
	s.channels[c.id] = c
	return c
}

// Kick takes the bot out of the channel, Archive archives it.
func (c *Channel) Kick() { c.s.mu.Lock(); c.member = false; c.s.mu.Unlock() }

// Archive archives the channel.
func (c *Channel) Archive() { c.s.mu.Lock(); c.archived = true; c.s.mu.Unlock() }

type message struct {
	ts, thread string
	user       *User
	subtype    string
	text       string
	blocks     json.RawMessage
	metadata   json.RawMessage
	files      []*file
	edited     string
	edits      int
	deleted    bool
	ephemeral  string // the user who sees it
	plain      bool   // mrkdwn is off
	reactions  []string
}

func (c *Channel) find(ts string) *message {
	for _, v := range slices.Backward(c.messages) {
		if m := v; m.ts == ts && !m.deleted && m.ephemeral == "" {
			return m
		}
	}
	return nil
}

// file is an uploaded file.
type file struct {
	id, name, mime, title string
	data                  []byte
	size                  int64
	redirect              string // answered instead of the data
	shares                map[string]string
	slow                  int // files.info calls until the share shows
}

// SayOption changes what is said.
type SayOption func(*saying)

type saying struct {
	thread    string
	broadcast bool
	files     []*file
	noMessage bool // only app_mention
	noMention bool // only message
	extra     obj  // fields of the event
}

// InThread says it in the thread of ts.
func InThread(ts string) SayOption { return func(o *saying) { o.thread = ts } }

// Broadcast shows a thread's message in the channel too.
func Broadcast() SayOption { return func(o *saying) { o.broadcast = true } }

// MentionOnly is an app that subscribed app_mention alone, MessageOnly one that did not subscribe it.
func MentionOnly() SayOption { return func(o *saying) { o.noMessage = true } }

// MessageOnly leaves out app_mention.
func MessageOnly() SayOption { return func(o *saying) { o.noMention = true } }

// WithField sets a field of the event.
func WithField(key string, v any) SayOption {
	return func(o *saying) {
		if o.extra == nil {
			o.extra = obj{}
		}
		o.extra[key] = v
	}
}

// WithFile attaches a file.
func WithFile(name, mime string, data []byte) SayOption {
	return func(o *saying) {
		o.files = append(o.files, &file{name: name, mime: mime, data: data, size: int64(len(data))})
	}
}

// WithRedirect attaches a file whose download is redirected to url.
func WithRedirect(name, url string) SayOption {
	return func(o *saying) {
		o.files = append(o.files, &file{name: name, mime: "text/plain", size: 3, redirect: url})
	}
}

// Say makes u write text, as the wire has it: &lt; for <, <@U…> for mentions. It returns the message's ts.
func (c *Channel) Say(u *User, text string, opts ...SayOption) string {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var o saying
	for _, f := range opts {
		f(&o)
	}
	m := &message{ts: s.ts(), thread: o.thread, user: u, text: text}
	switch {
	case len(o.files) > 0:
		m.subtype = "file_share"
	case u.Bot:
		m.subtype = "bot_message"
	case o.broadcast:
		m.subtype = "thread_broadcast"
	}
	for _, f := range o.files {
		f.id = s.id("F")
		s.files[f.id] = f
		m.files = append(m.files, f)
	}
	c.messages = append(c.messages, m)
	ev := c.wire(m)
	ev["type"], ev["channel"], ev["channel_type"], ev["event_ts"] = "message", c.id, c.kind, m.ts
	maps.Copy(ev, o.extra)
	if !c.member {
		return m.ts
	}
	mention := c.kind != "im" && strings.Contains(text, "<@"+BotUser+">") && !u.Bot && !o.noMention
	if !o.noMessage {
		s.event(ev)
	}
	if mention {
		ev = obj{"type": "app_mention", "user": u.ID, "text": text, "ts": m.ts, "channel": c.id, "event_ts": m.ts, "team": TeamID}
		if m.thread != "" {
			ev["thread_ts"] = m.thread
		}
		if len(m.files) > 0 {
			ev["files"] = s.wireFiles(m)
		}
		s.event(ev)
	}
	return m.ts
}

// wire is a message as the API gives it.
func (c *Channel) wire(m *message) obj {
	o := obj{"type": "message", "text": m.text, "ts": m.ts, "team": TeamID}
	if m.user != nil {
		o["user"] = m.user.ID
		if m.user.BotID != "" {
			o["bot_id"], o["username"] = m.user.BotID, m.user.Name
		}
		if m.user.ID == BotUser {
			o["bot_id"], o["app_id"] = BotID, AppID
			o["bot_profile"] = obj{"id": BotID, "app_id": AppID, "name": m.user.Name}
		}
	}
	if m.subtype != "" {
		o["subtype"] = m.subtype
	}
	if m.user != nil && !m.user.Bot {
		o["client_msg_id"] = "cm-" + m.ts
	}
	if m.thread != "" {
		o["thread_ts"] = m.thread
		if root := c.find(m.thread); root != nil && root.user != nil {
			o["parent_user_id"] = root.user.ID
		}
	} else if n := c.replyCount(m.ts); n > 0 {
		o["thread_ts"], o["reply_count"] = m.ts, n
	}
	if m.edited != "" {
		o["edited"] = obj{"user": m.user.ID, "ts": m.edited}
	}
	if m.blocks != nil {
		o["blocks"] = m.blocks
	}
	if len(m.files) > 0 {
		o["files"] = c.s.wireFiles(m)
	}
	return o
}

func (c *Channel) replyCount(ts string) int {
	n := 0
	for _, m := range c.messages {
		if m.thread == ts && !m.deleted {
			n++
		}
	}
	return n
}

func (s *Server) wireFiles(m *message) []obj {
	var out []obj
	for _, f := range m.files {
		out = append(out, s.wireFile(f))
	}
	return out
}

// event sends an events_api envelope. The lock is held.
func (s *Server) event(ev obj) {
	s.push("events_api", s.callback(ev))
}

func (s *Server) callback(ev obj) obj {
	return obj{
		"token": "verification", "team_id": TeamID, "api_app_id": AppID, "event": ev, "type": "event_callback",
		"event_id": s.id("Ev"), "event_time": s.opt.Now().Unix(),
		"authorizations": []obj{{"team_id": TeamID, "user_id": BotUser, "is_bot": true}},
	}
}

// Inject sends an event as it is.
func (s *Server) Inject(event json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ev obj
	if err := json.Unmarshal(event, &ev); err != nil {
		panic(err)
	}
	s.event(ev)
}

// InjectTwice sends one event in n envelopes, as retries of it.
func (s *Server) InjectTwice(event json.RawMessage, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ev obj
	if err := json.Unmarshal(event, &ev); err != nil {
		panic(err)
	}
	payload := s.callback(ev)
	for range n {
		s.push("events_api", payload)
	}
}

// Edit makes the writer change a message.
func (c *Channel) Edit(ts, text string) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	m := c.find(ts)
	if m == nil {
		return
	}
	before := c.wire(m)
	m.text, m.edited = text, s.ts()
	m.edits++
	c.changed(m, before)
}

// Unfurl is a link preview that Slack adds to a message.
func (c *Channel) Unfurl(ts string) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := c.find(ts); m != nil {
		before := c.wire(m)
		c.changed(m, before)
	}
}

// changed tells that m changed.
func (c *Channel) changed(m *message, before obj) {
	ts := c.s.ts()
	c.s.event(obj{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": c.id, "channel_type": c.kind,
		"ts": ts, "event_ts": ts, "message": c.wire(m), "previous_message": before,
	})
}

// Remove deletes a message.
func (c *Channel) Remove(ts string) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := c.find(ts); m != nil {
		c.removed(m)
	}
}

func (c *Channel) removed(m *message) {
	before := c.wire(m)
	m.deleted = true
	ts := c.s.ts()
	c.s.event(obj{
		"type": "message", "subtype": "message_deleted", "hidden": true, "channel": c.id, "channel_type": c.kind,
		"ts": ts, "event_ts": ts, "deleted_ts": m.ts, "previous_message": before,
	})
}

// response is what may come through a response_url.
type response struct {
	channel, user, ts, thread string
	left                      int
	notices                   []string
}

func (s *Server) responseURL(r *response) string {
	r.left = 5
	path := "/actions/" + TeamID + "/" + s.id("") + "/secret"
	s.triggers[path] = r
	return path
}

// Press makes u press the button with a label. The base is the server's address. It returns a handle for Notices.
func (c *Channel) Press(base string, u *User, ts, label string) (handle string, err error) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	m := c.find(ts)
	if m == nil {
		return "", fmt.Errorf("no message %s", ts)
	}
	for _, b := range buttonsOf(m.blocks) {
		if b.Text.Text != label {
			continue
		}
		path := s.responseURL(&response{channel: c.id, user: u.ID, ts: ts, thread: m.thread})
		container := obj{"type": "message", "message_ts": ts, "channel_id": c.id, "is_ephemeral": false}
		if m.thread != "" {
			container["thread_ts"] = m.thread
		}
		name := c.name
		if c.kind == "im" {
			name = "directmessage"
		}
		s.push("interactive", obj{
			"type": "block_actions", "user": obj{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": TeamID},
			"api_app_id": AppID, "container": container, "trigger_id": s.id("trigger."), "team": obj{"id": TeamID, "domain": "wire"},
			"channel": obj{"id": c.id, "name": name}, "message": c.wire(m), "response_url": base + path,
			"actions": []obj{{"action_id": b.ActionID, "block_id": "b", "text": b.Text, "value": b.Value, "type": "button", "action_ts": s.ts()}},
		})
		return path, nil
	}
	return "", fmt.Errorf("no button %q", label)
}

// Command makes u type a slash command. The base is the server's address.
func (c *Channel) Command(base string, u *User, command, text string) (handle string) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.responseURL(&response{channel: c.id, user: u.ID})
	name := c.name
	if c.kind == "im" {
		name = "directmessage"
	}
	s.push("slash_commands", obj{
		"token": "verification", "team_id": TeamID, "team_domain": "wire", "channel_id": c.id, "channel_name": name,
		"user_id": u.ID, "user_name": u.Name, "command": command, "text": text, "api_app_id": AppID,
		"is_enterprise_install": "false", "response_url": base + path, "trigger_id": s.id("trigger."),
	})
	return path
}

// Notices are what came through the response_url of a press or command, and as ephemeral messages to its user since.
func (s *Server) Notices(handle string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.triggers[handle]
	if r == nil {
		return nil
	}
	out := slices.Clone(r.notices)
	if c := s.channels[r.channel]; c != nil {
		for _, m := range c.messages {
			if m.ephemeral == r.user {
				out = append(out, m.text)
			}
		}
	}
	return out
}

// Status is a working sign.
type Status struct{ Channel, Thread, Text string }

// Statuses are the working signs set so far.
func (s *Server) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statuses)
}
