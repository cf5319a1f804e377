package channeltest

import (
	"log/slog"
	"testing"
	"time"

	"deerbot/cards"
	"deerbot/channels"
)

// People of a platform. Both may write in every place.
const (
	Ann = "ann"
	Bob = "bob"
	Bot = "bot" // another bot
)

// Platform is a server that plays a platform, with one account for the adapter under test. One where a message answers
// another by standing in its thread alone has a method RepliesAreThreads() bool.
type Platform interface {
	// Channel makes an adapter for the account, not running yet. It must retry within milliseconds.
	Channel(t *testing.T, log *slog.Logger) channels.Channel
	// Dead makes an adapter whose server cannot be reached.
	Dead(t *testing.T, log *slog.Logger) channels.Channel
	// Secrets are texts that must never be in an error or a log line.
	Secrets() []string

	// DM is Ann's, Group has everybody; Topic is a topic or thread in another group, ok false when there are none.
	DM() channels.Place
	Group() channels.Place
	Topic() (p channels.Place, ok bool)

	// Say makes somebody write and returns the message's id.
	Say(p channels.Place, who string, s Say) string
	// Edit makes the writer change a message; ok is false when the platform does not tell edits.
	Edit(p channels.Place, id, text string) (ok bool)
	// Remove makes somebody delete a message of the bot.
	Remove(p channels.Place, id string)
	// Mention is how people write the name of the bot, or of one of them.
	Mention(who string) string
	// Shown is what people see in a place, oldest first.
	Shown(p channels.Place) []Shown
	// Press presses a button of a message.
	Press(p channels.Place, id, label, who string)
	// PressAnswered reports whether the last press was answered, and how.
	PressAnswered() (notice string, ok bool)
	// Commands are the names registered natively, nil when the platform has none.
	Commands() []string

	// Body is text in the adapter's format, with the word bold in bold; Refused is one whose format the platform refuses,
	// ok false when it refuses none; Long is over the limit of one message.
	Body(text, bold string) cards.Body
	Refused() (b cards.Body, ok bool)
	Long() cards.Body

	// Break makes the next sends, edits and deletes fail; Heal ends it.
	Break(f Fault)
	Heal()
	// Cut drops the connections that stand now; Down makes the platform unreachable until it is up again.
	Cut()
	Down(down bool)
	// Unacknowledged is the number of events the platform would deliver again, -1 when it cannot tell.
	Unacknowledged() int
}

// Me as an argument of Mention is the bot under test.
const Me = "me"

// Say is what somebody writes.
type Say struct {
	Text    string
	ReplyTo string
	File    *File
}

// File is a file that somebody sends, or that people see.
type File struct {
	Name, MIME string
	Data       []byte
}

// Shown is a message as people see it.
type Shown struct {
	ID      string
	Bot     bool // of the bot under test
	Text    string
	Bold    string // what is in bold
	ReplyTo string
	Topic   string
	Buttons []string
	Files   []File
	Edits   int
}

// Fault is a way to fail.
type Fault int

// Faults.
const (
	RateLimited Fault = iota + 1 // for RetryAfter
	Forbidden
	ServerError
	LostAnswer // carried out, but the connection is dropped before the answer
)

// RetryAfter is what a platform asks for under RateLimited.
const RetryAfter = 7 * time.Second
