package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deerbot/store"
)

// WriteRun implements store.Runs.
func (s *Store) WriteRun(ctx context.Context, w *store.RunWrite) error {
	e, err := encodeWrite(w)
	if err != nil {
		return fmt.Errorf("store: write run: %w", err)
	}
	return s.change(ctx, "write run", w.RunID, func(tx *txn, r *runState) error { return applyWrite(tx, r, w, e) })
}

// applyWrite does all parts of w, or fails.
func applyWrite(tx *txn, r *runState, w *store.RunWrite, e encoded) error {
	if err := fenced(r, w.Epoch); err != nil {
		return err
	}
	if err := writeThread(tx, r, w, e.checkpoint); err != nil {
		return err
	}
	if err := writeJournal(tx, r, w, e.events); err != nil {
		return err
	}
	if err := writeUsage(tx, w, e.usage); err != nil {
		return err
	}
	if err := writeArtifacts(tx, r, w); err != nil {
		return err
	}
	r.Stop = append(r.Stop, w.Stop...)
	if w.Totals != nil {
		r.Totals = *w.Totals
	}
	return transit(tx, r, w)
}

// encoded is what of a RunWrite can be encoded without knowing the run.
type encoded struct {
	checkpoint []byte
	events     []chunk
	usage      [][]byte
}

// chunk is a number of events that are stored as one record.
type chunk struct {
	first uint64
	list  []byte
}

// maxChunk bounds the JSON of a chunk of more than one event. It keeps reading a few events cheap.
const maxChunk = 32 << 10

func encodeWrite(w *store.RunWrite) (e encoded, err error) {
	if cp := w.Checkpoint; cp != nil {
		if cp.ID == "" {
			return e, errors.New("checkpoint without id")
		}
		rec := *cp
		rec.ThreadID, rec.Depth, rec.CreatedAt = "", 0, cp.CreatedAt.UTC()
		if e.checkpoint, err = encode(&rec); err != nil {
			return e, fmt.Errorf("checkpoint: %w", err)
		}
	}
	if e.events, err = encodeEvents(w.Events); err != nil {
		return e, err
	}
	for i := range w.Usage {
		row := w.Usage[i]
		row.RunID, row.At = w.RunID, row.At.UTC()
		raw, err := encode(&row)
		if err != nil {
			return e, fmt.Errorf("usage: %w", err)
		}
		e.usage = append(e.usage, raw)
	}
	return e, nil
}

func encodeEvents(events []store.JournalEvent) (out []chunk, err error) {
	for _, ev := range events {
		ev.RunID, ev.At = "", ev.At.UTC() // the key has the run
		raw, err := encode(&ev)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		if n := len(out) - 1; n >= 0 && len(out[n].list)+len(raw) < maxChunk {
			list := out[n].list
			list[len(list)-1] = ','
			out[n].list = append(append(list, raw...), ']')
			continue
		}
		list := append(make([]byte, 0, len(raw)+2), '[')
		out = append(out, chunk{ev.Seq, append(append(list, raw...), ']')})
	}
	return out, nil
}

// writeThread appends the checkpoint and sets the title.
func writeThread(tx *txn, r *runState, w *store.RunWrite, body []byte) error {
	if cp := w.Checkpoint; cp != nil {
		h, err := getHead(tx, r.ThreadID)
		if err != nil {
			return err
		}
		if cp.Parent != h.id {
			return fmt.Errorf("thread %s is at %q, not %q: %w", r.ThreadID, h.id, cp.Parent, store.ErrConflict)
		}
		b, k := tx.Bucket(bCheck), append(key(r.ThreadID), cp.ID...)
		if b.Get(k) != nil {
			return fmt.Errorf("checkpoint %s exists: %w", cp.ID, store.ErrConflict)
		}
		h = threadHead{depth: h.depth + 1, updated: cp.CreatedAt, id: cp.ID}
		if err := b.Put(k, join(num(h.depth), body)); err != nil {
			return err
		}
		if err := putHead(tx, r.ThreadID, h); err != nil {
			return err
		}
	}
	if w.Title == "" {
		return nil
	}
	t, err := get[store.Thread](tx.Bucket(bThread), []byte(r.ThreadID), "thread "+r.ThreadID)
	if err != nil {
		return err
	}
	t.Title = w.Title
	return put(tx.Bucket(bThread), []byte(r.ThreadID), &t)
}

func writeJournal(tx *txn, r *runState, w *store.RunWrite, chunks []chunk) error {
	for i := range w.Events {
		if seq := w.Events[i].Seq; seq != r.JournalSeq+1 {
			return fmt.Errorf("journal event %d after %d: %w", seq, r.JournalSeq, store.ErrConflict)
		}
		r.JournalSeq++
	}
	for _, c := range chunks {
		if err := tx.Bucket(bRunOf).Put(ofRun(w.RunID, tagJournal, num(c.first)...), c.list); err != nil {
			return err
		}
	}
	return nil
}

func writeUsage(tx *txn, w *store.RunWrite, rows [][]byte) error {
	for i := range w.Usage {
		k := append(when(w.Usage[i].At), w.Usage[i].ID...)
		if err := tx.Bucket(bUsage).Put(k, rows[i]); err != nil {
			return err
		}
		if err := tx.Bucket(bRunOf).Put(ofRun(w.RunID, tagUsage, k...), nil); err != nil {
			return err
		}
	}
	return nil
}

func writeArtifacts(tx *txn, r *runState, w *store.RunWrite) error {
	for _, a := range w.Artifacts {
		a.ThreadID, a.RunID, a.CreatedAt = r.ThreadID, w.RunID, a.CreatedAt.UTC()
		if err := put(tx.Bucket(bArtThread), append(key(a.ThreadID), a.ID...), &a); err != nil {
			return err
		}
		if err := tx.Bucket(bRunOf).Put(ofRun(a.RunID, tagArtifact, []byte(a.ID)...), []byte(a.ThreadID)); err != nil {
			return err
		}
	}
	return nil
}

// transit changes the run's state as w asks.
func transit(tx *txn, r *runState, w *store.RunWrite) error {
	if w.To == "" || w.To == r.State {
		return nil
	}
	if w.To != store.RunFinalizing && !w.To.Terminal() {
		return conflict(r, "it cannot become "+string(w.To))
	}
	r.State = w.To
	if !w.To.Terminal() {
		return nil
	}
	r.EndedAt, r.Error, r.LeaseUntil = w.At.UTC(), w.Error, time.Time{}
	if err := tx.Bucket(bThreadOf).Delete(ofThread(r.ThreadID, tagActive)); err != nil {
		return err
	}
	return tx.Bucket(bRunLive).Delete(num(r.Seq))
}

// JournalEvents implements store.Journal.
func (s *Store) JournalEvents(ctx context.Context, runID string, after uint64, limit int) (out []store.JournalEvent, err error) {
	if after == ^uint64(0) {
		return nil, nil
	}
	err = s.view(ctx, "journal", func(tx *txn) error {
		prefix := ofRun(runID, tagJournal)
		c := tx.Bucket(bRunOf).Cursor()
		k, v := c.Seek(join(prefix, num(after+1)))
		if !bytes.HasPrefix(k, prefix) || !bytes.Equal(k[len(prefix):], num(after+1)) {
			// The wanted event may be in the middle of the chunk before.
			if k == nil {
				k, v = c.Last()
			} else {
				k, v = c.Prev()
			}
			if !bytes.HasPrefix(k, prefix) {
				k, v = c.Seek(prefix)
			}
		}
		for ; bytes.HasPrefix(k, prefix) && len(out) < limit; k, v = c.Next() {
			var list []store.JournalEvent
			if err := json.Unmarshal(v, &list); err != nil {
				return fmt.Errorf("events of run %s: %w", runID, err)
			}
			for _, e := range list {
				if e.Seq > after && len(out) < limit {
					e.RunID = runID
					out = append(out, e)
				}
			}
		}
		return nil
	})
	return out, err
}
