// Package thread is a thread's state in memory: its messages, its keys, and what of them is not on disk yet.
//
// On disk a thread is a chain of checkpoints, each only what one step added (see store.Checkpoint), so what a step writes
// does not grow with the thread. [Load] folds the chain into a [Log]; a run appends to it and takes the unwritten part as
// the next checkpoint. Nothing of a thread stays in memory between runs.
package thread

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"deerbot/runtime/model"
	"deerbot/store"
)

// SnapshotEvery is how many checkpoints may pass until one carries all state keys again.
const SnapshotEvery = 64

// State keys in use.
const (
	KeyTodos = "todos"
	KeyTitle = "title"
)

// Log is the state of one thread. It is not safe for concurrent use: a run owns it.
type Log struct {
	threadID string
	head     string
	depth    uint64
	messages []model.Message
	values   map[string]json.RawMessage

	written int             // messages that are on disk
	dirty   map[string]bool // keys that are not
	ids     map[string]bool
}

// New returns the log of a thread without checkpoints.
func New(threadID string) *Log {
	return &Log{threadID: threadID, values: map[string]json.RawMessage{}, dirty: map[string]bool{}, ids: map[string]bool{}}
}

// Load folds the checkpoints up to head ("" = the thread's own head) into a log.
func Load(ctx context.Context, s store.Threads, threadID, head string) (*Log, error) {
	cps, err := s.Checkpoints(ctx, threadID, head)
	if err != nil {
		return nil, fmt.Errorf("thread %s: %w", threadID, err)
	}
	l := New(threadID)
	for _, cp := range cps {
		if err := l.apply(cp); err != nil {
			return nil, fmt.Errorf("thread %s: checkpoint %s: %w", threadID, cp.ID, err)
		}
	}
	l.written = len(l.messages)
	return l, nil
}

func (l *Log) apply(cp store.Checkpoint) error {
	for _, raw := range cp.Messages {
		var m model.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("message %d: %w", len(l.messages), err)
		}
		l.add(m)
	}
	if cp.Snapshot {
		clear(l.values)
	}
	for k, v := range cp.State {
		if len(v) == 0 || string(v) == "null" {
			delete(l.values, k)
			continue
		}
		l.values[k] = v
	}
	l.head, l.depth = cp.ID, cp.Depth
	return nil
}

func (l *Log) add(m model.Message) {
	l.messages = append(l.messages, m)
	l.ids[m.ID] = true
}

// ThreadID names the thread.
func (l *Log) ThreadID() string { return l.threadID }

// Head is the checkpoint that the log continues.
func (l *Log) Head() string { return l.head }

// Messages returns the messages in order. The slice is the log's own: read only.
func (l *Log) Messages() []model.Message { return l.messages }

// Has reports whether a message of that id is in the thread.
func (l *Log) Has(id string) bool { return l.ids[id] }

// Append adds messages. A message whose id is in the thread already is left out, which makes replays harmless.
func (l *Log) Append(ms ...model.Message) {
	for _, m := range ms {
		if m.ID == "" || l.ids[m.ID] {
			continue
		}
		l.add(m)
	}
}

// Value returns a state key as JSON, nil when unset.
func (l *Log) Value(key string) json.RawMessage { return l.values[key] }

// Set changes a state key; a nil value removes it.
func (l *Log) Set(key string, v any) error {
	if v == nil {
		delete(l.values, key)
		l.dirty[key] = true
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("state key %s: %w", key, err)
	}
	if string(l.values[key]) == string(raw) {
		return nil
	}
	l.values[key] = raw
	l.dirty[key] = true
	return nil
}

// Pending reports whether something is not on disk.
func (l *Log) Pending() bool { return l.written < len(l.messages) || len(l.dirty) > 0 }

// Checkpoint makes the record of what is pending, or nil when nothing is. Call Committed once it is stored.
func (l *Log) Checkpoint(id, runID string, step int, now time.Time) (*store.Checkpoint, error) {
	if !l.Pending() {
		return nil, nil
	}
	cp := &store.Checkpoint{ID: id, ThreadID: l.threadID, Parent: l.head, RunID: runID, Step: step, CreatedAt: now}
	for _, m := range l.messages[l.written:] {
		raw, err := json.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("thread %s: message %s: %w", l.threadID, m.ID, err)
		}
		cp.Messages = append(cp.Messages, raw)
	}
	if (l.depth+1)%SnapshotEvery == 0 {
		cp.Snapshot = true
		cp.State = make(map[string]json.RawMessage, len(l.values))
		maps.Copy(cp.State, l.values)
		return cp, nil
	}
	for k := range l.dirty {
		if cp.State == nil {
			cp.State = make(map[string]json.RawMessage, len(l.dirty))
		}
		v := l.values[k]
		if v == nil {
			v = json.RawMessage("null")
		}
		cp.State[k] = v
	}
	return cp, nil
}

// Committed records that cp, made by Checkpoint, is on disk.
func (l *Log) Committed(cp *store.Checkpoint) {
	l.written += len(cp.Messages)
	clear(l.dirty)
	l.head = cp.ID
	l.depth++
}
