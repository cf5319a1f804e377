package middleware

import (
	"context"
	"slices"
	"strings"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
)

// SystemCoalescing makes one leading system message of all system messages in the request. Providers differ in what they
// do with a second one: some refuse it, some move it, some read it as a user's. A request that is right already is left
// alone, so that prompt caches keep working.
type SystemCoalescing struct{}

// Spec implements agent.Middleware.
func (SystemCoalescing) Spec() agent.Spec {
	return agent.Spec{
		Name: NameSystemCoalescing, Phase: agent.PhaseInject, Before: []string{NameDanglingToolCalls},
		Observes:  []agent.Surface{agent.SurfaceMessages},
		Mutates:   []agent.Surface{agent.SurfaceMessages, agent.SurfaceSystem},
		OnFailure: agent.Closed,
		Why: "before dangling_tool_calls, which drops what stands in front of the first user message and would drop a system " +
			"message there. Closed: a second system message can lose the rules.",
	}
}

// BeforeModel implements agent.BeforeModelHook.
func (SystemCoalescing) BeforeModel(_ context.Context, _ *agent.Run, req *model.Request) error {
	var texts []string
	var first *model.Message
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role != model.RoleSystem {
			continue
		}
		if first == nil {
			first = m
		}
		if t := strings.TrimSpace(m.TextOf()); t != "" && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	if first == nil || len(texts) == 1 && first == &req.Messages[0] && systemCount(req.Messages) == 1 {
		return nil
	}
	lead := *first
	rest := slices.DeleteFunc(slices.Clone(req.Messages), func(m model.Message) bool { return m.Role == model.RoleSystem })
	if len(texts) > 0 {
		lead.Parts = []model.Part{{Kind: model.PartText, Text: strings.Join(texts, "\n\n")}}
		rest = slices.Insert(rest, 0, lead)
	}
	req.Messages = rest
	return nil
}

func systemCount(ms []model.Message) int {
	n := 0
	for _, m := range ms {
		if m.Role == model.RoleSystem {
			n++
		}
	}
	return n
}
