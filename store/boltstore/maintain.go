package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"deerbot/store"
)

// begin opens a read transaction for a long look at the whole file. While it is open, pages that writers free stay in
// use, so the file grows by what is written meanwhile.
func (s *Store) begin(ctx context.Context, op string) (*bolt.Tx, func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("store: %s: %w", op, err)
	}
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return nil, nil, fmt.Errorf("store: %s: %w", op, store.ErrClosed)
	}
	tx, err := s.db.Begin(false)
	if err != nil {
		return nil, nil, fmt.Errorf("store: %s: %w", op, err)
	}
	return tx, func() { _ = tx.Rollback() }, nil
}

// Backup writes a consistent copy of the file to w, which may be opened like the file itself. Writers go on meanwhile.
func (s *Store) Backup(ctx context.Context, w io.Writer) (n int64, err error) {
	tx, end, err := s.begin(ctx, "backup")
	if err != nil {
		return 0, err
	}
	defer end()
	n, err = tx.WriteTo(writer{ctx, w})
	if err != nil {
		return n, fmt.Errorf("store: backup: %w", err)
	}
	return n, nil
}

// writer gives up when its context ends.
type writer struct {
	ctx context.Context
	w   io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// compactTx is how much Compact copies in one transaction.
const compactTx = 16 << 20

// Compact writes a copy without free space to a new file at path, which must not exist, and changes nothing here. What is
// written to the store after Compact began may not be in it: to put the copy in the store's place, stop first.
func (s *Store) Compact(ctx context.Context, path string) (err error) {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: compact: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("store: compact: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("store: compact: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("store: compact: %w", full(path, err)), os.Remove(path))
		}
	}()
	dst, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	if err := bolt.Compact(dst, s.db, compactTx); err != nil {
		return errors.Join(err, dst.Close())
	}
	if err := errors.Join(dst.Sync(), dst.Close()); err != nil {
		return err
	}
	return syncDir(path)
}

// syncDir makes a new name in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Check reads every page and key of the file and returns what it finds wrong, all of it joined. It takes time in
// proportion to the file.
func (s *Store) Check(ctx context.Context) error {
	tx, end, err := s.begin(ctx, "check")
	if err != nil {
		return err
	}
	defer end()
	var found []error
	for err := range tx.Check() { // to the end, else bbolt's goroutine would stay
		if len(found) < 20 {
			found = append(found, err)
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("store: check: %w", &DamagedError{Path: s.path, Err: errors.Join(found...)})
	}
	return nil
}
