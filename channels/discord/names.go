package discord

import (
	"context"
	"errors"
	"sync"

	"github.com/bwmarrin/discordgo"

	"deerbot/channels"
)

// room is what is known of a channel.
type room struct {
	ID       string                `json:"id"`
	Type     discordgo.ChannelType `json:"type"`
	Guild    string                `json:"guild_id"`
	Name     string                `json:"name"`
	Parent   string                `json:"parent_id"`
	LastID   string                `json:"last_message_id"`
	Metadata *struct {
		Archived bool `json:"archived"`
	} `json:"thread_metadata"`
}

func (r *room) thread() bool {
	switch r.Type {
	case discordgo.ChannelTypeGuildPublicThread, discordgo.ChannelTypeGuildPrivateThread, discordgo.ChannelTypeGuildNewsThread:
		return true
	}
	return false
}

// threads tells whether a message here can have a thread.
func (r *room) threads() bool {
	return r.Type == discordgo.ChannelTypeGuildText || r.Type == discordgo.ChannelTypeGuildNews
}

type role struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Tags struct {
		BotID string `json:"bot_id"`
	} `json:"tags"`
}

type guild struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Roles    []role  `json:"roles"`
	Channels []*room `json:"channels"`
	Threads  []*room `json:"threads"`
}

// maxRooms bounds what is remembered of channels; beyond it the oldest knowledge is asked for again.
const maxRooms = 20_000

// names are the channels, guilds and roles the gateway told about: what is needed to place and read a message, and no
// more of the state than that.
type names struct {
	mu      sync.Mutex
	rooms   map[string]*room
	guilds  map[string]string
	roles   map[string]role
	refused map[string]bool // text channels where no thread can be opened
}

func (n *names) init() {
	n.rooms, n.guilds, n.roles = map[string]*room{}, map[string]string{}, map[string]role{}
	n.refused = map[string]bool{}
}

func (n *names) putGuild(g *guild) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if g.Name != "" {
		n.guilds[g.ID] = g.Name
	}
	for _, r := range g.Roles {
		n.roles[r.ID] = r
	}
	for _, r := range append(g.Channels, g.Threads...) {
		r.Guild = g.ID
		n.put(r)
	}
	clear(n.refused)
}

func (n *names) put(r *room) {
	if len(n.rooms) >= maxRooms {
		for id := range n.rooms {
			delete(n.rooms, id)
			if len(n.rooms) < maxRooms*9/10 {
				break
			}
		}
	}
	n.rooms[r.ID] = r
}

func (n *names) putRoom(r *room) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.put(r)
	delete(n.refused, r.ID) // permissions may have changed
}

func (n *names) dropRoom(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.rooms, id)
}

func (n *names) putRole(r role) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.roles[r.ID] = r
}

func (n *names) room(id string) *room {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rooms[id]
}

func (n *names) guild(id string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.guilds[id]
	return name, ok
}

func (n *names) role(id string) (role, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.roles[id]
	return r, ok
}

func (n *names) refuse(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused[id] = true
}

func (n *names) refuses(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused[id]
}

// room finds what is known of a channel, asking Discord when nothing is. It fails only when asking again may help.
func (c *Channel) room(ctx context.Context, id, guildID string) (*room, error) {
	if r := c.names.room(id); r != nil {
		return r, nil
	}
	r := &room{}
	err := c.call(ctx, api{name: "get channel", method: "GET", path: "/channels/" + id}, r)
	if err != nil {
		if passing(err) {
			return nil, err
		}
		r = &room{ID: id, Guild: guildID, Type: discordgo.ChannelTypeGuildVoice} // not seen again, or out of sight: no threads
		if guildID == "" {
			r.Type = discordgo.ChannelTypeDM
		}
		return r, nil
	}
	if r.Guild == "" {
		r.Guild = guildID
	}
	c.names.putRoom(r)
	return r, nil
}

// guildName is the name of a guild, "" when it cannot be learnt now.
func (c *Channel) guildName(ctx context.Context, id string) string {
	if id == "" {
		return ""
	}
	if name, ok := c.names.guild(id); ok {
		return name
	}
	g := guild{}
	if err := c.call(ctx, api{name: "get guild", method: "GET", path: "/guilds/" + id}, &g); err != nil {
		return ""
	}
	g.ID = id
	c.names.putGuild(&g)
	return g.Name
}

// passing reports whether the same call may succeed later.
func passing(err error) bool {
	var t *channels.Transient
	var l *channels.RateLimited
	return errors.As(err, &t) || errors.As(err, &l)
}

// title is how people name the place.
func (c *Channel) title(ctx context.Context, r *room) string {
	if r.Guild == "" {
		return ""
	}
	name := r.Name
	if name != "" && !r.thread() {
		name = "#" + name
	}
	return join(c.guildName(ctx, r.Guild), name, " ")
}

func join(a, b, sep string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + sep + b
}
