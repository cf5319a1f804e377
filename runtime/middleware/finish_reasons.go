package middleware

import (
	"context"
	"slices"
	"strings"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
	"deerbot/store"
)

// maxCut is how many answers in a row may be cut at the length limit before the run ends.
const maxCut = 3

// FinishReasons acts on how an answer ended.
//
//   - Cut at the length limit while calling tools: no call is carried out, because its arguments may be half of what was
//     meant even where they parse. The model is told to send smaller ones; the third cut in a row ends the run.
//   - Cut before any text: asked again, under the same count.
//   - Cut in the text of a final answer: the text stands, the reason is recorded.
//   - Stopped by a content filter: calls are dropped for the same reason as above, the text stands, and an answer without
//     text gets one that explains. It is not asked again: the same input would be refused again.
//
// Calls whose arguments are no JSON object are not its business: the loop answers those with an error.
type FinishReasons struct{}

type cutState struct{ inRow int }

// Spec implements agent.Middleware.
func (FinishReasons) Spec() agent.Spec {
	return agent.Spec{
		Name: NameFinishReasons, Phase: agent.PhaseGuard,
		After:     []string{NameStepBudget, NameTokenBudget, NameTimeBudget},
		Mutates:   []agent.Surface{agent.SurfaceResponse},
		OnFailure: agent.Closed,
		Why: "behind the budgets, so it judges before them: they must not act on calls that a content filter cut, which are " +
			"dropped anyway. Closed: half of a call must not be carried out.",
	}
}

// AfterModel implements agent.AfterModelHook.
func (FinishReasons) AfterModel(_ context.Context, r *agent.Run, resp *model.Response) (agent.Decision, error) {
	st := agent.PerRun(r, stateKey(NameFinishReasons), func() *cutState { return &cutState{} })
	if resp.Finish != model.FinishLength {
		st.inRow = 0
	}
	switch resp.Finish {
	case model.FinishSafety:
		return filtered(resp), nil
	case model.FinishLength:
		return st.cut(r, resp), nil
	}
	return agent.Decision{}, nil
}

func filtered(resp *model.Response) agent.Decision {
	detail := "the provider's content filter stopped the answer"
	if len(resp.Message.Calls()) > 0 {
		detail += ", its tool calls were not carried out"
		resp.Message.Parts = slices.DeleteFunc(slices.Clone(resp.Message.Parts), func(p model.Part) bool { return p.Kind == model.PartToolCall })
	}
	return agent.Decision{
		Action: agent.StripCalls, Note: "The model provider's content filter stopped this answer.",
		Reason: &store.StopReason{Code: store.StopSafetyCapped, Source: NameFinishReasons, Detail: detail},
	}
}

func (st *cutState) cut(r *agent.Run, resp *model.Response) agent.Decision {
	calls, text := len(resp.Message.Calls()) > 0, strings.TrimSpace(resp.Message.TextOf()) != ""
	reason := func(detail string) *store.StopReason {
		return &store.StopReason{Code: store.StopLengthCapped, Source: NameFinishReasons, Detail: detail}
	}
	if text && !calls {
		st.inRow = 0
		return agent.Decision{Reason: reason("the answer was cut at the model's length limit")}
	}
	st.inRow++
	switch {
	case st.inRow >= maxCut:
		return agent.Decision{
			Action: agent.EndRun, Reason: reason("answers were cut at the model's length limit three times in a row"),
			Note: "The model's answers were cut at its length limit three times in a row, so this task ended here.",
		}
	case r.Closing():
		return agent.Decision{
			Action: agent.StripCalls, Reason: reason("the closing answer was cut at the model's length limit"),
			Note: "The closing answer was cut at the model's length limit.",
		}
	case calls:
		return agent.Decision{
			Action: agent.RejectCalls,
			Note: "Not carried out: your answer was cut at the length limit, so the arguments may be incomplete. Re-issue the call with " +
				"smaller arguments, for example a long file in several parts.",
		}
	}
	return agent.Decision{
		Action: agent.AskAgain,
		Note:   "Your last answer was cut at the length limit before it had any text. Answer again, with less reasoning.",
	}
}
