package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// New makes a tool out of a function. The schema comes from Args, a struct: json tags name the arguments, omitempty
// makes one optional, jsonschema tags describe them; refine adds what tags cannot say, such as limits and enums. Args
// may not be recursive. The function gets arguments that hold against the schema, whoever calls the tool.
//
// When spec.Line is nil, the line for people is the first argument that is a text.
func New[Args any](spec Spec, fn func(ctx context.Context, env *Env, args Args) (Result, error), refine ...func(*jsonschema.Schema)) (Tool, error) {
	if !nameRE.MatchString(spec.Name) {
		return nil, fmt.Errorf("tool %q: the name must match %s", spec.Name, nameRE)
	}
	if spec.Description == "" {
		return nil, fmt.Errorf("tool %s: a description is needed", spec.Name)
	}
	root, err := jsonschema.For[Args](nil)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	if root.Type != "object" {
		return nil, fmt.Errorf("tool %s: the arguments must be a struct", spec.Name)
	}
	noNull(root)
	for _, r := range refine {
		r(root)
	}
	if spec.Schema, err = json.Marshal(root); err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	sc, err := parseSchema(spec.Schema)
	if err == nil && sc.resolved == nil {
		err = errors.New("the schema cannot be resolved")
	}
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	if spec.Line == nil {
		spec.Line = firstText(root.PropertyOrder)
	}
	line := spec.Line
	spec.Line = func(args json.RawMessage) string { return clean(line(args), maxLine) }
	return &funcTool[Args]{spec: spec, schema: sc, fn: fn}, nil
}

const maxLine = 120 // runes of a tool's line for people

type funcTool[Args any] struct {
	spec   Spec
	schema *schema
	fn     func(context.Context, *Env, Args) (Result, error)
}

func (t *funcTool[Args]) Spec() Spec { return t.spec }

func (t *funcTool[Args]) Call(ctx context.Context, env *Env, raw json.RawMessage) (Result, error) {
	raw, err := t.schema.check(t.spec.Name, raw)
	if err != nil {
		return Result{}, err
	}
	var args Args
	if err := json.Unmarshal(raw, &args); err != nil {
		return Result{}, &ArgumentError{Tool: t.spec.Name, Faults: []string{"the arguments do not fit the schema"}}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return t.fn(ctx, env, args)
}

// noNull takes back the "or null" that Go's slices and pointers bring: optional arguments are left out instead, which
// every provider understands.
func noNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if t, _ := plainType(s); s.Type == "" && t != "" {
		s.Type, s.Types = t, nil
	}
	noNull(s.Items)
	for _, p := range s.Properties {
		noNull(p)
	}
}

// firstText makes the line out of the first argument that is a text.
func firstText(order []string) func(json.RawMessage) string {
	return func(args json.RawMessage) string {
		var m map[string]any
		if json.Unmarshal(args, &m) != nil {
			return ""
		}
		for _, k := range order {
			if s, ok := m[k].(string); ok && s != "" {
				return s
			}
		}
		return ""
	}
}

// lineOf makes a Line function out of one over the arguments' type; arguments that do not fit give "".
func lineOf[Args any](f func(Args) string) func(json.RawMessage) string {
	return func(raw json.RawMessage) string {
		var args Args
		if json.Unmarshal(raw, &args) != nil {
			return ""
		}
		return f(args)
	}
}
