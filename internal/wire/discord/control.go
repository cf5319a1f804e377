package discord

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// SetHost tells under which host:port the server is reached, for the addresses of files in events.
func (s *Server) SetHost(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.Host = host
}

// Person makes an account.
func (s *Server) Person(name, username string) *User { return s.user(name, username, false) }

// Robot makes another bot.
func (s *Server) Robot(name, username string) *User { return s.user(name, username, true) }

func (s *Server) user(name, username string, bot bool) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &User{ID: s.snowflake(), GlobalName: name, Username: username, Discriminator: "0", Bot: bot, locale: "en-US"}
	s.users[u.ID] = u
	return u
}

// SetLocale sets the language of u's client.
func (s *Server) SetLocale(u *User, locale string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.locale = locale
}

// CloseDMs makes u take no direct messages any more.
func (s *Server) CloseDMs(u *User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.closed = true
}

// Guild makes a guild with the bot in it.
func (s *Server) Guild(name string) *Guild {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &Guild{ID: s.snowflake(), Name: name, s: s, roles: map[string]string{}, nicks: map[string]string{}}
	s.guilds = append(s.guilds, g)
	s.dispatch("GUILD_CREATE", IntentGuilds, func(int) any { return g.object() })
	return g
}

// Role makes a role and returns its id.
func (g *Guild) Role(name string) string {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	id := g.s.snowflake()
	g.roles[id] = name
	g.s.dispatch("GUILD_ROLE_CREATE", IntentGuilds, func(int) any {
		return map[string]any{"guild_id": g.ID, "role": map[string]any{"id": id, "name": name}}
	})
	return id
}

// Nick sets u's name in the guild.
func (g *Guild) Nick(u *User, nick string) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.nicks[u.ID] = nick
}

// Text makes a text channel.
func (g *Guild) Text(name string) *Channel {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	c := &Channel{ID: g.s.snowflake(), Name: name, Kind: KindText, s: g.s, guild: g, denied: map[string]bool{}}
	g.s.channels[c.ID] = c
	g.channels = append(g.channels, c)
	g.s.dispatch("CHANNEL_CREATE", IntentGuilds, func(int) any { return c.object() })
	return c
}

// Thread makes u open a thread in c.
func (c *Channel) Thread(u *User, name string) *Channel {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.thread(c, c.s.snowflake(), name, u)
}

// DM is the direct messages between u and the bot.
func (s *Server) DM(u *User) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.dms[u.ID]
	if c == nil {
		c = &Channel{ID: s.snowflake(), Kind: KindDM, s: s, with: u, denied: map[string]bool{}}
		s.dms[u.ID], s.channels[c.ID] = c, c
	}
	return c
}

// Channel finds a channel, nil for none.
func (s *Server) Channel(id string) *Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channels[id]
}

// Deny takes a permission from the bot in c, or gives it back.
func (c *Channel) Deny(permission string, denied bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.denied[permission] = denied
}

// Archive archives a thread; a locked one only moderators can open again.
func (c *Channel) Archive(lock bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.archived, c.locked = true, lock
	c.s.dispatch("THREAD_UPDATE", IntentGuilds, func(int) any { return c.object() })
}

// Drop deletes the channel.
func (c *Channel) Drop() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	delete(c.s.channels, c.ID)
	t := "CHANNEL_DELETE"
	if c.Kind == KindThread {
		t = "THREAD_DELETE"
	}
	c.s.dispatch(t, IntentGuilds, func(int) any { return c.object() })
}

// Typing counts the working signs so far.
func (c *Channel) Typing() int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.typing
}

// SayOption changes a message of a person.
type SayOption func(*saying)

type saying struct {
	replyTo string
	files   []File
	forward *snapshot
	sticker string
	webhook string
	kind    int
	quiet   bool
}

// ReplyTo replies to a message of the channel.
func ReplyTo(id string) SayOption { return func(o *saying) { o.replyTo = id } }

// WithFile attaches a file.
func WithFile(name, mime string, data []byte) SayOption {
	return func(o *saying) { o.files = append(o.files, File{Name: name, MIME: mime, Data: data}) }
}

// Forward makes the message a forwarded one with the text.
func Forward(text string) SayOption {
	return func(o *saying) {
		o.forward = &snapshot{snapshotMessage{Content: text, Attachments: []attachment{}, Timestamp: stamp(time.Now())}}
	}
}

// Sticker sends a sticker.
func Sticker(name string) SayOption { return func(o *saying) { o.sticker = name } }

// ByWebhook makes the message one of a webhook.
func ByWebhook(id string) SayOption { return func(o *saying) { o.webhook = id } }

// OfType sets the message's type: 6 pinned, 7 joined, 18 thread created, and so on.
func OfType(t int) SayOption { return func(o *saying) { o.kind = t } }

// Unseen keeps the message from the gateway, as if its event was lost.
func Unseen() SayOption { return func(o *saying) { o.quiet = true } }

// Say makes u write text. Mentions are written as <@id>; see [User.Mention].
func (c *Channel) Say(u *User, text string, opts ...SayOption) Message {
	var o saying
	for _, f := range opts {
		f(&o)
	}
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &stored{wire: s.blank(c, *u)}
	m.wire.Content, m.wire.Type, m.wire.WebhookID = text, o.kind, o.webhook
	s.mentions(c, &m.wire)
	for _, f := range o.files {
		m.files = append(m.files, s.file(c, f.Name, f.MIME, f.Data))
	}
	if o.replyTo != "" {
		m.wire.Type, m.wire.Reference = 19, &reference{MessageID: o.replyTo, ChannelID: c.ID, GuildID: guildID(c)}
		m.wire.Referenced = json.RawMessage("null")
		if to := c.find(o.replyTo); to != nil {
			m.wire.Referenced, _ = json.Marshal(s.shown(to, s.host()))
			if !slices.ContainsFunc(m.wire.Mentions, func(x User) bool { return x.ID == to.wire.Author.ID }) {
				m.wire.Mentions = append(m.wire.Mentions, to.wire.Author) // the ping of a reply
			}
		}
	}
	if o.forward != nil {
		m.wire.Reference = &reference{Type: 1, MessageID: "1", ChannelID: "2"}
		m.wire.Snapshots = []snapshot{*o.forward}
	}
	if o.sticker != "" {
		m.wire.Stickers = []any{map[string]any{"id": s.snowflake(), "name": o.sticker, "format_type": 1}}
	}
	c.messages = append(c.messages, m)
	if !o.quiet {
		s.announce("MESSAGE_CREATE", c, m, "")
	}
	return s.view(m)
}

// mentions fills whom a text mentions.
func (s *Server) mentions(c *Channel, w *message) {
	w.Mentions, w.MentionRoles = []User{}, []string{}
	for _, x := range userMention.FindAllStringSubmatch(w.Content, -1) {
		if u := s.users[x[1]]; u != nil && !slices.ContainsFunc(w.Mentions, func(y User) bool { return y.ID == u.ID }) {
			w.Mentions = append(w.Mentions, *u)
		}
	}
	for _, x := range roleMention.FindAllStringSubmatch(w.Content, -1) {
		if c.guild != nil && c.guild.roles[x[1]] != "" {
			w.MentionRoles = append(w.MentionRoles, x[1])
		}
	}
	w.MentionEveryone = allMention.MatchString(w.Content)
}

// Mention is how u is written in a text.
func (u *User) Mention() string { return "<@" + u.ID + ">" }

// Edit makes the writer change a message.
func (c *Channel) Edit(id, text string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	m := c.find(id)
	if m == nil {
		return
	}
	at := stamp(c.s.opt.Now())
	m.wire.Content, m.wire.Edited = text, &at
	c.s.mentions(c, &m.wire)
	m.edits++
	c.s.announce("MESSAGE_UPDATE", c, m, "")
}

// Unfurl makes Discord add a preview to a message, which is an update without an edit.
func (c *Channel) Unfurl(id string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if m := c.find(id); m != nil {
		m.wire.Embeds = append(m.wire.Embeds, map[string]any{"type": "link", "url": "https://example.org"})
		c.s.announce("MESSAGE_UPDATE", c, m, "")
	}
}

// Remove makes somebody delete messages; more than one at a time is a bulk.
func (c *Channel) Remove(ids ...string) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if len(ids) == 1 {
		if m := c.find(ids[0]); m != nil {
			c.s.remove(c, m)
		}
		return
	}
	for _, id := range ids {
		if m := c.find(id); m != nil {
			m.deleted = true
		}
	}
	c.s.dispatch("MESSAGE_DELETE_BULK", intentOf(c), func(int) any {
		return map[string]any{"ids": ids, "channel_id": c.ID, "guild_id": guildID(c)}
	})
}

// ErrNoButton is returned by Press when nobody could press that.
var ErrNoButton = errors.New("no such button")

// Press makes u press the button with the label on a message.
func (c *Channel) Press(u *User, id, label string) (*Interaction, error) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := c.find(id); m != nil {
		for _, row := range m.buttons {
			for _, b := range row {
				if b.Label == label {
					return s.interact(c, u, 3, map[string]any{"custom_id": b.CustomID, "component_type": 2}, m), nil
				}
			}
		}
	}
	return nil, fmt.Errorf("press %q on message %s: %w", label, id, ErrNoButton)
}

// Slash makes u run an application command; args "" leaves the option out.
func (c *Channel) Slash(u *User, name, args string) *Interaction {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	data := map[string]any{"id": c.s.snowflake(), "name": name, "type": 1}
	if args != "" {
		data["options"] = []any{map[string]any{"name": "args", "type": 3, "value": args}}
	}
	return c.s.interact(c, u, 2, data, nil)
}

func (s *Server) interact(c *Channel, u *User, kind int, data map[string]any, m *stored) *Interaction {
	it := &Interaction{
		ID: s.snowflake(), At: s.opt.Now(), component: kind == 3, ch: c,
	}
	it.Token = "aW50ZXJhY3Rpb246" + it.ID + strings.Repeat("x", 20)
	s.interactions[it.ID] = it
	d := map[string]any{
		"id": it.ID, "application_id": s.app, "type": kind, "token": it.Token, "version": 1, "data": data, "channel_id": c.ID,
		"channel": c.object(), "locale": u.locale, "attachment_size_limit": 10 << 20,
	}
	if c.guild != nil {
		d["guild_id"] = c.guild.ID
		d["member"] = map[string]any{"user": u, "nick": c.guild.nicks[u.ID], "roles": []string{}, "permissions": "0"}
	} else {
		d["user"] = u
	}
	if m != nil {
		d["message"] = s.shown(m, s.host())
	}
	s.dispatch("INTERACTION_CREATE", 0, func(int) any { return d })
	return it
}

// State is how an interaction stands now.
func (s *Server) State(id string) Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.interactions[id]; it != nil {
		c := *it
		c.Notices = slices.Clone(it.Notices)
		return c
	}
	return Interaction{}
}

// Expire makes every answer of an interaction come too late.
func (s *Server) Expire(it *Interaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it.late = true
}

// Message is a message as a person sees it now.
type Message struct {
	ID      string
	Author  User
	Bot     bool // of the bot under test
	Content string
	ReplyTo string
	Buttons [][]Button
	Files   []*File
	Edits   int
	Silent  bool
	Type    int
	Flags   int
}

func (s *Server) view(m *stored) Message {
	v := Message{
		ID: m.wire.ID, Author: m.wire.Author, Bot: m.wire.Author.ID == s.bot.ID, Content: m.wire.Content, Buttons: m.buttons,
		Files: m.files, Edits: m.edits, Silent: m.silent, Type: m.wire.Type, Flags: m.wire.Flags,
	}
	if m.wire.Type == 19 && m.wire.Reference != nil {
		v.ReplyTo = m.wire.Reference.MessageID
	}
	return v
}

// Messages is the channel as a person sees it now, oldest first.
func (c *Channel) Messages() []Message {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	var out []Message
	for _, m := range c.messages {
		if !m.deleted {
			out = append(out, c.s.view(m))
		}
	}
	return out
}

// Guild is where the channel is, nil for direct messages.
func (c *Channel) Guild() *Guild { return c.guild }

// Pings are the notifications that the bot's messages made.
func (s *Server) Pings() []Ping {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pings)
}

// Commands are those registered in a scope: "" global, or a guild's id; and how often any were put.
func (s *Server) Commands(scope string) (cmds []Command, puts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands[scope]), s.puts
}

// Calls are the calls so far with the name, "" for all.
func (s *Server) Calls(name string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if name == "" || c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// Counts are the numbers of calls so far by name and by status.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}
