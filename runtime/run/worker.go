package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deerbot/internal/crash"
	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/thread"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// work is the life of one claimed run in this process.
func (m *Manager) work(ctx context.Context, a *active) {
	r := a.run
	log, err := thread.Load(context.WithoutCancel(ctx), m.cfg.Store, r.ThreadID, "")
	if err != nil {
		m.cfg.Log.Error("cannot load a thread", "run", r.ID, "thread", r.ThreadID, "err", err)
		log = thread.New(r.ThreadID)
		s := newSink(m, r, log)
		defer s.close()
		m.finish(ctx, r, s, agent.Outcome{State: store.RunError, Err: err}, []store.StopReason{{
			Code: store.StopInternal, Source: "thread", At: m.cfg.Now(), Detail: "the thread could not be read",
		}}, r.Totals, false)
		return
	}
	s := newSink(m, r, log)
	defer s.close()

	setup, err := m.cfg.Setup(ctx, r)
	if err != nil && ctx.Err() != nil {
		m.cutEarly(ctx, r, s)
		return
	}
	if err != nil {
		m.cfg.Log.Error("cannot set up a run", "run", r.ID, "err", err)
		m.settle(s, log, r)
		m.finish(ctx, r, s, agent.Outcome{State: store.RunError, Err: err}, []store.StopReason{{
			Code: store.StopInternal, Source: "setup", At: m.cfg.Now(), Detail: err.Error(),
		}}, r.Totals, true)
		return
	}
	if setup.Files != nil {
		defer func() {
			if err := setup.Files.Close(); err != nil {
				m.cfg.Log.Warn("cannot close a run's files", "run", r.ID, "err", err)
			}
		}()
	}
	if t := setup.Limits.Timeout; t > 0 {
		// The time budget closes the run politely; this is for a run that does not.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t+time.Minute, agent.ErrTimeCapped)
		defer cancel()
	}
	ar := &agent.Run{
		ID: r.ID, ThreadID: r.ThreadID, UserID: r.UserID, Place: setup.Place, Log: log, Model: setup.Model,
		Tools: setup.Tools, Files: setup.Files, System: setup.System, Limits: setup.Limits, Sink: s,
		Now: m.cfg.Now, NewID: m.cfg.NewID, Step: r.Totals.Steps, Totals: r.Totals,
	}
	s.run = ar
	info := setup.Model.Info()
	s.Emit(0, event.RunStarted{Model: info.Name, Resumed: r.Resumes, Rehearsal: info.Rehearsal})
	if err := m.begin(ar, s, r); err != nil {
		m.cfg.Log.Error("cannot begin a run", "run", r.ID, "err", err)
		m.finish(ctx, r, s, agent.Outcome{State: store.RunError, Err: err}, []store.StopReason{{
			Code: store.StopInternal, Source: "input", At: m.cfg.Now(),
		}}, r.Totals, true)
		return
	}
	out := m.cfg.Loop.Run(ctx, ar, m.drain)
	if out.State == "" {
		m.suspend(s, r, out.Err)
		return
	}
	m.answerOpen(ar, r, out)
	m.presentLeftovers(ctx, ar, s, r)
	m.finish(ctx, r, s, out, ar.Reasons(), ar.Totals, true)
}

// resultNotRun answers calls of a run that ended before they were made.
const resultNotRun = "not run: the run ended before this call was made"

// answerOpen answers the calls that a run left open because it failed between the answer and its tools.
func (m *Manager) answerOpen(ar *agent.Run, r store.Run, out agent.Outcome) {
	open := agent.OpenCalls(ar.Log)
	if len(open) == 0 {
		return
	}
	text := resultNotRun
	if out.State == store.RunInterrupted {
		text = agent.ResultCancelled
	}
	msg := agent.ResultMessage(m.cfg.NewID(), open, text, m.cfg.Now())
	msg.RunID = r.ID
	ar.Log.Append(msg)
}

// cutEarly ends or suspends a run whose context ended while it was being set up.
func (m *Manager) cutEarly(ctx context.Context, r store.Run, s *sink) {
	cause := context.Cause(ctx)
	if errors.Is(cause, agent.ErrSuspend) || errors.Is(cause, agent.ErrFenced) {
		m.suspend(s, r, cause)
		return
	}
	m.settle(s, s.log, r)
	reason := store.StopReason{Code: store.StopInterrupted, Source: "run", Step: r.Totals.Steps, At: m.cfg.Now()}
	if errors.Is(cause, agent.ErrUserStop) {
		reason.Code, reason.Source = store.StopUserStop, "user"
	}
	m.finish(ctx, r, s, agent.Outcome{State: store.RunInterrupted, Err: cause}, []store.StopReason{reason}, r.Totals, true)
}

// begin puts the run's input into the thread and settles what an earlier owner left open.
func (m *Manager) begin(ar *agent.Run, s *sink, r store.Run) error {
	in, err := InputOf(r)
	if err != nil {
		return err
	}
	if r.Resumes > 0 {
		ar.Reason(store.StopRecovered, "recovery", fmt.Sprintf("picked up after a restart, %d", r.Resumes))
	}
	for _, c := range m.settleOpenCalls(ar.Log, r) {
		s.Emit(ar.Step, event.ToolFinished{CallID: c.ID, Name: c.Name, IsError: true, Unknown: true, Result: agent.ResultUnknown})
	}
	ar.Log.Append(in...)
	if ar.Log.Value(thread.KeyTitle) == nil {
		if title := titleOf(in); title != "" {
			if err := ar.Log.Set(thread.KeyTitle, title); err != nil {
				return err
			}
			s.mu.Lock()
			s.title = title
			s.mu.Unlock()
			s.Emit(0, event.TitleUpdated{Title: title})
		}
	}
	return nil
}

// titleOf takes the first words of the first message people wrote: at most six words and 60 characters.
func titleOf(in []model.Message) string {
	for _, m := range in {
		if m.Role != model.RoleUser || m.Hidden {
			continue
		}
		for _, p := range m.Parts {
			if p.Kind != model.PartText || strings.HasPrefix(p.Text, "<") {
				continue
			}
			words, more := strings.Fields(p.Text), false
			if len(words) > 6 {
				words, more = words[:6], true
			}
			title := []rune(strings.Join(words, " "))
			if len(title) > 60 {
				title, more = title[:59], true
			}
			if more {
				title = append(title, '…')
			}
			if len(title) > 0 {
				return string(title)
			}
		}
	}
	return ""
}

// finish writes the end of a run and publishes End. It tries for as long as the store may recover: a run that cannot be
// ended holds its thread, so giving up early would only hide the trouble.
func (m *Manager) finish(ctx context.Context, r store.Run, s *sink, out agent.Outcome, stop []store.StopReason, totals store.Totals, withLog bool) {
	ctx = context.WithoutCancel(ctx)
	end := &store.RunWrite{To: out.State, Stop: stop, Totals: &totals, At: m.cfg.Now()}
	if out.State == store.RunError && out.Err != nil {
		end.Error = describe(out.Err)
	}
	s.Emit(totals.Steps, event.RunFinished{State: out.State, Stop: append(append([]store.StopReason(nil), r.Stop...), stop...), Totals: totals, Error: end.Error})
	crash.Point(crash.FinishBefore)
	wait := 50 * time.Millisecond
	var last string
	for {
		err := s.write(ctx, totals.Steps, withLog, end)
		if err == nil {
			break
		}
		if errors.Is(err, store.ErrFenced) {
			m.cfg.Log.Warn("the run was taken over before its end was written", "run", r.ID)
			return
		}
		if err.Error() != last {
			last = err.Error()
			m.cfg.Log.Error("cannot write the end of a run, trying again", "run", r.ID, "err", err)
		}
		if errors.Is(err, store.ErrClosed) || (!errors.Is(err, store.ErrFull) && wait > 5*time.Second) || m.closing(wait) {
			m.cfg.Log.Error("the end of a run is not on disk; the next start takes it up", "run", r.ID)
			break
		}
		wait = min(2*wait, 30*time.Second)
	}
	crash.Point(crash.FinishAfter)
	m.cfg.Bridge.Publish(event.Event{Run: r.ID, Thread: r.ThreadID, At: m.cfg.Now(), Body: event.End{State: out.State}})
}

// closing waits d and reports whether the manager is being closed.
func (m *Manager) closing(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-m.drain:
		return true
	case <-t.C:
		return false
	}
}

// suspend leaves a run for the next owner: what happened is written, the state stays running.
func (m *Manager) suspend(s *sink, r store.Run, cause error) {
	if errors.Is(cause, agent.ErrFenced) {
		m.cfg.Log.Warn("the run has another owner now", "run", r.ID)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.write(ctx, 0, true, nil); err != nil {
		m.cfg.Log.Error("a suspended run's last step is not on disk", "run", r.ID, "err", err)
	}
	m.cfg.Log.Info("run suspended, it goes on after the restart", "run", r.ID)
}

// describe is what people may read about an error: model errors carry cleaned words, others only their kind.
func describe(err error) string {
	if me, ok := errors.AsType[*model.Error](err); ok {
		if me.Message != "" {
			return fmt.Sprintf("%s: %s", me.Class, me.Message)
		}
		return string(me.Class)
	}
	if errors.Is(err, store.ErrFull) {
		return "disk full"
	}
	return "internal error"
}

// coarse is by how much a file's time may lie before the clock's when it was written: kernels date files by their last
// tick, at most 10 ms ago.
const coarse = 20 * time.Millisecond

// presentLeftovers presents files that the run made under outputs/ and did not present itself. A file is the run's when it
// was written since the run began, which also holds across a restart in between.
func (m *Manager) presentLeftovers(ctx context.Context, ar *agent.Run, s *sink, r store.Run) {
	if ar.Files == nil || ctx.Err() != nil {
		return // of a run that was stopped nothing appears any more
	}
	changed, err := ar.Files.ChangedOutputs(nil)
	if err != nil {
		m.cfg.Log.Warn("cannot look for undelivered outputs", "run", r.ID, "err", err)
		return
	}
	presented := s.presentedPaths()
	if r.Resumes > 0 {
		earlier, err := m.cfg.Store.RunArtifacts(ctx, r.ID)
		if err != nil {
			m.cfg.Log.Warn("cannot read a run's artifacts", "run", r.ID, "err", err)
		}
		for _, a := range earlier {
			presented[a.Path] = true
		}
	}
	for _, o := range changed {
		if presented[o.Path] || o.ModTime.Before(r.StartedAt.Add(-coarse)) {
			continue
		}
		a, err := tools.ArtifactOf(ctx, ar.Files, o.Path)
		if err != nil {
			m.cfg.Log.Warn("cannot present an output", "run", r.ID, "path", o.Path, "err", err)
			continue
		}
		if o.ModTime.Before(r.StartedAt) && m.known(ctx, r.ThreadID, a) {
			continue // the run before wrote and presented it just now
		}
		a.ID, a.ThreadID, a.RunID, a.CreatedAt = m.cfg.NewID(), r.ThreadID, r.ID, m.cfg.Now()
		s.Artifact(a)
		s.Emit(ar.Step, event.ArtifactPresented{Artifact: a})
	}
}

// known reports whether an earlier run of the thread presented this very file.
func (m *Manager) known(ctx context.Context, threadID string, a store.Artifact) bool {
	list, err := m.cfg.Store.ThreadArtifacts(ctx, threadID)
	if err != nil {
		m.cfg.Log.Warn("cannot read a thread's artifacts", "thread", threadID, "err", err)
	}
	return slices.ContainsFunc(list, func(b store.Artifact) bool { return b.Path == a.Path && b.SHA256 == a.SHA256 })
}

// EncodeInput is the inverse of InputOf.
func EncodeInput(in []model.Message) (json.RawMessage, error) { return json.Marshal(in) }
