// Package run is the life of a run: admission, the queue, the worker that owns it, its durable sink, cancel, recovery.
//
// # Life
//
//	Admit     one transaction creates the record; when the thread is free and a slot is, the same one claims it
//	worker    load the thread, append the input, run the agent loop; every durable write carries the run's epoch
//	finish    one transaction: last checkpoint, journal, usage, artifacts, totals, stop reasons, terminal state; then End
//	next      the slot and the thread are free: the oldest waiting run that can start is claimed
//
// Consumers treat End, and only End, as the end; it is published after the terminal transaction, and also when that one
// failed for good (the run is then taken up by the next start).
//
// # Ownership
//
// The manager has an owner id made at its start. Leases are renewed together every [Lease]/3. A write refused as fenced
// ends the worker at once, and it writes nothing more.
//
// # Locks
//
// Manager.mu guards the maps of live and waiting runs and is never held over a store call.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"deerbot/internal/crash"
	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/sandbox"
	"deerbot/runtime/stream"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// Lease is how long a run's owner may be silent before another may take the run.
const Lease = 30 * time.Second

// MaxResumes is how often a run is taken up after restarts.
const MaxResumes = 3

// Store is what the manager needs of the store.
type Store interface {
	store.Threads
	store.Runs
	store.Journal
	store.Artifacts
}

// Setup is what one run works with. It is made anew for each run, so configuration changes take effect at the next one.
type Setup struct {
	Model  model.Model
	Tools  *tools.Set
	Files  *sandbox.Files // closed by the manager; may be nil
	System string
	Limits agent.Limits
	Place  store.ConversationKey
}

// Config is what a Manager is made of. All fields but Slots are required.
type Config struct {
	Store  Store
	Bridge *stream.Memory
	Loop   *agent.Loop
	// Setup prepares a claimed run. Its error ends the run as failed; the text reaches people.
	Setup func(ctx context.Context, r store.Run) (Setup, error)
	Slots func() int // concurrent runs, re-read at each start; below 1 is 1
	Owner string
	Now   func() time.Time
	NewID func() string // UUIDv7
	Log   *slog.Logger
}

// Manager owns the runs of a process.
type Manager struct {
	cfg Config

	mu      sync.Mutex
	live    map[string]*active // by run id
	threads map[string]string  // thread -> live run
	waiting []waiter           // pending runs, in order
	closed  bool
	drain   chan struct{}
	wg      sync.WaitGroup
	pumping bool
	again   bool
}

type waiter struct {
	run, thread string
	seq         uint64 // order of admission
	position    int    // last told
}

type active struct {
	run    store.Run
	cancel context.CancelCauseFunc
	done   chan struct{}
	cause  error // a cancel that came before the worker began
}

// New checks cfg and returns a manager that has started nothing.
func New(cfg Config) (*Manager, error) {
	var errs []error
	for _, f := range []struct {
		name string
		nil  bool
	}{
		{"Store", cfg.Store == nil},
		{"Bridge", cfg.Bridge == nil},
		{"Loop", cfg.Loop == nil},
		{"Setup", cfg.Setup == nil},
		{"Owner", cfg.Owner == ""},
		{"Now", cfg.Now == nil},
		{"NewID", cfg.NewID == nil},
		{"Log", cfg.Log == nil},
	} {
		if f.nil {
			errs = append(errs, fmt.Errorf("run: Config.%s is missing", f.name))
		}
	}
	if cfg.Slots == nil {
		cfg.Slots = func() int { return 8 }
	}
	return &Manager{
		cfg: cfg, live: map[string]*active{}, threads: map[string]string{}, drain: make(chan struct{}),
	}, errors.Join(errs...)
}

// ErrClosed says that the manager is stopping and takes no runs.
var ErrClosed = errors.New("the runtime is stopping")

// Admit creates r by strategy s and starts it when it can. With a known idempotency key the existing run comes back and
// reused is true. ErrConflict of the store means that StrategyReject met a live run.
func (m *Manager) Admit(ctx context.Context, r store.Run, s store.Strategy) (got store.Run, reused bool, err error) {
	if s == store.StrategyInterrupt {
		if err := m.interrupt(ctx, r.ThreadID); err != nil {
			return store.Run{}, false, err
		}
		s = store.StrategyEnqueue
	}
	r.State = store.RunPending
	slot := m.reserve(r.ID, r.ThreadID)
	if slot != nil {
		r.State, r.Owner, r.Epoch = store.RunRunning, m.cfg.Owner, 1
		r.StartedAt, r.LeaseUntil = m.cfg.Now(), m.cfg.Now().Add(Lease)
	}
	if m.isClosed() {
		m.release(slot)
		return store.Run{}, false, ErrClosed
	}
	got, reused, err = m.cfg.Store.AdmitRun(ctx, &r, s)
	if err != nil {
		m.release(slot)
		m.pump() // a run admitted meanwhile may wait for the slot
		return store.Run{}, false, fmt.Errorf("admit run on thread %s: %w", r.ThreadID, err)
	}
	crash.Point(crash.RunAdmitted)
	switch {
	case reused:
		m.release(slot)
		m.pump()
	case got.State == store.RunRunning:
		m.cfg.Bridge.Open(got.ID, stream.Base(got.Epoch))
		m.start(slot, got)
	default:
		m.release(slot)
		m.cfg.Bridge.Open(got.ID, stream.Base(1))
		m.enqueue(waiter{run: got.ID, thread: got.ThreadID, seq: got.Seq})
		m.pump()
	}
	return got, reused, nil
}

// reserve takes a slot for the thread if one is free, no run of it is live and none waits for it.
func (m *Manager) reserve(runID, threadID string) *active {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.live) >= max(1, m.cfg.Slots()) || m.threads[threadID] != "" {
		return nil
	}
	for _, w := range m.waiting {
		if w.thread == threadID {
			return nil
		}
	}
	a := &active{run: store.Run{ID: runID, ThreadID: threadID}, done: make(chan struct{})}
	m.live[runID], m.threads[threadID] = a, runID
	m.wg.Add(1)
	return a
}

// release gives a slot back.
func (m *Manager) release(a *active) {
	if a == nil {
		return
	}
	m.mu.Lock()
	delete(m.live, a.run.ID)
	if m.threads[a.run.ThreadID] == a.run.ID {
		delete(m.threads, a.run.ThreadID)
	}
	m.mu.Unlock()
	m.wg.Done()
}

func (m *Manager) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// enqueue puts a run among the waiting ones by its order of admission, which two admissions need not reach us in.
func (m *Manager) enqueue(w waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := len(m.waiting)
	for i > 0 && m.waiting[i-1].seq > w.seq {
		i--
	}
	m.waiting = slices.Insert(m.waiting, i, w)
}

// start hands a claimed run to its worker.
func (m *Manager) start(a *active, r store.Run) {
	ctx, cancel := context.WithCancelCause(context.Background())
	m.mu.Lock()
	a.run, a.cancel = r, cancel
	switch {
	case a.cause != nil:
		cancel(a.cause)
	case r.CancelRequested != "":
		cancel(agent.ErrUserStop) // asked for while it waited
	}
	m.mu.Unlock()
	go func() {
		defer m.pump()
		defer m.release(a)
		defer close(a.done)
		defer cancel(nil)
		m.work(ctx, a)
	}()
}

// pump starts waiting runs while slots are free, and tells the others their position.
func (m *Manager) pump() {
	m.mu.Lock()
	if m.pumping {
		m.again = true
		m.mu.Unlock()
		return
	}
	m.pumping = true
	m.mu.Unlock()
	for {
		held := map[string]bool{} // could not be claimed in this round
		for m.startNext(held) {
		}
		m.tellPositions()
		m.mu.Lock()
		if !m.again {
			m.pumping = false
			m.mu.Unlock()
			return
		}
		m.again = false
		m.mu.Unlock()
	}
}

// startNext starts the first waiting run whose thread is free and that is not held. One that cannot be claimed is held
// and goes on waiting: for whoever is in its way, or for the store, which the next tick asks again.
func (m *Manager) startNext(held map[string]bool) bool {
	m.mu.Lock()
	if m.closed || len(m.live) >= max(1, m.cfg.Slots()) {
		m.mu.Unlock()
		return false
	}
	pick := slices.IndexFunc(m.waiting, func(w waiter) bool { return m.threads[w.thread] == "" && !held[w.run] })
	if pick < 0 {
		m.mu.Unlock()
		return false
	}
	w := m.waiting[pick]
	m.waiting = slices.Delete(m.waiting, pick, pick+1)
	a := &active{run: store.Run{ID: w.run, ThreadID: w.thread}, done: make(chan struct{})}
	m.live[w.run], m.threads[w.thread] = a, w.run
	m.wg.Add(1)
	m.mu.Unlock()

	ctx := context.Background()
	r, err := m.cfg.Store.ClaimRun(ctx, w.run, m.cfg.Owner, m.cfg.Now().Add(Lease))
	if err == nil {
		m.cfg.Bridge.Open(r.ID, stream.Base(r.Epoch))
		m.start(a, r)
		return true
	}
	over := errors.Is(err, store.ErrNotFound)
	if errors.Is(err, store.ErrConflict) {
		r, rerr := m.cfg.Store.Run(ctx, w.run)
		over = rerr == nil && r.State != store.RunPending
	} else if !over {
		m.cfg.Log.Error("cannot claim a waiting run; it goes on waiting", "run", w.run, "err", err)
	}
	if !over {
		held[w.run] = true
		m.enqueue(w)
	}
	m.release(a)
	return true
}

func (m *Manager) tellPositions() {
	m.mu.Lock()
	var told []waiter
	for i := range m.waiting {
		if w := &m.waiting[i]; w.position != i+1 {
			w.position = i + 1
			told = append(told, *w)
		}
	}
	m.mu.Unlock()
	for _, w := range told {
		m.cfg.Bridge.Publish(event.Event{
			Run: w.run, Thread: w.thread, At: m.cfg.Now(), Body: event.RunQueued{Position: w.position},
		})
	}
}

// Cancel ends a run: at once when it is live here, by record when it is another owner's, and before it began when it
// waits. It returns after the request is durable, not after the run's end.
func (m *Manager) Cancel(ctx context.Context, runID, by string, cause error) error {
	if w, ok := m.dequeue(runID); ok {
		defer m.pump() // the others move up
		if err := m.endWaiting(ctx, runID, by, cause); err != nil {
			m.enqueue(w)
			return err
		}
		return nil
	}
	m.mu.Lock()
	a := m.live[runID]
	var cancel context.CancelCauseFunc
	if a != nil {
		cancel = a.cancel
		a.cause = cause
	}
	m.mu.Unlock()
	if cancel != nil {
		cancel(cause) // first: the person must not wait for the disk
	}
	err := m.cfg.Store.RequestCancel(ctx, runID, by)
	if errors.Is(err, store.ErrConflict) || (a != nil && errors.Is(err, store.ErrNotFound)) {
		return nil // it is over, or not yet admitted and cancelled all the same
	}
	if err != nil && cancel == nil {
		return fmt.Errorf("cancel run %s: %w", runID, err)
	}
	return nil
}

func (m *Manager) dequeue(runID string) (waiter, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, w := range m.waiting {
		if w.run == runID {
			m.waiting = slices.Delete(m.waiting, i, i+1)
			return w, true
		}
	}
	return waiter{}, false
}

func (m *Manager) endWaiting(ctx context.Context, runID, by string, cause error) error {
	code := store.StopInterrupted
	if errors.Is(cause, agent.ErrUserStop) {
		code = store.StopUserStop
	}
	stop := []store.StopReason{{Code: code, Source: by, At: m.cfg.Now()}}
	if err := m.cfg.Store.EndPending(ctx, runID, store.RunInterrupted, stop); err != nil && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("cancel waiting run %s: %w", runID, err)
	}
	r, err := m.cfg.Store.Run(context.WithoutCancel(ctx), runID)
	if err != nil {
		m.cfg.Log.Error("cannot read a run that was cancelled while it waited", "run", runID, "err", err)
		r = store.Run{ID: runID, State: store.RunInterrupted, Stop: stop}
	}
	now := m.cfg.Now()
	m.cfg.Bridge.Publish(event.Event{Run: runID, Thread: r.ThreadID, At: now, Body: event.RunFinished{State: r.State, Stop: r.Stop}})
	m.cfg.Bridge.Publish(event.Event{Run: runID, Thread: r.ThreadID, At: now, Body: event.End{State: r.State}})
	return nil
}

// interrupt cancels the thread's live run in favour of a newer one.
func (m *Manager) interrupt(ctx context.Context, threadID string) error {
	m.mu.Lock()
	id := m.threads[threadID]
	m.mu.Unlock()
	if id == "" {
		return nil
	}
	return m.Cancel(ctx, id, "newer message", agent.ErrInterrupted)
}

// Wait blocks until the run is not live in this process, or ctx ends.
func (m *Manager) Wait(ctx context.Context, runID string) error {
	m.mu.Lock()
	a := m.live[runID]
	m.mu.Unlock()
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Live returns the ids of live runs and the number of waiting ones.
func (m *Manager) Live() (ids []string, waiting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.live {
		ids = append(ids, id)
	}
	return ids, len(m.waiting)
}

// Run renews leases, and tries again to start runs that could not be claimed, until ctx ends. It is the manager's only
// standing goroutine.
func (m *Manager) Run(ctx context.Context) error {
	tick := time.NewTicker(Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.renew(ctx)
			m.pump()
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *Manager) renew(ctx context.Context) {
	m.mu.Lock()
	var as []*active
	for _, a := range m.live {
		if a.cancel != nil {
			as = append(as, a)
		}
	}
	m.mu.Unlock()
	for _, a := range as {
		r, err := m.cfg.Store.RenewLease(ctx, a.run.ID, a.run.Epoch, m.cfg.Now().Add(Lease))
		switch {
		case errors.Is(err, store.ErrFenced):
			a.cancel(agent.ErrFenced)
		case err != nil:
			m.cfg.Log.Warn("cannot renew a lease", "run", a.run.ID, "err", err)
		case r.CancelRequested != "":
			a.cancel(agent.ErrUserStop)
		}
	}
}

// Close stops taking runs, lets steps end until ctx ends, then suspends what still works. Suspended runs are resumed by
// the next start. After it returns no worker is left.
func (m *Manager) Close(ctx context.Context) {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		close(m.drain)
	}
	m.mu.Unlock()
	idle := make(chan struct{})
	go func() { m.wg.Wait(); close(idle) }()
	select {
	case <-idle:
		return
	case <-ctx.Done():
	}
	m.mu.Lock()
	for _, a := range m.live {
		if a.cancel != nil {
			a.cancel(agent.ErrSuspend)
		}
	}
	m.mu.Unlock()
	<-idle
}

// InputOf decodes a run's input messages.
func InputOf(r store.Run) ([]model.Message, error) {
	if len(r.Input) == 0 {
		return nil, nil
	}
	var in []model.Message
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, fmt.Errorf("run %s: input: %w", r.ID, err)
	}
	return in, nil
}
