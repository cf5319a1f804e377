package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"deerbot/store"
)

// Conversation implements store.Conversations.
func (s *Store) Conversation(ctx context.Context, k store.ConversationKey) (c store.Conversation, err error) {
	err = s.view(ctx, "conversation", func(tx *txn) error {
		c, err = get[store.Conversation](tx.Bucket(bConv), convKey(k), "conversation "+k.String())
		return err
	})
	return c, err
}

// PutConversation implements store.Conversations.
func (s *Store) PutConversation(ctx context.Context, c *store.Conversation) error {
	rec := *c
	rec.CreatedAt, rec.UpdatedAt = rec.CreatedAt.UTC(), rec.UpdatedAt.UTC()
	body, err := encode(&rec)
	if err != nil {
		return fmt.Errorf("store: put conversation: %w", err)
	}
	thread, err := encodeThread(store.Thread{ID: rec.ThreadID, CreatedAt: rec.UpdatedAt})
	if err != nil {
		return fmt.Errorf("store: put conversation: %w", err)
	}
	return s.update(ctx, "put conversation", func(tx *txn) error {
		if rec.ThreadID != "" {
			switch _, err := getHead(tx, rec.ThreadID); {
			case errors.Is(err, store.ErrNotFound):
				if err := tx.Bucket(bThread).Put([]byte(rec.ThreadID), thread); err != nil {
					return err
				}
				if err := putHead(tx, rec.ThreadID, threadHead{updated: rec.UpdatedAt}); err != nil {
					return err
				}
			case err != nil:
				return err
			}
		}
		return tx.Bucket(bConv).Put(convKey(rec.Key), body)
	})
}

// Conversations implements store.Conversations.
func (s *Store) Conversations(ctx context.Context, channel, workspace string, limit int) (out []store.Conversation, err error) {
	prefix := []byte(nil)
	if channel != "" {
		prefix = key(channel)
		if workspace != "" {
			prefix = key(channel, workspace)
		}
	}
	err = s.view(ctx, "conversations", func(tx *txn) error {
		return scan(tx.Bucket(bConv), prefix, func(_, v []byte) (bool, error) {
			var c store.Conversation
			if err := json.Unmarshal(v, &c); err != nil {
				return false, err
			}
			if workspace == "" || c.Key.Workspace == workspace {
				out = append(out, c)
			}
			return true, nil
		})
	})
	sort.SliceStable(out, func(i, j int) bool { return out[i].UpdatedAt.After(out[j].UpdatedAt) })
	if len(out) > limit {
		out = out[:limit]
	}
	return out, err
}

// indexMessage says where a message belongs. An inbox entry that the index names stays named.
func indexMessage(tx *txn, c store.ConversationKey, messageID string) error {
	k, v := chatKey(c, messageID), key(c.Topic)
	if old := tx.Bucket(bConvMsg).Get(k); old != nil {
		_, entry, err := unkey(old)
		if err != nil {
			return err
		}
		if v = append(v, entry...); bytes.Equal(v, old) {
			return nil
		}
	}
	return tx.Bucket(bConvMsg).Put(k, v)
}

// messagePlace reads the index of messages: the conversation, and the inbox entry there was.
func messagePlace(tx *txn, c store.ConversationKey, messageID string) (store.ConversationKey, string, error) {
	v := tx.Bucket(bConvMsg).Get(chatKey(c, messageID))
	if v == nil {
		return c, "", fmt.Errorf("message %s: %w", messageID, store.ErrNotFound)
	}
	topic, entry, err := unkey(v)
	c.Topic = topic
	return c, string(entry), err
}

// IndexMessage implements store.Conversations.
func (s *Store) IndexMessage(ctx context.Context, c store.ConversationKey, messageID string) error {
	return s.update(ctx, "index message", func(tx *txn) error { return indexMessage(tx, c, messageID) })
}

// ConversationOfMessage implements store.Conversations.
func (s *Store) ConversationOfMessage(ctx context.Context, k store.ConversationKey, messageID string) (c store.ConversationKey, err error) {
	err = s.view(ctx, "conversation of message", func(tx *txn) error {
		c, _, err = messagePlace(tx, k, messageID)
		return err
	})
	if err != nil {
		return store.ConversationKey{}, err
	}
	return c, nil
}
