package bot

import (
	"context"
	"errors"
	"strings"

	"deerbot/cards/phrase"
	"deerbot/channels"
	"deerbot/commands"
	"deerbot/runtime"
	"deerbot/runtime/sandbox"
	"deerbot/store"
)

// reply posts the answer to a command or a notice; sending it settles the entries.
func (b *Bot) reply(ctx context.Context, in *channels.Inbound, ids []string, r commands.Reply) error {
	ch := b.channel(in.Place.Channel)
	if ch == nil || strings.TrimSpace(r.Markdown) == "" {
		return b.store.SettleInbound(ctx, ids...)
	}
	bodies := ch.Capabilities().Dialect.Markdown(r.Markdown)
	if len(bodies) == 0 {
		return b.store.SettleInbound(ctx, ids...)
	}
	bodies[len(bodies)-1].Buttons = r.Buttons
	_, err := b.out.post(ctx, store.Outgoing{
		Key: "inbox/" + ids[0] + "/reply", Conversation: in.Place, Kind: outReply, Settles: ids,
	}, content{Bodies: bodies, ReplyTo: replyTo(in.ChatKind, in.MessageID)})
	if err != nil {
		return err
	}
	// The record settles the entries when it is sent. Until then they are taken, so that the actor does not see them.
	return b.store.TakeInbound(ctx, "", ids...)
}

// notice posts a text that answers nothing.
func (b *Bot) notice(ctx context.Context, p channels.Place, key, replyTo, md string) (<-chan struct{}, error) {
	ch := b.channel(p.Channel)
	if ch == nil {
		return nil, nil
	}
	return b.out.post(ctx, store.Outgoing{Key: key, Conversation: p, Kind: outReply},
		content{Bodies: ch.Capabilities().Dialect.Markdown(md), ReplyTo: replyTo})
}

// replyTo quotes the asker in groups only: in a DM every message is the asker's.
func replyTo(chatKind, messageID string) string {
	if chatKind == "dm" {
		return ""
	}
	return messageID
}

// conversation loads or makes the record of in's place.
func (b *Bot) conversation(ctx context.Context, in *channels.Inbound) (store.Conversation, error) {
	c, err := b.store.Conversation(ctx, in.Place)
	if err == nil {
		return c, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return c, err
	}
	now := b.now()
	c = store.Conversation{
		Key: in.Place, ThreadID: runtime.NewID(), Kind: in.ChatKind, Title: sandbox.Label(in.ChatTitle), CreatedAt: now, UpdatedAt: now,
	}
	return c, b.store.PutConversation(ctx, &c)
}

// lang tells the language for a place from its record, if it has one, and the message.
func (b *Bot) lang(ctx context.Context, in *channels.Inbound) phrase.Lang {
	c, err := b.store.Conversation(ctx, in.Place)
	if err != nil {
		c = store.Conversation{}
	}
	return b.langOf(c, in)
}

// langOf chooses the language of fixed texts: configuration, the chat's own choice, the message, the platform's locale.
func (b *Bot) langOf(c store.Conversation, in *channels.Inbound) phrase.Lang {
	if l := b.settings().Locale; l == "en" || l == "zh" {
		return phrase.Lang(l)
	}
	if c.Locale != "" {
		return phrase.Lang(c.Locale)
	}
	if !strings.HasPrefix(in.Text, "/") {
		if l := phrase.Guess(in.Text); l != "" {
			return l
		}
	}
	if strings.HasPrefix(strings.ToLower(in.Sender.Locale), "zh") {
		return phrase.ZH
	}
	return phrase.EN
}

// throttle holds a chat that writes more than limits.inbound_per_minute, and says so once a minute. Nothing is dropped.
func (b *Bot) throttle(ctx context.Context, in *channels.Inbound, lang phrase.Lang) error {
	limit := b.settings().InboundPerMinute
	if limit <= 0 {
		return nil
	}
	wait, first := b.rates.take(chatScope(in.Place), limit, b.now())
	if wait <= 0 {
		return nil
	}
	if first {
		if _, err := b.notice(ctx, in.Place, "slow/"+runtime.NewID(), "", textSlow.In(lang, limit)); err != nil {
			return err
		}
	}
	return &throttled{wait: wait}
}
