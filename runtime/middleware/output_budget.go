package middleware

import (
	"context"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
	"deerbot/runtime/tools"
	"deerbot/runtime/tools/budget"
)

// OutputBudget keeps tool results short: beyond the tool's MaxOutput, or the run's OutputBudget, head and tail stay and
// the whole goes to a file whose path the model is told. Results of read_file are cut only, they are in a file already.
// Without a file tree, or when the file cannot be written, the result is cut and no path is promised.
type OutputBudget struct{}

// Spec implements agent.Middleware.
func (OutputBudget) Spec() agent.Spec {
	return agent.Spec{
		Name: NameOutputBudget, Phase: agent.PhaseSanitise, Before: []string{NameToolResultSanitising},
		Mutates:   []agent.Surface{agent.SurfaceToolResult},
		OnFailure: agent.Closed,
		Why: "outside tool_result_sanitising, so that a cut cannot leave a frame open and the spilled file is clean. " +
			"Closed: an unbounded result can fill the context window for good.",
	}
}

// WrapTool implements agent.WrapToolHook.
func (OutputBudget) WrapTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, r *agent.Run, call model.ToolCall) (tools.Result, error) {
		res, err := next(ctx, r, call)
		if err != nil {
			return res, err
		}
		res.Content = budget.Fit(r.Files, call.Name, res.Content, outputLimit(r, call.Name))
		return res, nil
	}
}

func outputLimit(r *agent.Run, name string) int {
	if r.Tools != nil {
		if t, ok := r.Tools.Get(name); ok && t.Spec().MaxOutput > 0 {
			return t.Spec().MaxOutput
		}
	}
	return r.Limits.OutputBudget
}
