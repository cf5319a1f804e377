package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deerbot/channels"
	"deerbot/commands"
	"deerbot/internal/crash"
	"deerbot/runtime"
	"deerbot/store"
)

// inbox is the Bot as the adapters see it.
type inbox Bot

// Accept implements channels.Inbox.
func (i *inbox) Accept(ctx context.Context, in *channels.Inbound) error {
	b := (*Bot)(i)
	switch in.Kind {
	case channels.KindMoved:
		return b.store.MoveChat(ctx, in.Place.Channel, in.Place.Workspace, in.Place.Chat, in.MovedTo)
	case channels.KindEdit:
		return b.acceptEdit(ctx, in)
	case channels.KindRecall:
		return b.acceptRecall(ctx, in)
	}
	// A reply to a message of ours, or of somebody who talked to us, belongs where that one belongs.
	if in.Place.Topic == "" && in.Quote != nil && in.Quote.MessageID != "" {
		k, err := b.store.ConversationOfMessage(ctx, in.Place, in.Quote.MessageID)
		switch {
		case err == nil && k.Channel == in.Place.Channel && k.Chat == in.Place.Chat:
			in.Place.Topic = k.Topic
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	if !b.gate(ctx, in) {
		return nil
	}
	n, err := b.store.CountPending(ctx, in.Place)
	if err != nil {
		return err
	}
	if n >= maxPending && !urgent(in) {
		return b.refuse(ctx, in)
	}
	payload, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("inbound %s: %w", in.EventID, err)
	}
	e := &store.InboxEntry{
		ID: runtime.NewID(), Conversation: in.Place, DedupeKey: in.EventID, MessageID: in.MessageID,
		State: store.InboxPending, Payload: payload, ReceivedAt: b.now(),
	}
	accepted, err := b.store.AcceptInbound(ctx, e)
	if err != nil {
		return err
	}
	crash.Point(crash.InboxCommitted)
	if !accepted {
		return nil
	}
	b.seen.put(in.Place, in.MessageID, in.Text)
	if b.stops(in) {
		b.interruptPreparation(in)
	}
	b.wake(in.Place)
	return nil
}

// Wants reports whether in will be answered.
func (b *Bot) Wants(in *channels.Inbound) bool { return b.gate(context.Background(), in) }

// gate decides whether an event is for the bot at all. What it drops is never stored.
func (b *Bot) gate(ctx context.Context, in *channels.Inbound) bool {
	if in.Sender.Bot {
		return false
	}
	s := b.settings().Channels[in.Place.Channel]
	if len(s.Allow) > 0 && !contains(s.Allow, in.Sender.ID) && !contains(s.Allow, in.Place.Chat) && !contains(s.Admins, in.Sender.ID) {
		return false
	}
	if in.Kind == channels.KindAction || in.ChatKind == "dm" {
		return true
	}
	if s.Groups == "off" {
		return false
	}
	p := commands.Parse(commands.Input{Text: in.Text, BotName: in.BotName, LeadingCode: in.LeadingCode, Mentioned: in.Mentioned})
	if p.Kind == commands.KindOtherBot {
		return false
	}
	if in.Mentioned || in.RepliesToBot || s.Groups == "all" || p.Kind == commands.KindCommand {
		return true
	}
	// Nobody is addressed: in a topic the bot takes part in, it is.
	if in.Place.Topic != "" && !in.OtherFirst {
		_, err := b.store.Conversation(ctx, in.Place)
		return err == nil
	}
	// Of an album one message has the caption that names the bot. The actor decides when it has them all.
	return in.GroupID != ""
}

// addressed reports whether in names the bot itself, or needs no naming.
func (b *Bot) addressed(in *channels.Inbound) bool {
	return in.ChatKind == "dm" || in.Mentioned || in.RepliesToBot || b.settings().Channels[in.Place.Channel].Groups == "all"
}

// stops reports whether in is a wish to stop the run.
func (b *Bot) stops(in *channels.Inbound) bool {
	if in.Kind == channels.KindAction {
		return in.Action != nil && strings.HasPrefix(in.Action.Data, actionStop)
	}
	p := commands.Parse(commands.Input{Text: in.Text, BotName: in.BotName, LeadingCode: in.LeadingCode, Mentioned: in.Mentioned})
	return p.Kind == commands.KindCommand && (p.Command.Name == "stop" || p.Command.Name == "new")
}

// acceptEdit replaces a message nobody has worked on yet; a later edit becomes a correction for the next turn. An edit
// never starts a run and never carries out a command.
func (b *Bot) acceptEdit(ctx context.Context, in *channels.Inbound) error {
	old, known := b.seen.get(in.Place, in.MessageID)
	e, err := b.store.InboundByMessage(ctx, in.Place, in.MessageID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil && e.State == store.InboxPending {
		var was channels.Inbound
		if err := json.Unmarshal(e.Payload, &was); err != nil {
			return fmt.Errorf("inbound %s: %w", e.ID, err)
		}
		if was.Text == in.Text {
			return nil
		}
		if p := commands.Parse(commands.Input{Text: in.Text, BotName: in.BotName, LeadingCode: in.LeadingCode}); p.Kind == commands.KindCommand {
			return nil
		}
		was.Text = in.Text
		payload, err := json.Marshal(&was)
		if err != nil {
			return err
		}
		err = b.store.ReplaceInbound(ctx, e.ID, payload)
		if !errors.Is(err, store.ErrConflict) {
			b.seen.put(in.Place, in.MessageID, in.Text)
			return err
		}
	}
	if !known || old == in.Text || strings.TrimSpace(in.Text) == "" {
		return nil
	}
	b.seen.put(in.Place, in.MessageID, in.Text)
	return b.addCorrection(ctx, in.Place, old, in.Text)
}

// acceptRecall withdraws a message nobody has worked on yet.
func (b *Bot) acceptRecall(ctx context.Context, in *channels.Inbound) error {
	e, err := b.store.InboundByMessage(ctx, in.Place, in.MessageID)
	if errors.Is(err, store.ErrNotFound) || (err == nil && e.State != store.InboxPending) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.store.SettleInbound(ctx, e.ID)
}

// refuse tells the sender that a message was not taken: too many wait already.
func (b *Bot) refuse(ctx context.Context, in *channels.Inbound) error {
	b.log.Warn("a conversation has too many waiting messages, one was refused", "chat", in.Place.String())
	_, err := b.notice(ctx, in.Place, "full/"+in.EventID, in.MessageID, textFull.In(b.lang(ctx, in), maxPending))
	return err
}

func contains(list []string, s string) bool {
	return slices.Contains(list, s)
}
