package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"time"

	"deerbot/store"
)

// PutUser implements store.Users.
func (s *Store) PutUser(ctx context.Context, u *store.User) error {
	rec := *u
	return s.update(ctx, "put user", func(tx *txn) error { return put(tx.Bucket(bUser), []byte(rec.ID), &rec) })
}

// User implements store.Users.
func (s *Store) User(ctx context.Context, id string) (u store.User, err error) {
	err = s.view(ctx, "user", func(tx *txn) error {
		u, err = get[store.User](tx.Bucket(bUser), []byte(id), "user "+id)
		return err
	})
	return u, err
}

// PutConnection implements store.Users.
func (s *Store) PutConnection(ctx context.Context, c *store.Connection) (prev string, err error) {
	rec := *c
	err = s.update(ctx, "put connection", func(tx *txn) error {
		prev = ""
		k := key(rec.Channel, rec.Workspace, rec.Account)
		if tx.Bucket(bConn).Get(k) != nil {
			old, err := get[store.Connection](tx.Bucket(bConn), k, "connection")
			if err != nil {
				return err
			}
			if old.UserID != rec.UserID {
				prev = old.UserID
			}
			if err := tx.Bucket(bConnUser).Delete(join(key(old.UserID), k)); err != nil {
				return err
			}
		}
		if err := tx.Bucket(bConnUser).Put(join(key(rec.UserID), k), nil); err != nil {
			return err
		}
		return put(tx.Bucket(bConn), k, &rec)
	})
	return prev, err
}

// ConnectionOf implements store.Users.
func (s *Store) ConnectionOf(ctx context.Context, channel, workspace, account string) (c store.Connection, err error) {
	err = s.view(ctx, "connection", func(tx *txn) error {
		c, err = get[store.Connection](tx.Bucket(bConn), key(channel, workspace, account), "connection")
		return err
	})
	return c, err
}

// DeleteConnection implements store.Users. Deleting what is not there is fine.
func (s *Store) DeleteConnection(ctx context.Context, channel, workspace, account string) error {
	return s.update(ctx, "delete connection", func(tx *txn) error {
		k := key(channel, workspace, account)
		if tx.Bucket(bConn).Get(k) == nil {
			return nil
		}
		old, err := get[store.Connection](tx.Bucket(bConn), k, "connection")
		if err != nil {
			return err
		}
		if err := tx.Bucket(bConnUser).Delete(join(key(old.UserID), k)); err != nil {
			return err
		}
		return tx.Bucket(bConn).Delete(k)
	})
}

// UserConnections implements store.Users.
func (s *Store) UserConnections(ctx context.Context, userID string) (out []store.Connection, err error) {
	err = s.view(ctx, "connections of user", func(tx *txn) error {
		prefix := key(userID)
		return scan(tx.Bucket(bConnUser), prefix, func(k, _ []byte) (bool, error) {
			c, err := get[store.Connection](tx.Bucket(bConn), k[len(prefix):], "connection")
			out = append(out, c)
			return true, err
		})
	})
	return out, err
}

func dueKey(sc *store.Schedule) []byte { return append(when(sc.Next), sc.ID...) }

// undue takes a schedule's present entry off the list of due ones.
func undue(tx *txn, id string) error {
	if tx.Bucket(bSchedule).Get([]byte(id)) == nil {
		return nil
	}
	old, err := get[store.Schedule](tx.Bucket(bSchedule), []byte(id), "schedule "+id)
	if err != nil {
		return err
	}
	return tx.Bucket(bSchedDue).Delete(dueKey(&old))
}

// PutSchedule implements store.Schedules.
func (s *Store) PutSchedule(ctx context.Context, in *store.Schedule) error {
	rec := *in
	return s.update(ctx, "put schedule", func(tx *txn) error {
		if err := undue(tx, rec.ID); err != nil {
			return err
		}
		if rec.Active && !rec.Next.IsZero() {
			if err := tx.Bucket(bSchedDue).Put(dueKey(&rec), nil); err != nil {
				return err
			}
		}
		return put(tx.Bucket(bSchedule), []byte(rec.ID), &rec)
	})
}

// Schedule implements store.Schedules.
func (s *Store) Schedule(ctx context.Context, id string) (sc store.Schedule, err error) {
	err = s.view(ctx, "schedule", func(tx *txn) error {
		sc, err = get[store.Schedule](tx.Bucket(bSchedule), []byte(id), "schedule "+id)
		return err
	})
	return sc, err
}

// DeleteSchedule implements store.Schedules. Deleting what is not there is fine.
func (s *Store) DeleteSchedule(ctx context.Context, id string) error {
	return s.update(ctx, "delete schedule", func(tx *txn) error {
		if err := undue(tx, id); err != nil {
			return err
		}
		return tx.Bucket(bSchedule).Delete([]byte(id))
	})
}

// Schedules implements store.Schedules.
func (s *Store) Schedules(ctx context.Context, c store.ConversationKey) (out []store.Schedule, err error) {
	err = s.view(ctx, "schedules", func(tx *txn) error {
		return scan(tx.Bucket(bSchedule), nil, func(_, v []byte) (bool, error) {
			var sc store.Schedule
			if err := json.Unmarshal(v, &sc); err != nil {
				return false, err
			}
			if sc.Conversation == c {
				out = append(out, sc)
			}
			return true, nil
		})
	})
	return out, err
}

// DueSchedules implements store.Schedules.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, limit int) (out []store.Schedule, err error) {
	err = s.view(ctx, "due schedules", func(tx *txn) error {
		end := when(now)
		c := tx.Bucket(bSchedDue).Cursor()
		for k, _ := c.First(); k != nil && bytes.Compare(k[:8], end) <= 0 && len(out) < limit; k, _ = c.Next() {
			sc, err := get[store.Schedule](tx.Bucket(bSchedule), k[8:], "schedule")
			if err != nil {
				return err
			}
			out = append(out, sc)
		}
		return nil
	})
	return out, err
}

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
