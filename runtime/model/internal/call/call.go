// Package call is one HTTP call to a model, whatever the dialect: its deadlines, the watch on silence, the handling of
// refusals, and the translation of every failure into a classified error.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"

	"deerbot/internal/sse"
	"deerbot/runtime/model"
	"deerbot/runtime/model/internal/fault"
)

const (
	maxErrorBody = 64 << 10
	drainTime    = 50 * time.Millisecond
	drainBytes   = 16 << 10
	// afterFinish is how long a finished answer waits for the usage figures and the end mark.
	afterFinish = 10 * time.Second
)

var (
	errStall   = errors.New("no byte from the provider")
	errTimeout = errors.New("the call took too long")
	errEnded   = errors.New("call ended")
)

// Config is what all calls of a model share.
type Config struct {
	Provider string
	Model    string
	Secrets  []string      // values that must not show in errors
	Timeout  time.Duration // whole call, 0: none
	Stall    time.Duration // longest silence, 0: none
}

// Call is one call. Begin makes it, Close ends it.
type Call struct {
	cfg    Config
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // whole call
	quiet  *time.Timer // silence; runs only while bytes are awaited

	mu    sync.Mutex
	stall time.Duration
	body  io.ReadCloser
}

// Begin starts the clocks of a call.
func Begin(ctx context.Context, cfg Config) *Call {
	c := &Call{cfg: cfg, parent: ctx, stall: cfg.Stall}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	if cfg.Timeout > 0 {
		c.timer = time.AfterFunc(cfg.Timeout, func() { c.cancel(errTimeout) })
	}
	c.quiet = time.AfterFunc(time.Hour, func() { c.cancel(errStall) })
	c.quiet.Stop()
	return c
}

// Context is the context of the HTTP request.
func (c *Call) Context() context.Context { return c.ctx }

// RoundTrip sends req by next, in the form of an SDK middleware. Anything but an event stream becomes an error here, so
// that the SDK never reads an error body (it reads without limit and loses what does not fit its own error type).
func (c *Call) RoundTrip(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	c.await(true)
	res, err := next(req)
	c.await(false)
	if err != nil {
		return nil, c.Fail(err)
	}
	res.Body = &watched{call: c, rc: res.Body}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode == http.StatusOK && kind != "application/json" && kind != "text/html" {
		c.mu.Lock()
		c.body = res.Body
		c.mu.Unlock()
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	head, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	if err != nil && len(head) == 0 && res.StatusCode < 400 {
		return nil, c.Fail(err)
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		e := c.wrap(model.ClassBadRequest, "the address redirects; redirects are not followed, the base url must be the final one", nil)
		e.Status = res.StatusCode
		return nil, e
	}
	d := fault.ParseBody(head)
	if res.StatusCode < 400 && d.Status == 0 && d.Code == "" && d.Type == "" && !isErrorBody(head) {
		return nil, c.Protocol("the answer is not an event stream but " + kind)
	}
	return nil, c.Refused(res.StatusCode, res.Header, d)
}

// Refused is the error of a provider's refusal, over HTTP or inside a stream (status 200, no header).
func (c *Call) Refused(status int, h http.Header, d fault.Detail) *model.Error {
	return fault.Answer{
		Provider: c.cfg.Provider, Model: c.cfg.Model,
		Status: status, Header: h, Detail: d, Secrets: c.cfg.Secrets,
	}.Error(time.Now())
}

// Protocol is the error of an answer that cannot be understood.
func (c *Call) Protocol(what string) *model.Error {
	return c.wrap(model.ClassProtocol, what, nil)
}

// Unsendable is the error of a request that has no wire form: the next attempt would fail alike.
func (c *Call) Unsendable(err error) *model.Error {
	return c.wrap(model.ClassBadRequest, "the request cannot be encoded: "+err.Error(), nil)
}

// Decoding classifies err, the failure to decode data. Data that ends too early was cut.
func (c *Call) Decoding(err error, data []byte) *model.Error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
		return c.Cut()
	}
	return c.Protocol("an event is not valid JSON")
}

// Cut is the error of a stream that ended before the answer did.
func (c *Call) Cut() *model.Error {
	return c.wrap(model.ClassNetwork, "the stream ended before the answer was complete", nil)
}

// Finished shortens the watch on silence: the answer is known, only figures may follow.
func (c *Call) Finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stall == 0 || c.stall > afterFinish {
		c.stall = afterFinish
	}
}

// Interrupted reports whether the caller, and not the provider or a clock of ours, ended the call.
func (c *Call) Interrupted() bool { return c.parent.Err() != nil }

// Fail classifies err, the failure of a request or of reading its stream.
func (c *Call) Fail(err error) *model.Error {
	if known, ok := errors.AsType[*model.Error](err); ok {
		return known
	}
	cause := context.Cause(c.ctx)
	switch {
	case errors.Is(c.parent.Err(), context.DeadlineExceeded):
		return c.wrap(model.ClassTimeout, "the caller's deadline has passed", context.DeadlineExceeded)
	case c.parent.Err() != nil:
		return c.wrap(model.ClassCanceled, "cancelled by the caller", context.Canceled)
	case errors.Is(cause, errTimeout):
		return c.wrap(model.ClassTimeout, "no complete answer within "+c.cfg.Timeout.String(), errTimeout)
	case errors.Is(cause, errStall):
		return c.wrap(model.ClassStall, "the provider sent nothing for "+c.limit().String(), errStall)
	case errors.Is(err, sse.ErrTooLarge):
		return c.wrap(model.ClassProtocol, err.Error(), sse.ErrTooLarge)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return c.wrap(model.ClassNetwork, "the connection was cut", io.ErrUnexpectedEOF)
	}
	if u, ok := errors.AsType[*url.Error](err); ok { // its text holds the URL
		err = u.Err
	}
	return c.wrap(model.ClassNetwork, fault.Clean(err.Error(), c.cfg.Secrets...), plain(err))
}

// Close ends the call. What is left of an ended stream is read for a moment, so that the connection can be used again.
func (c *Call) Close(drain bool) {
	c.mu.Lock()
	body := c.body
	c.body = nil
	c.mu.Unlock()
	if body != nil {
		if drain {
			t := time.AfterFunc(drainTime, func() { c.cancel(errEnded) })
			_, _ = io.CopyN(io.Discard, body, drainBytes)
			t.Stop()
		}
		c.cancel(errEnded)
		_ = body.Close()
	}
	c.cancel(errEnded)
	c.quiet.Stop()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// await starts or stops the watch on silence. It runs only while bytes are awaited, so a slow reader is no stall.
func (c *Call) await(on bool) {
	if limit := c.limit(); on && limit > 0 {
		c.quiet.Reset(limit)
		return
	}
	c.quiet.Stop()
}

func (c *Call) limit() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stall
}

func (c *Call) wrap(class model.Class, msg string, cause error) *model.Error {
	return &model.Error{Class: class, Provider: c.cfg.Provider, Model: c.cfg.Model, Message: fault.Clean(msg, c.cfg.Secrets...), Err: cause}
}

// plain keeps of err only what callers may ask for with errors.Is: an arbitrary cause could print a URL or a header.
func plain(err error) error {
	for _, known := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, os.ErrDeadlineExceeded, net.ErrClosed} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

func isErrorBody(head []byte) bool {
	var probe struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(head, &probe) == nil && len(probe.Error) > 0 && string(probe.Error) != "null"
}

// watched is a body whose reads are under the watch on silence.
type watched struct {
	call *Call
	rc   io.ReadCloser
}

// Read reads with the watch on.
func (w *watched) Read(p []byte) (int, error) {
	w.call.await(true)
	n, err := w.rc.Read(p)
	w.call.await(false)
	return n, err
}

// Close closes the body.
func (w *watched) Close() error { return w.rc.Close() }
