package boltstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"deerbot/store"
)

// held makes the committer wait inside a write, so that others queue up behind it. The returned func lets it go.
func held(t *testing.T, s *Store) (release func()) {
	t.Helper()
	inside, gate := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var once sync.Once
		if err := s.update(context.Background(), "hold", func(*txn) error {
			once.Do(func() { close(inside) })
			<-gate
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-inside
	return func() { close(gate); wg.Wait() }
}

// queued waits until n writes are in the queue.
func queued(s *Store, n int) {
	for len(s.queue) < n {
		runtime.Gosched()
	}
}

func TestGroupCommit(t *testing.T) {
	s := openNew(t, Options{})
	release := held(t, s)
	boom := errors.New("boom")
	put := func(name string) func(*txn) error {
		return func(tx *txn) error { return tx.Bucket(bMeta).Put([]byte(name), []byte("x")) }
	}
	const n = 20
	errs := make([]error, n)
	runs := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = s.update(t.Context(), "test", func(tx *txn) error {
				runs[i]++
				switch i % 4 {
				case 1: // fails after it wrote
					return errors.Join(put(fmt.Sprint("bad", i))(tx), boom)
				case 2: // fails before
					return boom
				case 3:
					if i == 3 {
						_ = put("panic")(tx)
						panic("ouch")
					}
				}
				return put(fmt.Sprint("good", i))(tx)
			})
		})
	}
	queued(s, n)
	var before int
	_ = s.view(t.Context(), "id", func(tx *txn) error { before = tx.ID(); return nil })
	release()
	wg.Wait()
	_ = s.view(t.Context(), "check", func(tx *txn) error {
		for i := range n {
			bad := i%4 == 1 || i%4 == 2 || i == 3
			if bad != (errs[i] != nil) {
				t.Errorf("write %d: %v", i, errs[i])
			}
			if got := tx.Bucket(bMeta).Get(fmt.Append(nil, "good", i)) != nil; got == bad {
				t.Errorf("write %d is there: %v", i, got)
			}
			if tx.Bucket(bMeta).Get(fmt.Append(nil, "bad", i)) != nil || tx.Bucket(bMeta).Get([]byte("panic")) != nil {
				t.Errorf("write %d left something", i)
			}
		}
		if commits := tx.ID() - before; commits > 2 { // of the one that was held, and of all the others
			t.Errorf("%d commits for %d writes", commits, n)
		}
		return nil
	})
	if !strings.Contains(fmt.Sprint(errs[3]), "ouch") {
		t.Errorf("panic gave %v", errs[3])
	}
	for i, r := range runs {
		if i%4 == 1 && r != 1 {
			t.Errorf("failing write %d ran %d times", i, r)
		}
	}
}

func TestCancelBeforeAndAfterStart(t *testing.T) {
	s := openNew(t, Options{})
	release := held(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ran := false
	got := make(chan error)
	go func() { got <- s.update(ctx, "test", func(*txn) error { ran = true; return nil }) }()
	queued(s, 1)
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) { // while the committer is still busy
		t.Fatalf("error %v", err)
	}
	release()
	if err := s.MarkStop(t.Context()); err != nil { // one more round of the committer
		t.Fatal(err)
	}
	if ran {
		t.Error("a write that was given up ran")
	}

	ctx, cancel = context.WithCancel(t.Context())
	inside, gate := make(chan struct{}), make(chan struct{})
	go func() {
		got <- s.update(ctx, "test", func(tx *txn) error {
			close(inside)
			<-gate
			return tx.Bucket(bMeta).Put([]byte("k"), []byte("v"))
		})
	}()
	<-inside
	cancel()
	close(gate)
	if err := <-got; err != nil {
		t.Fatalf("a started write ended with %v", err)
	}
	_ = s.view(t.Context(), "check", func(tx *txn) error {
		if tx.Bucket(bMeta).Get([]byte("k")) == nil {
			t.Error("a started write is not there")
		}
		return nil
	})
}

func TestCloseWaits(t *testing.T) {
	path := t.TempDir() + "/store.db"
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	release := held(t, s)
	const n = 10
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- s.PutUser(context.Background(), &store.User{ID: fmt.Sprint(i)}) }()
	}
	queued(s, n)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for s.mu.TryRLock() { // until Close has begun
		done := s.closed
		s.mu.RUnlock()
		if done {
			break
		}
		runtime.Gosched()
	}
	if err := s.PutUser(t.Context(), &store.User{ID: "late"}); !errors.Is(err, store.ErrClosed) {
		t.Fatalf("late write: %v", err)
	}
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	s = openAt(t, path, Options{})
	for i := range n {
		if _, err := s.User(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingToCommit: functions that change nothing cost no write to the disk.
func TestNothingToCommit(t *testing.T) {
	s := openNew(t, Options{})
	id := func() (id int) {
		_ = s.view(t.Context(), "id", func(tx *txn) error { id = tx.ID(); return nil })
		return id
	}
	before := id()
	if err := s.SettleInbound(t.Context(), "unknown"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), "unknown"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	if after := id(); after != before {
		t.Errorf("transaction %d became %d", before, after)
	}
}
