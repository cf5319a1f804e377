package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"deerbot/store"
)

// runState is what changes in a run. The rest is encoded once, by admission.
type runState struct {
	ThreadID        string             `json:"t"`
	State           store.RunState     `json:"s"`
	BaseHead        string             `json:"b,omitempty"`
	Owner           string             `json:"o,omitempty"`
	Epoch           uint64             `json:"e,omitempty"`
	LeaseUntil      time.Time          `json:"l,omitzero"`
	Resumes         int                `json:"r,omitempty"`
	CancelRequested string             `json:"c,omitempty"`
	Stop            []store.StopReason `json:"stop,omitempty"`
	Totals          store.Totals       `json:"totals,omitzero"`
	JournalSeq      uint64             `json:"j,omitempty"`
	Error           string             `json:"err,omitempty"`
	Seq             uint64             `json:"seq"`
	StartedAt       time.Time          `json:"started,omitzero"`
	EndedAt         time.Time          `json:"ended,omitzero"`
}

// split takes a run apart into what is fixed and what changes.
func split(r store.Run) (store.Run, runState) {
	st := runState{
		r.ThreadID, r.State, r.BaseHead, r.Owner, r.Epoch, r.LeaseUntil.UTC(), r.Resumes, r.CancelRequested, r.Stop, r.Totals,
		r.JournalSeq, r.Error, r.Seq, r.StartedAt.UTC(), r.EndedAt.UTC(),
	}
	none := store.Run{}
	r.State, r.BaseHead, r.Owner, r.Epoch, r.LeaseUntil, r.Resumes, r.CancelRequested = "", "", "", 0, none.LeaseUntil, 0, ""
	r.Stop, r.Totals, r.JournalSeq, r.Error, r.Seq, r.StartedAt, r.EndedAt = nil, none.Totals, 0, "", 0, none.StartedAt, none.EndedAt
	r.CreatedAt = r.CreatedAt.UTC()
	return r, st
}

// on puts the changing part back.
func (st *runState) on(r *store.Run) {
	r.State, r.BaseHead, r.Owner, r.Epoch, r.LeaseUntil = st.State, st.BaseHead, st.Owner, st.Epoch, st.LeaseUntil
	r.Resumes, r.CancelRequested, r.Stop, r.Totals, r.JournalSeq = st.Resumes, st.CancelRequested, st.Stop, st.Totals, st.JournalSeq
	r.Error, r.Seq, r.StartedAt, r.EndedAt = st.Error, st.Seq, st.StartedAt, st.EndedAt
}

func getState(tx *txn, id string) (runState, error) {
	return get[runState](tx.Bucket(bRunOf), ofRun(id, tagState), "run "+id)
}

func getRun(tx *txn, id string) (store.Run, error) {
	st, err := getState(tx, id)
	if err != nil {
		return store.Run{}, err
	}
	r, err := get[store.Run](tx.Bucket(bRun), []byte(id), "run "+id)
	st.on(&r)
	return r, err
}

// AdmitRun implements store.Runs.
func (s *Store) AdmitRun(ctx context.Context, in *store.Run, strategy store.Strategy) (got store.Run, reused bool, err error) {
	fixed, first := split(*in)
	body, err := encode(&fixed)
	if err != nil {
		return got, false, fmt.Errorf("store: admit run: %w", err)
	}
	err = s.update(ctx, "admit run", func(tx *txn) error {
		of, st := tx.Bucket(bThreadOf), first
		reused = false
		if in.IdempotencyKey != "" {
			if id := of.Get(ofThread(in.ThreadID, tagKey, []byte(in.IdempotencyKey)...)); id != nil {
				reused = true
				got, err = getRun(tx, string(id))
				return err
			}
		}
		h, err := getHead(tx, in.ThreadID)
		if err != nil {
			return err
		}
		if tx.Bucket(bRunOf).Get(ofRun(in.ID, tagState)) != nil {
			return fmt.Errorf("run %s exists: %w", in.ID, store.ErrConflict)
		}
		busy := of.Get(ofThread(in.ThreadID, tagActive)) != nil || firstPending(tx, in.ThreadID) != ""
		if busy && strategy == store.StrategyReject {
			return fmt.Errorf("thread %s has a live run: %w", in.ThreadID, store.ErrConflict)
		}
		if st.Seq, err = nextSeq(tx); err != nil {
			return err
		}
		if st.State == store.RunRunning && !busy {
			st.Epoch, st.BaseHead = 1, h.id
			err = of.Put(ofThread(in.ThreadID, tagActive), []byte(in.ID))
		} else {
			st.State, st.Owner, st.Epoch, st.LeaseUntil, st.StartedAt = store.RunPending, "", 0, time.Time{}, time.Time{}
			err = of.Put(ofThread(in.ThreadID, tagPending, num(st.Seq)...), []byte(in.ID))
		}
		if err != nil {
			return err
		}
		if in.IdempotencyKey != "" {
			if err := of.Put(ofThread(in.ThreadID, tagKey, []byte(in.IdempotencyKey)...), []byte(in.ID)); err != nil {
				return err
			}
		}
		if err := of.Put(ofThread(in.ThreadID, tagRun, num(st.Seq)...), []byte(in.ID)); err != nil {
			return err
		}
		if err := tx.Bucket(bRunLive).Put(num(st.Seq), []byte(in.ID)); err != nil {
			return err
		}
		if err := tx.Bucket(bRun).Put([]byte(in.ID), body); err != nil {
			return err
		}
		got = *in
		st.on(&got)
		return put(tx.Bucket(bRunOf), ofRun(in.ID, tagState), &st)
	})
	if err != nil {
		return store.Run{}, false, err
	}
	return got, reused, nil
}

// firstPending is the oldest pending run of a thread, "" if none.
func firstPending(tx *txn, threadID string) string {
	prefix := ofThread(threadID, tagPending)
	k, id := tx.Bucket(bThreadOf).Cursor().Seek(prefix)
	if !bytes.HasPrefix(k, prefix) {
		return ""
	}
	return string(id)
}

// change loads a run's state, lets fn change it, and stores it.
func (s *Store) change(ctx context.Context, op, id string, fn func(tx *txn, r *runState) error) error {
	return s.update(ctx, op, func(tx *txn) error {
		st, err := getState(tx, id)
		if err != nil {
			return err
		}
		if err := fn(tx, &st); err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
		return put(tx.Bucket(bRunOf), ofRun(id, tagState), &st)
	})
}

// changed is change that returns the whole run as it is then.
func (s *Store) changed(ctx context.Context, op, id string, fn func(tx *txn, r *runState) error) (got store.Run, err error) {
	err = s.change(ctx, op, id, func(tx *txn, st *runState) error {
		if err := fn(tx, st); err != nil {
			return err
		}
		r, err := getRun(tx, id)
		if err != nil {
			return err
		}
		st.on(&r)
		got = r
		return nil
	})
	if err != nil {
		return store.Run{}, err
	}
	return got, nil
}

func conflict(r *runState, why string) error {
	return fmt.Errorf("it is %s, %s: %w", r.State, why, store.ErrConflict)
}

// ClaimRun implements store.Runs.
func (s *Store) ClaimRun(ctx context.Context, id, owner string, leaseUntil time.Time) (store.Run, error) {
	now := time.Now().UTC()
	return s.changed(ctx, "claim run", id, func(tx *txn, r *runState) error {
		of := tx.Bucket(bThreadOf)
		if r.State != store.RunPending {
			return conflict(r, "not pending")
		}
		if active := of.Get(ofThread(r.ThreadID, tagActive)); active != nil {
			return conflict(r, "run "+string(active)+" is active")
		}
		if first := firstPending(tx, r.ThreadID); first != id {
			return conflict(r, "run "+first+" is before it")
		}
		h, err := getHead(tx, r.ThreadID)
		if err != nil {
			return err
		}
		r.State, r.Owner, r.LeaseUntil, r.BaseHead, r.StartedAt = store.RunRunning, owner, leaseUntil.UTC(), h.id, now
		r.Epoch++
		if err := of.Delete(ofThread(r.ThreadID, tagPending, num(r.Seq)...)); err != nil {
			return err
		}
		return of.Put(ofThread(r.ThreadID, tagActive), []byte(id))
	})
}

// TakeOverRun implements store.Runs.
func (s *Store) TakeOverRun(ctx context.Context, id, owner string, now, leaseUntil time.Time) (store.Run, error) {
	return s.changed(ctx, "take over run", id, func(_ *txn, r *runState) error {
		if !r.State.Active() {
			return conflict(r, "not active")
		}
		if !r.LeaseUntil.Before(now) {
			return conflict(r, "its lease holds")
		}
		r.Owner, r.LeaseUntil = owner, leaseUntil.UTC()
		r.Epoch++
		r.Resumes++
		return nil
	})
}

// fenced refuses writes of a run by who does not own it.
func fenced(r *runState, epoch uint64) error {
	if !r.State.Active() || r.Epoch != epoch {
		return fmt.Errorf("it is %s at epoch %d, not %d: %w", r.State, r.Epoch, epoch, store.ErrFenced)
	}
	return nil
}

// RenewLease implements store.Runs.
func (s *Store) RenewLease(ctx context.Context, id string, epoch uint64, leaseUntil time.Time) (store.Run, error) {
	return s.changed(ctx, "renew lease", id, func(_ *txn, r *runState) error {
		if err := fenced(r, epoch); err != nil {
			return err
		}
		r.LeaseUntil = leaseUntil.UTC()
		return nil
	})
}

// EndPending implements store.Runs.
func (s *Store) EndPending(ctx context.Context, id string, to store.RunState, stop []store.StopReason) error {
	return s.change(ctx, "end pending run", id, func(tx *txn, r *runState) error {
		if r.State != store.RunPending || !to.Terminal() {
			return conflict(r, "it cannot become "+string(to))
		}
		r.State, r.Stop, r.EndedAt = to, append(r.Stop, stop...), time.Now().UTC()
		if err := tx.Bucket(bThreadOf).Delete(ofThread(r.ThreadID, tagPending, num(r.Seq)...)); err != nil {
			return err
		}
		return tx.Bucket(bRunLive).Delete(num(r.Seq))
	})
}

// RequestCancel implements store.Runs.
func (s *Store) RequestCancel(ctx context.Context, id, by string) error {
	return s.change(ctx, "request cancel", id, func(_ *txn, r *runState) error {
		if r.State.Terminal() {
			return conflict(r, "over")
		}
		if r.CancelRequested == "" {
			r.CancelRequested = by
		}
		return nil
	})
}

// Run implements store.Runs.
func (s *Store) Run(ctx context.Context, id string) (r store.Run, err error) {
	err = s.view(ctx, "run", func(tx *txn) error {
		r, err = getRun(tx, id)
		return err
	})
	return r, err
}

// ActiveRun implements store.Runs.
func (s *Store) ActiveRun(ctx context.Context, threadID string) (r store.Run, err error) {
	err = s.view(ctx, "active run", func(tx *txn) error {
		id := tx.Bucket(bThreadOf).Get(ofThread(threadID, tagActive))
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
	err = s.view(ctx, op, func(tx *txn) error {
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
	return s.runsBy(ctx, "pending runs", bThreadOf, ofThread(threadID, tagPending))
}

// LiveRuns implements store.Runs.
func (s *Store) LiveRuns(ctx context.Context) ([]store.Run, error) {
	return s.runsBy(ctx, "live runs", bRunLive, nil)
}

// ThreadRuns implements store.Runs.
func (s *Store) ThreadRuns(ctx context.Context, threadID string, limit int) (out []store.Run, err error) {
	err = s.view(ctx, "thread runs", func(tx *txn) error {
		prefix := ofThread(threadID, tagRun)
		c := tx.Bucket(bThreadOf).Cursor()
		behind, _ := c.Seek(join(prefix, num(^uint64(0)))) // behind the newest
		back := c.Prev
		if behind == nil {
			back = c.Last
		}
		k, id := back()
		for ; bytes.HasPrefix(k, prefix) && len(out) < limit; k, id = c.Prev() {
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
