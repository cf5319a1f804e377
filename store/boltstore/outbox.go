package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"deerbot/store"
)

func unsent(s store.DeliveryState) bool {
	return s != store.DeliverySent && s != store.DeliveryPermanent
}

// outHeader is what the store knows of a record without decoding it: its times, whether it is done with, and its run.
type outHeader struct {
	created, updated time.Time
	done             bool
	run              string
}

func (h *outHeader) append() []byte {
	done := byte(0)
	if h.done {
		done = 1
	}
	return join(when(h.created), when(h.updated), []byte{done}, []byte(h.run))
}

func (h *outHeader) unsentKey(k string) []byte { return append(when(h.created), k...) }
func (h *outHeader) doneKey(k string) []byte   { return append(when(h.updated), k...) }
func (h *outHeader) runKey(k string) []byte {
	return join(ofRun(h.run, tagOut), when(h.created), []byte(k))
}

// openOut takes a record apart.
func openOut(v []byte) (h outHeader, body []byte, err error) {
	raw, body, err := unseal(v)
	if err != nil || len(raw) < 17 {
		return h, nil, errHeader
	}
	return outHeader{timeOf(raw), timeOf(raw[8:]), raw[16] == 1, string(raw[17:])}, body, nil
}

func getOut(tx *txn, k string) (o store.Outgoing, err error) {
	v := tx.Bucket(bOut).Get([]byte(k))
	if v == nil {
		return o, fmt.Errorf("outgoing %s: %w", k, store.ErrNotFound)
	}
	h, body, err := openOut(v)
	if err == nil {
		err = json.Unmarshal(body, &o)
	}
	if err != nil {
		return o, fmt.Errorf("outgoing %s: %w", k, err)
	}
	o.CreatedAt, o.UpdatedAt, o.RunID = h.created, h.updated, h.run
	return o, nil
}

func encodeOut(o store.Outgoing) ([]byte, error) {
	o.CreatedAt, o.UpdatedAt, o.NotBefore = time.Time{}, time.Time{}, o.NotBefore.UTC()
	return encode(&o)
}

// PutOutgoing implements store.Outbox.
func (s *Store) PutOutgoing(ctx context.Context, in *store.Outgoing) (got store.Outgoing, created bool, err error) {
	body, err := encodeOut(*in)
	if err != nil {
		return got, false, fmt.Errorf("store: put outgoing: %w", err)
	}
	h := outHeader{in.CreatedAt, in.UpdatedAt, !unsent(in.State), in.RunID}
	rec := seal(h.append(), body)
	err = s.update(ctx, "put outgoing", func(tx *txn) error {
		b := tx.Bucket(bOut)
		if created = b.Get([]byte(in.Key)) == nil; !created {
			got, err = getOut(tx, in.Key)
			return err
		}
		got = *in
		if err := b.Put([]byte(in.Key), rec); err != nil {
			return err
		}
		if h.run != "" {
			if err := tx.Bucket(bRunOf).Put(h.runKey(in.Key), nil); err != nil {
				return err
			}
		}
		if h.done {
			return tx.Bucket(bOutDone).Put(h.doneKey(in.Key), nil)
		}
		return tx.Bucket(bOutUnsent).Put(h.unsentKey(in.Key), nil)
	})
	if err != nil {
		return store.Outgoing{}, false, err
	}
	return got, created, nil
}

// UpdateOutgoing implements store.Outbox. CreatedAt and RunID stay what they were.
func (s *Store) UpdateOutgoing(ctx context.Context, in *store.Outgoing) error {
	encoded, err := encodeOut(*in)
	if err != nil {
		return fmt.Errorf("store: update outgoing: %w", err)
	}
	return s.update(ctx, "update outgoing", func(tx *txn) error {
		o, body := *in, encoded
		b := tx.Bucket(bOut)
		v := b.Get([]byte(o.Key))
		if v == nil {
			return fmt.Errorf("outgoing %s: %w", o.Key, store.ErrNotFound)
		}
		old, was, err := openOut(v)
		if err != nil {
			return fmt.Errorf("outgoing %s: %w", o.Key, err)
		}
		var place struct {
			Conversation store.ConversationKey `json:"conversation"`
		}
		if err := json.Unmarshal(was, &place); err != nil {
			return fmt.Errorf("outgoing %s: %w", o.Key, err)
		}
		if place.Conversation != o.Conversation { // the chat moved since the caller read the record
			o.Conversation = place.Conversation
			if body, err = encodeOut(o); err != nil {
				return err
			}
		}
		h := outHeader{old.created, o.UpdatedAt, !unsent(o.State), old.run}
		if err := b.Put([]byte(o.Key), seal(h.append(), body)); err != nil {
			return err
		}
		if err := reindex(tx, o.Key, &old, &h); err != nil {
			return err
		}
		for _, p := range o.Parts {
			if p.MessageID == "" {
				continue
			}
			if err := indexMessage(tx, o.Conversation, p.MessageID); err != nil {
				return err
			}
		}
		if !h.done {
			return nil
		}
		return settle(tx, o.Settles)
	})
}

// reindex keeps the two lists by state: what is not sent, and what is done with and may be pruned.
func reindex(tx *txn, k string, old, h *outHeader) error {
	if old.done && (!h.done || !old.updated.Equal(h.updated)) {
		if err := tx.Bucket(bOutDone).Delete(old.doneKey(k)); err != nil {
			return err
		}
	}
	if h.done {
		if !old.done {
			if err := tx.Bucket(bOutUnsent).Delete(old.unsentKey(k)); err != nil {
				return err
			}
		}
		return tx.Bucket(bOutDone).Put(h.doneKey(k), nil)
	}
	if old.done {
		return tx.Bucket(bOutUnsent).Put(h.unsentKey(k), nil)
	}
	return nil
}

// Outgoing implements store.Outbox.
func (s *Store) Outgoing(ctx context.Context, k string) (o store.Outgoing, err error) {
	err = s.view(ctx, "outgoing", func(tx *txn) error {
		o, err = getOut(tx, k)
		return err
	})
	return o, err
}

// UnsentOutgoing implements store.Outbox.
func (s *Store) UnsentOutgoing(ctx context.Context) (out []store.Outgoing, err error) {
	err = s.view(ctx, "unsent outgoing", func(tx *txn) error {
		return scan(tx.Bucket(bOutUnsent), nil, func(k, _ []byte) (bool, error) {
			o, err := getOut(tx, string(k[8:]))
			out = append(out, o)
			return true, err
		})
	})
	return out, err
}

// RunOutgoing implements store.Outbox.
func (s *Store) RunOutgoing(ctx context.Context, runID string) (out []store.Outgoing, err error) {
	err = s.view(ctx, "outgoing of run", func(tx *txn) error {
		prefix := ofRun(runID, tagOut)
		return scan(tx.Bucket(bRunOf), prefix, func(k, _ []byte) (bool, error) {
			o, err := getOut(tx, string(k[len(prefix)+8:]))
			out = append(out, o)
			return true, err
		})
	})
	return out, err
}

// PruneOutgoing implements store.Outbox.
func (s *Store) PruneOutgoing(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for {
		n := 0
		err := s.update(ctx, "prune outgoing", func(tx *txn) error {
			limit, b := when(before), tx.Bucket(bOut)
			var keys [][]byte
			c := tx.Bucket(bOutDone).Cursor()
			for k, _ := c.First(); k != nil && bytes.Compare(k[:8], limit) < 0 && len(keys) < pruneBatch; k, _ = c.Next() {
				keys = append(keys, bytes.Clone(k))
			}
			n = len(keys)
			for _, k := range keys {
				h, _, err := openOut(b.Get(k[8:]))
				if err != nil {
					return fmt.Errorf("outgoing %s: %w", k[8:], err)
				}
				if h.run != "" {
					if err := tx.Bucket(bRunOf).Delete(h.runKey(string(k[8:]))); err != nil {
						return err
					}
				}
				if err := b.Delete(k[8:]); err != nil {
					return err
				}
			}
			return drop(tx.Bucket(bOutDone), keys)
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

// PutPenalty implements store.Outbox.
func (s *Store) PutPenalty(ctx context.Context, scope string, until time.Time) error {
	return s.update(ctx, "put penalty", func(tx *txn) error {
		if !until.After(time.Now()) {
			return tx.Bucket(bPenalty).Delete([]byte(scope))
		}
		return tx.Bucket(bPenalty).Put([]byte(scope), when(until))
	})
}

// Penalties implements store.Outbox.
func (s *Store) Penalties(ctx context.Context, now time.Time) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	err := s.view(ctx, "penalties", func(tx *txn) error {
		return scan(tx.Bucket(bPenalty), nil, func(k, v []byte) (bool, error) {
			if len(v) != 8 {
				return false, fmt.Errorf("penalty of %d bytes", len(v))
			}
			if until := timeOf(v); until.After(now) {
				out[string(k)] = until
			}
			return true, nil
		})
	})
	return out, err
}
