package middleware

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
	"deerbot/runtime/sandbox"
	"deerbot/runtime/tools"
	"deerbot/runtime/tools/web"
)

// ToolClass sorts failed tool calls by what can be done about them.
type ToolClass string

// Classes of tool errors.
const (
	ToolTimeout    ToolClass = "timeout"
	ToolCancelled  ToolClass = "cancelled"
	ToolArguments  ToolClass = "invalid_arguments"
	ToolNotFound   ToolClass = "not_found"
	ToolPermission ToolClass = "permission"
	ToolRate       ToolClass = "rate_limited"
	ToolInternal   ToolClass = "internal" // a panic, or an error of ours
	ToolFailed     ToolClass = "failed"   // the tool says why in its own words
)

// toolHints tell the model what to do, one sentence for each class.
var toolHints = map[ToolClass]string{
	ToolTimeout:    "Try a smaller piece of the work, or another way.",
	ToolArguments:  "Correct the arguments and call it again.",
	ToolNotFound:   "Check the name, or list what there is.",
	ToolPermission: "It will be refused again: use an allowed place, or say that it cannot be done.",
	ToolRate:       "Wait before another call like it, or go on with what you have.",
	ToolInternal:   "Try it once more or in another way; if it stays, say so.",
}

const maxToolError = 500 // characters, without the hint

// ToolError is a failed tool call in words for the model.
type ToolError struct {
	Class ToolClass
	Text  string // at most 500 characters and a hint, without host paths and secrets
	Err   error  // cause, for logs
}

// Error implements error.
func (e *ToolError) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *ToolError) Unwrap() error { return e.Err }

// ToolErrors turns every error of a tool into a [ToolError]. An error that comes because the run was cancelled passes
// unchanged: the loop answers it.
type ToolErrors struct{}

// Spec implements agent.Middleware.
func (ToolErrors) Spec() agent.Spec {
	return agent.Spec{
		Name: NameToolErrors, Phase: agent.PhaseTransport,
		Mutates:   []agent.Surface{agent.SurfaceToolResult},
		OnFailure: agent.Closed,
		Why: "innermost, behind every guard's phase: each guard sees the class of an error, never the raw one. " +
			"Closed: a raw error may hold what nobody should read.",
	}
}

// WrapTool implements agent.WrapToolHook.
func (ToolErrors) WrapTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, r *agent.Run, call model.ToolCall) (tools.Result, error) {
		res, err := next(ctx, r, call)
		if err == nil {
			return res, nil
		}
		if ctx.Err() != nil {
			return tools.Result{}, err
		}
		return tools.Result{Untrusted: res.Untrusted}, toolError(call.Name, err)
	}
}

func toolError(name string, err error) *ToolError {
	class, plain := classifyTool(err)
	var text string
	switch class {
	case ToolInternal:
		text = name + " failed with an internal error."
	case ToolTimeout:
		text = name + " took too long and was stopped."
	case ToolCancelled:
		text = name + " was cancelled."
	default:
		text = err.Error()
		if !plain {
			text = hidePaths(text)
		}
		text = clip(oneLine(hideSecrets(text)), maxToolError)
		if text == "" {
			text = name + " failed."
		}
	}
	if hint := toolHints[class]; hint != "" && !strings.HasSuffix(text, hint) {
		if !strings.ContainsAny(text[len(text)-1:], ".!?") {
			text += "."
		}
		text += " " + hint
	}
	return &ToolError{Class: class, Text: text, Err: err}
}

// classifyTool sorts an error. plain says that its words are known to hold no host path.
func classifyTool(err error) (class ToolClass, plain bool) {
	var (
		hook   *agent.HookError
		args   *tools.ArgumentError
		path   *sandbox.PathError
		status *web.StatusError
		netErr net.Error
		sysErr *fs.PathError
	)
	plain = errors.As(err, &path) || errors.As(err, &args) || errors.As(err, &status)
	switch {
	case errors.As(err, &hook):
		return ToolInternal, true
	case errors.As(err, &args):
		return ToolArguments, plain
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return ToolTimeout, plain
	case errors.Is(err, context.Canceled):
		return ToolCancelled, plain
	case errors.As(err, &status):
		switch status.Status { // its words carry a hint
		case http.StatusTooManyRequests:
			return ToolRate, true
		case http.StatusNotFound, http.StatusGone:
			return ToolNotFound, true
		case http.StatusUnauthorized, http.StatusForbidden:
			return ToolPermission, true
		}
		return ToolFailed, true
	case errors.Is(err, fs.ErrNotExist):
		return ToolNotFound, plain
	case errors.Is(err, fs.ErrPermission), errors.Is(err, sandbox.ErrOutside), errors.Is(err, sandbox.ErrReadOnly), errors.Is(err, web.ErrRefused):
		return ToolPermission, plain || errors.Is(err, web.ErrRefused)
	case errors.As(err, &sysErr):
		return ToolInternal, false
	}
	return ToolFailed, plain
}

// hostPath is an absolute path of two elements or more that does not belong to a URL.
var hostPath = regexp.MustCompile(`(^|[\s"'=(\[:,])((?:/[^/\s"':,;()\[\]]+){2,}/?)`)

// hidePaths removes host paths. Virtual ones stay.
func hidePaths(s string) string {
	return hostPath.ReplaceAllStringFunc(s, func(m string) string {
		i := strings.IndexByte(m, '/')
		for _, root := range []string{sandbox.Root, "/mnt/skills"} {
			if p := m[i:]; p == root || strings.HasPrefix(p, root+"/") {
				return m
			}
		}
		return m[:i] + "[path]"
	})
}

var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|x-api-key|cookie)(["']?\s*[:=]\s*["']?)(?:(?:bearer|basic)\s+)?[^\s"',;}]+`),
	regexp.MustCompile(`(?i)\b(api[-_ ]?key|access[-_]?token|client[-_]?secret|password|passwd)(["']?\s*[:=]\s*["']?)[^\s"',;&}]{4,}`),
	regexp.MustCompile(`(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`()(\b)(?:sk|pk|rk|gsk|xai|hf|AIza|ghp|xox[bap]|nvapi|AKIA)[-_A-Za-z0-9]{12,}`),
	regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)()[^\s/@"']+@`),
}

// hideSecrets removes what looks like a credential.
func hideSecrets(s string) string {
	for _, re := range secrets {
		s = re.ReplaceAllString(s, "$1$2[hidden]")
	}
	return s
}

// oneLine makes control characters and runs of space single spaces.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, cleanText(s))
	return strings.Join(strings.Fields(s), " ")
}

// clip cuts s to at most n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}
