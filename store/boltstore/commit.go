package boltstore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"deerbot/store"
)

// write is one caller's function on its way into a transaction.
type write struct {
	fn   func(tx *txn) error
	err  error // set by the committer before done is closed
	done chan struct{}

	mu      sync.Mutex
	started bool
	gone    bool // the caller left before it started
}

// claim marks w as started; false means that nobody waits for it.
func (w *write) claim() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = true
	return !w.gone
}

// leave gives w up unless it was started.
func (w *write) leave() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return false
	}
	w.gone = true
	return true
}

// update runs fn in a transaction that may carry other writes too. A write that was started is waited for, so its outcome
// is never unknown.
func (s *Store) update(ctx context.Context, op string, fn func(tx *txn) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %s: %w", op, err)
	}
	w := &write{fn: fn, done: make(chan struct{})}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return fmt.Errorf("store: %s: %w", op, store.ErrClosed)
	}
	select {
	case s.queue <- w:
		s.mu.RUnlock()
	case <-ctx.Done():
		s.mu.RUnlock()
		return fmt.Errorf("store: %s: %w", op, ctx.Err())
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.leave() {
			return fmt.Errorf("store: %s: %w", op, ctx.Err())
		}
		<-w.done
	}
	if w.err != nil {
		return fmt.Errorf("store: %s: %w", op, w.err)
	}
	return nil
}

// maxBatch bounds the writes of one commit, and so the work that a failing one makes others do again.
const maxBatch = 256

// commit is the committer: it takes what is queued and makes one transaction of it.
func (s *Store) commit() {
	defer close(s.done)
	debug.SetPanicOnFault(true) // a page that the disk has lost is an error, not the end of the process
	batch := make([]*write, 0, maxBatch)
	for first := range s.queue {
		batch = append(batch[:0], first)
	more:
		for len(batch) < maxBatch {
			select {
			case w, ok := <-s.queue:
				if !ok {
					break more
				}
				batch = append(batch, w)
			default:
				break more
			}
		}
		s.run(batch)
	}
}

// run makes one transaction of a batch and tells every caller how it went.
func (s *Store) run(batch []*write) {
	live := batch[:0:len(batch)]
	for _, w := range batch {
		if w.claim() {
			live = append(live, w)
		} else {
			close(w.done)
		}
	}
	for len(live) > 0 {
		bad, err := s.try(live)
		if bad >= 0 {
			close(live[bad].done)
			live = append(live[:bad], live[bad+1:]...)
			continue
		}
		err = full(s.path, err)
		if errors.Is(err, store.ErrFull) && len(live) > 1 {
			s.alone(live)
			return
		}
		for _, w := range live {
			if err != nil {
				w.err = err // also of those that failed: they may have seen what was not committed
			}
			close(w.done)
		}
		return
	}
}

// alone commits each write by itself: in a group that does not fit, those that do must not suffer for the one that does not.
func (s *Store) alone(live []*write) {
	for _, w := range live {
		bad, err := s.try([]*write{w})
		if err != nil && bad < 0 {
			w.err = full(s.path, err)
		}
		close(w.done)
	}
}

// try runs the functions of live in one transaction. A function that failed has its error in its write; when it had
// written something before, the transaction is given up, bad is its index, and the others need another one.
func (s *Store) try(live []*write) (bad int, err error) {
	if err := s.broken(); err != nil {
		return -1, err
	}
	// Begin and Commit, not Update: after a panic Update's rollback scans the file in a goroutine of bbolt's, where what it
	// meets cannot be recovered from. Tx.Rollback reads no page.
	btx, err := s.db.Begin(true)
	if err != nil {
		return -1, err
	}
	defer func() { // a damaged page, met by a commit
		if p := recover(); p != nil {
			bad, err = -1, s.broke(p)
			_ = btx.Rollback()
		}
	}()
	tx := &txn{Tx: btx}
	wrote := false
	for i, w := range live {
		tx.dirty = false
		w.err = s.safely(w.fn, tx)
		if w.err != nil && tx.dirty {
			w.err = full(s.path, w.err)
			return i, btx.Rollback()
		}
		wrote = wrote || tx.dirty
	}
	if !wrote { // no page is written for functions that changed nothing
		return -1, btx.Rollback()
	}
	return -1, btx.Commit()
}

// broke notes that the file turned out to be damaged. A transaction that panicked half way may leave the engine's locks
// and free list in any state, so nothing is written any more.
func (s *Store) broke(p any) error {
	err := &DamagedError{Path: s.path, Err: fmt.Errorf("%v", p)}
	s.damage.CompareAndSwap(nil, err)
	return err
}

// fault is broke for a panic that a page which cannot be read has caused; nil for other panics.
func (s *Store) fault(p any) error {
	if _, ok := p.(interface{ Addr() uintptr }); ok {
		return s.broke(p)
	}
	return nil
}

func (s *Store) broken() error {
	if err := s.damage.Load(); err != nil {
		return err
	}
	return nil
}

// safely turns a panic of one caller's function into that caller's error.
func (s *Store) safely(fn func(tx *txn) error, tx *txn) (err error) {
	defer func() {
		if p := recover(); p != nil {
			tx.dirty = true
			if err = s.fault(p); err == nil {
				err = fmt.Errorf("panic in a write: %v", p)
			}
		}
	}()
	return fn(tx)
}
