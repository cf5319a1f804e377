package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var nameRE = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Set is the tools a run works with, in the order they were added. A Set is not changed once it is in use; [Set.Select]
// and [Set.With] make others.
type Set struct {
	order  []string
	byName map[string]*entry
}

type entry struct {
	tool   Tool
	schema *schema
}

// NewSet makes a set. It joins the faults of all tools: a name that is malformed or used twice, or a schema that is no
// JSON object.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{byName: map[string]*entry{}}
	var errs []error
	for _, t := range tools {
		spec := t.Spec()
		if !nameRE.MatchString(spec.Name) {
			errs = append(errs, fmt.Errorf("tool %q: the name must match %s", spec.Name, nameRE))
			continue
		}
		if _, dup := s.byName[spec.Name]; dup {
			errs = append(errs, fmt.Errorf("tool %s: the name is used twice", spec.Name))
			continue
		}
		sc, err := parseSchema(spec.Schema)
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %s: %w", spec.Name, err))
			continue
		}
		s.order = append(s.order, spec.Name)
		s.byName[spec.Name] = &entry{tool: t, schema: sc}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// With returns a set with more tools behind those of s.
func (s *Set) With(tools ...Tool) (*Set, error) {
	return NewSet(append(s.Tools(), tools...)...)
}

// Select returns the tools whose name is in allow and not in deny. An empty allow lets all through, as in the
// configuration. Names that are no tool's are returned as unknown, so that a typing error can be reported; they change
// nothing.
func (s *Set) Select(allow, deny []string) (out *Set, unknown []string) {
	out = &Set{byName: map[string]*entry{}}
	for _, name := range s.order {
		if len(allow) > 0 && !slices.Contains(allow, name) || slices.Contains(deny, name) {
			continue
		}
		out.order = append(out.order, name)
		out.byName[name] = s.byName[name]
	}
	for _, name := range slices.Concat(allow, deny) {
		if s.byName[name] == nil && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	return out, unknown
}

// Len is the number of tools.
func (s *Set) Len() int { return len(s.order) }

// Names lists the tools in order.
func (s *Set) Names() []string { return slices.Clone(s.order) }

// Tools lists the tools in order.
func (s *Set) Tools() []Tool {
	out := make([]Tool, len(s.order))
	for i, name := range s.order {
		out[i] = s.byName[name].tool
	}
	return out
}

// Specs lists what the tools are, in order.
func (s *Set) Specs() []Spec {
	out := make([]Spec, len(s.order))
	for i, name := range s.order {
		out[i] = s.byName[name].tool.Spec()
	}
	return out
}

// Get finds a tool.
func (s *Set) Get(name string) (Tool, bool) {
	e := s.byName[name]
	if e == nil {
		return nil, false
	}
	return e.tool, true
}

// Unknown is the error for a call of a tool that is not in the set: it names the nearest one and all others.
func (s *Set) Unknown(name string) error {
	msg := fmt.Sprintf("there is no tool %q", clean(name, 80))
	if n := nearest(name, s.order); n != "" {
		msg += fmt.Sprintf(", perhaps %q is meant", n)
	}
	return fmt.Errorf("%s; available are %s", msg, strings.Join(s.order, ", "))
}

// Check validates the arguments of a call and repairs what is certain, see [ArgumentError]. The result is a JSON object
// for [Tool.Call]. A tool that is not in the set gives [Set.Unknown].
func (s *Set) Check(name string, args json.RawMessage) (json.RawMessage, error) {
	e := s.byName[name]
	if e == nil {
		return nil, s.Unknown(name)
	}
	return e.schema.check(name, args)
}
