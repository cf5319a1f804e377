package boltstore

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"deerbot/store"
)

// threadHead is what changes with every checkpoint, apart from the thread's record so that a step writes little.
type threadHead struct {
	depth   uint64
	updated time.Time
	id      string
}

// getHead reads a thread's head. Every thread has one, so it tells whether there is such a thread.
func getHead(tx *txn, thread string) (h threadHead, err error) {
	v := tx.Bucket(bThreadOf).Get(ofThread(thread, tagHead))
	if v == nil {
		return h, fmt.Errorf("thread %s: %w", thread, store.ErrNotFound)
	}
	if len(v) < 16 {
		return h, fmt.Errorf("thread %s: %w", thread, errHeader)
	}
	return threadHead{binary.BigEndian.Uint64(v), timeOf(v[8:]), string(v[16:])}, nil
}

func putHead(tx *txn, thread string, h threadHead) error {
	return tx.Bucket(bThreadOf).Put(ofThread(thread, tagHead), join(num(h.depth), when(h.updated), []byte(h.id)))
}

func encodeThread(t store.Thread) ([]byte, error) {
	t.Head, t.Depth, t.CreatedAt, t.UpdatedAt = "", 0, t.CreatedAt.UTC(), time.Time{}
	return encode(&t)
}

func getThread(tx *txn, id string) (store.Thread, error) {
	h, err := getHead(tx, id)
	if err != nil {
		return store.Thread{}, err
	}
	t, err := get[store.Thread](tx.Bucket(bThread), []byte(id), "thread "+id)
	t.Head, t.Depth, t.UpdatedAt = h.id, h.depth, h.updated
	return t, err
}

// PutThread implements store.Threads.
func (s *Store) PutThread(ctx context.Context, t *store.Thread) error {
	body, err := encodeThread(*t)
	if err != nil {
		return fmt.Errorf("store: put thread: %w", err)
	}
	return s.update(ctx, "put thread", func(tx *txn) error {
		h, err := getHead(tx, t.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		h.updated = t.UpdatedAt
		if err := putHead(tx, t.ID, h); err != nil {
			return err
		}
		return tx.Bucket(bThread).Put([]byte(t.ID), body)
	})
}

// Thread implements store.Threads.
func (s *Store) Thread(ctx context.Context, id string) (t store.Thread, err error) {
	err = s.view(ctx, "thread", func(tx *txn) error {
		t, err = getThread(tx, id)
		return err
	})
	return t, err
}

// depthOf reads a checkpoint's depth.
func depthOf(tx *txn, thread, id string) (uint64, []byte, error) {
	v := tx.Bucket(bCheck).Get(append(key(thread), id...))
	if v == nil {
		return 0, nil, fmt.Errorf("checkpoint %s of thread %s: %w", id, thread, store.ErrNotFound)
	}
	if len(v) < 8 {
		return 0, nil, fmt.Errorf("checkpoint %s: %w", id, errHeader)
	}
	return binary.BigEndian.Uint64(v), v[8:], nil
}

// Checkpoints implements store.Threads.
func (s *Store) Checkpoints(ctx context.Context, threadID, head string) (out []store.Checkpoint, err error) {
	err = s.view(ctx, "checkpoints", func(tx *txn) error {
		if head == "" {
			h, err := getHead(tx, threadID)
			if err != nil {
				return err
			}
			head = h.id
		}
		for id, above := head, uint64(0); id != ""; {
			depth, body, err := depthOf(tx, threadID, id)
			if err != nil {
				return err
			}
			if above != 0 && depth != above-1 {
				return fmt.Errorf("checkpoint %s of thread %s has depth %d below depth %d", id, threadID, depth, above)
			}
			cp := store.Checkpoint{}
			if err := json.Unmarshal(body, &cp); err != nil {
				return fmt.Errorf("checkpoint %s: %w", id, err)
			}
			cp.ThreadID, cp.Depth, above = threadID, depth, depth
			out = append(out, cp)
			id = cp.Parent
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(out)
	return out, nil
}

// MoveHead implements store.Threads. An empty `to` is the thread before its first checkpoint.
func (s *Store) MoveHead(ctx context.Context, threadID, from, to string) error {
	return s.update(ctx, "move head", func(tx *txn) error {
		h, err := getHead(tx, threadID)
		if err != nil {
			return err
		}
		if h.id != from {
			return fmt.Errorf("thread %s is at %q: %w", threadID, h.id, store.ErrConflict)
		}
		if run := tx.Bucket(bThreadOf).Get(ofThread(threadID, tagActive)); run != nil {
			return fmt.Errorf("run %s is active: %w", run, store.ErrConflict)
		}
		h.id, h.depth = to, 0
		if to != "" {
			if h.depth, _, err = depthOf(tx, threadID, to); err != nil {
				return err
			}
		}
		return putHead(tx, threadID, h)
	})
}
