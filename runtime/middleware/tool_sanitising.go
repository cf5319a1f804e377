package middleware

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
	"deerbot/runtime/tools"
)

// ToolResultSanitising makes tool results safe to put in front of a model. All of them lose NUL and invalid UTF-8, which
// providers refuse. Those that come from outside, by the tool's Spec or by the result's own mark, are framed as data, and
// framework tags in them are taken apart so that a page cannot speak with the framework's voice. Results of local tools
// keep their tags: code and logs must come through as they are.
type ToolResultSanitising struct{}

// Spec implements agent.Middleware.
func (ToolResultSanitising) Spec() agent.Spec {
	return agent.Spec{
		Name: NameToolResultSanitising, Phase: agent.PhaseSanitise, After: []string{NameOutputBudget},
		Mutates:   []agent.Surface{agent.SurfaceToolResult},
		OnFailure: agent.Closed,
		Why: "inside output_budget: what is cut and spilled must be clean already. Closed: text from outside must not " +
			"reach the model unmarked.",
	}
}

// WrapTool implements agent.WrapToolHook.
func (ToolResultSanitising) WrapTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, r *agent.Run, call model.ToolCall) (tools.Result, error) {
		res, err := next(ctx, r, call)
		untrusted := res.Untrusted || untrustedTool(r, call.Name)
		if err != nil {
			return res, cleanError(err, untrusted)
		}
		res.Content = cleanText(res.Content)
		if untrusted {
			res.Content = frame(call.Name, res.Content)
		}
		return res, nil
	}
}

func untrustedTool(r *agent.Run, name string) bool {
	if r.Tools == nil {
		return false
	}
	t, ok := r.Tools.Get(name)
	return ok && t.Spec().Untrusted
}

// cleanError keeps the class of an error and cleans its words: they may quote what a server said.
func cleanError(err error, untrusted bool) error {
	var te *ToolError
	if !errors.As(err, &te) {
		return err
	}
	text := cleanText(te.Text)
	if untrusted {
		text = neutralise(text)
	}
	if text == te.Text {
		return err
	}
	own := *te
	own.Text = text
	return &own
}

// frame marks text as data from outside.
func frame(tool, text string) string {
	return "<untrusted source=\"" + tool + "\">\n" + neutralise(text) + "\n</untrusted>"
}

// frameworkTag matches the opening of tags that mean something to the agent, see the system prompt.
var frameworkTag = regexp.MustCompile(
	`(?i)<(\s*/?\s*(?:from|quote|uploads|note|correction|untrusted|system|system[-_]reminder|instructions?|tool_result)\b)`)

// neutralise takes framework tags apart. Doing it again changes nothing.
func neutralise(s string) string { return frameworkTag.ReplaceAllString(s, "‹$1") }

// cleanText removes NUL and replaces invalid UTF-8.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}
