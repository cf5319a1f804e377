package boltstore

import (
	"bytes"
	"context"
	"time"
)

// MarkStart implements store.Life.
func (s *Store) MarkStart(ctx context.Context, now, since time.Time) (unclean []time.Time, err error) {
	err = s.update(ctx, "mark start", func(tx *txn) error {
		unclean = nil
		b := tx.Bucket(bLife)
		var old [][]byte
		if err := scan(b, nil, func(k, _ []byte) (bool, error) {
			t := timeOf(k)
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
	return s.update(ctx, "mark stop", func(tx *txn) error {
		var all [][]byte
		b := tx.Bucket(bLife)
		if err := scan(b, nil, func(k, _ []byte) (bool, error) { all = append(all, bytes.Clone(k)); return true, nil }); err != nil {
			return err
		}
		return drop(b, all)
	})
}
