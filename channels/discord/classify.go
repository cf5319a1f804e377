package discord

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"deerbot/channels"
)

// Codes of docs.discord.com/developers/topics/opcodes-and-status-codes#json.
const (
	codeUnknownChannel     = 10003
	codeUnknownGuild       = 10004
	codeUnknownMessage     = 10008
	codeUnknownUser        = 10013
	codeUnknownWebhook     = 10015
	codeUnknownInteraction = 10062
	codeTooLarge           = 40005
	codeAlreadyAcked       = 40060
	codeMissingAccess      = 50001
	codeNotTheAuthor       = 50005
	codeCannotDM           = 50007
	codeNonText            = 50008
	codeMissingPermission  = 50013
	codeOldWebhook         = 50027
	codeInvalidForm        = 50035
	codeSystemMessage      = 50021
	codeArchived           = 50083
	codeNoHistory          = 160002
	codeThreadExists       = 160004
	codeLocked             = 160005
	codeTooManyThreads     = 160006
	codeOldEdits           = 30046
	codeSlowmode           = 20016
	codeWriteLimit         = 20028
	codeGuildWriteLimit    = 20029
)

// field is one fault of a form.
type field struct{ name, code, text string }

// refusal is an answer of the API that is an error.
type refusal struct {
	name    string
	status  int
	code    int
	text    string
	fields  []field
	wait    time.Duration
	global  bool
	foreign bool // not the API's body: a gateway, a proxy, a ban
}

func (r *refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: HTTP %d", r.name, r.status)
	if r.code != 0 {
		fmt.Fprintf(&b, " code %d", r.code)
	}
	b.WriteString(": " + r.text)
	for _, f := range r.fields {
		fmt.Fprintf(&b, "; %s: %s %s", f.name, f.code, f.text)
	}
	if hint := hints[r.code]; hint != "" {
		b.WriteString(" (" + hint + ")")
	}
	return b.String()
}

// hints say what an operator can do.
var hints = map[int]string{
	codeMissingAccess:     "the bot cannot see this channel: it needs View Channel there",
	codeMissingPermission: "the bot's role lacks a permission here: Send Messages, Send Messages in Threads, Attach Files or Create Public Threads",
	codeNoHistory:         "the bot needs Read Message History here to reply",
	codeCannotDM:          "the person takes no direct messages of the bot",
	codeLocked:            "the thread is locked: a moderator has to open it",
	codeArchived:          "the thread is archived",
}

// has reports whether one of the form's faults has the code.
func (r *refusal) has(name string, codes ...string) bool {
	return slices.ContainsFunc(r.fields, func(f field) bool {
		return (name == "" || strings.HasPrefix(f.name, name)) && slices.Contains(codes, f.code)
	})
}

// classify turns a refusal into the class the outbox decides by.
func classify(r *refusal) error {
	switch {
	case r.status == http.StatusTooManyRequests:
		return &channels.RateLimited{RetryAfter: max(r.wait, time.Millisecond), Account: r.global, Err: r}
	case r.status >= 500:
		return &channels.Transient{MaybeSent: true, Err: r}
	case r.status == http.StatusUnauthorized && r.code == 0 && !r.foreign:
		return &channels.Fatal{Err: fmt.Errorf("discord refuses the bot token (it was reset or mistyped): %w", r)}
	case r.foreign && r.status == http.StatusRequestEntityTooLarge:
		return &channels.Refused{Err: r}
	case r.foreign:
		return &channels.Transient{Err: r}
	}
	switch r.code {
	case codeUnknownMessage, codeOldEdits, codeNotTheAuthor, codeSystemMessage:
		// A message that cannot be edited any more is sent anew, like one that is gone.
		return &channels.Gone{What: "message", Err: r}
	case codeUnknownChannel, codeUnknownGuild:
		return &channels.Gone{What: "chat", Err: r}
	case codeUnknownUser:
		return &channels.Gone{What: "user", Err: r}
	case codeMissingAccess, codeMissingPermission, codeCannotDM, codeNoHistory, codeLocked, codeNonText:
		return &channels.Forbidden{Err: r}
	case codeSlowmode, codeWriteLimit, codeGuildWriteLimit:
		return &channels.RateLimited{RetryAfter: max(r.wait, 5*time.Second), Err: r}
	case codeTooLarge:
		return &channels.Refused{Err: r}
	case codeInvalidForm:
		switch {
		case r.has("content", "BASE_TYPE_MAX_LENGTH", "BASE_TYPE_BAD_LENGTH"):
			return &channels.TooLong{Err: r}
		case r.has("channel_id", "NUMBER_TYPE_COERCE"):
			return &channels.Gone{What: "chat", Err: r}
		}
		return &channels.Refused{Err: r}
	}
	if r.status == http.StatusForbidden {
		return &channels.Forbidden{Err: r}
	}
	return &channels.Refused{Err: r}
}

// refused reports whether err is a refusal with one of the codes.
func refused(err error, codes ...int) bool {
	var r *refusal
	return errors.As(err, &r) && slices.Contains(codes, r.code)
}

func wrong(name, text string) error {
	return &channels.Refused{Err: &failure{name: name, text: text}}
}
