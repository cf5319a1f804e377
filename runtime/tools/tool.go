// Package tools holds what an agent can do: the Tool contract, the set a run works with, and the built-in tools.
//
// A tool that fails returns an error; the error-handling middleware turns it into a result the model can read. A tool
// must return soon after its context ends: a cancelled run waits 300 ms for it, then goes on without.
package tools

import (
	"context"
	"encoding/json"
	"time"

	"deerbot/runtime/event"
	"deerbot/runtime/sandbox"
	"deerbot/store"
)

// Tool is one ability.
type Tool interface {
	// Spec describes the tool to the model. It does not change.
	Spec() Spec
	// Call runs the tool. args is a JSON object that was validated against the schema. Errors are for the model to read:
	// they say what was wrong with which argument and what to do; host paths and secrets are never in them.
	Call(ctx context.Context, env *Env, args json.RawMessage) (Result, error)
}

// Spec describes a tool.
type Spec struct {
	Name        string          // ^[a-zA-Z0-9_-]{1,64}$
	Description string          // one paragraph: what it does, limits, what comes back
	Schema      json.RawMessage // JSON Schema of the arguments, type object
	ReadOnly    bool            // may run beside other calls of one step
	Untrusted   bool            // its output comes from outside and is marked as such
	MaxOutput   int             // characters kept in the history, 0 = the default budget; the rest is spilled to a file
	Timeout     time.Duration   // 0 = the default
	// Line makes the short line for people from the arguments ("report.md", "wasi preview 3"), at most 120 characters.
	Line func(args json.RawMessage) string
}

// Result is what a call gave.
type Result struct {
	Content   string           // for the model
	Artifacts []store.Artifact // files presented by this call (ID, ThreadID, RunID, CreatedAt are filled by the runtime)
	State     map[string]any   // thread state keys to set, e.g. todos
	Todos     []event.Todo     // new plan, nil = unchanged
	Images    []Image          // pictures for models that see
	// Untrusted marks this result as coming from outside though the tool's others need not, as when a saved web page is
	// read from a file.
	Untrusted bool
}

// Image is a picture in a result.
type Image struct {
	MIME string
	Data []byte
}

// Env is what a call may use.
type Env struct {
	RunID    string
	ThreadID string
	UserID   string
	Files    *sandbox.Files // the thread's file tree under /mnt/user-data
	Now      func() time.Time
	// State reads a thread state key as JSON, nil when unset.
	State func(key string) json.RawMessage
	// Progress tells people that the call lives; at most one line, rate limited by the caller.
	Progress func(text string)
}
