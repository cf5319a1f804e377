// Package event defines what happens in a run: one sum type with a stable JSON form, used by the live stream, the
// journal and everything that draws a run. It holds data only.
//
// # Reading rules
//
//   - [End] comes exactly once per run and last; it, and only it, is the end.
//   - Usage figures are cumulative: a reader replaces, never adds.
//   - Only [MessageDelta] and [MessageCompleted] carry text meant for people. What is shown is an allowlist by kind.
//   - Deltas are live only; everything else is also in the journal.
package event

import (
	"encoding/json"
	"fmt"
	"time"

	"deerbot/store"
)

// Event is one thing that happened.
type Event struct {
	Run    string    `json:"run"`
	Thread string    `json:"thread"`
	Seq    uint64    `json:"seq"` // rises by one in the live stream of a run
	At     time.Time `json:"at"`
	Step   int       `json:"step,omitempty"`
	Task   string    `json:"task,omitempty"` // subagent's task id
	Body   Body      `json:"-"`
}

// Body is one kind of event. The set is closed: see the types in this package.
type Body interface{ Kind() string }

// Kinds of events, as they stand in JSON.
const (
	KindRunQueued         = "run.queued"
	KindRunStarted        = "run.started"
	KindRunSteered        = "run.steered"
	KindRunFinished       = "run.finished"
	KindStepStarted       = "step.started"
	KindStepFinished      = "step.finished"
	KindMessageDelta      = "message.delta"
	KindMessageReasoning  = "message.reasoning"
	KindMessageReset      = "message.reset"
	KindMessageCompleted  = "message.completed"
	KindToolStarted       = "tool.started"
	KindToolProgress      = "tool.progress"
	KindToolFinished      = "tool.finished"
	KindTodoUpdated       = "todo.updated"
	KindArtifactPresented = "artifact.presented"
	KindUsageUpdated      = "usage.updated"
	KindGuardWarned       = "guard.warned"
	KindGuardStopped      = "guard.stopped"
	KindModelRetry        = "model.retry"
	KindTitleUpdated      = "title.updated"
	KindGap               = "gap"
	KindHeartbeat         = "heartbeat"
	KindEnd               = "end"
)

// RunQueued says that a run waits, and where.
type RunQueued struct {
	Position int `json:"position"` // 1 is next
}

// RunStarted says that an owner began or took up a run.
type RunStarted struct {
	Model   string `json:"model"`
	Resumed int    `json:"resumed,omitempty"` // how often the run was taken up after a restart
	// Rehearsal says that the model is the scripted stand-in.
	Rehearsal bool `json:"rehearsal,omitempty"`
}

// RunSteered says that text sent during the run reached the model.
type RunSteered struct {
	Text string `json:"text"`
}

// RunFinished is the journal's last word on a run.
type RunFinished struct {
	State  store.RunState     `json:"state"`
	Stop   []store.StopReason `json:"stop"`
	Totals store.Totals       `json:"totals"`
	Error  string             `json:"error,omitempty"`
}

// StepStarted opens a model call.
type StepStarted struct{}

// StepFinished closes a step: the model call and the tool calls it asked for.
type StepFinished struct {
	Finish    string        `json:"finish"`
	ToolCalls int           `json:"tool_calls"`
	Latency   time.Duration `json:"latency"`
}

// MessageDelta is more text of the assistant's current message.
type MessageDelta struct {
	Text string `json:"text"`
}

// MessageReasoning is more reasoning. It is never shown as the answer.
type MessageReasoning struct {
	Text string `json:"text"`
}

// MessageReset takes back the deltas of the current step: the attempt failed and is made again.
type MessageReset struct{}

// MessageCompleted is the whole text of an assistant message. Final tells that no tool call follows it.
type MessageCompleted struct {
	MessageID string `json:"message_id"`
	Text      string `json:"text"`
	Final     bool   `json:"final"`
}

// ToolStarted says that a tool runs.
type ToolStarted struct {
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	Args   string `json:"args"` // one line for people, at most 120 characters
}

// ToolProgress is a sign of life from a tool.
type ToolProgress struct {
	CallID string `json:"call_id"`
	Text   string `json:"text"`
}

// ToolFinished is a tool's outcome.
type ToolFinished struct {
	CallID  string        `json:"call_id"`
	Name    string        `json:"name"`
	IsError bool          `json:"is_error,omitempty"`
	Unknown bool          `json:"unknown,omitempty"` // the process stopped while it ran
	Result  string        `json:"result"`            // head of the result, at most 500 characters
	Elapsed time.Duration `json:"elapsed"`
}

// Todo is one line of the plan.
type Todo struct {
	Text   string `json:"text"`
	Status string `json:"status"` // pending, in_progress, completed
}

// TodoUpdated is the whole plan.
type TodoUpdated struct {
	Todos []Todo `json:"todos"`
}

// ArtifactPresented says that a file is ready for delivery.
type ArtifactPresented struct {
	Artifact store.Artifact `json:"artifact"`
}

// UsageUpdated carries the run's sums so far.
type UsageUpdated struct {
	Totals store.Totals `json:"totals"`
}

// GuardWarned says that a guard is near its limit.
type GuardWarned struct {
	Guard  string `json:"guard"`
	Detail string `json:"detail"`
}

// GuardStopped says that a guard ended or bent the run.
type GuardStopped struct {
	Reason store.StopReason `json:"reason"`
}

// ModelRetry says that a model call failed and is made again.
type ModelRetry struct {
	Attempt int           `json:"attempt"` // the one that failed, from 1
	Max     int           `json:"max"`
	Wait    time.Duration `json:"wait"`
	Class   string        `json:"class"`
	Detail  string        `json:"detail"`
}

// TitleUpdated names the thread.
type TitleUpdated struct {
	Title string `json:"title"`
}

// Gap says that events between were dropped from the live stream; the journal has them.
type Gap struct {
	From uint64 `json:"from"` // first missing sequence
	To   uint64 `json:"to"`   // last missing sequence
}

// Heartbeat says that the stream lives though nothing happens. It has no sequence of its own.
type Heartbeat struct{}

// End closes a stream.
type End struct {
	State store.RunState `json:"state"`
}

// Kind implementations.
func (RunQueued) Kind() string { return KindRunQueued }

// Kind implements Body.
func (RunStarted) Kind() string { return KindRunStarted }

// Kind implements Body.
func (RunSteered) Kind() string { return KindRunSteered }

// Kind implements Body.
func (RunFinished) Kind() string { return KindRunFinished }

// Kind implements Body.
func (StepStarted) Kind() string { return KindStepStarted }

// Kind implements Body.
func (StepFinished) Kind() string { return KindStepFinished }

// Kind implements Body.
func (MessageDelta) Kind() string { return KindMessageDelta }

// Kind implements Body.
func (MessageReasoning) Kind() string { return KindMessageReasoning }

// Kind implements Body.
func (MessageReset) Kind() string { return KindMessageReset }

// Kind implements Body.
func (MessageCompleted) Kind() string { return KindMessageCompleted }

// Kind implements Body.
func (ToolStarted) Kind() string { return KindToolStarted }

// Kind implements Body.
func (ToolProgress) Kind() string { return KindToolProgress }

// Kind implements Body.
func (ToolFinished) Kind() string { return KindToolFinished }

// Kind implements Body.
func (TodoUpdated) Kind() string { return KindTodoUpdated }

// Kind implements Body.
func (ArtifactPresented) Kind() string { return KindArtifactPresented }

// Kind implements Body.
func (UsageUpdated) Kind() string { return KindUsageUpdated }

// Kind implements Body.
func (GuardWarned) Kind() string { return KindGuardWarned }

// Kind implements Body.
func (GuardStopped) Kind() string { return KindGuardStopped }

// Kind implements Body.
func (ModelRetry) Kind() string { return KindModelRetry }

// Kind implements Body.
func (TitleUpdated) Kind() string { return KindTitleUpdated }

// Kind implements Body.
func (Gap) Kind() string { return KindGap }

// Kind implements Body.
func (Heartbeat) Kind() string { return KindHeartbeat }

// Kind implements Body.
func (End) Kind() string { return KindEnd }

// Live reports whether b exists in the live stream only, not in the journal.
func Live(b Body) bool {
	switch b.(type) {
	case MessageDelta, MessageReasoning, MessageReset, ToolProgress, Gap, Heartbeat, End:
		return true
	}
	return false
}

type head Event

type wire struct {
	head
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// MarshalJSON writes the head's fields, the kind and the body under "data".
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Body == nil {
		return nil, fmt.Errorf("event %d of run %s has no body", e.Seq, e.Run)
	}
	data, err := json.Marshal(e.Body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(wire{head: head(e), Kind: e.Body.Kind(), Data: data})
}

// UnmarshalJSON reads what MarshalJSON wrote. An unknown kind is an error.
func (e *Event) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	body, err := Decode(w.Kind, w.Data)
	if err != nil {
		return err
	}
	*e = Event(w.head)
	e.Body = body
	return nil
}

// Decode reads the body of one kind.
func Decode(kind string, data []byte) (Body, error) {
	dec, ok := decoders[kind]
	if !ok {
		return nil, fmt.Errorf("unknown event kind %q", kind)
	}
	return dec(data)
}

// Kinds lists all kinds in the order of this file.
func Kinds() []string { return kinds }

var (
	kinds    []string
	decoders = map[string]func([]byte) (Body, error){}
)

func register[T Body]() {
	var zero T
	kinds = append(kinds, zero.Kind())
	decoders[zero.Kind()] = func(b []byte) (Body, error) {
		var v T
		if len(b) > 0 {
			if err := json.Unmarshal(b, &v); err != nil {
				return nil, fmt.Errorf("event %s: %w", zero.Kind(), err)
			}
		}
		return v, nil
	}
}

func init() {
	register[RunQueued]()
	register[RunStarted]()
	register[RunSteered]()
	register[RunFinished]()
	register[StepStarted]()
	register[StepFinished]()
	register[MessageDelta]()
	register[MessageReasoning]()
	register[MessageReset]()
	register[MessageCompleted]()
	register[ToolStarted]()
	register[ToolProgress]()
	register[ToolFinished]()
	register[TodoUpdated]()
	register[ArtifactPresented]()
	register[UsageUpdated]()
	register[GuardWarned]()
	register[GuardStopped]()
	register[ModelRetry]()
	register[TitleUpdated]()
	register[Gap]()
	register[Heartbeat]()
	register[End]()
}
