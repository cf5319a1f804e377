// Package channels is the contract between deerbot and an IM platform.
//
// An adapter ([Channel]) dials out, turns the platform's events into [Inbound] and hands them to the [Inbox]; it
// acknowledges an event to the platform only after Accept returned nil, because then, and only then, it is on disk.
// Redelivered events are harmless: the inbox dedupes by (workspace, chat, EventID).
//
// Outbound, an adapter is a thin, stateless translator: bodies arrive rendered and within limits, pacing and retries are
// the outbox's. It classifies every error once, into the types of this package; the outbox decides on the class only.
// No SDK type leaves an adapter, and no secret is ever in an error or a log line.
//
// Abilities that not every platform has are optional interfaces found by type assertion.
package channels

import (
	"context"
	"io"
	"time"

	"deerbot/cards"
	"deerbot/store"
)

// Place is where people talk: channel, workspace, chat and topic.
type Place = store.ConversationKey

// Channel connects one IM platform.
type Channel interface {
	// Name is the channel's name in configuration and keys: telegram, slack, discord, lark, web.
	Name() string
	// Capabilities does not change once Run has connected.
	Capabilities() Capabilities
	// Run receives events until ctx ends, reconnecting by itself. It returns an error only when trying again cannot help
	// (bad credentials, bad configuration): a *[Fatal]. After it returns, no goroutine of the adapter is left.
	Run(ctx context.Context, inbox Inbox) error
	// Send posts m. key names the message: where the platform dedupes by key it is passed on, elsewhere it is ignored.
	Send(ctx context.Context, to Place, m Message, key string) (Ref, error)
	// Edit replaces the message. An edit that would change nothing is success.
	Edit(ctx context.Context, ref Ref, m Message) error
}

// Inbox takes inbound events.
type Inbox interface {
	// Accept returns nil when the event is committed (or was before, or is of no interest). On an error the adapter must
	// not acknowledge the event; it tries again until ctx ends.
	Accept(ctx context.Context, in *Inbound) error
}

// Capabilities says what a channel can do.
type Capabilities struct {
	Dialect cards.Dialect
	Edits   bool  // sent messages can be edited
	MaxFile int64 // bytes of an outgoing file, 0 = files cannot be sent
	// Pace is the budget of one place for edits and other calls that can wait.
	Pace func(Place) Pace
	// Loopback says that the platform is this process: no call can be lost on the way.
	Loopback bool
	// IdempotentSends says that the platform dedupes by key for some minutes: a Send or SendFile whose outcome is unknown
	// may soon be made again with its key, and is there once.
	IdempotentSends bool
}

// Pace limits calls. Zero fields do not limit.
type Pace struct {
	Gap       time.Duration // least time between two calls in the place
	PerMinute int           // calls a minute in the place
	PerSecond float64       // calls a second over all places of the account
}

// Ref names a sent message.
type Ref struct {
	Place Place  `json:"place"`
	ID    string `json:"id"`
}

// Message is one outgoing message.
type Message struct {
	Body    cards.Body
	ReplyTo string // platform message id to reply to, "" for none; a deleted one must not make the send fail
	Silent  bool   // no notification
}

// Kind of inbound event.
type Kind string

// Kinds of inbound events.
const (
	KindMessage Kind = "message"
	KindEdit    Kind = "edit"   // MessageID was changed to this content
	KindRecall  Kind = "recall" // MessageID was taken back
	KindAction  Kind = "action" // a button was pressed
	KindMoved   Kind = "moved"  // the chat has a new id: MovedTo
)

// Inbound is one event from a platform, normalised.
type Inbound struct {
	Kind      Kind   `json:"kind"`
	Place     Place  `json:"place"`
	EventID   string `json:"event_id"`   // dedupe key within workspace and chat: message id where redelivery may change event ids
	MessageID string `json:"message_id"` // the platform's id of the message
	ChatKind  string `json:"chat_kind"`  // dm, group
	ChatTitle string `json:"chat_title,omitempty"`

	Sender Sender `json:"sender"`
	Text   string `json:"text"` // the bot's own mention removed, trimmed
	// BotName is the bot's own name on the platform, for /command@name.
	BotName string `json:"bot_name,omitempty"`
	// Mentioned: the bot is mentioned anywhere. OtherFirst: somebody else is mentioned before the bot, or alone.
	Mentioned  bool `json:"mentioned,omitempty"`
	OtherFirst bool `json:"other_first,omitempty"`
	// RepliesToBot: the message replies to one of the bot's.
	RepliesToBot bool `json:"replies_to_bot,omitempty"`
	LeadingCode  bool `json:"leading_code,omitempty"` // Text begins inside code or a quote

	Quote       *Quote       `json:"quote,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	GroupID     string       `json:"group_id,omitempty"` // album: messages with the same id belong together
	Action      *Action      `json:"action,omitempty"`
	MovedTo     string       `json:"moved_to,omitempty"`
	SentAt      time.Time    `json:"sent_at"` // the platform's time
	// Note is appended by the adapter when something could not be carried over ("a location was sent").
	Note string `json:"note,omitempty"`
}

// Sender is who wrote. Names are data, never identity.
type Sender struct {
	ID     string `json:"id"` // immutable platform id
	Name   string `json:"name"`
	Handle string `json:"handle,omitempty"`
	Bot    bool   `json:"bot,omitempty"`
	Locale string `json:"locale,omitempty"` // the platform's, e.g. zh-hans
}

// Quote is the message replied to or quoted.
type Quote struct {
	MessageID   string       `json:"message_id,omitempty"`
	Author      string       `json:"author,omitempty"`
	FromBot     bool         `json:"from_bot,omitempty"` // our own message
	Text        string       `json:"text"`
	Attachments []Attachment `json:"attachments,omitempty"`
}

// Attachment is a file of an inbound message, not yet fetched.
type Attachment struct {
	ID   string `json:"id"`   // what FileFetcher needs, opaque
	Kind string `json:"kind"` // image, document, audio, voice, video, sticker
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"` // declared, 0 unknown
}

// Action is a pressed button.
type Action struct {
	ID   string `json:"id"`   // for ActionAnswerer
	Data string `json:"data"` // Button.Action
}

// File is an outgoing file.
type File struct {
	Name    string
	MIME    string
	Size    int64
	Caption string
	Open    func() (io.ReadCloser, error)
}

// CommandInfo is one command for native registration.
type CommandInfo struct {
	Name        string            // without slash
	Description map[string]string // language (en, zh) -> text
	Args        string            // usage of the arguments, "" for none
}

// Optional abilities.
type (
	// Typer shows a working sign for some seconds. Errors are cosmetic.
	Typer interface {
		Typing(ctx context.Context, to Place) error
	}
	// Deleter removes a message of ours.
	Deleter interface {
		Delete(ctx context.Context, ref Ref) error
	}
	// FileSender posts a file.
	FileSender interface {
		SendFile(ctx context.Context, to Place, f File, replyTo, key string) (Ref, error)
	}
	// FileFetcher opens an attachment for reading; the caller closes it.
	FileFetcher interface {
		Fetch(ctx context.Context, a Attachment) (io.ReadCloser, error)
	}
	// CommandRegistrar registers commands natively; called once per start, after connecting, and again when they change.
	CommandRegistrar interface {
		RegisterCommands(ctx context.Context, cmds []CommandInfo) error
	}
	// ActionAnswerer answers a pressed button with a short notice to the presser, "" for none.
	ActionAnswerer interface {
		AnswerAction(ctx context.Context, actionID, notice string) error
	}
	// Finder looks for a message of ours that was sent with key: how a send whose answer was lost is told from one that
	// never arrived.
	Finder interface {
		Find(ctx context.Context, to Place, key string) (Ref, bool, error)
	}
	// HealthReporter tells how the channel is.
	HealthReporter interface {
		Health() Health
	}
)

// Health is a channel's state.
type Health struct {
	Connected bool      `json:"connected"`           // has connected since its start
	Since     time.Time `json:"since,omitzero"`      // of the present state
	LastEvent time.Time `json:"last_event,omitzero"` // last event or successful poll
	Trouble   string    `json:"trouble,omitempty"`   // what is wrong now, no secrets
	Account   string    `json:"account,omitempty"`   // the bot's name there
}
