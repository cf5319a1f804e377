package store

import (
	"encoding/json"
	"strings"
	"time"
)

// ConversationKey names a place where people talk: channel/workspace/chat/topic. Workspace is the platform's account or
// team id ("" where there is one only); Topic is empty outside threads and forum topics.
type ConversationKey struct {
	Channel   string `json:"channel"`
	Workspace string `json:"workspace,omitempty"`
	Chat      string `json:"chat"`
	Topic     string `json:"topic,omitempty"`
}

// String joins the parts by slashes, for people and logs. It is not a storage key: parts may hold slashes.
func (k ConversationKey) String() string {
	return strings.Join([]string{k.Channel, k.Workspace, k.Chat, k.Topic}, "/")
}

// InboxState is where an inbound message stands.
type InboxState string

// Inbox states. A settled entry is removed.
const (
	InboxPending InboxState = "pending" // committed, nobody worked on it yet
	InboxTaken   InboxState = "taken"   // a run or a command has it; its reply is not delivered yet
)

// InboxEntry is one inbound message.
type InboxEntry struct {
	ID           string          `json:"id"`
	Conversation ConversationKey `json:"conversation"`
	DedupeKey    string          `json:"dedupe_key"` // unique within channel, workspace and chat
	MessageID    string          `json:"message_id"` // the platform's
	Seq          uint64          `json:"seq"`        // order in the conversation, set by the store
	State        InboxState      `json:"state"`
	RunID        string          `json:"run_id,omitempty"` // who took it
	Payload      json.RawMessage `json:"payload"`
	ReceivedAt   time.Time       `json:"received_at"`
}

// Conversation is the state of a place: which thread it is on and what was chosen there.
type Conversation struct {
	Key       ConversationKey   `json:"key"`
	ThreadID  string            `json:"thread_id"`
	Model     string            `json:"model,omitempty"` // chosen by /model
	Agent     string            `json:"agent,omitempty"` // chosen by /agent
	Locale    string            `json:"locale,omitempty"`
	Kind      string            `json:"kind,omitempty"`  // dm, group
	Title     string            `json:"title,omitempty"` // the platform's name of the place, data
	Settings  map[string]string `json:"settings,omitempty"`
	CreatedAt time.Time         `json:"created_at"`
	UpdatedAt time.Time         `json:"updated_at"`
}

// Thread is durable agent state. Its content is in checkpoints.
type Thread struct {
	ID        string          `json:"id"`
	Head      string          `json:"head,omitempty"`  // checkpoint id
	Depth     uint64          `json:"depth,omitempty"` // checkpoints from the root to Head
	Title     string          `json:"title,omitempty"`
	UserID    string          `json:"user_id,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// Checkpoint is one step's addition to a thread: messages appended and state keys changed. It is never rewritten.
type Checkpoint struct {
	ID        string                     `json:"id"`
	ThreadID  string                     `json:"thread_id"`
	Parent    string                     `json:"parent,omitempty"`
	Depth     uint64                     `json:"depth"` // 1 at the root; set by the store
	RunID     string                     `json:"run_id,omitempty"`
	Step      int                        `json:"step"`
	Messages  []json.RawMessage          `json:"messages,omitempty"`
	State     map[string]json.RawMessage `json:"state,omitempty"`    // changed keys; null deletes
	Snapshot  bool                       `json:"snapshot,omitempty"` // State holds every key, not only changed ones
	CreatedAt time.Time                  `json:"created_at"`
}

// RunState is the state of a run.
type RunState string

// Run states. Terminal ones never change.
const (
	RunPending     RunState = "pending"
	RunRunning     RunState = "running"
	RunFinalizing  RunState = "finalizing"
	RunSuccess     RunState = "success"
	RunError       RunState = "error"
	RunInterrupted RunState = "interrupted"
)

// Terminal reports whether s is an end.
func (s RunState) Terminal() bool { return s == RunSuccess || s == RunError || s == RunInterrupted }

// Active reports whether a run in s holds its thread.
func (s RunState) Active() bool { return s == RunRunning || s == RunFinalizing }

// Strategy says what admission does when the thread has a live run.
type Strategy string

// Admission strategies. Interrupt is cancel and enqueue, done by the runtime.
const (
	StrategyReject    Strategy = "reject"
	StrategyEnqueue   Strategy = "enqueue"
	StrategyInterrupt Strategy = "interrupt"
)

// StopCode says why a run ended or was held back.
type StopCode string

// Stop codes.
const (
	StopCompleted      StopCode = "completed"
	StopLoopCapped     StopCode = "loop_capped"
	StopTokenCapped    StopCode = "token_capped"
	StopCostCapped     StopCode = "cost_capped"
	StopStepCapped     StopCode = "step_capped"
	StopTimeCapped     StopCode = "time_capped"
	StopSubagentCapped StopCode = "subagent_capped"
	StopSafetyCapped   StopCode = "safety_capped"
	StopLengthCapped   StopCode = "length_capped"
	StopNoProgress     StopCode = "no_progress"
	StopUserStop       StopCode = "user_stop"
	StopInterrupted    StopCode = "interrupted"
	StopProviderError  StopCode = "provider_error"
	StopToolDenied     StopCode = "tool_denied"
	StopGoalBlocked    StopCode = "goal_blocked"
	StopRecovered      StopCode = "recovered"
	StopInternal       StopCode = "internal_error"
)

// StopReason is one guard that fired, or the plain end. The first of a run's list is the cause.
type StopReason struct {
	Code   StopCode  `json:"code"`
	Source string    `json:"source"` // middleware or component
	Step   int       `json:"step"`
	At     time.Time `json:"at"`
	Detail string    `json:"detail,omitempty"` // for people; no secrets
}

// Totals are sums over a run's usage rows.
type Totals struct {
	Steps        int     `json:"steps"`
	ToolCalls    int     `json:"tool_calls"`
	InputTokens  int64   `json:"input_tokens"`
	CachedTokens int64   `json:"cached_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CostUSD      float64 `json:"cost_usd"`
	Estimated    bool    `json:"estimated,omitempty"` // some row is an estimate
}

// Tokens is input plus output.
func (t Totals) Tokens() int64 { return t.InputTokens + t.OutputTokens }

// Run is one admitted execution on a thread.
type Run struct {
	ID              string          `json:"id"`
	ThreadID        string          `json:"thread_id"`
	IdempotencyKey  string          `json:"idempotency_key,omitempty"`
	State           RunState        `json:"state"`
	Origin          string          `json:"origin"` // chat, schedule, api
	UserID          string          `json:"user_id,omitempty"`
	Model           string          `json:"model,omitempty"`
	Input           json.RawMessage `json:"input,omitempty"`     // messages the run adds to the thread
	Meta            json.RawMessage `json:"meta,omitempty"`      // the caller's, opaque
	BaseHead        string          `json:"base_head,omitempty"` // thread head when the run was claimed: where undo goes back to
	Owner           string          `json:"owner,omitempty"`
	Epoch           uint64          `json:"epoch"`
	LeaseUntil      time.Time       `json:"lease_until,omitzero"`
	Resumes         int             `json:"resumes,omitempty"`
	CancelRequested string          `json:"cancel_requested,omitempty"` // who asked
	Stop            []StopReason    `json:"stop,omitempty"`
	Totals          Totals          `json:"totals"`
	JournalSeq      uint64          `json:"journal_seq"`     // last event written
	Error           string          `json:"error,omitempty"` // for people
	Seq             uint64          `json:"seq"`             // order of admission, set by the store
	CreatedAt       time.Time       `json:"created_at"`
	StartedAt       time.Time       `json:"started_at,omitzero"`
	EndedAt         time.Time       `json:"ended_at,omitzero"`
}

// RunWrite is what one fenced transaction of a run carries. Zero parts are left alone.
type RunWrite struct {
	RunID      string
	Epoch      uint64
	Checkpoint *Checkpoint    // appended under the thread's head, which it becomes; its Parent must be the head, else ErrConflict
	Events     []JournalEvent // Seq must follow the run's JournalSeq without a gap, else ErrConflict
	Usage      []UsageRow
	Artifacts  []Artifact
	Title      string       // new thread title
	To         RunState     // "" keeps the state; running -> finalizing -> terminal, or straight to terminal
	Stop       []StopReason // appended
	Totals     *Totals      // replaces
	Error      string       // with a terminal To
	At         time.Time    // of the transition
}

// JournalEvent is one durable event. Data is its stable JSON form.
type JournalEvent struct {
	RunID string          `json:"run_id"`
	Seq   uint64          `json:"seq"` // 1, 2, 3 … per run
	At    time.Time       `json:"at"`
	Kind  string          `json:"kind"`
	Data  json.RawMessage `json:"data"`
}

// UsageRow is one model call.
type UsageRow struct {
	ID           string          `json:"id"` // UUIDv7
	RunID        string          `json:"run_id"`
	ThreadID     string          `json:"thread_id"`
	Step         int             `json:"step"`
	TaskID       string          `json:"task_id,omitempty"` // subagent
	Provider     string          `json:"provider"`
	Model        string          `json:"model"`
	UserID       string          `json:"user_id,omitempty"`
	Conversation ConversationKey `json:"conversation"`
	InputTokens  int64           `json:"input_tokens"`
	CachedTokens int64           `json:"cached_tokens"` // part of InputTokens
	OutputTokens int64           `json:"output_tokens"`
	CostUSD      float64         `json:"cost_usd"`
	Estimated    bool            `json:"estimated,omitempty"`
	FirstToken   time.Duration   `json:"first_token"`
	Latency      time.Duration   `json:"latency"`
	At           time.Time       `json:"at"`
}

// Artifact is a file that a run presented.
type Artifact struct {
	ID        string    `json:"id"`
	ThreadID  string    `json:"thread_id"`
	RunID     string    `json:"run_id"`
	Path      string    `json:"path"` // virtual, /mnt/user-data/outputs/…
	Name      string    `json:"name"`
	MIME      string    `json:"mime"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	CreatedAt time.Time `json:"created_at"`
}

// DeliveryState is where an outgoing message stands.
type DeliveryState string

// Delivery states. Sent means the platform gave an id.
const (
	DeliveryPending   DeliveryState = "pending"
	DeliverySending   DeliveryState = "sending" // a call is, or was at the last crash, under way
	DeliverySent      DeliveryState = "sent"
	DeliveryFailed    DeliveryState = "failed"    // will be tried again
	DeliveryPermanent DeliveryState = "permanent" // will not be tried again
	DeliveryUnknown   DeliveryState = "unknown"   // sent, but the answer was lost
)

// OutgoingPart is one platform message of an outgoing record.
type OutgoingPart struct {
	MessageID string        `json:"message_id,omitempty"`
	State     DeliveryState `json:"state"`
	Hash      string        `json:"hash,omitempty"` // of the body last accepted by the platform
}

// Outgoing is one thing to be sent: a reply, a live card, a final answer, a file. Key makes it idempotent.
type Outgoing struct {
	Key          string          `json:"key"`
	Conversation ConversationKey `json:"conversation"`
	RunID        string          `json:"run_id,omitempty"`
	Kind         string          `json:"kind"`
	State        DeliveryState   `json:"state"`
	Body         json.RawMessage `json:"body,omitempty"`
	Parts        []OutgoingPart  `json:"parts,omitempty"`
	Settles      []string        `json:"settles,omitempty"` // inbox entries that this answers
	Attempts     int             `json:"attempts,omitempty"`
	Error        string          `json:"error,omitempty"`
	NotBefore    time.Time       `json:"not_before,omitzero"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
}

// User is a deerbot user.
type User struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      string    `json:"role"` // operator, owner, member
	CreatedAt time.Time `json:"created_at"`
}

// Connection binds an external identity to a user.
type Connection struct {
	UserID    string    `json:"user_id"`
	Channel   string    `json:"channel"`
	Workspace string    `json:"workspace,omitempty"`
	Account   string    `json:"account"` // the platform's immutable user id
	Name      string    `json:"name,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// Schedule is a recurring instruction.
type Schedule struct {
	ID           string          `json:"id"`
	Conversation ConversationKey `json:"conversation"`
	UserID       string          `json:"user_id"`
	Kind         string          `json:"kind"` // once, every, cron
	Spec         string          `json:"spec"`
	Zone         string          `json:"zone"`
	Text         string          `json:"text"`
	Active       bool            `json:"active"`
	Next         time.Time       `json:"next,omitzero"`
	Last         time.Time       `json:"last,omitzero"`
	CreatedAt    time.Time       `json:"created_at"`
	Extra        json.RawMessage `json:"extra,omitempty"`
}

// ChatMessage is one message of a web chat. Body is the web channel's own.
type ChatMessage struct {
	Chat      string          `json:"chat"`
	ID        string          `json:"id"`
	Seq       uint64          `json:"seq"`
	Rev       uint64          `json:"rev"`
	Body      json.RawMessage `json:"body"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// ChatSummary is one line of the list of web chats.
type ChatSummary struct {
	Chat      string    `json:"chat"`
	Title     string    `json:"title"`
	Messages  int       `json:"messages"`
	UpdatedAt time.Time `json:"updated_at"`
}
