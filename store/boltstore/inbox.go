package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"deerbot/store"
)

func convKey(c store.ConversationKey) []byte { return key(c.Channel, c.Workspace, c.Chat, c.Topic) }

func chatKey(c store.ConversationKey, last string) []byte {
	return key(c.Channel, c.Workspace, c.Chat, last)
}

// nextSeq raises the store's sequence.
func nextSeq(tx *bolt.Tx) (uint64, error) { return tx.Bucket(bMeta).NextSequence() }

// AcceptInbound implements store.Inbox.
func (s *Store) AcceptInbound(ctx context.Context, e *store.InboxEntry) (accepted bool, err error) {
	rec := *e
	err = s.update(ctx, "accept", func(tx *bolt.Tx) error {
		accepted = false
		dk := chatKey(rec.Conversation, rec.DedupeKey)
		dedupe := tx.Bucket(bDedupe)
		if dedupe.Get(dk) != nil {
			return nil
		}
		seq, err := nextSeq(tx)
		if err != nil {
			return err
		}
		rec.Seq, rec.State = seq, store.InboxPending
		at := when(rec.ReceivedAt)
		if err := dedupe.Put(dk, at); err != nil {
			return err
		}
		if err := tx.Bucket(bDedupeTime).Put(join(at, dk), nil); err != nil {
			return err
		}
		if rec.MessageID != "" {
			if err := tx.Bucket(bInboxMsg).Put(append(convKey(rec.Conversation), rec.MessageID...), []byte(rec.ID)); err != nil {
				return err
			}
			if err := indexMessage(tx, rec.Conversation, rec.MessageID); err != nil {
				return err
			}
		}
		if err := tx.Bucket(bInboxQueue).Put(join(convKey(rec.Conversation), num(seq)), []byte(rec.ID)); err != nil {
			return err
		}
		accepted = true
		return put(tx.Bucket(bInbox), []byte(rec.ID), &rec)
	})
	if accepted && err == nil {
		e.Seq, e.State = rec.Seq, rec.State
	}
	return accepted && err == nil, err
}

// PendingInbound implements store.Inbox.
func (s *Store) PendingInbound(ctx context.Context, c store.ConversationKey, limit int) (out []store.InboxEntry, err error) {
	err = s.view(ctx, "pending inbound", func(tx *bolt.Tx) error {
		inbox := tx.Bucket(bInbox)
		return scan(tx.Bucket(bInboxQueue), convKey(c), func(_, id []byte) (bool, error) {
			e, err := get[store.InboxEntry](inbox, id, "entry")
			if err != nil {
				return false, err
			}
			out = append(out, e)
			return len(out) < limit, nil
		})
	})
	return out, err
}

// CountPending implements store.Inbox.
func (s *Store) CountPending(ctx context.Context, c store.ConversationKey) (n int, err error) {
	err = s.view(ctx, "count pending", func(tx *bolt.Tx) error {
		return scan(tx.Bucket(bInboxQueue), convKey(c), func(_, _ []byte) (bool, error) { n++; return true, nil })
	})
	return n, err
}

// InboundByMessage implements store.Inbox.
func (s *Store) InboundByMessage(ctx context.Context, c store.ConversationKey, messageID string) (e store.InboxEntry, err error) {
	err = s.view(ctx, "inbound by message", func(tx *bolt.Tx) error {
		id := tx.Bucket(bInboxMsg).Get(append(convKey(c), messageID...))
		if id == nil {
			return fmt.Errorf("message %s: %w", messageID, store.ErrNotFound)
		}
		e, err = get[store.InboxEntry](tx.Bucket(bInbox), id, "entry of message "+messageID)
		return err
	})
	return e, err
}

// Inbound implements store.Inbox.
func (s *Store) Inbound(ctx context.Context, id string) (e store.InboxEntry, err error) {
	err = s.view(ctx, "inbound", func(tx *bolt.Tx) error {
		e, err = get[store.InboxEntry](tx.Bucket(bInbox), []byte(id), "entry "+id)
		return err
	})
	return e, err
}

// ReplaceInbound implements store.Inbox.
func (s *Store) ReplaceInbound(ctx context.Context, id string, payload []byte) error {
	return s.update(ctx, "replace inbound", func(tx *bolt.Tx) error {
		e, err := get[store.InboxEntry](tx.Bucket(bInbox), []byte(id), "entry "+id)
		if err != nil {
			return err
		}
		if e.State != store.InboxPending {
			return fmt.Errorf("entry %s is taken: %w", id, store.ErrConflict)
		}
		e.Payload = payload
		return put(tx.Bucket(bInbox), []byte(id), &e)
	})
}

// TakeInbound implements store.Inbox.
func (s *Store) TakeInbound(ctx context.Context, runID string, ids ...string) error {
	return s.update(ctx, "take inbound", func(tx *bolt.Tx) error {
		inbox := tx.Bucket(bInbox)
		for _, id := range ids {
			raw := inbox.Get([]byte(id))
			if raw == nil {
				continue // settled already: its answer was quicker than this write
			}
			var e store.InboxEntry
			if err := json.Unmarshal(raw, &e); err != nil {
				return err
			}
			if e.State == store.InboxTaken {
				if e.RunID != runID {
					return fmt.Errorf("entry %s is taken by run %q: %w", id, e.RunID, store.ErrConflict)
				}
				continue
			}
			e.State, e.RunID = store.InboxTaken, runID
			if err := tx.Bucket(bInboxQueue).Delete(join(convKey(e.Conversation), num(e.Seq))); err != nil {
				return err
			}
			if err := put(inbox, []byte(id), &e); err != nil {
				return err
			}
		}
		return nil
	})
}

// SettleInbound implements store.Inbox.
func (s *Store) SettleInbound(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.update(ctx, "settle inbound", func(tx *bolt.Tx) error { return settle(tx, ids) })
}

func settle(tx *bolt.Tx, ids []string) error {
	inbox := tx.Bucket(bInbox)
	for _, id := range ids {
		raw := inbox.Get([]byte(id))
		if raw == nil {
			continue
		}
		var e store.InboxEntry
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		if err := tx.Bucket(bInboxQueue).Delete(join(convKey(e.Conversation), num(e.Seq))); err != nil {
			return err
		}
		mk := append(convKey(e.Conversation), e.MessageID...)
		if bytes.Equal(tx.Bucket(bInboxMsg).Get(mk), []byte(id)) {
			if err := tx.Bucket(bInboxMsg).Delete(mk); err != nil {
				return err
			}
		}
		if err := inbox.Delete([]byte(id)); err != nil {
			return err
		}
	}
	return nil
}

// UnsettledInbound implements store.Inbox.
func (s *Store) UnsettledInbound(ctx context.Context) (out []store.InboxEntry, err error) {
	err = s.view(ctx, "unsettled inbound", func(tx *bolt.Tx) error {
		return scan(tx.Bucket(bInbox), nil, func(_, v []byte) (bool, error) {
			var e store.InboxEntry
			if err := json.Unmarshal(v, &e); err != nil {
				return false, err
			}
			out = append(out, e)
			return true, nil
		})
	})
	return out, err
}

// pruneBatch bounds what one transaction deletes.
const pruneBatch = 1000

// PruneDedupe implements store.Inbox.
func (s *Store) PruneDedupe(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for {
		n := 0
		err := s.update(ctx, "prune dedupe", func(tx *bolt.Tx) error {
			n = 0
			limit := when(before)
			var times, keys [][]byte
			c := tx.Bucket(bDedupeTime).Cursor()
			for k, _ := c.First(); k != nil && bytes.Compare(k[:8], limit) < 0 && len(keys) < pruneBatch; k, _ = c.Next() {
				times, keys = append(times, bytes.Clone(k)), append(keys, bytes.Clone(k[8:]))
			}
			n = len(keys)
			if err := drop(tx.Bucket(bDedupe), keys); err != nil {
				return err
			}
			return drop(tx.Bucket(bDedupeTime), times)
		})
		total += n
		if err != nil || n < pruneBatch {
			return total, err
		}
	}
}

// ---- life ----

// MarkStart implements store.Life.
func (s *Store) MarkStart(ctx context.Context, now, since time.Time) (unclean []time.Time, err error) {
	err = s.update(ctx, "mark start", func(tx *bolt.Tx) error {
		unclean = nil
		b := tx.Bucket(bLife)
		var old [][]byte
		if err := scan(b, nil, func(k, _ []byte) (bool, error) {
			t := time.Unix(0, int64(binary.BigEndian.Uint64(k)^1<<63)).UTC()
			if t.Before(since) {
				old = append(old, bytes.Clone(k))
			} else {
				unclean = append(unclean, t)
			}
			return true, nil
		}); err != nil {
			return err
		}
		if err := drop(b, old); err != nil {
			return err
		}
		return b.Put(when(now), nil)
	})
	return unclean, err
}

// MarkStop implements store.Life.
func (s *Store) MarkStop(ctx context.Context) error {
	return s.update(ctx, "mark stop", func(tx *bolt.Tx) error {
		var all [][]byte
		b := tx.Bucket(bLife)
		if err := scan(b, nil, func(k, _ []byte) (bool, error) { all = append(all, bytes.Clone(k)); return true, nil }); err != nil {
			return err
		}
		return drop(b, all)
	})
}
