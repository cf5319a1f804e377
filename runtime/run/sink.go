package run

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"deerbot/internal/crash"
	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/thread"
	"deerbot/store"
)

// How long journal events may wait for a commit that carries them anyway.
const (
	journalDelay = 50 * time.Millisecond
	journalBatch = 64
)

// sink is a run's agent.Sink: live events go to the bridge at once, durable ones wait for the next commit, or for
// journalDelay when none comes.
type sink struct {
	m     *Manager
	log   *thread.Log
	runID string
	epoch uint64
	run   *agent.Run // whose totals go with each commit; nil for a run that does not work

	mu        sync.Mutex // guards what is below; held over store calls, so that writes of the run are in order
	seq       uint64     // last journal sequence made
	events    []store.JournalEvent
	usage     []store.UsageRow
	artifacts []store.Artifact
	presented map[string]bool // paths of artifacts, written or not
	title     string
	timer     *time.Timer
	closed    bool
}

func newSink(m *Manager, r store.Run, log *thread.Log) *sink {
	return &sink{m: m, log: log, runID: r.ID, epoch: r.Epoch, seq: r.JournalSeq}
}

// Emit implements agent.Sink.
func (s *sink) Emit(step int, b event.Body) {
	e := event.Event{Run: s.runID, Thread: s.log.ThreadID(), At: s.m.cfg.Now(), Step: step, Body: b}
	s.m.cfg.Bridge.Publish(e)
	if event.Live(b) {
		if _, ok := b.(event.MessageDelta); ok {
			crash.Point(crash.ModelStreaming)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal(e)
	if s.timer == nil && !s.closed {
		s.timer = time.AfterFunc(journalDelay, s.flush)
	}
}

// journal adds e to the next write. s.mu is held.
func (s *sink) journal(e event.Event) {
	if s.closed {
		return
	}
	s.seq++
	e.Seq = s.seq
	data, err := json.Marshal(e)
	if err != nil {
		s.m.cfg.Log.Error("event has no JSON form", "run", s.runID, "kind", e.Body.Kind(), "err", err)
		s.seq--
		return
	}
	s.events = append(s.events, store.JournalEvent{RunID: s.runID, Seq: s.seq, At: e.At, Kind: e.Body.Kind(), Data: data})
}

// Usage implements agent.Sink.
func (s *sink) Usage(row store.UsageRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage = append(s.usage, row)
}

// Artifact implements agent.Sink.
func (s *sink) Artifact(a store.Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.artifacts = append(s.artifacts, a)
	if s.presented == nil {
		s.presented = map[string]bool{}
	}
	s.presented[a.Path] = true
}

// presentedPaths returns a copy of the paths presented so far.
func (s *sink) presentedPaths() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]bool, len(s.presented))
	for p := range s.presented {
		out[p] = true
	}
	return out
}

// Commit implements agent.Sink. A cancel does not cut it: what the step said would stay unsaid, and its calls unanswered.
func (s *sink) Commit(ctx context.Context, step int) error {
	return s.write(context.WithoutCancel(ctx), step, true, nil)
}

// flush writes the journal when no commit came along. Failing is not the end: the next write carries the events.
func (s *sink) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s.mu.Lock()
	s.timer = nil
	idle := s.closed || len(s.events) == 0
	s.mu.Unlock()
	if idle {
		return
	}
	if err := s.write(ctx, 0, false, nil); err != nil {
		s.m.cfg.Log.Warn("journal not flushed, kept for the next write", "run", s.runID, "err", err)
	}
}

// write makes one transaction of all that is pending. withLog says whether the thread's pending part goes too (only the
// loop's goroutine may say so). end, when set, makes it the terminal one.
func (s *sink) write(ctx context.Context, step int, withLog bool, end *store.RunWrite) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil // a flush that comes after the end
	}
	w := end
	if w == nil {
		w = &store.RunWrite{}
	}
	w.RunID, w.Epoch = s.runID, s.epoch
	var cp *store.Checkpoint
	if withLog {
		var err error
		if cp, err = s.log.Checkpoint(s.m.cfg.NewID(), s.runID, step, s.m.cfg.Now()); err != nil {
			return err
		}
	}
	w.Checkpoint, w.Events, w.Usage, w.Artifacts, w.Title = cp, s.events, s.usage, s.artifacts, s.title
	if withLog && end == nil && s.run != nil {
		totals := s.run.Totals // budgets count on after a restart
		w.Totals = &totals
	}
	if cp == nil && len(w.Events) == 0 && len(w.Usage) == 0 && len(w.Artifacts) == 0 && w.Title == "" && end == nil {
		return nil
	}
	if err := s.m.cfg.Store.WriteRun(ctx, w); err != nil {
		return err
	}
	if cp != nil {
		s.log.Committed(cp)
	}
	s.events, s.usage, s.artifacts, s.title = nil, nil, nil, ""
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if end != nil {
		s.closed = true
	}
	return nil
}

// close stops the timer of a run that is left as it is.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
