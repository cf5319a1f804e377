package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"deerbot/store"
)

func convKey(c store.ConversationKey) []byte { return key(c.Channel, c.Workspace, c.Chat, c.Topic) }

func chatKey(c store.ConversationKey, last string) []byte {
	return key(c.Channel, c.Workspace, c.Chat, last)
}

// nextSeq raises the store's sequence.
func nextSeq(tx *txn) (uint64, error) { return tx.Bucket(bMeta).NextSequence() }

// inboxHeader is what the store knows of an entry without decoding it. The entry's own JSON has none of it.
type inboxHeader struct {
	seq   uint64
	taken bool
	run   string
	conv  []byte // conv, as in the queue's keys
}

func (h *inboxHeader) append() []byte {
	state := byte('p')
	if h.taken {
		state = 't'
	}
	out := binary.BigEndian.AppendUint64(append(make([]byte, 0, 9+len(h.run)+2+len(h.conv)), state), h.seq)
	return append(append(out, key(h.run)...), h.conv...)
}

// openEntry takes an entry's record apart.
func openEntry(v []byte) (h inboxHeader, body []byte, err error) {
	raw, body, err := unseal(v)
	if err != nil || len(raw) < 9 {
		return h, nil, errHeader
	}
	h.taken, h.seq = raw[0] == 't', binary.BigEndian.Uint64(raw[1:])
	h.run, h.conv, err = unkey(raw[9:])
	return h, body, err
}

func decodeEntry(v []byte) (e store.InboxEntry, err error) {
	h, body, err := openEntry(v)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return e, err
	}
	e.Seq, e.RunID, e.State = h.seq, h.run, store.InboxPending
	if h.taken {
		e.State = store.InboxTaken
	}
	return e, nil
}

func encodeEntry(e store.InboxEntry) ([]byte, error) {
	e.Seq, e.State, e.RunID, e.ReceivedAt = 0, "", "", e.ReceivedAt.UTC()
	return encode(&e)
}

func getEntry(tx *txn, id string) (store.InboxEntry, error) {
	v := tx.Bucket(bInbox).Get([]byte(id))
	if v == nil {
		return store.InboxEntry{}, fmt.Errorf("entry %s: %w", id, store.ErrNotFound)
	}
	e, err := decodeEntry(v)
	if err != nil {
		return e, fmt.Errorf("entry %s: %w", id, err)
	}
	return e, nil
}

// AcceptInbound implements store.Inbox.
func (s *Store) AcceptInbound(ctx context.Context, e *store.InboxEntry) (accepted bool, err error) {
	body, err := encodeEntry(*e)
	if err != nil {
		return false, fmt.Errorf("store: accept: %w", err)
	}
	conv, dk := convKey(e.Conversation), chatKey(e.Conversation, e.DedupeKey)
	received := e.ReceivedAt
	if received.IsZero() {
		received = time.Now()
	}
	var seq uint64
	err = s.update(ctx, "accept", func(tx *txn) (err error) {
		accepted = false
		if e.DedupeKey != "" {
			known, err := remember(tx, dk, received)
			if err != nil || known {
				return err
			}
		}
		inbox := tx.Bucket(bInbox)
		if inbox.Get([]byte(e.ID)) != nil {
			return fmt.Errorf("entry %s exists: %w", e.ID, store.ErrConflict)
		}
		if seq, err = nextSeq(tx); err != nil {
			return err
		}
		if e.MessageID != "" {
			if err := tx.Bucket(bConvMsg).Put(chatKey(e.Conversation, e.MessageID), append(key(e.Conversation.Topic), e.ID...)); err != nil {
				return err
			}
		}
		if err := tx.Bucket(bInboxQueue).Put(join(conv, num(seq)), []byte(e.ID)); err != nil {
			return err
		}
		accepted = true
		h := inboxHeader{seq: seq, conv: conv}
		return inbox.Put([]byte(e.ID), seal(h.append(), body))
	})
	if err != nil || !accepted {
		return false, err
	}
	e.Seq, e.State, e.RunID = seq, store.InboxPending, ""
	return true, nil
}

// remember notes a dedupe key, unless it is known and not too old.
func remember(tx *txn, dk []byte, received time.Time) (known bool, err error) {
	dedupe, times, at := tx.Bucket(bDedupe), tx.Bucket(bDedupeTime), when(received)
	if old := dedupe.Get(dk); old != nil {
		if len(old) != 8 {
			return false, errHeader
		}
		if received.Before(timeOf(old).Add(store.DedupeKeep)) {
			return true, nil
		}
		if err := times.Delete(join(old, dk)); err != nil { // else pruning the old time would forget the new key
			return false, err
		}
	}
	if err := dedupe.Put(dk, at); err != nil {
		return false, err
	}
	return false, times.Put(join(at, dk), nil)
}

// PendingInbound implements store.Inbox.
func (s *Store) PendingInbound(ctx context.Context, c store.ConversationKey, limit int) (out []store.InboxEntry, err error) {
	err = s.view(ctx, "pending inbound", func(tx *txn) error {
		return scan(tx.Bucket(bInboxQueue), convKey(c), func(_, id []byte) (bool, error) {
			if len(out) >= limit {
				return false, nil
			}
			e, err := getEntry(tx, string(id))
			if err != nil {
				return false, err
			}
			out = append(out, e)
			return true, nil
		})
	})
	return out, err
}

// CountPending implements store.Inbox.
func (s *Store) CountPending(ctx context.Context, c store.ConversationKey) (n int, err error) {
	err = s.view(ctx, "count pending", func(tx *txn) error {
		return scan(tx.Bucket(bInboxQueue), convKey(c), func(_, _ []byte) (bool, error) { n++; return true, nil })
	})
	return n, err
}

// InboundByMessage implements store.Inbox.
func (s *Store) InboundByMessage(ctx context.Context, c store.ConversationKey, messageID string) (e store.InboxEntry, err error) {
	err = s.view(ctx, "inbound by message", func(tx *txn) error {
		_, id, err := messagePlace(tx, c, messageID)
		if err != nil {
			return err
		}
		if e, err = getEntry(tx, id); err == nil && e.Conversation != c {
			e, err = store.InboxEntry{}, fmt.Errorf("message %s in %s: %w", messageID, c, store.ErrNotFound)
		}
		return err
	})
	return e, err
}

// Inbound implements store.Inbox.
func (s *Store) Inbound(ctx context.Context, id string) (e store.InboxEntry, err error) {
	err = s.view(ctx, "inbound", func(tx *txn) error {
		e, err = getEntry(tx, id)
		return err
	})
	return e, err
}

// ReplaceInbound implements store.Inbox.
func (s *Store) ReplaceInbound(ctx context.Context, id string, payload []byte) error {
	return s.update(ctx, "replace inbound", func(tx *txn) error {
		e, err := getEntry(tx, id)
		if err != nil {
			return err
		}
		if e.State != store.InboxPending {
			return fmt.Errorf("entry %s is taken: %w", id, store.ErrConflict)
		}
		h := inboxHeader{seq: e.Seq, conv: convKey(e.Conversation)}
		e.Payload = payload
		body, err := encodeEntry(e)
		if err != nil {
			return err
		}
		return tx.Bucket(bInbox).Put([]byte(id), seal(h.append(), body))
	})
}

// TakeInbound implements store.Inbox. Entries that were settled meanwhile are passed over.
func (s *Store) TakeInbound(ctx context.Context, runID string, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.update(ctx, "take inbound", func(tx *txn) error {
		inbox, queue := tx.Bucket(bInbox), tx.Bucket(bInboxQueue)
		for _, id := range ids {
			v := inbox.Get([]byte(id))
			if v == nil {
				continue // its answer was quicker than this write
			}
			h, body, err := openEntry(v)
			if err != nil {
				return fmt.Errorf("entry %s: %w", id, err)
			}
			if h.taken {
				if h.run != runID {
					return fmt.Errorf("entry %s is taken by run %q: %w", id, h.run, store.ErrConflict)
				}
				continue
			}
			if err := queue.Delete(join(h.conv, num(h.seq))); err != nil {
				return err
			}
			h.taken, h.run = true, runID
			if err := inbox.Put([]byte(id), seal(h.append(), body)); err != nil {
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
	return s.update(ctx, "settle inbound", func(tx *txn) error { return settle(tx, ids) })
}

// settle removes entries. The index of their messages goes on saying where they belong.
func settle(tx *txn, ids []string) error {
	inbox := tx.Bucket(bInbox)
	for _, id := range ids {
		v := inbox.Get([]byte(id))
		if v == nil {
			continue
		}
		h, _, err := openEntry(v)
		if err != nil {
			return fmt.Errorf("entry %s: %w", id, err)
		}
		if !h.taken {
			if err := tx.Bucket(bInboxQueue).Delete(join(h.conv, num(h.seq))); err != nil {
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
	err = s.view(ctx, "unsettled inbound", func(tx *txn) error {
		return scan(tx.Bucket(bInbox), nil, func(k, v []byte) (bool, error) {
			e, err := decodeEntry(v)
			if err != nil {
				return false, fmt.Errorf("entry %s: %w", k, err)
			}
			out = append(out, e)
			return true, nil
		})
	})
	sort.Slice(out, func(i, j int) bool { return out[i].Seq < out[j].Seq })
	return out, err
}

// pruneBatch bounds what one transaction deletes.
const pruneBatch = 1000

// PruneDedupe implements store.Inbox.
func (s *Store) PruneDedupe(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for {
		n := 0
		err := s.update(ctx, "prune dedupe", func(tx *txn) error {
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
		if err != nil {
			return total, err
		}
		total += n
		if n < pruneBatch {
			return total, nil
		}
	}
}
