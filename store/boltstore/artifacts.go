package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"deerbot/store"
)

// ThreadArtifacts implements store.Artifacts.
func (s *Store) ThreadArtifacts(ctx context.Context, threadID string) (out []store.Artifact, err error) {
	err = s.view(ctx, "artifacts", func(tx *txn) error {
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
	err = s.view(ctx, "artifacts of run", func(tx *txn) error {
		prefix := ofRun(runID, tagArtifact)
		return scan(tx.Bucket(bRunOf), prefix, func(k, thread []byte) (bool, error) {
			a, err := get[store.Artifact](tx.Bucket(bArtThread), append(key(string(thread)), k[len(prefix):]...), "artifact")
			out = append(out, a)
			return true, err
		})
	})
	return out, err
}

// RunUsage implements store.Usage.
func (s *Store) RunUsage(ctx context.Context, runID string) (out []store.UsageRow, err error) {
	err = s.view(ctx, "usage of run", func(tx *txn) error {
		prefix := ofRun(runID, tagUsage)
		return scan(tx.Bucket(bRunOf), prefix, func(k, _ []byte) (bool, error) {
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
		err := s.view(ctx, "usage", func(tx *txn) error {
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
