package middleware

import (
	"context"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
)

// DanglingToolCalls makes the messages of a request such that a strict provider takes them, whatever happened to the
// thread: runs that were cancelled or killed between a call and its result, calls and results that were dropped, ids that
// a provider left empty or used twice. It repairs the request only; the thread stays what it is, and the same thread is
// repaired in the same way each time. Afterwards:
//
//   - the first message behind the system prompt is a user's, no message is empty;
//   - every call is answered exactly once, in one tool message right after its own, in the order of the calls; a call
//     without a result gets an error that says so, a result without a call is dropped;
//   - ids are unique, names are names, arguments are JSON objects.
//
// A result that has no id is given to a call by its name, or by its place if every open call of that turn has one; one
// that could belong to several calls is dropped rather than guessed. Parts that belong to a provider (reasoning,
// signatures, extras) are not touched. A list that is right already is left alone.
type DanglingToolCalls struct{}

// Spec implements agent.Middleware.
func (DanglingToolCalls) Spec() agent.Spec {
	return agent.Spec{
		Name: NameDanglingToolCalls, Phase: agent.PhaseInject, After: []string{NameSystemCoalescing},
		Mutates:   []agent.Surface{agent.SurfaceMessages},
		OnFailure: agent.Closed,
		Why: "last of those that change the list: what is injected later could stand between a call and its result. " +
			"Closed: a provider refuses the whole thread for one open call.",
	}
}

// BeforeModel implements agent.BeforeModelHook.
func (DanglingToolCalls) BeforeModel(_ context.Context, _ *agent.Run, req *model.Request) error {
	req.Messages = repair(req.Messages)
	return nil
}

// repair returns ms in good order. ms and what its parts point to are not changed.
func repair(ms []model.Message) []model.Message {
	var lead []model.Message
	for len(ms) > 0 && ms[0].Role == model.RoleSystem {
		lead, ms = append(lead, ms[0]), ms[1:]
	}
	ms = startAtUser(tidy(ms))
	t := newTurns(ms)
	t.pair()
	return append(lead, t.rebuild()...)
}

// startAtUser drops what stands before the first user message. When there is none, one is put in front instead.
func startAtUser(ms []model.Message) []model.Message {
	for i, m := range ms {
		if m.Role == model.RoleUser {
			return ms[i:]
		}
	}
	for _, m := range ms {
		if m.Role == model.RoleAssistant {
			first := model.Text("dangling-start", model.RoleUser, "Go on.")
			first.Hidden, first.Origin = true, "framework"
			return append([]model.Message{first}, ms...)
		}
	}
	return nil
}
