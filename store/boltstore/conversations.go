package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sort"

	bolt "go.etcd.io/bbolt"

	"deerbot/store"
)

// Conversation implements store.Conversations.
func (s *Store) Conversation(ctx context.Context, k store.ConversationKey) (c store.Conversation, err error) {
	err = s.view(ctx, "conversation", func(tx *bolt.Tx) error {
		c, err = get[store.Conversation](tx.Bucket(bConv), convKey(k), "conversation "+k.String())
		return err
	})
	return c, err
}

// PutConversation implements store.Conversations.
func (s *Store) PutConversation(ctx context.Context, c *store.Conversation) error {
	rec := *c
	return s.update(ctx, "put conversation", func(tx *bolt.Tx) error {
		threads := tx.Bucket(bThread)
		if rec.ThreadID != "" && threads.Get([]byte(rec.ThreadID)) == nil {
			t := store.Thread{ID: rec.ThreadID, CreatedAt: rec.UpdatedAt, UpdatedAt: rec.UpdatedAt}
			if err := put(threads, []byte(t.ID), &t); err != nil {
				return err
			}
		}
		return put(tx.Bucket(bConv), convKey(rec.Key), &rec)
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
	err = s.view(ctx, "conversations", func(tx *bolt.Tx) error {
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

func indexMessage(tx *bolt.Tx, c store.ConversationKey, messageID string) error {
	return put(tx.Bucket(bConvMsg), chatKey(c, messageID), c)
}

// IndexMessage implements store.Conversations.
func (s *Store) IndexMessage(ctx context.Context, c store.ConversationKey, messageID string) error {
	return s.update(ctx, "index message", func(tx *bolt.Tx) error { return indexMessage(tx, c, messageID) })
}

// ConversationOfMessage implements store.Conversations.
func (s *Store) ConversationOfMessage(ctx context.Context, k store.ConversationKey, messageID string) (c store.ConversationKey, err error) {
	err = s.view(ctx, "conversation of message", func(tx *bolt.Tx) error {
		c, err = get[store.ConversationKey](tx.Bucket(bConvMsg), chatKey(k, messageID), "message "+messageID)
		return err
	})
	return c, err
}

// MoveChat implements store.Conversations.
func (s *Store) MoveChat(ctx context.Context, channel, workspace, oldChat, newChat string) error {
	if oldChat == newChat {
		return nil
	}
	moved := func(k store.ConversationKey) (store.ConversationKey, bool) {
		if k.Channel != channel || k.Workspace != workspace || k.Chat != oldChat {
			return k, false
		}
		k.Chat = newChat
		return k, true
	}
	return s.update(ctx, "move chat", func(tx *bolt.Tx) error {
		prefix := key(channel, workspace, oldChat)
		to := key(channel, workspace, newChat)
		for _, b := range [][]byte{bConv, bConvMsg, bInboxQueue, bInboxMsg, bDedupe} {
			if err := rekey(tx.Bucket(b), prefix, to, func(v []byte) ([]byte, error) {
				switch {
				case bytes.Equal(b, bConv):
					var c store.Conversation
					if err := json.Unmarshal(v, &c); err != nil {
						return nil, err
					}
					c.Key, _ = moved(c.Key)
					return json.Marshal(&c)
				case bytes.Equal(b, bConvMsg):
					var k store.ConversationKey
					if err := json.Unmarshal(v, &k); err != nil {
						return nil, err
					}
					k, _ = moved(k)
					return json.Marshal(k)
				}
				return v, nil
			}); err != nil {
				return err
			}
		}
		if err := rewrite(tx.Bucket(bInbox), func(e *store.InboxEntry) (ok bool) {
			e.Conversation, ok = moved(e.Conversation)
			return ok
		}); err != nil {
			return err
		}
		if err := rewrite(tx.Bucket(bOut), func(o *store.Outgoing) (ok bool) {
			o.Conversation, ok = moved(o.Conversation)
			return ok
		}); err != nil {
			return err
		}
		return rewrite(tx.Bucket(bSchedule), func(sc *store.Schedule) (ok bool) {
			sc.Conversation, ok = moved(sc.Conversation)
			return ok
		})
	})
}

// rekey moves the records below one key prefix to another, unless the new key is taken: what is there already is newer.
func rekey(b *bolt.Bucket, from, to []byte, change func(v []byte) ([]byte, error)) error {
	type pair struct{ k, v []byte }
	var all []pair
	if err := scan(b, from, func(k, v []byte) (bool, error) {
		all = append(all, pair{bytes.Clone(k), bytes.Clone(v)})
		return true, nil
	}); err != nil {
		return err
	}
	for _, p := range all {
		v, err := change(p.v)
		if err != nil {
			return err
		}
		k := join(to, p.k[len(from):])
		if b.Get(k) == nil {
			if err := b.Put(k, v); err != nil {
				return err
			}
		}
		if err := b.Delete(p.k); err != nil {
			return err
		}
	}
	return nil
}

// rewrite stores again every record of b that change changes.
func rewrite[T any](b *bolt.Bucket, change func(*T) bool) error {
	type pair struct {
		k []byte
		v *T
	}
	var changed []pair
	if err := scan(b, nil, func(k, v []byte) (bool, error) {
		rec := new(T)
		if err := json.Unmarshal(v, rec); err != nil {
			return false, err
		}
		if change(rec) {
			changed = append(changed, pair{bytes.Clone(k), rec})
		}
		return true, nil
	}); err != nil {
		return err
	}
	for _, p := range changed {
		if err := put(b, p.k, p.v); err != nil {
			return err
		}
	}
	return nil
}

// PutThread implements store.Threads.
func (s *Store) PutThread(ctx context.Context, t *store.Thread) error {
	rec := *t
	return s.update(ctx, "put thread", func(tx *bolt.Tx) error {
		b := tx.Bucket(bThread)
		rec.Head, rec.Depth = "", 0
		if b.Get([]byte(rec.ID)) != nil {
			old, err := get[store.Thread](b, []byte(rec.ID), "thread "+rec.ID)
			if err != nil {
				return err
			}
			rec.Head, rec.Depth = old.Head, old.Depth
		}
		return put(b, []byte(rec.ID), &rec)
	})
}

// Thread implements store.Threads.
func (s *Store) Thread(ctx context.Context, id string) (t store.Thread, err error) {
	err = s.view(ctx, "thread", func(tx *bolt.Tx) error {
		t, err = get[store.Thread](tx.Bucket(bThread), []byte(id), "thread "+id)
		return err
	})
	return t, err
}

// Checkpoints implements store.Threads.
func (s *Store) Checkpoints(ctx context.Context, threadID, head string) (out []store.Checkpoint, err error) {
	err = s.view(ctx, "checkpoints", func(tx *bolt.Tx) error {
		if head == "" {
			t, err := get[store.Thread](tx.Bucket(bThread), []byte(threadID), "thread "+threadID)
			if err != nil {
				return err
			}
			head = t.Head
		}
		b := tx.Bucket(bCheck)
		for id := head; id != ""; {
			cp, err := get[store.Checkpoint](b, append(key(threadID), id...), "checkpoint "+id)
			if err != nil {
				return err
			}
			out = append(out, cp)
			id = cp.Parent
		}
		return nil
	})
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, err
}

// MoveHead implements store.Threads. An empty `to` is the thread before its first checkpoint.
func (s *Store) MoveHead(ctx context.Context, threadID, from, to string) error {
	return s.update(ctx, "move head", func(tx *bolt.Tx) error {
		t, err := get[store.Thread](tx.Bucket(bThread), []byte(threadID), "thread "+threadID)
		if err != nil {
			return err
		}
		if t.Head != from {
			return fmt.Errorf("thread %s is at %q: %w", threadID, t.Head, store.ErrConflict)
		}
		if run := tx.Bucket(bRunActive).Get([]byte(threadID)); run != nil {
			return fmt.Errorf("run %s is active: %w", run, store.ErrConflict)
		}
		t.Head, t.Depth = to, 0
		if to != "" {
			cp, err := get[store.Checkpoint](tx.Bucket(bCheck), append(key(threadID), to...), "checkpoint "+to)
			if err != nil {
				return err
			}
			t.Depth = cp.Depth
		}
		return put(tx.Bucket(bThread), []byte(threadID), &t)
	})
}
