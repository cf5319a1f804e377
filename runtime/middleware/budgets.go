package middleware

import (
	"context"
	"fmt"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
	"deerbot/store"
)

// Shares of a budget at which something happens, in percent.
const (
	warnPercent = 80
	hardPercent = 120 // not even a closing answer is paid for
)

const closingNote = "Call no more tools. Write the closing answer now from what you have: what is done, what was found, " +
	"what is left open, and where the files are."

// StepBudget bounds the model calls of a run by Limits.MaxSteps. At 80 % the model is told once how many are left; the
// last allowed call offers no tools and asks for a closing answer. It counts steps, not attempts, and also those before a
// restart.
type StepBudget struct{}

// Spec implements agent.Middleware.
func (StepBudget) Spec() agent.Spec {
	return agent.Spec{
		Name: NameStepBudget, Phase: agent.PhaseGuard,
		Observes: []agent.Surface{agent.SurfaceResponse}, OnFailure: agent.Closed,
		Why: "Closed: a run without a bound can go on for ever.",
	}
}

// BeforeModel implements agent.BeforeModelHook.
func (StepBudget) BeforeModel(_ context.Context, r *agent.Run, _ *model.Request) error {
	limit := r.Limits.MaxSteps
	if limit <= 0 || r.Step < limit || r.Closing() {
		return nil
	}
	r.Reason(store.StopStepCapped, NameStepBudget, fmt.Sprintf("%d model calls", limit))
	r.Close(fmt.Sprintf("This is the last of the %d steps this task may take. %s", limit, closingNote))
	return nil
}

// AfterModel implements agent.AfterModelHook.
func (StepBudget) AfterModel(_ context.Context, r *agent.Run, resp *model.Response) (agent.Decision, error) {
	limit := r.Limits.MaxSteps
	at := (limit*warnPercent + 99) / 100
	if limit > 0 && r.Step == at && at < limit && goesOn(r, resp) {
		left := limit - r.Step
		warn(r, NameStepBudget, fmt.Sprintf("step %d of %d", r.Step, limit),
			fmt.Sprintf("%d of the %d steps this task may take are used, %d are left. Finish what matters most and keep one step for "+
				"the closing answer.", r.Step, limit, left))
	}
	return agent.Decision{}, nil
}

// TokenBudget bounds the input and output tokens of a run by Limits.TokenBudget. At 80 % the model is told once, at
// 100 % it is asked for a closing answer, and an answer that is beyond 120 % and still wants to go on ends the run.
type TokenBudget struct{}

type tokenState struct{ warned, stopped bool }

// Spec implements agent.Middleware.
func (TokenBudget) Spec() agent.Spec {
	return agent.Spec{
		Name: NameTokenBudget, Phase: agent.PhaseGuard,
		Observes: []agent.Surface{agent.SurfaceResponse, agent.SurfaceUsage}, OnFailure: agent.Closed,
		Why: "Closed: a run without a bound costs money.",
	}
}

// AfterModel implements agent.AfterModelHook.
func (TokenBudget) AfterModel(_ context.Context, r *agent.Run, resp *model.Response) (agent.Decision, error) {
	limit, used := r.Limits.TokenBudget, r.Totals.Tokens()
	if limit <= 0 || !goesOn(r, resp) {
		return agent.Decision{}, nil
	}
	st := agent.PerRun(r, stateKey(NameTokenBudget), func() *tokenState { return &tokenState{} })
	detail := fmt.Sprintf("%d of %d tokens", used, limit)
	reason := &store.StopReason{Code: store.StopTokenCapped, Source: NameTokenBudget, Detail: detail}
	switch {
	case st.stopped:
	case used*100 >= limit*hardPercent:
		st.stopped = true
		return agent.Decision{Action: agent.EndRun, Reason: reason, Note: "The token budget of this task is used up; it ended without a closing answer."}, nil
	case used >= limit:
		st.stopped = true
		return agent.Decision{Action: agent.CloseRun, Reason: reason, Note: "The token budget of this task is used up. " + closingNote}, nil
	case used*100 >= limit*warnPercent && !st.warned:
		st.warned = true
		warn(r, NameTokenBudget, detail, fmt.Sprintf("%d %% of the token budget of this task is used. Finish what matters most and "+
			"come to the closing answer soon.", used*100/limit))
	}
	return agent.Decision{}, nil
}

// TimeBudget bounds the wall clock of a run by Limits.Timeout, counted from when this process took it up. At 80 % the
// model is told once; once the time is over the next answer is the closing one. It never cuts into a call: a call that
// does not return is the business of its own time limit.
type TimeBudget struct{}

type timeState struct {
	start  time.Time
	warned bool
}

// Spec implements agent.Middleware.
func (TimeBudget) Spec() agent.Spec {
	return agent.Spec{
		Name: NameTimeBudget, Phase: agent.PhaseGuard,
		Observes: []agent.Surface{agent.SurfaceResponse}, OnFailure: agent.Closed,
		Why: "Closed: a run without a bound can go on for ever.",
	}
}

func timeOf(r *agent.Run) *timeState {
	return agent.PerRun(r, stateKey(NameTimeBudget), func() *timeState { return &timeState{start: r.Now()} })
}

// BeforeRun implements agent.BeforeRunHook.
func (TimeBudget) BeforeRun(_ context.Context, r *agent.Run) error {
	timeOf(r)
	return nil
}

// BeforeModel implements agent.BeforeModelHook: tools may have taken the time.
func (TimeBudget) BeforeModel(_ context.Context, r *agent.Run, _ *model.Request) error {
	limit, st := r.Limits.Timeout, timeOf(r)
	used := r.Now().Sub(st.start)
	switch {
	case limit <= 0 || r.Closing():
	case used >= limit:
		r.Reason(store.StopTimeCapped, NameTimeBudget, limit.String())
		r.Close("The time for this task is over. " + closingNote)
	case used >= limit*warnPercent/100 && !st.warned:
		st.warned = true
		warn(r, NameTimeBudget, fmt.Sprintf("%s of %s", used.Round(time.Second), limit),
			fmt.Sprintf("%s of the %s this task may take are over. Finish what matters most and come to the closing answer soon.",
				used.Round(time.Second), limit))
	}
	return nil
}

// AfterModel implements agent.AfterModelHook: the answer may have taken the time, then its calls are not begun.
func (TimeBudget) AfterModel(_ context.Context, r *agent.Run, resp *model.Response) (agent.Decision, error) {
	limit := r.Limits.Timeout
	if limit <= 0 || r.Now().Sub(timeOf(r).start) < limit || !goesOn(r, resp) {
		return agent.Decision{}, nil
	}
	return agent.Decision{
		Action: agent.CloseRun, Note: "The time for this task is over. " + closingNote,
		Reason: &store.StopReason{Code: store.StopTimeCapped, Source: NameTimeBudget, Detail: limit.String()},
	}, nil
}

// goesOn reports whether the run would go on after resp.
func goesOn(r *agent.Run, resp *model.Response) bool {
	return !r.Closing() && len(resp.Message.Calls()) > 0
}
