package discord

import (
	"encoding/json"
	"slices"
	"time"
)

// User is an account.
type User struct {
	ID            string `json:"id"`
	Username      string `json:"username"`
	GlobalName    string `json:"global_name,omitempty"`
	Discriminator string `json:"discriminator"`
	Bot           bool   `json:"bot,omitempty"`

	locale string
	closed bool // takes no direct messages
}

// File is an attachment.
type File struct {
	ID   string
	Name string
	MIME string
	Data []byte

	channel string
	expired bool
}

// attachment is how the API shows a File.
type attachment struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	ContentType string `json:"content_type,omitempty"`
	Size        int    `json:"size"`
	URL         string `json:"url"`
	ProxyURL    string `json:"proxy_url"`
}

// reference is a message_reference.
type reference struct {
	Type            int    `json:"type"`
	MessageID       string `json:"message_id,omitempty"`
	ChannelID       string `json:"channel_id,omitempty"`
	GuildID         string `json:"guild_id,omitempty"`
	FailIfNotExists *bool  `json:"fail_if_not_exists,omitempty"`
}

type member struct {
	Nick  string   `json:"nick,omitempty"`
	Roles []string `json:"roles"`
	User  *User    `json:"user,omitempty"`
}

type snapshot struct {
	Message snapshotMessage `json:"message"`
}

type snapshotMessage struct {
	Content     string       `json:"content"`
	Attachments []attachment `json:"attachments"`
	Type        int          `json:"type"`
	Timestamp   string       `json:"timestamp"`
}

// message is how the API shows a message.
type message struct {
	ID              string          `json:"id"`
	ChannelID       string          `json:"channel_id"`
	GuildID         string          `json:"guild_id,omitempty"` // in events only
	Author          User            `json:"author"`
	Member          *member         `json:"member,omitempty"` // in events only
	Content         string          `json:"content"`
	Timestamp       string          `json:"timestamp"`
	Edited          *string         `json:"edited_timestamp"`
	TTS             bool            `json:"tts"`
	MentionEveryone bool            `json:"mention_everyone"`
	Mentions        []User          `json:"mentions"`
	MentionRoles    []string        `json:"mention_roles"`
	Attachments     []attachment    `json:"attachments"`
	Embeds          []any           `json:"embeds"`
	Pinned          bool            `json:"pinned"`
	Type            int             `json:"type"`
	WebhookID       string          `json:"webhook_id,omitempty"`
	Flags           int             `json:"flags"`
	Components      json.RawMessage `json:"components,omitempty"`
	Reference       *reference      `json:"message_reference,omitempty"`
	Referenced      json.RawMessage `json:"referenced_message,omitempty"`
	Snapshots       []snapshot      `json:"message_snapshots,omitempty"`
	Stickers        []any           `json:"sticker_items,omitempty"`
	Nonce           string          `json:"nonce,omitempty"`
}

// stored is a message of a channel.
type stored struct {
	wire    message
	files   []*File
	deleted bool
	edits   int
	silent  bool
	buttons [][]Button
}

// Button of a message.
type Button struct {
	Label    string
	CustomID string
	Style    int
}

// Guild is a server in Discord's words.
type Guild struct {
	ID   string
	Name string

	s        *Server
	roles    map[string]string // id to name
	channels []*Channel
	nicks    map[string]string
}

// Kinds of channels (developers/resources/channel#channel-object-channel-types).
const (
	KindText   = 0
	KindDM     = 1
	KindThread = 11
	KindForum  = 15
)

// Channel is a text channel, a thread or a direct message.
type Channel struct {
	ID     string
	Name   string
	Kind   int
	Parent *Channel // of a thread

	s        *Server
	guild    *Guild
	with     *User
	messages []*stored
	archived bool
	locked   bool
	denied   map[string]bool
	typing   int
}

// Permissions that can be denied to the bot.
const (
	View    = "view"
	Send    = "send"
	History = "history"
	Threads = "threads" // creating them
	Attach  = "attach"
)

// may reports whether the bot has a permission.
func (c *Channel) may(p string) bool {
	if c.Parent != nil && c.Parent.denied[p] {
		return false
	}
	return !c.denied[p]
}

func (c *Channel) find(id string) *stored {
	i, ok := slices.BinarySearchFunc(c.messages, id, func(m *stored, id string) int { return compareIDs(m.wire.ID, id) })
	if !ok || c.messages[i].deleted {
		return nil
	}
	return c.messages[i]
}

// compareIDs compares snowflakes as numbers.
func compareIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// object is the channel as the API shows it.
func (c *Channel) object() map[string]any {
	o := map[string]any{"id": c.ID, "type": c.Kind, "flags": 0}
	if n := len(c.messages); n > 0 {
		o["last_message_id"] = c.messages[n-1].wire.ID
	}
	if c.Kind == KindDM {
		o["recipients"] = []User{*c.with}
		return o
	}
	o["name"], o["guild_id"] = c.Name, c.guild.ID
	if c.Parent != nil {
		o["parent_id"] = c.Parent.ID
		o["thread_metadata"] = map[string]any{
			"archived": c.archived, "locked": c.locked, "auto_archive_duration": 1440, "archive_timestamp": stamp(c.s.opt.Now()),
		}
	}
	return o
}

// object is the guild as GUILD_CREATE shows it.
func (g *Guild) object() map[string]any {
	channels, threads, roles := []any{}, []any{}, []any{}
	for _, c := range g.channels {
		switch {
		case !c.may(View):
		case c.Kind == KindThread && !c.archived:
			threads = append(threads, c.object())
		case c.Kind != KindThread:
			channels = append(channels, c.object())
		}
	}
	for id, name := range g.roles {
		roles = append(roles, map[string]any{"id": id, "name": name})
	}
	return map[string]any{
		"id": g.ID, "name": g.Name, "unavailable": false, "channels": channels, "threads": threads, "roles": roles,
		"members": []any{}, "joined_at": stamp(g.s.opt.Now()), "large": false, "member_count": 3, "premium_tier": 0,
	}
}
