package channels

import (
	"errors"
	"fmt"
	"time"
)

// Errors of adapters, classified once. Each may wrap a cause whose text holds no secret.
type (
	// RateLimited says: the platform wants no call of this scope before RetryAfter has passed.
	RateLimited struct {
		RetryAfter time.Duration
		Account    bool // the whole account, not only the chat
		Err        error
	}
	// Gone says: the message, chat or user is no longer there.
	Gone struct {
		What string // message, chat, topic, user
		Err  error
	}
	// Forbidden says: the bot may not do this here.
	Forbidden struct{ Err error }
	// TooLong says: the body is over the platform's limit.
	TooLong struct{ Err error }
	// BadFormat says: the platform does not accept the formatting; the plain form may pass.
	BadFormat struct{ Err error }
	// Moved says: the chat has a new id; the call shall be made again there.
	Moved struct {
		To  string
		Err error
	}
	// Transient says: the same call may succeed later. Sent says that the request may have been carried out.
	Transient struct {
		MaybeSent bool
		Err       error
	}
	// Fatal says: no call of this channel can succeed until the configuration is changed.
	Fatal struct{ Err error }
	// Refused says: this very call was refused and would be again (a bug, or content the platform does not take).
	Refused struct{ Err error }
)

func (e *RateLimited) Error() string {
	return fmt.Sprintf("rate limited for %s: %v", e.RetryAfter, e.Err)
}
func (e *Gone) Error() string      { return fmt.Sprintf("%s is gone: %v", e.What, e.Err) }
func (e *Forbidden) Error() string { return fmt.Sprintf("forbidden: %v", e.Err) }
func (e *TooLong) Error() string   { return fmt.Sprintf("too long: %v", e.Err) }
func (e *BadFormat) Error() string { return fmt.Sprintf("format refused: %v", e.Err) }
func (e *Moved) Error() string     { return fmt.Sprintf("chat moved to %s: %v", e.To, e.Err) }
func (e *Transient) Error() string { return fmt.Sprintf("transient: %v", e.Err) }
func (e *Fatal) Error() string     { return fmt.Sprintf("fatal: %v", e.Err) }
func (e *Refused) Error() string   { return fmt.Sprintf("refused: %v", e.Err) }

// Unwrap methods return the cause.
func (e *RateLimited) Unwrap() error { return e.Err }
func (e *Gone) Unwrap() error        { return e.Err }
func (e *Forbidden) Unwrap() error   { return e.Err }
func (e *TooLong) Unwrap() error     { return e.Err }
func (e *BadFormat) Unwrap() error   { return e.Err }
func (e *Moved) Unwrap() error       { return e.Err }
func (e *Transient) Unwrap() error   { return e.Err }
func (e *Fatal) Unwrap() error       { return e.Err }
func (e *Refused) Unwrap() error     { return e.Err }

// IsFatal reports whether err is, or wraps, a *Fatal.
func IsFatal(err error) bool {
	var f *Fatal
	return errors.As(err, &f)
}
