// Package runtime is the embedded agent runtime: it admits runs, executes them, keeps what happened and streams it.
// It knows nothing of chats and can be embedded alone:
//
//	rt, err := runtime.New(runtime.Config{...})
//	go rt.Run(ctx)
//	rec, err := rt.Recover(ctx)
//	r, _, err := rt.Start(ctx, runtime.Request{ThreadID: id, Input: in})
//	for e, err := range rt.Subscribe(ctx, r.ID, 0) { ... }
//
// A run is a resource: at most one of a thread is active, it has an owner, budgets, checkpoints, a journal, a stream, and
// an end that says why it ended. See runtime/run for its life and runtime/agent for the loop.
package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/run"
	"deerbot/runtime/stream"
	"deerbot/store"
)

// Store is what the runtime needs of the store.
type Store interface {
	run.Store
	store.Usage
}

// Config is what a Runtime is made of. Store, Loop, Setup and Log are required.
type Config struct {
	Store Store
	Loop  *agent.Loop
	// Setup prepares each run: model, tools, files, prompt, limits.
	Setup    func(ctx context.Context, r store.Run) (run.Setup, error)
	Slots    func() int // concurrent runs
	Recovery run.Recovery
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
}

// Runtime is safe for concurrent use.
type Runtime struct {
	cfg    Config
	bridge *stream.Memory
	runs   *run.Manager
}

// New checks cfg. It starts nothing.
func New(cfg Config) (*Runtime, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Recovery == "" {
		cfg.Recovery = run.RecoverResume
	}
	bridge := stream.NewMemory(cfg.Now)
	m, err := run.New(run.Config{
		Store: cfg.Store, Bridge: bridge, Loop: cfg.Loop, Setup: cfg.Setup, Slots: cfg.Slots, Owner: NewID(),
		Now: cfg.Now, NewID: NewID, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Runtime{cfg: cfg, bridge: bridge, runs: m}, nil
}

// NewID returns a new UUIDv7: unique, and sorting by time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// Request asks for a run.
type Request struct {
	ID             string // "" makes one
	ThreadID       string // must exist
	IdempotencyKey string // the same key on the same thread gives the same run
	Origin         string // chat, schedule, api
	UserID         string
	Model          string // configured name, "" = default
	Input          []model.Message
	Strategy       store.Strategy // "" = enqueue
	Meta           json.RawMessage
}

// Start admits a run. reused says that the idempotency key was known. store.ErrConflict means StrategyReject met a live
// run; run.ErrClosed that the runtime is stopping.
func (rt *Runtime) Start(ctx context.Context, req Request) (got store.Run, reused bool, err error) {
	if req.ThreadID == "" {
		return store.Run{}, false, errors.New("runtime: a run needs a thread")
	}
	for i := range req.Input {
		if req.Input[i].ID == "" {
			req.Input[i].ID = NewID()
		}
	}
	input, err := run.EncodeInput(req.Input)
	if err != nil {
		return store.Run{}, false, fmt.Errorf("runtime: input: %w", err)
	}
	if req.ID == "" {
		req.ID = NewID()
	}
	if req.Strategy == "" {
		req.Strategy = store.StrategyEnqueue
	}
	return rt.runs.Admit(ctx, store.Run{
		ID: req.ID, ThreadID: req.ThreadID, IdempotencyKey: req.IdempotencyKey, Origin: req.Origin, UserID: req.UserID,
		Model: req.Model, Input: input, Meta: req.Meta, CreatedAt: rt.cfg.Now(),
	}, req.Strategy)
}

// Cancel ends a run on a person's wish. It returns when the request is durable; Wait or the stream tell when it is over.
func (rt *Runtime) Cancel(ctx context.Context, runID, by string) error {
	return rt.runs.Cancel(ctx, runID, by, agent.ErrUserStop)
}

// Wait blocks until the run is no longer live in this process.
func (rt *Runtime) Wait(ctx context.Context, runID string) error { return rt.runs.Wait(ctx, runID) }

// Subscribe yields a run's events past the cursor and then follows it to its End. Of a run whose live stream is gone it
// yields the journal's events and an End made from the record. They are numbered above all live ones, because the journal
// counts otherwise: a cursor of the live stream gets one Gap and then the whole journal.
func (rt *Runtime) Subscribe(ctx context.Context, runID string, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range rt.bridge.Subscribe(ctx, runID, after) {
			if errors.Is(err, stream.ErrUnknown) {
				rt.replay(ctx, runID, after, yield)
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (rt *Runtime) replay(ctx context.Context, runID string, after uint64, yield func(event.Event, error) bool) {
	r, err := rt.cfg.Store.Run(ctx, runID)
	if err != nil {
		yield(event.Event{}, fmt.Errorf("run %s: %w", runID, err))
		return
	}
	// The range of the owner that would come next. It would replay the journal too, so even then the numbers fit.
	base := stream.Base(r.Epoch + 1)
	seq := uint64(0) // in the journal
	switch {
	case after >= base:
		seq = min(after-base, r.JournalSeq)
	case after > 0:
		gap := event.Gap{From: after + 1, To: base}
		if !yield(event.Event{Run: runID, Thread: r.ThreadID, Seq: base, At: rt.cfg.Now(), Body: gap}, nil) {
			return
		}
	}
	for {
		page, err := rt.cfg.Store.JournalEvents(ctx, runID, seq, 500)
		if err != nil {
			yield(event.Event{}, fmt.Errorf("journal of run %s: %w", runID, err))
			return
		}
		for _, je := range page {
			seq = je.Seq
			var e event.Event
			if err := json.Unmarshal(je.Data, &e); err != nil {
				continue // written by another version
			}
			e.Seq = base + seq
			if !yield(e, nil) {
				return
			}
		}
		if len(page) < 500 {
			break
		}
	}
	if !r.State.Terminal() {
		yield(event.Event{}, fmt.Errorf("run %s: %w", runID, stream.ErrUnknown))
		return
	}
	yield(event.Event{Run: runID, Thread: r.ThreadID, Seq: base + seq + 1, At: r.EndedAt, Body: event.End{State: r.State}}, nil)
}

// Recover takes up what an earlier process left. Call it once, before Start. With calm false (a crash loop) nothing is
// resumed.
func (rt *Runtime) Recover(ctx context.Context, calm bool) (run.Recovered, error) {
	policy := rt.cfg.Recovery
	if !calm {
		policy = run.RecoverInterrupt
	}
	return rt.runs.Recover(ctx, policy)
}

// Run renews leases until ctx ends.
func (rt *Runtime) Run(ctx context.Context) error { return rt.runs.Run(ctx) }

// Close takes no more runs, lets steps end until ctx ends, then suspends the rest for the next start.
func (rt *Runtime) Close(ctx context.Context) { rt.runs.Close(ctx) }

// Live returns the ids of live runs and how many wait.
func (rt *Runtime) Live() (ids []string, waiting int) { return rt.runs.Live() }
