package commands

import (
	"context"
	"time"

	"deerbot/cards"
	"deerbot/cards/phrase"
	"deerbot/channels"
	"deerbot/runtime/model"
	"deerbot/store"
)

// Session is what a command acts on: one person in one place.
type Session interface {
	// Lang is the language of fixed texts here.
	Lang() phrase.Lang
	// Who is the sender.
	Who() Who
	// Place is where the command was typed.
	Place() channels.Place
	// ThreadID is the thread the conversation is on.
	ThreadID() string
	// New points the conversation at a fresh thread; an active run is stopped first.
	New(ctx context.Context, title string) (stoppedRun bool, err error)
	// Stop interrupts the active run at once. Queued messages are kept.
	Stop(ctx context.Context) (Stopped, error)
	// Status tells how things stand.
	Status(ctx context.Context) (Status, error)
	// Retry runs the last turn again; false means that there is nothing to retry.
	Retry(ctx context.Context) (bool, error)
	// Files lists the artifacts of the thread, oldest first.
	Files(ctx context.Context) ([]store.Artifact, error)
	// SendFile posts an artifact here.
	SendFile(ctx context.Context, a store.Artifact) error
	// Models lists the configured models, the default first.
	Models() []model.Info
	// Model is the name of the model that is used here.
	Model() string
	// SetModel chooses a model for this conversation.
	SetModel(ctx context.Context, name string) error
}

// Who is a sender.
type Who struct {
	ID        string // the platform's immutable id
	Name      string // display name, data
	Channel   string
	Workspace string
	Role      string // operator, owner, member
	UserID    string // deerbot user, "" when not connected
}

// Roles, from the most rights to the least.
const (
	RoleOperator = "operator"
	RoleOwner    = "owner"
	RoleMember   = "member"
)

// Stopped is the result of a stop.
type Stopped struct {
	Running bool     // a run was active
	Queued  []string // heads of the messages that still wait
}

// RunPhase is what the conversation's run is doing.
type RunPhase string

// Phases of a conversation's run.
const (
	PhaseIdle     RunPhase = "idle"
	PhaseQueued   RunPhase = "queued"
	PhaseRunning  RunPhase = "running"
	PhaseStopping RunPhase = "stopping"
)

// Status is how things stand in a conversation and in the daemon.
type Status struct {
	Phase    RunPhase
	Position int           // in the queue, when queued; 1 is next
	Step     int           // of the active run
	Elapsed  time.Duration // of the active run
	Tokens   int64         // of the active run, or of the last one when idle
	CostUSD  float64       // likewise
	// Estimated says that some of the figures are estimates.
	Estimated bool
	Queue     int // messages that wait in this conversation

	ThreadID string
	Title    string // of the thread, may be ""
	Model    string
	Groups   string // what makes the bot answer here when it is a group: mention, all, off; "" in a DM

	Channels []ChannelStatus
	Version  string
	Uptime   time.Duration
	RSS      int64 // bytes of memory, 0 unknown
}

// ChannelStatus is the health of one channel.
type ChannelStatus struct {
	Name   string
	Health channels.Health
}

// Reply is what a command answers.
type Reply struct {
	Markdown string
	Buttons  [][]cards.Button
	// Private asks that only the sender sees it, where the platform can.
	Private bool
}
