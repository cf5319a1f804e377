package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// ArgumentError says what is wrong with the arguments of a call, all of it at once, in words for the model.
type ArgumentError struct {
	Tool   string
	Faults []string // each names an argument and what is right
}

// Error implements error. It is at most 2,000 characters long.
func (e *ArgumentError) Error() string {
	return clean(fmt.Sprintf("invalid arguments for %s: %s", e.Tool, strings.Join(e.Faults, "; ")), 2000)
}

const maxFaults = 10

// schema checks arguments. Own checks come first because their words help; the resolved schema has the last word.
type schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved // nil when the schema uses what this library does not know: the tool's server checks
}

// parseSchema reads a JSON Schema of type object.
func parseSchema(raw json.RawMessage) (*schema, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, errors.New("the schema is not a JSON object")
	}
	root := &jsonschema.Schema{}
	if err := json.Unmarshal(raw, root); err != nil {
		return &schema{root: &jsonschema.Schema{}}, nil
	}
	if root.Type != "object" {
		return nil, errors.New(`the schema's type is not "object"`)
	}
	res, err := root.Resolve(nil)
	if err != nil {
		res = nil
	}
	return &schema{root: root, resolved: res}, nil
}

// check validates args and returns them repaired.
func (s *schema) check(tool string, args json.RawMessage) (json.RawMessage, error) {
	fail := func(faults ...string) error { return &ArgumentError{Tool: tool, Faults: faults} }
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage(`{}`)
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fail("the arguments are not valid JSON: " + err.Error())
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fail("there is text after the JSON object")
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, fail("the arguments must be a JSON object, got " + kind(v))
	}
	c := &checker{}
	v = c.value("", s.root, obj)
	if len(c.faults) > 0 {
		return nil, fail(c.faults...)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil, fail("the arguments cannot be written as JSON")
	}
	if s.resolved != nil {
		var plain any
		if err := json.Unmarshal(out, &plain); err != nil {
			return nil, fail("a number is out of range")
		}
		if err := s.resolved.Validate(plain); err != nil {
			return nil, fail(err.Error())
		}
	}
	return out, nil
}

// checker walks a value beside its schema, collects faults and returns the repaired value.
type checker struct{ faults []string }

func (c *checker) fault(at, format string, a ...any) {
	if len(c.faults) < maxFaults {
		if at == "" {
			at = "the arguments"
		}
		c.faults = append(c.faults, at+" "+fmt.Sprintf(format, a...))
	}
}

// plainType is the one type a schema asks for, null aside; "" when it leaves it open or uses combinators.
func plainType(s *jsonschema.Schema) (t string, null bool) {
	if s == nil || s.Ref != "" || s.AnyOf != nil || s.OneOf != nil || s.AllOf != nil || s.Not != nil || s.If != nil {
		return "", true
	}
	if s.Type != "" {
		return s.Type, s.Type == "null"
	}
	for _, x := range s.Types {
		switch {
		case x == "null":
			null = true
		case t != "":
			return "", true
		default:
			t = x
		}
	}
	return t, null || t == ""
}

func (c *checker) value(at string, s *jsonschema.Schema, v any) any {
	t, null := plainType(s)
	if t == "" || (v == nil && null) {
		return v
	}
	v = repair(t, s, v)
	switch t {
	case "object":
		if m, ok := v.(map[string]any); ok {
			return c.object(at, s, m)
		}
	case "array":
		if l, ok := v.([]any); ok {
			return c.array(at, s, l)
		}
	case "string":
		if x, ok := v.(string); ok {
			c.text(at, s, x)
			return v
		}
	case "integer", "number":
		if n, ok := v.(json.Number); ok && (t == "number" || isInteger(n)) {
			c.number(at, s, n)
			return v
		}
	case "boolean":
		if _, ok := v.(bool); ok {
			return v
		}
	default:
		return v
	}
	c.fault(at, "must be %s, got %s", article(t), show(v))
	return v
}

func (c *checker) object(at string, s *jsonschema.Schema, m map[string]any) any {
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil && len(s.PatternProperties) == 0
	out := make(map[string]any, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		p, known := s.Properties[k]
		switch {
		case known:
			if m[k] == nil && !slices.Contains(s.Required, k) {
				if t, null := plainType(p); t != "" && !null {
					continue // null for an optional argument means that it is not given
				}
			}
			out[k] = c.value(join(at, k), p, m[k])
		case closed:
			known := slices.Sorted(maps.Keys(s.Properties))
			hint := "; known are " + strings.Join(known, ", ")
			if len(known) == 0 {
				hint = "; there are none"
			}
			if n := nearest(k, known); n != "" {
				hint = fmt.Sprintf("; did you mean %q?", n) + hint
			}
			c.fault(join(at, clean(k, 64)), "is not an argument%s", hint)
		default:
			out[k] = m[k]
		}
	}
	for _, k := range s.Required {
		if _, ok := m[k]; !ok {
			t, _ := plainType(s.Properties[k])
			c.fault(join(at, k), "is required (%s)", article(t))
		}
	}
	return out
}

func (c *checker) array(at string, s *jsonschema.Schema, l []any) any {
	if s.MinItems != nil && len(l) < *s.MinItems {
		c.fault(at, "needs at least %d items, got %d", *s.MinItems, len(l))
	}
	if s.MaxItems != nil && len(l) > *s.MaxItems {
		c.fault(at, "takes at most %d items, got %d", *s.MaxItems, len(l))
		return l
	}
	if s.Items == nil {
		return l
	}
	out := make([]any, len(l))
	for i, v := range l {
		out[i] = c.value(fmt.Sprintf("%s[%d]", at, i), s.Items, v)
	}
	return out
}

func (c *checker) text(at string, s *jsonschema.Schema, v string) {
	n := len([]rune(v))
	if s.MinLength != nil && n < *s.MinLength {
		if *s.MinLength == 1 {
			c.fault(at, "must not be empty")
		} else {
			c.fault(at, "needs at least %d characters, got %d", *s.MinLength, n)
		}
	}
	if s.MaxLength != nil && n > *s.MaxLength {
		c.fault(at, "takes at most %d characters, got %d", *s.MaxLength, n)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(v)) {
		var names []string
		for _, e := range s.Enum {
			names = append(names, fmt.Sprint(e))
		}
		c.fault(at, "must be one of %s, got %s", strings.Join(names, ", "), show(v))
	}
}

func (c *checker) number(at string, s *jsonschema.Schema, v json.Number) {
	f, err := v.Float64()
	if err != nil {
		c.fault(at, "is out of range")
		return
	}
	if s.Minimum != nil && f < *s.Minimum {
		c.fault(at, "must be at least %v, got %s", *s.Minimum, v)
	}
	if s.Maximum != nil && f > *s.Maximum {
		c.fault(at, "must be at most %v, got %s", *s.Maximum, v)
	}
}

func join(at, k string) string {
	if at == "" {
		return k
	}
	return at + "." + k
}
