package model

import (
	"errors"
	"fmt"
	"time"
)

// Class sorts errors by what can be done about them.
type Class string

// Error classes.
const (
	ClassAuth       Class = "auth"        // key missing, wrong, or without the right
	ClassBadRequest Class = "bad_request" // refused, and would be again
	ClassOverflow   Class = "overflow"    // more input than the context window
	ClassRate       Class = "rate"        // too many requests or tokens
	ClassQuota      Class = "quota"       // no credit left: waiting does not help
	ClassOverload   Class = "overload"    // the provider is busy or broken (5xx, 529)
	ClassNetwork    Class = "network"     // no connection, reset, or the stream was cut
	ClassStall      Class = "stall"       // no byte for stall_timeout
	ClassTimeout    Class = "timeout"     // the whole call took too long
	ClassCanceled   Class = "canceled"    // the caller cancelled
	ClassProtocol   Class = "protocol"    // an answer that cannot be understood
)

// Retryable reports whether the same request may succeed later.
func (c Class) Retryable() bool {
	switch c {
	case ClassRate, ClassOverload, ClassNetwork, ClassStall, ClassProtocol:
		return true
	}
	return false
}

// Error is a failed model call. Its text never holds a key, a header or a URL with a query.
type Error struct {
	Class      Class
	Provider   string
	Model      string
	Status     int           // HTTP status, 0 if none came
	Code       string        // provider's error code or type
	Message    string        // provider's words, at most 500 characters, secrets removed
	RetryAfter time.Duration // from the server, 0 if it said nothing
	Image      bool          // a refusal of a picture in the request: the rest may pass without it
	Err        error         // cause, may be nil
}

// Error formats class, place and the provider's words.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s model %s: %s", e.Provider, e.Model, e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err, ClassNetwork when it is not an *Error.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ClassNetwork
}
