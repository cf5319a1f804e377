package middleware

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
)

// Limits of retries.
const (
	attempts      = 3
	attemptsStall = 2 // a stall costs minutes each time
	waitBase      = time.Second
	waitBaseRate  = 5 * time.Second
	waitCap       = 8 * time.Second
	maxRetryAfter = 5 * time.Minute
)

// ModelErrors makes model calls go through: what may succeed later is tried again within the same logical call, so the
// model gets the same request, notes and all, and nothing is spent twice. Waits grow by decorrelated jitter; what the
// server asks for in Retry-After is obeyed up to five minutes, beyond that the call fails at once. Each wait is announced
// as [event.ModelRetry].
//
// A picture that the provider cannot read is left out of the request and the call made again; the thread keeps it.
//
// When calls to a provider's model failed again and again, whichever runs made them, further ones fail at once for a
// minute, then one may probe. One logical call counts once. Refused and throttled calls do not count: the provider is up.
type ModelErrors struct{ cfg Config }

// NewModelErrors makes the middleware.
func NewModelErrors(cfg Config) *ModelErrors { return &ModelErrors{cfg: cfg.withDefaults()} }

// Spec implements agent.Middleware.
func (*ModelErrors) Spec() agent.Spec {
	return agent.Spec{
		Name: NameModelErrors, Phase: agent.PhaseTransport,
		Observes:  []agent.Surface{agent.SurfaceResponse},
		Mutates:   []agent.Surface{agent.SurfaceMessages},
		OnFailure: agent.Closed,
		Why: "in the transport phase, inside whatever shapes the request: what is tried again is the finished request. " +
			"Closed: its failure is a failed call.",
	}
}

// WrapModel implements agent.WrapModelHook.
func (m *ModelErrors) WrapModel(next agent.ModelFunc) agent.ModelFunc {
	return func(ctx context.Context, r *agent.Run, req *model.Request) (*model.Response, error) {
		info := r.Model.Info()
		done, wait := m.cfg.Breakers.enter(info.Provider, info.Model)
		if done == nil {
			return nil, &model.Error{
				Class: model.ClassOverload, Provider: info.Provider, Model: info.Model, Code: "circuit_open", RetryAfter: wait,
				Message: fmt.Sprintf("calls failed again and again, the next is allowed in %s", max(wait, time.Second).Round(time.Second)),
			}
		}
		v := verdictNone
		defer func() { done(v) }() // also when next panics, else the probe's place is lost
		resp, err := m.try(ctx, r, req, next)
		switch {
		case err == nil:
			v = verdictSuccess
		case ctx.Err() == nil && countsAgainst(err):
			v = verdictFailure
		}
		return resp, err
	}
}

// try makes the attempts of one logical call.
func (m *ModelErrors) try(ctx context.Context, r *agent.Run, req *model.Request, next agent.ModelFunc) (*model.Response, error) {
	blind := agent.PerRun(r, stateKey(NameModelErrors), func() *blindState { return &blindState{} })
	wait := time.Duration(0)
	for n := 1; ; n++ {
		resp, err := next(ctx, r, blind.without(req))
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		var me *model.Error
		if !errors.As(err, &me) {
			return nil, err
		}
		if me.Image && blind.add(req) {
			n--
			continue
		}
		limit := attempts
		if me.Class == model.ClassStall {
			limit = attemptsStall
		}
		if !me.Class.Retryable() || n >= limit || me.RetryAfter > maxRetryAfter {
			return nil, err
		}
		if wait = m.backoff(me, wait); me.RetryAfter > 0 {
			wait = me.RetryAfter
		}
		r.Emit(event.ModelRetry{Attempt: n, Max: limit, Wait: wait, Class: string(me.Class), Detail: me.Message})
		if serr := m.cfg.Sleep(ctx, wait); serr != nil {
			return nil, &model.Error{Class: model.ClassCanceled, Provider: me.Provider, Model: me.Model, Err: serr}
		}
	}
}

// backoff draws the next wait from [base, 3*prev], the window clamped before drawing: clamped after, most draws would be
// the cap and the clients would come back together.
func (m *ModelErrors) backoff(me *model.Error, prev time.Duration) time.Duration {
	base := waitBase
	if me.Class == model.ClassRate {
		base = waitBaseRate
	}
	high := min(waitCap, 3*max(prev, base))
	return base + time.Duration(m.cfg.Rand()*float64(high-base))
}

// countsAgainst reports whether a failed call says that the provider is down.
func countsAgainst(err error) bool {
	c := model.ClassOf(err)
	return c.Retryable() && c != model.ClassRate
}

// blindState remembers the messages whose pictures the provider refused in this run.
type blindState struct{ ids map[string]bool }

// add marks every message of req that still shows a picture, and reports whether there was one.
func (b *blindState) add(req *model.Request) bool {
	found := false
	for _, msg := range req.Messages {
		if !b.ids[msg.ID] && slices.ContainsFunc(msg.Parts, isImage) {
			if b.ids == nil {
				b.ids = map[string]bool{}
			}
			b.ids[msg.ID], found = true, true
		}
	}
	return found
}

// without returns req with a placeholder for each refused picture, req itself when there is none.
func (b *blindState) without(req *model.Request) *model.Request {
	if len(b.ids) == 0 {
		return req
	}
	own := *req
	own.Messages = slices.Clone(req.Messages)
	for i, msg := range own.Messages {
		if !b.ids[msg.ID] || !slices.ContainsFunc(msg.Parts, isImage) {
			continue
		}
		parts := slices.Clone(msg.Parts)
		for j, p := range parts {
			if isImage(p) {
				parts[j] = model.Part{Kind: model.PartText, Text: "[a picture was left out: the provider could not read it]"}
			}
		}
		own.Messages[i].Parts = parts
	}
	return &own
}

func isImage(p model.Part) bool { return p.Kind == model.PartImage }
