package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"deerbot/channels"
)

// tokenLife is how long an interaction can be answered (docs.discord.com/developers/interactions/receiving-and-responding).
const (
	tokenLife       = 15 * time.Minute
	maxInteractions = 1000
)

// interactions are those that can still be answered. Their tokens are credentials: they are kept here and nowhere else.
type interactions struct {
	mu   sync.Mutex
	byID map[string]*pending
	all  []*pending // oldest first
}

type pending struct {
	id, token string
	at        time.Time
	once      sync.Once
	acked     chan struct{} // closed when Discord was told, or could not be
}

func (i *interactions) init() { i.byID = map[string]*pending{} }

// add keeps an interaction; nil when it is known already.
func (i *interactions) add(p *pending) *pending {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byID[p.id] != nil {
		return nil
	}
	for len(i.all) > 0 && (len(i.all) >= maxInteractions || p.at.Sub(i.all[0].at) > tokenLife) {
		delete(i.byID, i.all[0].id)
		i.all = i.all[1:]
	}
	i.byID[p.id] = p
	i.all = append(i.all, p)
	return p
}

func (i *interactions) get(id string) *pending {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.byID[id]
}

// action is what is read of an interaction.
type action struct {
	ID        string                    `json:"id"`
	Type      discordgo.InteractionType `json:"type"`
	Token     string                    `json:"token"`
	ChannelID string                    `json:"channel_id"`
	GuildID   string                    `json:"guild_id"`
	Member    *member                   `json:"member"`
	User      *discordgo.User           `json:"user"`
	Locale    string                    `json:"locale"`
	Message   *message                  `json:"message"`
	Data      struct {
		Name     string `json:"name"`
		CustomID string `json:"custom_id"`
		Options  []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

// interaction normalises a pressed button or a command. A command becomes the text one would type.
func (c *Channel) interaction(ctx context.Context, data json.RawMessage) ([]*channels.Inbound, error) {
	var a action
	if err := json.Unmarshal(data, &a); err != nil || !snowflake(a.ID) || !snowflake(a.ChannelID) || a.Token == "" {
		return nil, nil
	}
	user := a.User
	if a.Member != nil && a.Member.User != nil {
		user = a.Member.User
	}
	if user == nil || a.Type != discordgo.InteractionMessageComponent && a.Type != discordgo.InteractionApplicationCommand {
		return nil, nil
	}
	p, r, err := c.place(ctx, a.ChannelID, a.GuildID)
	if err != nil {
		return nil, err
	}
	in := &channels.Inbound{
		Place: p, EventID: "int:" + a.ID, ChatKind: "group", ChatTitle: c.title(ctx, r),
		Sender: channels.Sender{
			ID: user.ID, Name: displayName(user, a.Member), Handle: user.Username, Bot: user.Bot, Locale: strings.ToLower(a.Locale),
		},
		SentAt: sentAt(a.ID, c.now()),
	}
	if p.Workspace == "" {
		in.ChatKind = "dm"
	}
	if me := c.me.Load(); me != nil {
		in.BotName = me.name
	}
	if a.Type == discordgo.InteractionMessageComponent {
		if a.Message == nil || a.Data.CustomID == "" {
			return nil, nil
		}
		in.Kind, in.MessageID = channels.KindAction, a.Message.ID
		in.Action = &channels.Action{ID: a.ID, Data: a.Data.CustomID}
	} else {
		in.Kind, in.MessageID, in.Mentioned = channels.KindMessage, a.ID, true
		in.Text = "/" + a.Data.Name
		for _, o := range a.Data.Options {
			var s string
			if json.Unmarshal(o.Value, &s) != nil {
				s = string(o.Value)
			}
			in.Text = join(in.Text, strings.TrimSpace(s), " ")
		}
	}
	c.pending.add(&pending{id: a.ID, token: a.Token, at: c.now(), acked: make(chan struct{})})
	return []*channels.Inbound{in}, nil
}

// sentAt is the time in a snowflake (docs.discord.com/developers/reference#snowflakes).
func sentAt(id string, usual time.Time) time.Time {
	t, err := discordgo.SnowflakeTimestamp(id)
	if err != nil {
		return usual.UTC()
	}
	return t.UTC()
}

// acknowledge tells Discord within its three seconds that an interaction was taken: a button's is seen by nobody, a
// command's repeats the command to who gave it. It is called once the event is stored.
func (c *Channel) acknowledge(ctx context.Context, in *channels.Inbound) {
	id := strings.TrimPrefix(in.EventID, "int:")
	p := c.pending.get(id)
	if p == nil {
		return
	}
	p.once.Do(func() { // the event may come twice
		defer close(p.acked)
		c.callback(ctx, in, p)
	})
}

func (c *Channel) callback(ctx context.Context, in *channels.Inbound, p *pending) {
	body := map[string]any{"type": discordgo.InteractionResponseDeferredMessageUpdate}
	if in.Kind != channels.KindAction {
		body = map[string]any{"type": discordgo.InteractionResponseChannelMessageWithSource, "data": map[string]any{
			"content": "`" + shorten(strings.ReplaceAll(in.Text, "`", "'"), 900) + "`", "flags": discordgo.MessageFlagsEphemeral,
			"allowed_mentions": nobody,
		}}
	}
	err := c.call(ctx, api{
		name: "acknowledge", method: "POST", path: "/interactions/" + p.id + "/" + p.token + "/callback", body: body, open: true,
		limit: ackTimeout,
	}, nil)
	if err != nil && !refused(err, codeAlreadyAcked) {
		c.log.Info("an interaction could not be acknowledged", "error", err.Error())
	}
}

// AnswerAction implements channels.ActionAnswerer. An answer that comes too late is dropped.
func (c *Channel) AnswerAction(ctx context.Context, id, notice string) error {
	p := c.pending.get(id)
	if p == nil || notice == "" || c.now().Sub(p.at) > tokenLife {
		return nil
	}
	select {
	case <-p.acked:
	case <-ctx.Done():
		return &channels.Transient{Err: c.fail("answer", ctx.Err())}
	}
	app, err := c.application(ctx)
	if err != nil {
		return err
	}
	err = c.call(ctx, api{
		name: "answer", method: "POST", path: fmt.Sprintf("/webhooks/%s/%s", app, p.token), open: true,
		body: map[string]any{
			"content": shorten(notice, maxContent/2), "flags": discordgo.MessageFlagsEphemeral, "allowed_mentions": nobody,
		},
	}, nil)
	if refused(err, codeUnknownWebhook, codeOldWebhook, codeUnknownInteraction) {
		return nil
	}
	return err
}
