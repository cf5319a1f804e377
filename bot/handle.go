package bot

import (
	"context"
	"errors"
	"strings"

	"deerbot/cards/phrase"
	"deerbot/channels"
	"deerbot/commands"
	"deerbot/runtime/model"
	"deerbot/store"
)

// handle works on one message (or merged album), whose inbox entries are ids. On nil it was dealt with: every entry is
// settled, taken by a run, or settled by an outgoing record.
func (b *Bot) handle(ctx context.Context, a *actor, in *channels.Inbound, ids []string) error {
	if in.Kind == channels.KindAction {
		return b.handleAction(ctx, in, ids)
	}
	if in.GroupID != "" && in.ChatKind != "dm" && !b.addressed(in) {
		if _, err := b.store.Conversation(ctx, in.Place); in.Place.Topic == "" || err != nil {
			return b.store.SettleInbound(ctx, ids...)
		}
	}
	conv, err := b.conversation(ctx, in)
	if err != nil {
		return err
	}
	p := commands.Parse(commands.Input{Text: in.Text, BotName: in.BotName, LeadingCode: in.LeadingCode, Mentioned: in.Mentioned})
	lang := b.langOf(conv, in)
	switch p.Kind {
	case commands.KindOtherBot:
		return b.store.SettleInbound(ctx, ids...)
	case commands.KindUnknown:
		return b.reply(ctx, in, ids, commands.Unknown(lang, p.Command.Name, p.Nearest))
	case commands.KindCommand:
		may, err := b.mayCommand(ctx, conv, in, p.Command.Name)
		if err != nil {
			return err
		}
		if !may {
			return b.reply(ctx, in, ids, commands.Reply{Markdown: textNotYours.In(lang)})
		}
		s := &session{b: b, conv: conv, in: in, lang: lang, key: ids[0], prepStopped: a.takeStopped()}
		r, err := commands.Handle(ctx, s, p.Command)
		if err != nil {
			if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
				return err
			}
			b.log.Error("command failed", "command", p.Command.Name, "chat", in.Place.String(), "err", err)
		}
		return b.reply(ctx, in, ids, r)
	}
	return b.message(ctx, a, in, ids, conv, lang)
}

// message makes a run of a plain message.
func (b *Bot) message(ctx context.Context, a *actor, in *channels.Inbound, ids []string, conv store.Conversation, lang phrase.Lang) error {
	if strings.TrimSpace(in.Text) == "" && len(in.Attachments) == 0 && in.Quote == nil && in.Note == "" {
		if !in.Mentioned {
			return b.store.SettleInbound(ctx, ids...)
		}
		return b.reply(ctx, in, ids, commands.Reply{Markdown: textGreeting.In(lang)})
	}
	if err := b.throttle(ctx, in, lang); err != nil {
		return err
	}
	settings := b.settings().Channels[in.Place.Channel]
	strategy := store.StrategyEnqueue
	switch settings.WhileRunning {
	case "interrupt":
		strategy = store.StrategyInterrupt
	case "reject":
		strategy = store.StrategyReject
	}
	prep, cancel := context.WithCancel(ctx)
	a.mu.Lock()
	a.prep, a.sender, a.stopped = cancel, in.Sender.ID, false
	a.mu.Unlock()
	// A stop that was committed before this looks is found here, a later one finds prep.
	overtaken, err := b.overtaken(ctx, in, ids)
	var input []model.Message
	if err == nil && !overtaken {
		input, err = b.input(prep, in, &conv, ids[0])
	}
	stopped := overtaken || prep.Err() != nil && ctx.Err() == nil
	a.mu.Lock()
	a.prep, a.stopped = nil, a.stopped || overtaken
	a.mu.Unlock()
	cancel()
	if stopped {
		// The stop behind this message meant it. Its own reply says so; nothing of this message reaches a model.
		return b.store.SettleInbound(ctx, ids...)
	}
	if err != nil {
		return err
	}
	meta := turnMeta{
		Place: in.Place, Entries: ids, ReplyTo: in.MessageID, Lang: lang, ChatKind: in.ChatKind, Sender: in.Sender.ID,
	}
	r, err := b.startRun(ctx, conv, "inbox/"+ids[0], input, strategy, meta)
	if errors.Is(err, store.ErrConflict) {
		return b.reply(ctx, in, ids, commands.Reply{Markdown: textBusy.In(lang)})
	}
	if err != nil {
		return err
	}
	b.follow(r)
	return b.store.TakeInbound(ctx, r.ID, ids...)
}
