package boltstore

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deerbot/store"
)

// TestStepBytesFlat: what a step writes does not grow with the thread.
func TestStepBytesFlat(t *testing.T) {
	s, ctx := openNew(t, Options{}), t.Context()
	s.db.NoSync = true
	// The store is not new: the depth of its trees grows with the logarithm of all there is, which is not the matter here.
	for i := range 50 {
		other, err := newTalk(ctx, s, 1000+i)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			if err := step(s, other, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	talk, err := newTalk(ctx, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	lengths := []int{100, 1000, 10000}
	if testing.Short() {
		lengths = lengths[:2]
	}
	var got []float64
	for _, length := range lengths {
		for talk.n < length-100 {
			talk.n++
			if err := step(s, talk, nil); err != nil {
				t.Fatal(err)
			}
		}
		before := written
		for range 100 {
			talk.n++
			if err := step(s, talk, s.countPages); err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, float64(written-before)/100)
	}
	t.Logf("bytes written per WriteRun at lengths %v: %.0f", lengths, got)
	for i := range got {
		if got[i] > 1.2*got[0] {
			t.Errorf("at length %d a step writes %.0f bytes, at %d %.0f", lengths[i], got[i], lengths[0], got[0])
		}
	}
}

// written counts bytes of pages that were written to the file.
var written int64

// countPages adds what the last transaction wrote: the pages it allocated and a meta page.
func (s *Store) countPages(tx *txn) {
	tx.OnCommit(func() {
		st := tx.Stats()
		written += st.GetPageAlloc() + int64(os.Getpagesize())
	})
}

// step is a run of one step, with its pages counted when count is set.
func step(s *Store, t *talk, count func(*txn)) error {
	now := time.Now().UTC()
	r := store.Run{ID: newID(), ThreadID: t.thread, State: store.RunRunning, Owner: "o", LeaseUntil: now.Add(time.Minute), CreatedAt: now}
	r, _, err := s.AdmitRun(context.Background(), &r, store.StrategyReject)
	if err != nil {
		return err
	}
	w := t.write(r)
	if count == nil {
		return s.WriteRun(context.Background(), w)
	}
	e, err := encodeWrite(w)
	if err != nil {
		return err
	}
	return s.change(context.Background(), "write run", w.RunID, func(tx *txn, st *runState) error {
		count(tx)
		return applyWrite(tx, st, w, e)
	})
}

// BenchmarkColdOpen: a store with 10,000 threads is ready soon, though its free list is found by a scan.
func BenchmarkColdOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "store.db")
	s, err := Open(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	s.db.NoSync = true
	for i := range 10000 {
		t, err := newTalk(b.Context(), s, i)
		if err != nil {
			b.Fatal(err)
		}
		if err := step(s, t, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	var look time.Duration
	for b.Loop() {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if err := verify(f, fi.Size()); err != nil {
			b.Fatal(err)
		}
		look += time.Since(start)
		_ = f.Close()
		if s, err = Open(path, Options{}); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(fi.Size()>>20), "MiB")
	b.ReportMetric(float64(look.Microseconds())/float64(b.N)/1000, "verify-ms/op")
}
