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

func unsent(s store.DeliveryState) bool {
	return s != store.DeliverySent && s != store.DeliveryPermanent
}

func outKey(o *store.Outgoing) []byte { return append(when(o.CreatedAt), o.Key...) }

// PutOutgoing implements store.Outbox.
func (s *Store) PutOutgoing(ctx context.Context, in *store.Outgoing) (got store.Outgoing, created bool, err error) {
	err = s.update(ctx, "put outgoing", func(tx *bolt.Tx) error {
		got, created = *in, false
		b := tx.Bucket(bOut)
		if b.Get([]byte(in.Key)) != nil {
			got, err = get[store.Outgoing](b, []byte(in.Key), "outgoing "+in.Key)
			return err
		}
		created = true
		if err := put(b, []byte(got.Key), &got); err != nil {
			return err
		}
		if got.RunID != "" {
			if err := tx.Bucket(bOutRun).Put(join(key(got.RunID), outKey(&got)), nil); err != nil {
				return err
			}
		}
		return indexOutgoing(tx, nil, &got)
	})
	return got, created && err == nil, err
}

// indexOutgoing keeps the two lists by state: what is not sent, and what is done with and may be pruned.
func indexOutgoing(tx *bolt.Tx, old, o *store.Outgoing) error {
	if old != nil && !unsent(old.State) {
		if err := tx.Bucket(bOutDone).Delete(append(when(old.UpdatedAt), old.Key...)); err != nil {
			return err
		}
	}
	if unsent(o.State) {
		return tx.Bucket(bOutUnsent).Put(outKey(o), nil)
	}
	if err := tx.Bucket(bOutUnsent).Delete(outKey(o)); err != nil {
		return err
	}
	return tx.Bucket(bOutDone).Put(append(when(o.UpdatedAt), o.Key...), nil)
}

// UpdateOutgoing implements store.Outbox.
func (s *Store) UpdateOutgoing(ctx context.Context, in *store.Outgoing) error {
	rec := *in
	return s.update(ctx, "update outgoing", func(tx *bolt.Tx) error {
		b := tx.Bucket(bOut)
		old, err := get[store.Outgoing](b, []byte(rec.Key), "outgoing "+rec.Key)
		if err != nil {
			return err
		}
		rec.CreatedAt = old.CreatedAt
		if err := put(b, []byte(rec.Key), &rec); err != nil {
			return err
		}
		if err := indexOutgoing(tx, &old, &rec); err != nil {
			return err
		}
		for i, p := range rec.Parts {
			if p.MessageID == "" || i < len(old.Parts) && old.Parts[i].MessageID == p.MessageID && old.Conversation == rec.Conversation && old.Parts[i].State == p.State {
				continue
			}
			if err := indexMessage(tx, rec.Conversation, p.MessageID); err != nil {
				return err
			}
		}
		if unsent(rec.State) {
			return nil
		}
		return settle(tx, rec.Settles)
	})
}

// Outgoing implements store.Outbox.
func (s *Store) Outgoing(ctx context.Context, k string) (o store.Outgoing, err error) {
	err = s.view(ctx, "outgoing", func(tx *bolt.Tx) error {
		o, err = get[store.Outgoing](tx.Bucket(bOut), []byte(k), "outgoing "+k)
		return err
	})
	return o, err
}

// UnsentOutgoing implements store.Outbox.
func (s *Store) UnsentOutgoing(ctx context.Context) (out []store.Outgoing, err error) {
	err = s.view(ctx, "unsent outgoing", func(tx *bolt.Tx) error {
		return scan(tx.Bucket(bOutUnsent), nil, func(k, _ []byte) (bool, error) {
			o, err := get[store.Outgoing](tx.Bucket(bOut), k[8:], "outgoing")
			out = append(out, o)
			return true, err
		})
	})
	return out, err
}

// RunOutgoing implements store.Outbox.
func (s *Store) RunOutgoing(ctx context.Context, runID string) (out []store.Outgoing, err error) {
	err = s.view(ctx, "outgoing of run", func(tx *bolt.Tx) error {
		prefix := key(runID)
		return scan(tx.Bucket(bOutRun), prefix, func(k, _ []byte) (bool, error) {
			o, err := get[store.Outgoing](tx.Bucket(bOut), k[len(prefix)+8:], "outgoing")
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
		err := s.update(ctx, "prune outgoing", func(tx *bolt.Tx) error {
			limit := when(before)
			var keys [][]byte
			c := tx.Bucket(bOutDone).Cursor()
			for k, _ := c.First(); k != nil && bytes.Compare(k[:8], limit) < 0 && len(keys) < pruneBatch; k, _ = c.Next() {
				keys = append(keys, bytes.Clone(k))
			}
			n = len(keys)
			for _, k := range keys {
				o, err := get[store.Outgoing](tx.Bucket(bOut), k[8:], "outgoing")
				if err != nil {
					return err
				}
				if o.RunID != "" {
					if err := tx.Bucket(bOutRun).Delete(join(key(o.RunID), outKey(&o))); err != nil {
						return err
					}
				}
				if err := tx.Bucket(bOut).Delete(k[8:]); err != nil {
					return err
				}
			}
			return drop(tx.Bucket(bOutDone), keys)
		})
		total += n
		if err != nil || n < pruneBatch {
			return total, err
		}
	}
}

// PutPenalty implements store.Outbox.
func (s *Store) PutPenalty(ctx context.Context, scope string, until time.Time) error {
	return s.update(ctx, "put penalty", func(tx *bolt.Tx) error {
		if !until.After(time.Now()) {
			return tx.Bucket(bPenalty).Delete([]byte(scope))
		}
		return tx.Bucket(bPenalty).Put([]byte(scope), when(until))
	})
}

// Penalties implements store.Outbox.
func (s *Store) Penalties(ctx context.Context, now time.Time) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	err := s.view(ctx, "penalties", func(tx *bolt.Tx) error {
		return scan(tx.Bucket(bPenalty), nil, func(k, v []byte) (bool, error) {
			if len(v) != 8 {
				return false, fmt.Errorf("penalty of %d bytes", len(v))
			}
			if until := time.Unix(0, int64(binary.BigEndian.Uint64(v)^1<<63)).UTC(); until.After(now) {
				out[string(k)] = until
			}
			return true, nil
		})
	})
	return out, err
}

// ThreadArtifacts implements store.Artifacts.
func (s *Store) ThreadArtifacts(ctx context.Context, threadID string) (out []store.Artifact, err error) {
	err = s.view(ctx, "artifacts", func(tx *bolt.Tx) error {
		return scan(tx.Bucket(bArtThread), key(threadID), func(_, v []byte) (bool, error) {
			var a store.Artifact
			err := json.Unmarshal(v, &a)
			out = append(out, a)
			return true, err
		})
	})
	return out, err
}

// RunArtifacts implements store.Artifacts.
func (s *Store) RunArtifacts(ctx context.Context, runID string) (out []store.Artifact, err error) {
	err = s.view(ctx, "artifacts of run", func(tx *bolt.Tx) error {
		prefix := key(runID)
		return scan(tx.Bucket(bArtRun), prefix, func(k, thread []byte) (bool, error) {
			a, err := get[store.Artifact](tx.Bucket(bArtThread), append(key(string(thread)), k[len(prefix):]...), "artifact")
			out = append(out, a)
			return true, err
		})
	})
	return out, err
}

// RunUsage implements store.Usage.
func (s *Store) RunUsage(ctx context.Context, runID string) (out []store.UsageRow, err error) {
	err = s.view(ctx, "usage of run", func(tx *bolt.Tx) error {
		prefix := key(runID)
		return scan(tx.Bucket(bUsageRun), prefix, func(k, _ []byte) (bool, error) {
			r, err := get[store.UsageRow](tx.Bucket(bUsage), k[len(prefix):], "usage row")
			out = append(out, r)
			return true, err
		})
	})
	return out, err
}

// UsageBetween implements store.Usage.
func (s *Store) UsageBetween(ctx context.Context, from, to time.Time, fn func(store.UsageRow) bool) error {
	at, end := when(from), when(to)
	for {
		var page []store.UsageRow
		err := s.view(ctx, "usage", func(tx *bolt.Tx) error {
			c := tx.Bucket(bUsage).Cursor()
			for k, v := c.Seek(at); k != nil && bytes.Compare(k[:8], end) < 0 && len(page) < 500; k, v = c.Next() {
				var r store.UsageRow
				if err := json.Unmarshal(v, &r); err != nil {
					return err
				}
				page = append(page, r)
				at = append(bytes.Clone(k), 0) // the next page begins behind this key
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, r := range page {
			if !fn(r) {
				return nil
			}
		}
		if len(page) < 500 {
			return nil
		}
	}
}
