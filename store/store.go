// Package store holds deerbot's durable records and the small interfaces through which the rest of the program reads
// and writes them. It is a leaf: it knows nobody above it, and what it stores for others (messages, bodies, states) is
// opaque JSON to it.
//
// Engines live below it (store/boltstore); every engine passes the conformance suite in store/storetest.
//
// # Contract of every engine
//
//   - Every method is one transaction: all of it is durable when the method returns nil, none of it when it returns an
//     error. Concurrent writers are grouped into one commit.
//   - Every method is safe for concurrent use. Nothing returned aliases the engine's memory.
//   - A missing record is [ErrNotFound]; a compare-and-set that lost is [ErrConflict]; a write of a run whose lease epoch
//     is not the stored one is [ErrFenced]; no room on the disk is [ErrFull], after which intake stops and reads go on.
//   - Ids made by callers are UUIDv7, so keys sort by time. Times are stored in UTC with nanoseconds.
//   - Strings are valid UTF-8 and may otherwise hold anything, slashes and zero bytes too. Records that are created have a
//     non-empty id; one that exists already is [ErrConflict], except where a method says that it replaces.
//   - A value over [MaxValue] is refused with [ErrTooLarge] before anything is written.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxValue is the largest record an engine takes, in bytes of its stored form. Bigger things belong in files.
const MaxValue = 8 << 20

// Sentinel errors. Engines wrap them with what and where.
var (
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("conflict")
	ErrFenced   = errors.New("fenced: the run belongs to another owner")
	ErrFull     = errors.New("store is full")
	ErrTooLarge = errors.New("record too large")
	ErrClosed   = errors.New("store is closed")
)

// LockedError says that another process holds the store.
type LockedError struct {
	Path string // file that is held
	PID  int    // holder's process id, 0 when unknown
}

// Error names the file and, when known, the process that holds it.
func (e *LockedError) Error() string {
	if e.PID > 0 {
		return fmt.Sprintf("store %s is held by another deerbot (process %d); stop it or use another data_dir", e.Path, e.PID)
	}
	return fmt.Sprintf("store %s is held by another process; stop it or use another data_dir", e.Path)
}

// Store is everything an engine offers. Callers should ask for the smallest interface below that serves them.
type Store interface {
	Inbox
	Conversations
	Threads
	Runs
	Journal
	Outbox
	Artifacts
	Usage
	Users
	Schedules
	ChatLog
	Life

	// Close waits for writes under way and closes the engine. Later calls return ErrClosed.
	Close() error
}

// Inbox is the durable queue of inbound messages: committed before the platform is told that we have them.
type Inbox interface {
	// AcceptInbound commits e unless its DedupeKey was accepted within the last [DedupeKeep]; accepted reports whether it
	// was new; age is told by ReceivedAt. An empty DedupeKey is never known. It sets
	// e.Seq, the position in the conversation, and indexes e.MessageID to the conversation.
	AcceptInbound(ctx context.Context, e *InboxEntry) (accepted bool, err error)
	// PendingInbound lists a conversation's entries in state InboxPending in order of Seq, limit at most.
	PendingInbound(ctx context.Context, c ConversationKey, limit int) ([]InboxEntry, error)
	// CountPending says how many entries of c are pending.
	CountPending(ctx context.Context, c ConversationKey) (int, error)
	// InboundByMessage finds the unsettled entry of a platform message, for edits and recalls; ErrNotFound if none.
	InboundByMessage(ctx context.Context, c ConversationKey, messageID string) (InboxEntry, error)
	// Inbound returns an unsettled entry by id, or ErrNotFound (settled entries are gone).
	Inbound(ctx context.Context, id string) (InboxEntry, error)
	// ReplaceInbound replaces the payload of a pending entry; ErrConflict when it was taken already.
	ReplaceInbound(ctx context.Context, id string, payload []byte) error
	// TakeInbound moves pending entries to InboxTaken by runID ("" for a command); entries already taken by the same run
	// are left alone, by another one is ErrConflict (and none is moved). Entries that were settled meanwhile are passed over.
	TakeInbound(ctx context.Context, runID string, ids ...string) error
	// SettleInbound removes entries: their reply was delivered, or there is nothing to reply. Unknown ids are fine.
	SettleInbound(ctx context.Context, ids ...string) error
	// UnsettledInbound lists all entries, oldest first: what a restart has to look after.
	UnsettledInbound(ctx context.Context) ([]InboxEntry, error)
	// PruneDedupe forgets keys accepted before t and returns how many it removed.
	PruneDedupe(ctx context.Context, before time.Time) (int, error)
}

// DedupeKeep is how long an accepted key is remembered. The longest known redelivery ladder (Lark) reaches 6 hours.
const DedupeKeep = 24 * time.Hour

// Conversations maps platform places to threads.
type Conversations interface {
	// Conversation returns the record of k, or ErrNotFound.
	Conversation(ctx context.Context, k ConversationKey) (Conversation, error)
	// PutConversation writes c and, when c.ThreadID has no thread yet, creates that thread in the same transaction.
	PutConversation(ctx context.Context, c *Conversation) error
	// Conversations lists the conversations of one channel and workspace ("" = all), newest first, limit at most.
	Conversations(ctx context.Context, channel, workspace string, limit int) ([]Conversation, error)
	// IndexMessage records that a platform message belongs to a conversation.
	IndexMessage(ctx context.Context, c ConversationKey, messageID string) error
	// ConversationOfMessage says where a platform message belongs (Topic of k is ignored), or ErrNotFound.
	ConversationOfMessage(ctx context.Context, k ConversationKey, messageID string) (ConversationKey, error)
	// MoveChat re-keys everything of a chat to its new id (Telegram supergroup migration): conversations, message index,
	// inbox entries, outbox records and schedules, in one transaction. What newChat has already stays. Dedupe keys stay
	// with the old chat: platforms count a new chat's messages anew.
	MoveChat(ctx context.Context, channel, workspace, oldChat, newChat string) error
}

// Threads holds thread records and their checkpoints: an append-only tree of deltas.
type Threads interface {
	// PutThread creates or replaces the record (never its Head, which only WriteRun and MoveHead change).
	PutThread(ctx context.Context, t *Thread) error
	// Thread returns a thread, or ErrNotFound.
	Thread(ctx context.Context, id string) (Thread, error)
	// Checkpoints returns the chain from the root to head, oldest first. An empty head means the thread's own head; a
	// thread without checkpoints gives an empty slice. A missing parent is an error, never a guess.
	Checkpoints(ctx context.Context, threadID, head string) ([]Checkpoint, error)
	// MoveHead sets the thread's head from one checkpoint to another of the same thread (undo); ErrConflict if the head
	// is not from, or a run is active.
	MoveHead(ctx context.Context, threadID, from, to string) error
}

// Runs holds run records. At most one run of a thread is active (running or finalizing); the store enforces it.
type Runs interface {
	// AdmitRun creates r. With r.IdempotencyKey known it returns the existing run and reused = true, whatever the
	// strategy. The active run of the thread decides: StrategyReject and a live run is ErrConflict; StrategyEnqueue makes
	// r pending behind it. On a free thread r is created in r.State as given (pending, or running when r carries Owner,
	// Epoch 1 and LeaseUntil), which makes admission and claim one commit.
	AdmitRun(ctx context.Context, r *Run, s Strategy) (got Run, reused bool, err error)
	// ClaimRun moves the run from pending to running for owner, if no other run of its thread is active and no older
	// one is pending; else ErrConflict. It raises the epoch by one.
	ClaimRun(ctx context.Context, id, owner string, leaseUntil time.Time) (Run, error)
	// TakeOverRun gives a running or finalizing run whose lease ended before now to a new owner: epoch and Resumes rise by
	// one. ErrConflict when the lease still holds. Who knows that the owner is gone passes a now behind its lease.
	TakeOverRun(ctx context.Context, id, owner string, now, leaseUntil time.Time) (Run, error)
	// RenewLease extends the lease, fenced by epoch, and returns the run (with CancelRequested).
	RenewLease(ctx context.Context, id string, epoch uint64, leaseUntil time.Time) (Run, error)
	// WriteRun commits all parts of w together, fenced by w.Epoch; a run that is pending or over is ErrFenced at any epoch.
	// Events, usage rows and artifacts become the run's, whatever their RunID says.
	WriteRun(ctx context.Context, w *RunWrite) error
	// EndPending moves a pending run to a terminal state with reasons; ErrConflict when it is not pending.
	EndPending(ctx context.Context, id string, to RunState, stop []StopReason) error
	// RequestCancel records that the run shall end; idempotent; ErrConflict when it is terminal.
	RequestCancel(ctx context.Context, id, by string) error
	// Run returns a run, or ErrNotFound.
	Run(ctx context.Context, id string) (Run, error)
	// ActiveRun returns the running or finalizing run of a thread, or ErrNotFound.
	ActiveRun(ctx context.Context, threadID string) (Run, error)
	// PendingRuns lists a thread's pending runs in order of admission.
	PendingRuns(ctx context.Context, threadID string) ([]Run, error)
	// LiveRuns lists all runs that are not terminal, oldest first.
	LiveRuns(ctx context.Context) ([]Run, error)
	// ThreadRuns lists a thread's runs, newest first, limit at most.
	ThreadRuns(ctx context.Context, threadID string, limit int) ([]Run, error)
}

// Journal is the append-only record of what happened in a run. Appending is a part of WriteRun.
type Journal interface {
	// JournalEvents lists events of a run with Seq > after, in order, limit at most.
	JournalEvents(ctx context.Context, runID string, after uint64, limit int) ([]JournalEvent, error)
}

// Outbox is the durable record of what shall be sent: written before the call, completed after it.
type Outbox interface {
	// PutOutgoing creates o unless its Key exists; created reports which, and the stored record comes back.
	PutOutgoing(ctx context.Context, o *Outgoing) (got Outgoing, created bool, err error)
	// UpdateOutgoing writes o back (state, parts, attempts). In the same transaction it indexes the message ids of its
	// parts to the conversation and, when o.State is DeliverySent or DeliveryPermanent, settles the inbox entries in
	// o.Settles. CreatedAt and RunID stay what they were.
	UpdateOutgoing(ctx context.Context, o *Outgoing) error
	// Outgoing returns a record by key, or ErrNotFound.
	Outgoing(ctx context.Context, key string) (Outgoing, error)
	// UnsentOutgoing lists records in states pending, sending, failed and unknown, oldest first.
	UnsentOutgoing(ctx context.Context) ([]Outgoing, error)
	// RunOutgoing lists a run's records, oldest first.
	RunOutgoing(ctx context.Context, runID string) ([]Outgoing, error)
	// PruneOutgoing removes sent and permanent records last updated before t and returns how many.
	PruneOutgoing(ctx context.Context, before time.Time) (int, error)
	// PutPenalty remembers until when a scope (channel, account, chat) must not be called. PutPenalty in the past removes.
	PutPenalty(ctx context.Context, scope string, until time.Time) error
	// Penalties returns all penalties that end after now.
	Penalties(ctx context.Context, now time.Time) (map[string]time.Time, error)
}

// Artifacts are files a run presented. They are written by WriteRun.
type Artifacts interface {
	// ThreadArtifacts lists a thread's artifacts, oldest first.
	ThreadArtifacts(ctx context.Context, threadID string) ([]Artifact, error)
	// RunArtifacts lists a run's artifacts, oldest first.
	RunArtifacts(ctx context.Context, runID string) ([]Artifact, error)
}

// Usage holds one row per model call, written by WriteRun. Sums everywhere come from these rows.
type Usage interface {
	// RunUsage lists the rows of a run in order.
	RunUsage(ctx context.Context, runID string) ([]UsageRow, error)
	// UsageBetween calls fn for the rows in [from, to), in order of time, until fn returns false. fn must not call the store.
	UsageBetween(ctx context.Context, from, to time.Time, fn func(UsageRow) bool) error
}

// Users holds deerbot users and the external identities bound to them.
type Users interface {
	PutUser(ctx context.Context, u *User) error
	User(ctx context.Context, id string) (User, error)
	// PutConnection binds an external identity; an identity has one owner, the newest binding wins and prev is the one
	// that lost it ("" if none).
	PutConnection(ctx context.Context, c *Connection) (prev string, err error)
	// ConnectionOf returns the binding of an external identity, or ErrNotFound.
	ConnectionOf(ctx context.Context, channel, workspace, account string) (Connection, error)
	DeleteConnection(ctx context.Context, channel, workspace, account string) error
	UserConnections(ctx context.Context, userID string) ([]Connection, error)
}

// Schedules holds recurring instructions.
type Schedules interface {
	PutSchedule(ctx context.Context, s *Schedule) error
	Schedule(ctx context.Context, id string) (Schedule, error)
	DeleteSchedule(ctx context.Context, id string) error
	Schedules(ctx context.Context, c ConversationKey) ([]Schedule, error)
	// DueSchedules lists active schedules with Next <= now, earliest first, limit at most.
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]Schedule, error)
}

// ChatLog keeps the messages of chats that have no platform to keep them (the web chat).
type ChatLog interface {
	// PutChatMessage creates or replaces the message (chat, ID). Seq and, on first writing, CreatedAt are set by the
	// engine; every write gets a new Rev, rising over the whole chat.
	PutChatMessage(ctx context.Context, m *ChatMessage) error
	// ChatMessage returns one message, or ErrNotFound.
	ChatMessage(ctx context.Context, chat, id string) (ChatMessage, error)
	// ChatMessages lists a chat's messages with Seq > after in order, limit at most.
	ChatMessages(ctx context.Context, chat string, after uint64, limit int) ([]ChatMessage, error)
	// Chats lists chats, the newest message first.
	Chats(ctx context.Context, limit int) ([]ChatSummary, error)
	// PutChatTitle names a chat, creating it when it has no message yet.
	PutChatTitle(ctx context.Context, chat, title string) error
	// DeleteChat removes a chat and its messages.
	DeleteChat(ctx context.Context, chat string) error
}

// Life keeps the marks from which crash loops are told.
type Life interface {
	// MarkStart records a start at now and returns the starts since `since` that were not followed by MarkStop.
	MarkStart(ctx context.Context, now, since time.Time) (unclean []time.Time, err error)
	// MarkStop records a clean stop.
	MarkStop(ctx context.Context) error
}
