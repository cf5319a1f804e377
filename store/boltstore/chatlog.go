package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"time"

	"deerbot/store"
)

// chatHead is a web chat's record.
type chatHead struct {
	store.ChatSummary
	Seq, Rev uint64
}

func getChat(tx *txn, chat string) (chatHead, error) {
	if tx.Bucket(bChat).Get([]byte(chat)) == nil {
		return chatHead{ChatSummary: store.ChatSummary{Chat: chat}}, nil
	}
	return get[chatHead](tx.Bucket(bChat), []byte(chat), "chat "+chat)
}

// PutChatMessage implements store.ChatLog.
func (s *Store) PutChatMessage(ctx context.Context, in *store.ChatMessage) error {
	rec := *in
	err := s.update(ctx, "put chat message", func(tx *txn) error {
		h, err := getChat(tx, rec.Chat)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		ids, msgs := tx.Bucket(bChatID), tx.Bucket(bChatMsg)
		idKey := append(key(rec.Chat), rec.ID...)
		rec.UpdatedAt = now
		if seq := ids.Get(idKey); seq != nil {
			old, err := get[store.ChatMessage](msgs, join(key(rec.Chat), seq), "chat message")
			if err != nil {
				return err
			}
			rec.Seq, rec.CreatedAt = old.Seq, old.CreatedAt
		} else {
			h.Seq++
			h.Messages++
			rec.Seq, rec.CreatedAt = h.Seq, now
			if err := ids.Put(idKey, num(rec.Seq)); err != nil {
				return err
			}
		}
		h.Rev++
		rec.Rev, h.UpdatedAt = h.Rev, now
		if err := put(tx.Bucket(bChat), []byte(rec.Chat), &h); err != nil {
			return err
		}
		return put(msgs, join(key(rec.Chat), num(rec.Seq)), &rec)
	})
	if err == nil {
		*in = rec
	}
	return err
}

// ChatMessage implements store.ChatLog.
func (s *Store) ChatMessage(ctx context.Context, chat, id string) (m store.ChatMessage, err error) {
	err = s.view(ctx, "chat message", func(tx *txn) error {
		seq := tx.Bucket(bChatID).Get(append(key(chat), id...))
		m, err = get[store.ChatMessage](tx.Bucket(bChatMsg), join(key(chat), seq), "message "+id+" of chat "+chat)
		return err
	})
	return m, err
}

// ChatMessages implements store.ChatLog.
func (s *Store) ChatMessages(ctx context.Context, chat string, after uint64, limit int) (out []store.ChatMessage, err error) {
	if after == ^uint64(0) {
		return nil, nil
	}
	err = s.view(ctx, "chat messages", func(tx *txn) error {
		prefix := key(chat)
		c := tx.Bucket(bChatMsg).Cursor()
		for k, v := c.Seek(join(prefix, num(after+1))); bytes.HasPrefix(k, prefix) && len(out) < limit; k, v = c.Next() {
			var m store.ChatMessage
			if err := json.Unmarshal(v, &m); err != nil {
				return err
			}
			out = append(out, m)
		}
		return nil
	})
	return out, err
}

// Chats implements store.ChatLog.
func (s *Store) Chats(ctx context.Context, limit int) (out []store.ChatSummary, err error) {
	err = s.view(ctx, "chats", func(tx *txn) error {
		return scan(tx.Bucket(bChat), nil, func(_, v []byte) (bool, error) {
			var h chatHead
			if err := json.Unmarshal(v, &h); err != nil {
				return false, err
			}
			out = append(out, h.ChatSummary)
			return true, nil
		})
	})
	sort.SliceStable(out, func(i, j int) bool { return out[i].UpdatedAt.After(out[j].UpdatedAt) })
	if len(out) > limit {
		out = out[:limit]
	}
	return out, err
}

// PutChatTitle implements store.ChatLog.
func (s *Store) PutChatTitle(ctx context.Context, chat, title string) error {
	return s.update(ctx, "put chat title", func(tx *txn) error {
		h, err := getChat(tx, chat)
		if err != nil {
			return err
		}
		h.Title = title
		if h.UpdatedAt.IsZero() {
			h.UpdatedAt = time.Now().UTC()
		}
		return put(tx.Bucket(bChat), []byte(chat), &h)
	})
}

// DeleteChat implements store.ChatLog.
func (s *Store) DeleteChat(ctx context.Context, chat string) error {
	return s.update(ctx, "delete chat", func(tx *txn) error {
		for _, b := range [][]byte{bChatMsg, bChatID} {
			var keys [][]byte
			if err := scan(tx.Bucket(b), key(chat), func(k, _ []byte) (bool, error) {
				keys = append(keys, bytes.Clone(k))
				return true, nil
			}); err != nil {
				return err
			}
			if err := drop(tx.Bucket(b), keys); err != nil {
				return err
			}
		}
		return tx.Bucket(bChat).Delete([]byte(chat))
	})
}
