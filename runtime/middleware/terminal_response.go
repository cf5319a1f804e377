package middleware

import (
	"context"
	"strings"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
	"deerbot/store"
)

// TerminalResponse does not let a run end in silence: an answer with neither text nor calls is asked for again once per
// run, by a note nobody else sees. When that gives nothing either, the run ends as an error that says so. Answers that a
// filter or the length limit made empty are the business of [FinishReasons].
type TerminalResponse struct{}

type terminalState struct{ asked bool }

// Spec implements agent.Middleware.
func (TerminalResponse) Spec() agent.Spec {
	return agent.Spec{
		Name: NameTerminalResponse, Phase: agent.PhaseGuard,
		Observes: []agent.Surface{agent.SurfaceResponse}, OnFailure: agent.Open,
		Why: "Open: the worst is an empty answer.",
	}
}

// AfterModel implements agent.AfterModelHook.
func (TerminalResponse) AfterModel(_ context.Context, r *agent.Run, resp *model.Response) (agent.Decision, error) {
	if resp.Finish == model.FinishSafety || resp.Finish == model.FinishLength ||
		len(resp.Message.Calls()) > 0 || strings.TrimSpace(resp.Message.TextOf()) != "" {
		return agent.Decision{}, nil
	}
	st := agent.PerRun(r, stateKey(NameTerminalResponse), func() *terminalState { return &terminalState{} })
	if !st.asked && !r.Closing() {
		st.asked = true
		return agent.Decision{
			Action: agent.AskAgain,
			Note: "Your last answer was empty. Write the answer for the person now, from the results above; say so if something is " +
				"missing.",
		}, nil
	}
	return agent.Decision{
		Action: agent.EndRun, Note: "The model gave no answer.",
		Reason: &store.StopReason{Code: store.StopProviderError, Source: NameTerminalResponse, Detail: "the model gave an empty answer"},
	}, nil
}
