package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"deerbot/store"
)

func getRun(tx *bolt.Tx, id string) (store.Run, error) {
	return get[store.Run](tx.Bucket(bRun), []byte(id), "run "+id)
}

func putRun(tx *bolt.Tx, r *store.Run) error { return put(tx.Bucket(bRun), []byte(r.ID), r) }

func seqKey(threadID string, seq uint64) []byte { return join(key(threadID), num(seq)) }

// AdmitRun implements store.Runs.
func (s *Store) AdmitRun(ctx context.Context, in *store.Run, strategy store.Strategy) (got store.Run, reused bool, err error) {
	err = s.update(ctx, "admit run", func(tx *bolt.Tx) error {
		got, reused = *in, false
		r := &got
		if r.IdempotencyKey != "" {
			if id := tx.Bucket(bRunKey).Get(append(key(r.ThreadID), r.IdempotencyKey...)); id != nil {
				old, err := getRun(tx, string(id))
				got, reused = old, true
				return err
			}
		}
		t, err := get[store.Thread](tx.Bucket(bThread), []byte(r.ThreadID), "thread "+r.ThreadID)
		if err != nil {
			return err
		}
		busy := tx.Bucket(bRunActive).Get([]byte(r.ThreadID)) != nil || firstPending(tx, r.ThreadID) != ""
		if busy && strategy == store.StrategyReject {
			return fmt.Errorf("thread %s has a live run: %w", r.ThreadID, store.ErrConflict)
		}
		if r.State != store.RunRunning || busy {
			r.State, r.Owner, r.Epoch, r.LeaseUntil, r.StartedAt = store.RunPending, "", 0, time.Time{}, time.Time{}
		}
		if r.Seq, err = nextSeq(tx); err != nil {
			return err
		}
		if r.State == store.RunRunning {
			r.BaseHead = t.Head
			if err := tx.Bucket(bRunActive).Put([]byte(r.ThreadID), []byte(r.ID)); err != nil {
				return err
			}
		} else if err := tx.Bucket(bRunPending).Put(seqKey(r.ThreadID, r.Seq), []byte(r.ID)); err != nil {
			return err
		}
		if r.IdempotencyKey != "" {
			if err := tx.Bucket(bRunKey).Put(append(key(r.ThreadID), r.IdempotencyKey...), []byte(r.ID)); err != nil {
				return err
			}
		}
		if err := tx.Bucket(bRunLive).Put(num(r.Seq), []byte(r.ID)); err != nil {
			return err
		}
		if err := tx.Bucket(bRunThread).Put(seqKey(r.ThreadID, r.Seq), []byte(r.ID)); err != nil {
			return err
		}
		return putRun(tx, r)
	})
	return got, reused, err
}

// firstPending is the oldest pending run of a thread, "" if none.
func firstPending(tx *bolt.Tx, threadID string) string {
	prefix := key(threadID)
	k, id := tx.Bucket(bRunPending).Cursor().Seek(prefix)
	if !bytes.HasPrefix(k, prefix) {
		return ""
	}
	return string(id)
}

// change loads a run, lets fn change it, and stores it.
func (s *Store) change(ctx context.Context, op, id string, fn func(tx *bolt.Tx, r *store.Run) error) (got store.Run, err error) {
	err = s.update(ctx, op, func(tx *bolt.Tx) error {
		r, err := getRun(tx, id)
		if err != nil {
			return err
		}
		if err := fn(tx, &r); err != nil {
			return err
		}
		got = r
		return putRun(tx, &r)
	})
	return got, err
}

func conflict(r *store.Run, why string) error {
	return fmt.Errorf("run %s is %s, %s: %w", r.ID, r.State, why, store.ErrConflict)
}

// ClaimRun implements store.Runs.
func (s *Store) ClaimRun(ctx context.Context, id, owner string, leaseUntil time.Time) (store.Run, error) {
	return s.change(ctx, "claim run", id, func(tx *bolt.Tx, r *store.Run) error {
		if r.State != store.RunPending {
			return conflict(r, "not pending")
		}
		if active := tx.Bucket(bRunActive).Get([]byte(r.ThreadID)); active != nil {
			return conflict(r, "run "+string(active)+" is active")
		}
		if first := firstPending(tx, r.ThreadID); first != id {
			return conflict(r, "run "+first+" is before it")
		}
		t, err := get[store.Thread](tx.Bucket(bThread), []byte(r.ThreadID), "thread "+r.ThreadID)
		if err != nil {
			return err
		}
		r.State, r.Owner, r.LeaseUntil, r.BaseHead = store.RunRunning, owner, leaseUntil, t.Head
		r.StartedAt = time.Now().UTC()
		r.Epoch++
		if err := tx.Bucket(bRunPending).Delete(seqKey(r.ThreadID, r.Seq)); err != nil {
			return err
		}
		return tx.Bucket(bRunActive).Put([]byte(r.ThreadID), []byte(id))
	})
}

// TakeOverRun implements store.Runs.
func (s *Store) TakeOverRun(ctx context.Context, id, owner string, now, leaseUntil time.Time) (store.Run, error) {
	return s.change(ctx, "take over run", id, func(_ *bolt.Tx, r *store.Run) error {
		if !r.State.Active() {
			return conflict(r, "not active")
		}
		if !r.LeaseUntil.Before(now) {
			return conflict(r, "its lease holds")
		}
		r.Owner, r.LeaseUntil = owner, leaseUntil
		r.Epoch++
		r.Resumes++
		return nil
	})
}

func fenced(r *store.Run, epoch uint64) error {
	if !r.State.Active() || r.Epoch != epoch {
		return fmt.Errorf("run %s is %s at epoch %d, not %d: %w", r.ID, r.State, r.Epoch, epoch, store.ErrFenced)
	}
	return nil
}

// RenewLease implements store.Runs.
func (s *Store) RenewLease(ctx context.Context, id string, epoch uint64, leaseUntil time.Time) (store.Run, error) {
	return s.change(ctx, "renew lease", id, func(_ *bolt.Tx, r *store.Run) error {
		if err := fenced(r, epoch); err != nil {
			return err
		}
		r.LeaseUntil = leaseUntil
		return nil
	})
}

// WriteRun implements store.Runs.
func (s *Store) WriteRun(ctx context.Context, w *store.RunWrite) error {
	_, err := s.change(ctx, "write run", w.RunID, func(tx *bolt.Tx, r *store.Run) error {
		if err := fenced(r, w.Epoch); err != nil {
			return err
		}
		if err := writeThread(tx, r, w); err != nil {
			return err
		}
		journal := tx.Bucket(bJournal)
		journal.FillPercent = 0.9
		for i := range w.Events {
			e := &w.Events[i]
			if e.Seq != r.JournalSeq+1 {
				return fmt.Errorf("run %s: journal event %d after %d: %w", r.ID, e.Seq, r.JournalSeq, store.ErrConflict)
			}
			r.JournalSeq = e.Seq
			if err := put(journal, join(key(r.ID), num(e.Seq)), e); err != nil {
				return err
			}
		}
		for i := range w.Usage {
			row := &w.Usage[i]
			k := append(when(row.At), row.ID...)
			if err := put(tx.Bucket(bUsage), k, row); err != nil {
				return err
			}
			if err := tx.Bucket(bUsageRun).Put(join(key(r.ID), k), nil); err != nil {
				return err
			}
		}
		for i := range w.Artifacts {
			a := &w.Artifacts[i]
			if err := put(tx.Bucket(bArtThread), append(key(a.ThreadID), a.ID...), a); err != nil {
				return err
			}
			if err := tx.Bucket(bArtRun).Put(append(key(a.RunID), a.ID...), []byte(a.ThreadID)); err != nil {
				return err
			}
		}
		r.Stop = append(r.Stop, w.Stop...)
		if w.Totals != nil {
			r.Totals = *w.Totals
		}
		return transit(tx, r, w)
	})
	return err
}

func writeThread(tx *bolt.Tx, r *store.Run, w *store.RunWrite) error {
	if w.Checkpoint == nil && w.Title == "" {
		return nil
	}
	threads := tx.Bucket(bThread)
	t, err := get[store.Thread](threads, []byte(r.ThreadID), "thread "+r.ThreadID)
	if err != nil {
		return err
	}
	if cp := w.Checkpoint; cp != nil {
		if cp.Parent != t.Head {
			return fmt.Errorf("thread %s is at %q, not %q: %w", t.ID, t.Head, cp.Parent, store.ErrConflict)
		}
		rec := *cp
		rec.ThreadID, rec.Depth = t.ID, t.Depth+1
		b := tx.Bucket(bCheck)
		b.FillPercent = 0.9
		if err := put(b, append(key(t.ID), rec.ID...), &rec); err != nil {
			return err
		}
		t.Head, t.Depth, t.UpdatedAt = rec.ID, rec.Depth, rec.CreatedAt
	}
	if w.Title != "" {
		t.Title = w.Title
	}
	return put(threads, []byte(t.ID), &t)
}

// transit changes the run's state as w asks.
func transit(tx *bolt.Tx, r *store.Run, w *store.RunWrite) error {
	if w.To == "" || w.To == r.State {
		return nil
	}
	if w.To != store.RunFinalizing && !w.To.Terminal() || w.To == store.RunFinalizing && r.State != store.RunRunning {
		return conflict(r, "it cannot become "+string(w.To))
	}
	r.State = w.To
	if !w.To.Terminal() {
		return nil
	}
	r.EndedAt, r.Error, r.LeaseUntil = w.At, w.Error, time.Time{}
	if err := tx.Bucket(bRunActive).Delete([]byte(r.ThreadID)); err != nil {
		return err
	}
	return tx.Bucket(bRunLive).Delete(num(r.Seq))
}

// EndPending implements store.Runs.
func (s *Store) EndPending(ctx context.Context, id string, to store.RunState, stop []store.StopReason) error {
	_, err := s.change(ctx, "end pending run", id, func(tx *bolt.Tx, r *store.Run) error {
		if r.State != store.RunPending || !to.Terminal() {
			return conflict(r, "it cannot become "+string(to))
		}
		r.State, r.Stop, r.EndedAt = to, append(r.Stop, stop...), time.Now().UTC()
		if err := tx.Bucket(bRunPending).Delete(seqKey(r.ThreadID, r.Seq)); err != nil {
			return err
		}
		return tx.Bucket(bRunLive).Delete(num(r.Seq))
	})
	return err
}

// RequestCancel implements store.Runs.
func (s *Store) RequestCancel(ctx context.Context, id, by string) error {
	_, err := s.change(ctx, "request cancel", id, func(_ *bolt.Tx, r *store.Run) error {
		if r.State.Terminal() {
			return conflict(r, "over")
		}
		if r.CancelRequested == "" {
			r.CancelRequested = by
		}
		return nil
	})
	return err
}

// Run implements store.Runs.
func (s *Store) Run(ctx context.Context, id string) (r store.Run, err error) {
	err = s.view(ctx, "run", func(tx *bolt.Tx) error {
		r, err = getRun(tx, id)
		return err
	})
	return r, err
}

// ActiveRun implements store.Runs.
func (s *Store) ActiveRun(ctx context.Context, threadID string) (r store.Run, err error) {
	err = s.view(ctx, "active run", func(tx *bolt.Tx) error {
		id := tx.Bucket(bRunActive).Get([]byte(threadID))
		if id == nil {
			return fmt.Errorf("thread %s has no active run: %w", threadID, store.ErrNotFound)
		}
		r, err = getRun(tx, string(id))
		return err
	})
	return r, err
}

// runsBy lists the runs an index bucket names below prefix, in order of the index.
func (s *Store) runsBy(ctx context.Context, op string, bucket, prefix []byte) (out []store.Run, err error) {
	err = s.view(ctx, op, func(tx *bolt.Tx) error {
		return scan(tx.Bucket(bucket), prefix, func(_, id []byte) (bool, error) {
			r, err := getRun(tx, string(id))
			out = append(out, r)
			return true, err
		})
	})
	return out, err
}

// PendingRuns implements store.Runs.
func (s *Store) PendingRuns(ctx context.Context, threadID string) ([]store.Run, error) {
	return s.runsBy(ctx, "pending runs", bRunPending, key(threadID))
}

// LiveRuns implements store.Runs.
func (s *Store) LiveRuns(ctx context.Context) ([]store.Run, error) {
	return s.runsBy(ctx, "live runs", bRunLive, nil)
}

// ThreadRuns implements store.Runs.
func (s *Store) ThreadRuns(ctx context.Context, threadID string, limit int) (out []store.Run, err error) {
	err = s.view(ctx, "thread runs", func(tx *bolt.Tx) error {
		prefix := key(threadID)
		c := tx.Bucket(bRunThread).Cursor()
		k, id := c.Seek(join(prefix, num(^uint64(0))))
		if k == nil {
			k, id = c.Last()
		}
		for ; k != nil && len(out) < limit; k, id = c.Prev() {
			if !bytes.HasPrefix(k, prefix) {
				if bytes.Compare(k, prefix) < 0 {
					break
				}
				continue
			}
			r, err := getRun(tx, string(id))
			if err != nil {
				return err
			}
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// JournalEvents implements store.Journal.
func (s *Store) JournalEvents(ctx context.Context, runID string, after uint64, limit int) (out []store.JournalEvent, err error) {
	err = s.view(ctx, "journal", func(tx *bolt.Tx) error {
		prefix := key(runID)
		c := tx.Bucket(bJournal).Cursor()
		for k, v := c.Seek(join(prefix, num(after+1))); bytes.HasPrefix(k, prefix) && len(out) < limit; k, v = c.Next() {
			var e store.JournalEvent
			if err := json.Unmarshal(v, &e); err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	return out, err
}
