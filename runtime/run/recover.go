package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/stream"
	"deerbot/runtime/thread"
	"deerbot/store"
)

// Recovery says what happens to runs that a restart cut.
type Recovery string

// Recovery policies.
const (
	RecoverResume    Recovery = "resume"    // go on from the last checkpoint
	RecoverAsk       Recovery = "ask"       // end them; who shows the run offers to go on (StopReason source "recovery")
	RecoverInterrupt Recovery = "interrupt" // end them
)

// Recovered is what Recover did.
type Recovered struct {
	Resumed []string // taken up, by run id
	Ended   []string // ended: policy, or taken up too often
	Waiting []string // were waiting, and wait again
}

// Recover takes up what an earlier process left, oldest first: runs that were under way are resumed or ended, waiting ones
// wait again. It must be called once, before the first Admit; the store's lock on its file is what makes every other
// owner a dead one.
func (m *Manager) Recover(ctx context.Context, policy Recovery) (Recovered, error) {
	var rec Recovered
	live, err := m.cfg.Store.LiveRuns(ctx)
	if err != nil {
		return rec, fmt.Errorf("recover: %w", err)
	}
	for _, r := range live {
		if r.State == store.RunPending {
			m.cfg.Bridge.Open(r.ID, stream.Base(1))
			if r.CancelRequested != "" {
				if err := m.endWaiting(ctx, r.ID, r.CancelRequested, agent.ErrUserStop); err != nil {
					return rec, err
				}
				rec.Ended = append(rec.Ended, r.ID)
				continue
			}
			m.enqueue(waiter{run: r.ID, thread: r.ThreadID, seq: r.Seq})
			rec.Waiting = append(rec.Waiting, r.ID)
			continue
		}
		// Expired as far as this store is concerned: nobody else can hold it.
		got, err := m.cfg.Store.TakeOverRun(ctx, r.ID, m.cfg.Owner, r.LeaseUntil.Add(time.Nanosecond), m.cfg.Now().Add(Lease))
		if err != nil {
			if errors.Is(err, store.ErrConflict) {
				continue
			}
			return rec, fmt.Errorf("recover run %s: %w", r.ID, err)
		}
		m.cfg.Bridge.Open(got.ID, stream.Base(got.Epoch))
		if err := m.replay(ctx, got); err != nil {
			return rec, err
		}
		if policy != RecoverResume || got.Resumes > MaxResumes || got.CancelRequested != "" {
			m.endTakenOver(ctx, got)
			rec.Ended = append(rec.Ended, got.ID)
			continue
		}
		a := &active{run: got, done: make(chan struct{})}
		m.mu.Lock()
		m.live[got.ID], m.threads[got.ThreadID] = a, got.ID
		m.wg.Add(1)
		m.mu.Unlock()
		m.start(a, got)
		rec.Resumed = append(rec.Resumed, got.ID)
	}
	m.pump()
	return rec, nil
}

// replay puts what the journal knows of a run before its new owner's events, so that who draws the run sees all of it.
func (m *Manager) replay(ctx context.Context, r store.Run) error {
	var after uint64
	for {
		page, err := m.cfg.Store.JournalEvents(ctx, r.ID, after, 500)
		if err != nil {
			return fmt.Errorf("replay run %s: %w", r.ID, err)
		}
		for _, je := range page {
			after = je.Seq
			e, err := decode(je)
			if err != nil {
				m.cfg.Log.Warn("a journal event cannot be read", "run", r.ID, "seq", je.Seq, "err", err)
				continue
			}
			m.cfg.Bridge.Publish(e)
		}
		if len(page) < 500 {
			return nil
		}
	}
}

func decode(je store.JournalEvent) (event.Event, error) {
	var e event.Event
	err := json.Unmarshal(je.Data, &e)
	return e, err
}

// endTakenOver ends a run that is not to go on. The thread gets the run's input and an answer for every open call, so that
// it can be gone on with.
func (m *Manager) endTakenOver(ctx context.Context, r store.Run) {
	code, detail := store.StopInterrupted, "the process stopped while this ran"
	switch {
	case r.CancelRequested != "":
		code, detail = store.StopUserStop, ""
	case r.Resumes > MaxResumes:
		detail = fmt.Sprintf("the process stopped %d times while this ran", r.Resumes)
	}
	stop := []store.StopReason{{Code: code, Source: "recovery", Step: r.Totals.Steps, At: m.cfg.Now(), Detail: detail}}
	log, err := thread.Load(ctx, m.cfg.Store, r.ThreadID, "")
	withLog := err == nil
	if err != nil {
		m.cfg.Log.Error("cannot load the thread of a run that a restart cut", "run", r.ID, "err", err)
		log = thread.New(r.ThreadID)
	}
	s := newSink(m, r, log)
	defer s.close()
	if withLog {
		m.settle(s, log, r)
	}
	m.finish(ctx, r, s, agent.Outcome{State: store.RunInterrupted}, stop, r.Totals, withLog)
}

// settle makes the thread one that can be gone on with after a run that did nothing itself: open calls are answered, and
// the run's input stands.
func (m *Manager) settle(s *sink, log *thread.Log, r store.Run) {
	for _, c := range m.settleOpenCalls(log, r) {
		s.Emit(r.Totals.Steps, event.ToolFinished{CallID: c.ID, Name: c.Name, IsError: true, Unknown: true, Result: agent.ResultUnknown})
	}
	if in, err := InputOf(r); err == nil {
		log.Append(in...)
	}
}

// settleOpenCalls answers the calls that an earlier owner left open: their outcome is unknown, and stays so.
func (m *Manager) settleOpenCalls(log *thread.Log, r store.Run) []model.ToolCall {
	open := agent.OpenCalls(log)
	if len(open) == 0 {
		return nil
	}
	msg := agent.ResultMessage(m.cfg.NewID(), open, agent.ResultUnknown, m.cfg.Now())
	msg.RunID, msg.Origin = r.ID, "recovery"
	log.Append(msg)
	return open
}
