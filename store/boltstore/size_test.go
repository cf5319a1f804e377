package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deerbot/store"
)

// used is how much of the file was ever in use, without the room that bbolt reserves at its end.
func used(t testing.TB, s *Store) (n int64) {
	t.Helper()
	if err := s.view(t.Context(), "size", func(tx *txn) error { n = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestC182Plateau: 200,000 deliveries over ten days, with the clean-up job each hour: the file stops growing.
func TestC182Plateau(t *testing.T) {
	s := openNew(t, Options{})
	s.db.NoSync = true // the disk is not what is tested
	const hours, perHour = 240, 200000 / 240
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var third int64
	for h := range hours {
		now := base.Add(time.Duration(h) * time.Hour)
		if err := s.update(t.Context(), "accept", func(tx *txn) error {
			for i := range perHour {
				k := store.ConversationKey{Channel: "lark", Chat: fmt.Sprint("oc_", i%50)}
				if _, err := remember(tx, chatKey(k, newID()), now.Add(time.Duration(i)*time.Second)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PruneDedupe(t.Context(), now.Add(-store.DedupeKeep)); err != nil {
			t.Fatal(err)
		}
		if h == 72 {
			third = used(t, s)
		}
	}
	live := 0
	_ = s.view(t.Context(), "count", func(tx *txn) error {
		for _, b := range [][]byte{bDedupe, bDedupeTime} {
			_ = scan(tx.Bucket(b), nil, func(k, v []byte) (bool, error) { live += len(k) + len(v); return true, nil })
		}
		return nil
	})
	end := used(t, s)
	if end > third*3/2 {
		t.Errorf("the file has %d bytes after 3 days, %d after 10", third, end)
	}
	if end > 3*int64(live)+1<<20 {
		t.Errorf("the file has %d bytes, %d are live", end, live)
	}
	t.Logf("%d bytes after 3 days, %d after 10, %d live", third, end, live)
}

// TestC183Rewrites: a thousand turns on records that are rewritten, with a growing thread: the file stays in proportion.
func TestC183Rewrites(t *testing.T) {
	s := openNew(t, Options{})
	s.db.NoSync = true
	ctx := t.Context()
	body := func(n int) []byte { return append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, n)...), '"') }
	const cards = 20
	live := int64(0)
	for turn := range 1000 {
		o := &store.Outgoing{Key: fmt.Sprint("card", turn%cards), State: store.DeliverySending, Body: body(20000 + 50*turn)}
		if _, created, err := s.PutOutgoing(ctx, o); err != nil {
			t.Fatal(err)
		} else if !created {
			if err := s.UpdateOutgoing(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
		if turn >= 1000-cards {
			live += int64(len(o.Body))
		}
	}
	if got := used(t, s); got > 3*live {
		t.Errorf("the file has %d bytes, %d are live", got, live)
	} else {
		t.Logf("%d bytes used, %d live", got, live)
	}
}

func TestBackupCompactCheck(t *testing.T) {
	s := openNew(t, Options{})
	ctx := t.Context()
	for i := range 300 {
		if err := s.PutUser(ctx, &store.User{ID: fmt.Sprint(i), Name: string(bytes.Repeat([]byte{'x'}, 2000))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.update(ctx, "shrink", func(tx *txn) error {
		for i := range 290 {
			if err := tx.Bucket(bUser).Delete(fmt.Append(nil, i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(ctx); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	backup, compact := filepath.Join(dir, "backup.db"), filepath.Join(dir, "compact.db")
	var buf bytes.Buffer
	if n, err := s.Backup(ctx, &buf); err != nil || n != int64(buf.Len()) {
		t.Fatalf("backup of %d bytes says %d, %v", buf.Len(), n, err)
	}
	if err := os.WriteFile(backup, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(ctx, compact); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(ctx, compact); !errors.Is(err, os.ErrExist) {
		t.Fatalf("an existing file: %v", err)
	}
	if err := s.PutUser(ctx, &store.User{ID: "later"}); err != nil { // the store goes on
		t.Fatal(err)
	}
	for _, path := range []string{backup, compact} {
		c := openAt(t, path, Options{})
		if err := c.Check(ctx); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := c.User(ctx, "295"); err != nil {
			t.Error(err)
		}
		if err := c.PutUser(ctx, &store.User{ID: "new"}); err != nil {
			t.Error(err)
		}
		seq := func(s *Store) (n uint64) {
			_ = s.view(ctx, "seq", func(tx *txn) error { n = tx.Bucket(bMeta).Sequence(); return nil })
			return n
		}
		if seq(c) != seq(s) {
			t.Errorf("%s: the order of arrival starts over", path)
		}
	}
	if small, big := used(t, openAt(t, filepath.Join(dir, "again.db"), Options{})), used(t, s); small > big {
		t.Errorf("an empty store has %d bytes, ours %d", small, big)
	}
	if fi, err := os.Stat(compact); err != nil || fi.Size() == 0 {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Backup(cancelled, &buf); !errors.Is(err, context.Canceled) {
		t.Errorf("backup: %v", err)
	}
	if err := s.Check(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("check: %v", err)
	}
}
