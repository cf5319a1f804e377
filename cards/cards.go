// Package cards turns what an agent says and does into what a chat can show: Markdown into a platform's dialect, a run
// into a live card. It is pure: data in, data out; no I/O, no SDK, no clock.
//
// Two inputs, one output. [Dialect.Markdown] renders GitHub-flavoured Markdown into bodies that fit the platform's limit,
// split at block boundaries. [Dialect.Card] renders a [Card], the picture of a run made by [RunView], into one body.
// A [Body] is ready to send, and carries the same content as plain text for the day a platform refuses the format.
// Equal inputs give equal bytes.
package cards

import (
	"encoding/json"
	"time"

	"deerbot/cards/phrase"
)

// Dialect renders for one platform.
type Dialect interface {
	// Name is the dialect's name: plain, web, telegram.
	Name() string
	// Markdown renders a whole text. It returns no body when nothing visible would be left.
	Markdown(md string) []Body
	// Card renders c into exactly one body within the platform's limit for one message.
	Card(c Card) Body
}

// Body is one message ready to send.
type Body struct {
	Text    string          `json:"text"`             // in the dialect
	Format  string          `json:"format,omitempty"` // html, mrkdwn, markdown, plain …: what the adapter tells the platform
	Plain   string          `json:"plain"`            // the same content without format, within the same limit
	Data    json.RawMessage `json:"data,omitempty"`   // structured form where the dialect has one (blocks, card JSON)
	Buttons [][]Button      `json:"buttons,omitempty"`
}

// AsPlain is b without its format: what is sent when the platform refused it.
func (b Body) AsPlain() Body {
	return Body{Text: b.Plain, Format: "plain", Plain: b.Plain, Buttons: b.Buttons}
}

// Button is something to press. Action comes back in the inbound action event; at most 64 bytes.
type Button struct {
	Label  string `json:"label"`
	Action string `json:"action"`
	Style  string `json:"style,omitempty"` // "", primary, danger
}

// Phase is what a card's run is doing.
type Phase string

// Phases.
const (
	PhaseQueued   Phase = "queued"
	PhaseThinking Phase = "thinking"
	PhaseTool     Phase = "tool"
	PhaseWriting  Phase = "writing"
	PhaseDone     Phase = "done"
	PhaseCapped   Phase = "capped"  // ended by a guard
	PhaseStopped  Phase = "stopped" // ended by a person
	PhaseFailed   Phase = "failed"
)

// Terminal reports whether p is an end.
func (p Phase) Terminal() bool {
	return p == PhaseDone || p == PhaseCapped || p == PhaseStopped || p == PhaseFailed
}

// Card is the platform-neutral picture of a run.
type Card struct {
	Lang     phrase.Lang
	Title    string
	Phase    Phase
	Position int        // in the queue, when queued
	Notices  []string   // resumed, retrying, rehearsal …
	Plan     []PlanItem // todo list
	Tools    []ToolLine // current and latest, oldest first
	Hidden   int        // tool lines not shown
	Answer   string     // Markdown, possibly unfinished
	Open     bool       // Answer is still being written
	Reasons  []string   // why it ended, in words, when not plainly done
	Totals   Totals
	Elapsed  time.Duration
	Buttons  []Button

	Subagents []SubagentLine // oldest first
}

// PlanItem is one line of the plan.
type PlanItem struct {
	Text   string
	Status string // pending, in_progress, completed
}

// ToolLine is one tool call in short.
type ToolLine struct {
	Name    string
	Args    string
	State   string // running, ok, error, unknown
	Elapsed time.Duration
}

// SubagentLine is one delegated task in short.
type SubagentLine struct {
	Name    string
	State   string // running, ok, error, unknown
	Step    int
	Tokens  int64
	Elapsed time.Duration
}

// Totals are the figures of the footer.
type Totals struct {
	Steps     int
	Tokens    int64
	CostUSD   float64
	Estimated bool
}
