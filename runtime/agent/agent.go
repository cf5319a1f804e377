// Package agent is the loop: model call, guards, tool calls, results, again. It also holds the middleware contract and
// the builder that puts middleware in order.
//
// # One step
//
//	BeforeModel hooks, in order         shape a copy of the request
//	WrapModel, first outermost          retries, error classes; innermost streams the call
//	AfterModel hooks, in reverse        each may return a Decision; the loop applies them, strongest first, once
//	commit                              the assistant message is on disk before any tool acts
//	WrapTool per call, first outermost  results in call order, each call answered exactly once
//	commit
//
// Hooks get the [Run], the per-run object that holds counters, queued control text and stop reasons; no middleware keeps
// a map of runs. Control text lives in requests, never in the thread.
package agent

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/sandbox"
	"deerbot/runtime/thread"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// Sink is where a run's happenings go.
type Sink interface {
	// Emit publishes an event of the given step. It does not block.
	Emit(step int, b event.Body)
	// Usage records a finished model call; it is written with the next commit.
	Usage(row store.UsageRow)
	// Artifact records a presented file; it is written with the next commit.
	Artifact(a store.Artifact)
	// Commit makes the log's pending part, and all that was recorded, durable. An error ends the run.
	Commit(ctx context.Context, step int) error
}

// Limits bound one run.
type Limits struct {
	MaxSteps     int           // model calls
	TokenBudget  int64         // input and output, 0 = none
	Timeout      time.Duration // wall clock, 0 = none
	Parallel     int           // read-only tool calls side by side
	OutputBudget int           // characters of one tool result kept in history
	ToolTimeout  time.Duration // default for a tool call
	CancelGrace  time.Duration // how long a cancelled tool is waited for
}

// DefaultLimits are the limits used for zero fields.
var DefaultLimits = Limits{
	MaxSteps: 200, Parallel: 4, OutputBudget: 12_000, ToolTimeout: 10 * time.Minute, CancelGrace: 200 * time.Millisecond,
}

// Run is one run in the loop's hands.
type Run struct {
	ID       string
	ThreadID string
	UserID   string
	Place    store.ConversationKey // where usage is booked
	Log      *thread.Log
	Model    model.Model
	Tools    *tools.Set
	Files    *sandbox.Files // nil without a file tree
	System   string         // system prompt
	Limits   Limits
	Sink     Sink
	Now      func() time.Time
	NewID    func() string // unique, time-ordered

	Step   int          // of the current model call, from 1
	Totals store.Totals // so far

	mu      sync.Mutex
	stop    []store.StopReason
	notes   []string // control text for the next model call
	closing bool     // the next answer is the last: no tools
	state   map[any]any
}

// Emit publishes an event of the current step.
func (r *Run) Emit(b event.Body) { r.Sink.Emit(r.Step, b) }

// Reason appends a stop reason and publishes it.
func (r *Run) Reason(code store.StopCode, source, detail string) {
	reason := store.StopReason{Code: code, Source: source, Step: r.Step, At: r.Now(), Detail: detail}
	r.mu.Lock()
	r.stop = append(r.stop, reason)
	r.mu.Unlock()
	if code != store.StopCompleted {
		r.Emit(event.GuardStopped{Reason: reason})
	}
}

// Reasons returns the stop reasons in order of firing.
func (r *Run) Reasons() []store.StopReason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]store.StopReason(nil), r.stop...)
}

// Note queues control text for the next model call, which for a BeforeModel hook is the one under way. It is spent when
// that call succeeds and dropped at the run's end.
func (r *Run) Note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}

// Close makes the next answer the last one, which for a BeforeModel hook is the answer to the call under way: the model is
// offered no tools and told why. A guard that judges an answer decides [CloseRun] instead.
func (r *Run) Close(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing {
		r.closing = true
		r.notes = append(r.notes, why)
	}
}

// Closing reports whether Close was called.
func (r *Run) Closing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

// PerRun returns the run's own value under key, made by mk the first time: a middleware's state for this run.
func PerRun[T any](r *Run, key any, mk func() T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.state[key]; ok {
		return v.(T)
	}
	if r.state == nil {
		r.state = map[any]any{}
	}
	v := mk()
	r.state[key] = v
	return v
}

// Outcome is how a run ended. Err is for logs; what people read is made from the stop reasons.
type Outcome struct {
	State store.RunState // success, error or interrupted
	Err   error
}

// Phase orders middleware coarsely, so that most wrong orders cannot be written down.
type Phase int

// Phases, outermost first.
const (
	PhaseSanitise  Phase = iota // clean what comes in
	PhaseInject                 // add context to the request
	PhaseGuard                  // judge
	PhaseTransport              // make the call go through
	PhaseObserve                // look only
)

// Surface is something a middleware reads or changes.
type Surface string

// Surfaces.
const (
	SurfaceMessages   Surface = "messages"
	SurfaceSystem     Surface = "system"
	SurfaceTools      Surface = "tools"
	SurfaceToolResult Surface = "tool_result"
	SurfaceResponse   Surface = "response"
	SurfaceUsage      Surface = "usage"
	SurfaceState      Surface = "state"
)

// Policy says what a failing hook does.
type Policy string

// Policies.
const (
	Open   Policy = "open"   // log and go on
	Closed Policy = "closed" // end the run
)

// Spec declares a middleware's place and reach.
type Spec struct {
	Name              string
	Phase             Phase
	Before, After     []string // names; a missing one is fine, a cycle is a start-up error
	Observes, Mutates []Surface
	OnFailure         Policy
	Why               string // reason of the failure policy and of the edges
}

// Middleware is anything with a Spec and one or more of the hooks below.
type Middleware interface{ Spec() Spec }

// ModelFunc makes one logical model call.
type ModelFunc func(ctx context.Context, r *Run, req *model.Request) (*model.Response, error)

// ToolFunc makes one tool call.
type ToolFunc func(ctx context.Context, r *Run, call model.ToolCall) (tools.Result, error)

// Hooks.
type (
	// BeforeRunHook runs once, before the first step.
	BeforeRunHook interface {
		BeforeRun(ctx context.Context, r *Run) error
	}
	// BeforeModelHook shapes the request, a copy that nobody else holds. It must not touch the log.
	BeforeModelHook interface {
		BeforeModel(ctx context.Context, r *Run, req *model.Request) error
	}
	// WrapModelHook stands around the model call.
	WrapModelHook interface {
		WrapModel(next ModelFunc) ModelFunc
	}
	// AfterModelHook judges an answer. It may change resp.Message; it must not touch the log.
	AfterModelHook interface {
		AfterModel(ctx context.Context, r *Run, resp *model.Response) (Decision, error)
	}
	// WrapToolHook stands around each tool call.
	WrapToolHook interface {
		WrapTool(next ToolFunc) ToolFunc
	}
	// AfterRunHook runs once, after the last step, also of a failed run.
	AfterRunHook interface {
		AfterRun(ctx context.Context, r *Run, out *Outcome) error
	}
)

// Action is what a guard wants done with an answer, weakest first.
type Action int

// Actions.
const (
	Continue    Action = iota // nothing
	RejectCalls               // answer every call with Note as an error, go on
	AskAgain                  // drop the answer and its calls, go on with Note in front of the next call
	CloseRun                  // drop the calls, ask for a closing answer without tools (Note says why)
	StripCalls                // drop the calls; the text, or Note when there is none, is the final answer
	EndRun                    // the same, and the run is an error
)

// Decision is a guard's verdict.
type Decision struct {
	Action Action
	Reason *store.StopReason // Code, Source and Detail; the loop fills the rest
	Note   string
}

// StateJSON reads a state key of the thread.
func (r *Run) StateJSON(key string) json.RawMessage { return r.Log.Value(key) }
