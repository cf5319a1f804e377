package bot

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"deerbot/channels"
	"deerbot/commands"
	"deerbot/store"
)

// handleAction carries out a pressed button.
func (b *Bot) handleAction(ctx context.Context, in *channels.Inbound, ids []string) error {
	conv, err := b.conversation(ctx, in)
	if err != nil {
		return err
	}
	lang := b.langOf(conv, in)
	answer := func(text string) error {
		if aa, ok := b.channel(in.Place.Channel).(channels.ActionAnswerer); ok && in.Action != nil {
			call, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := aa.AnswerAction(call, in.Action.ID, text); err != nil && ctx.Err() == nil {
				b.log.Debug("a button press was not answered", "chat", in.Place.String(), "err", err)
			}
		}
		return b.store.SettleInbound(ctx, ids...)
	}
	if in.Action == nil {
		return b.store.SettleInbound(ctx, ids...)
	}
	if id, ok := strings.CutPrefix(in.Action.Data, actionStop); ok {
		r, err := b.store.Run(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return answer(textActionGone.In(lang))
		case err != nil:
			return err
		case r.State.Terminal():
			return answer(textAlreadyOver.In(lang))
		case !b.mayStop(r, in):
			return answer(textNotYours.In(lang))
		}
		if err := b.rt.Cancel(ctx, id, in.Sender.ID); err != nil {
			return err
		}
		return answer(textStopping.In(lang))
	}
	if id, ok := strings.CutPrefix(in.Action.Data, actionResume); ok {
		return b.resumeRun(ctx, conv, in, id, lang, answer)
	}
	if c, ok := commands.ParseAction(in.Action.Data); ok {
		switch may, err := b.mayCommand(ctx, conv, in, c.Name); {
		case err != nil:
			return err
		case !may:
			return answer(textNotYours.In(lang))
		}
		s := &session{b: b, conv: conv, in: in, lang: lang, key: ids[0]}
		r, err := commands.Handle(ctx, s, c)
		if err != nil {
			b.log.Error("command failed", "command", c.Name, "chat", in.Place.String(), "err", err)
		}
		if err := answer(""); err != nil {
			return err
		}
		return b.reply(ctx, in, ids, r)
	}
	return answer(textActionGone.In(lang))
}

// mayStop: in a group, a run is stopped by who asked for it or by an operator of the channel.
func (b *Bot) mayStop(r store.Run, in *channels.Inbound) bool {
	var meta turnMeta
	if json.Unmarshal(r.Meta, &meta) != nil {
		return true
	}
	return b.mayEnd(meta.Sender, in)
}

// mayEnd reports whether who sent in may end what owner began.
func (b *Bot) mayEnd(owner string, in *channels.Inbound) bool {
	return in.ChatKind == "dm" || owner == "" || owner == in.Sender.ID ||
		contains(b.settings().Channels[in.Place.Channel].Admins, in.Sender.ID)
}

// mayCommand reports whether who sent in may give the command: one that ends runs may end only runs of their own.
func (b *Bot) mayCommand(ctx context.Context, conv store.Conversation, in *channels.Inbound, name string) (bool, error) {
	if in.ChatKind == "dm" || name != "stop" && name != "new" {
		return true, nil
	}
	r, err := b.store.ActiveRun(ctx, conv.ThreadID)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return false, err
	case !b.mayStop(r, in):
		return false, nil
	}
	if name == "stop" {
		return true, nil
	}
	pending, err := b.store.PendingRuns(ctx, conv.ThreadID)
	if err != nil {
		return false, err
	}
	for _, r := range pending {
		if !b.mayStop(r, in) {
			return false, nil
		}
	}
	return true, nil
}
