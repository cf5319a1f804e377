package agent

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"deerbot/runtime/model"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// HookError is a hook that failed or panicked. Its text is for logs.
type HookError struct {
	Middleware string // "" is the loop's own function inside all wraps: the model's adapter or the tool
	Hook       string
	Panic      any // nil when the hook returned an error
	Err        error
}

// Error implements error.
func (e *HookError) Error() string {
	who := e.Hook
	if e.Middleware != "" {
		who = e.Middleware + ": " + e.Hook
	}
	if e.Panic != nil {
		return fmt.Sprintf("%s panicked: %v", who, e.Panic)
	}
	return fmt.Sprintf("%s: %v", who, e.Err)
}

// Unwrap returns what the hook returned.
func (e *HookError) Unwrap() error { return e.Err }

// BeforeRun calls the hooks in order. It stops at the first that fails closed.
func (c *Chain) BeforeRun(ctx context.Context, r *Run) error {
	for _, l := range c.list {
		h, ok := l.Middleware.(BeforeRunHook)
		if !ok {
			continue
		}
		if err := c.try(l, r, "BeforeRun", func() error { return h.BeforeRun(ctx, r) }); err != nil && l.spec.OnFailure == Closed {
			return err
		}
	}
	return nil
}

// BeforeModel calls the hooks in order. It stops at the first that fails closed; what one that fails open did to req is
// undone.
func (c *Chain) BeforeModel(ctx context.Context, r *Run, req *model.Request) error {
	for _, l := range c.list {
		h, ok := l.Middleware.(BeforeModelHook)
		if !ok {
			continue
		}
		if l.spec.OnFailure == Closed {
			if err := c.try(l, r, "BeforeModel", func() error { return h.BeforeModel(ctx, r, req) }); err != nil {
				return err
			}
			continue
		}
		own := copyRequest(req)
		if c.try(l, r, "BeforeModel", func() error { return h.BeforeModel(ctx, r, own) }) == nil {
			*req = *own
		}
	}
	return nil
}

func copyRequest(req *model.Request) *model.Request {
	own := *req
	own.Messages = slices.Clone(req.Messages)
	for i := range own.Messages {
		own.Messages[i].Parts = slices.Clone(own.Messages[i].Parts)
	}
	own.Tools = slices.Clone(req.Tools)
	return &own
}

// AfterModel calls the hooks in reverse order, all of them, and returns what they decided. A hook that fails closed
// decides to end the run.
func (c *Chain) AfterModel(ctx context.Context, r *Run, resp *model.Response) []Decision {
	var out []Decision
	for _, l := range slices.Backward(c.list) {
		h, ok := l.Middleware.(AfterModelHook)
		if !ok {
			continue
		}
		var d Decision
		err := c.try(l, r, "AfterModel", func() (err error) {
			d, err = h.AfterModel(ctx, r, resp)
			return err
		})
		switch {
		case err == nil && (d.Action != Continue || d.Reason != nil):
			out = append(out, d)
		case err != nil && l.spec.OnFailure == Closed:
			out = append(out, Decision{Action: EndRun, Reason: &store.StopReason{Code: store.StopInternal, Source: l.spec.Name}})
		}
	}
	return out
}

// AfterRun calls the hooks in reverse order. The run is over: a failure is logged whatever the policy.
func (c *Chain) AfterRun(ctx context.Context, r *Run, out *Outcome) {
	for _, l := range slices.Backward(c.list) {
		if h, ok := l.Middleware.(AfterRunHook); ok {
			_ = c.try(l, r, "AfterRun", func() error { return h.AfterRun(ctx, r, out) }) // logged there
		}
	}
}

// WrapModel puts the hooks around base, the first outermost. A panic inside comes out as a [HookError], unless the hook
// that panicked fails open: then the call goes on without it.
func (c *Chain) WrapModel(base ModelFunc) ModelFunc {
	f := call[*model.Request, *model.Response](base)
	f = guard(c, link{}, "model", nil, f)
	for _, l := range slices.Backward(c.list) {
		if h, ok := l.Middleware.(WrapModelHook); ok {
			f = guard(c, l, "WrapModel", func(next call[*model.Request, *model.Response]) call[*model.Request, *model.Response] {
				return call[*model.Request, *model.Response](h.WrapModel(ModelFunc(next)))
			}, f)
		}
	}
	return ModelFunc(f)
}

// WrapTool puts the hooks around base, the first outermost. Panics are as in WrapModel.
func (c *Chain) WrapTool(base ToolFunc) ToolFunc {
	f := call[model.ToolCall, tools.Result](base)
	f = guard(c, link{}, "tool", nil, f)
	for _, l := range slices.Backward(c.list) {
		if h, ok := l.Middleware.(WrapToolHook); ok {
			f = guard(c, l, "WrapTool", func(next call[model.ToolCall, tools.Result]) call[model.ToolCall, tools.Result] {
				return call[model.ToolCall, tools.Result](h.WrapTool(ToolFunc(next)))
			}, f)
		}
	}
	return ToolFunc(f)
}

// call is a ModelFunc or a ToolFunc.
type call[In, Out any] func(ctx context.Context, r *Run, in In) (Out, error)

// guard returns wrap(next), or next when wrap is nil, with panics recovered.
func guard[In, Out any](c *Chain, l link, hook string, wrap func(call[In, Out]) call[In, Out], next call[In, Out]) call[In, Out] {
	return func(ctx context.Context, r *Run, in In) (out Out, err error) {
		f := next
		var called bool // next was called: it recovers its own panics, so it also returned
		var last Out
		var lastErr error
		if wrap != nil {
			f = wrap(func(ctx context.Context, r *Run, in In) (Out, error) {
				called = true
				last, lastErr = next(ctx, r, in)
				return last, lastErr
			})
		}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			failed := &HookError{Middleware: l.spec.Name, Hook: hook, Panic: p}
			c.log.Error("panic", "run", r.ID, "step", r.Step, "in", failed.Error(), "stack", string(debug.Stack()))
			switch {
			case l.spec.OnFailure != Open:
				var none Out
				out, err = none, failed
			case called:
				out, err = last, lastErr
			default:
				out, err = next(ctx, r, in)
			}
		}()
		return f(ctx, r, in)
	}
}

// try calls a hook, turns a panic into an error, and logs what went wrong.
func (c *Chain) try(l link, r *Run, hook string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &HookError{Middleware: l.spec.Name, Hook: hook, Panic: p}
			c.log.Error("panic", "run", r.ID, "step", r.Step, "in", err.Error(), "stack", string(debug.Stack()))
		}
	}()
	if err := f(); err != nil {
		failed := &HookError{Middleware: l.spec.Name, Hook: hook, Err: err}
		c.log.Error("middleware failed", "run", r.ID, "step", r.Step, "middleware", l.spec.Name, "hook", hook,
			"policy", string(l.spec.OnFailure), "err", err)
		return failed
	}
	return nil
}
