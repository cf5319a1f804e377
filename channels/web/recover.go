package web

import (
	"context"
	"errors"

	"deerbot/channels"
	"deerbot/store"
)

// recover hands messages to the inbox that a crash may have caught between the log and the inbox. It cannot tell which
// those are, so it hands over the latest ones of every conversation that was alive lately; the inbox knows what it took.
func (c *Channel) recover(ctx context.Context, inbox channels.Inbox) error {
	const latest = 20
	now := c.cfg.Now()
	chats, err := c.cfg.Log.Chats(ctx, MaxConversations)
	if err != nil {
		return err
	}
	for _, s := range chats {
		if now.Sub(s.UpdatedAt) > redeliver {
			continue
		}
		var tail []store.ChatMessage
		err := c.each(ctx, s.Chat, 0, func(m store.ChatMessage) bool {
			if tail = append(tail, m); len(tail) > latest {
				tail = tail[1:]
			}
			return true
		})
		if err != nil {
			return err
		}
		for _, m := range tail {
			b, err := decodeBody(m)
			if err != nil || b.From != fromUser || b.Deleted || now.Sub(m.CreatedAt) > redeliver {
				continue
			}
			if err := inbox.Accept(ctx, inbound(m, b, m.CreatedAt)); err != nil {
				return err
			}
		}
	}
	return nil
}

// each calls fn for the messages of a chat with a sequence number over after, in order, until fn returns false.
func (c *Channel) each(ctx context.Context, chat string, after uint64, fn func(store.ChatMessage) bool) error {
	const batch = 256
	for {
		msgs, err := c.cfg.Log.ChatMessages(ctx, chat, after, batch)
		switch {
		case errors.Is(err, store.ErrNotFound): // a chat without messages
			return nil
		case err != nil:
			return err
		}
		for _, m := range msgs {
			after = m.Seq
			if !fn(m) {
				return nil
			}
		}
		if len(msgs) < batch {
			return nil
		}
	}
}
