package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// SchemaURL is the name by which config.example.yaml refers to the schema, relative to that file.
const SchemaURL = "./docs/config.schema.json"

// Schema returns the JSON Schema of the configuration file. Every value may also be a text with ${NAME} in it, because
// variables are expanded after parsing.
func Schema() []byte {
	s := sectionSchema(reflect.ValueOf(*Default()))
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "deerbot configuration"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("config: schema: %v", err)) // the types are fixed; a test runs this
	}
	return append(out, '\n')
}

// variable matches a text with a variable in it.
const variable = `\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`

func sectionSchema(v reflect.Value) *jsonschema.Schema {
	s := &jsonschema.Schema{Types: []string{"object", "null"}, Properties: map[string]*jsonschema.Schema{}}
	s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	for _, f := range fieldsOf(v.Type()) {
		if f.rest {
			s.AdditionalProperties = nil
			continue
		}
		p := valueSchema(v.FieldByIndex(f.index), f)
		p.Description = f.doc
		s.Properties[f.name] = p
		s.PropertyOrder = append(s.PropertyOrder, f.name)
	}
	return s
}

// valueSchema describes one value; its default is that of v.
func valueSchema(v reflect.Value, f field) *jsonschema.Schema {
	t := v.Type()
	switch {
	case isSection(t):
		return sectionSchema(v)
	case t.Kind() == reflect.Slice:
		s := &jsonschema.Schema{Types: []string{"array", "null"}, Items: valueSchema(newElem(t.Elem()), field{}), Default: asJSON(v)}
		clearDefault(s.Items)
		return s
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface:
		return &jsonschema.Schema{Types: []string{"object", "null"}}
	case t.Kind() == reflect.Map:
		s := &jsonschema.Schema{Types: []string{"object", "null"}, AdditionalProperties: valueSchema(newElem(t.Elem()), field{})}
		clearDefault(s.AdditionalProperties)
		return s
	}
	s := &jsonschema.Schema{Default: asJSON(v)}
	orVariable := func(typ string) {
		s.AnyOf = []*jsonschema.Schema{{Type: typ, Minimum: bound(f.min), Maximum: bound(f.max)}, {Type: "string", Pattern: variable}, {Type: "null"}}
	}
	switch {
	case t == switchType:
		s.Enum = []any{"auto", true, false, "true", "false", nil}
	case f.enum != nil:
		values := []any{}
		for _, e := range f.enum {
			values = append(values, e)
		}
		s.AnyOf = []*jsonschema.Schema{{Enum: values}, {Type: "string", Pattern: variable}, {Type: "null"}}
	case t == durationType:
		s.Types, s.Pattern = []string{"string", "null"}, `^-?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$|`+variable
	case t == sizeType:
		s.Types = []string{"string", "integer", "null"}
	case t.Kind() == reflect.Bool:
		orVariable("boolean")
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		orVariable("integer")
	case t.Kind() == reflect.Float64:
		orVariable("number")
	default: // text; a number is taken as it is written
		s.Types = []string{"string", "number", "null"}
	}
	return s
}

// clearDefault removes the default of a list's or map's element, which has none of its own.
func clearDefault(s *jsonschema.Schema) {
	if s.Properties == nil {
		s.Default = nil
	}
}

func bound(s string) *float64 {
	if s == "" || strings.ContainsAny(s, "smh") {
		return nil
	}
	x := mustFloat(s)
	return &x
}

// asJSON is a default as JSON.
func asJSON(v reflect.Value) json.RawMessage {
	out, err := json.Marshal(plain(v))
	if err != nil {
		return nil
	}
	return out
}

// plain is a scalar or list in the form it has in a file.
func plain(v reflect.Value) any {
	switch {
	case v.Type() == durationType:
		return durationText(time.Duration(v.Int()))
	case v.Type() == sizeType:
		return Size(v.Int()).String()
	case v.Type() == switchType && v.String() == string(On):
		return true
	case v.Type() == switchType && v.String() == string(Off):
		return false
	case v.Kind() == reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	case v.Kind() == reflect.String:
		return v.String()
	}
	return v.Interface()
}

// durationText writes a duration without its zero units, and short ones in seconds: 2h, 90s.
func durationText(d time.Duration) string {
	if d < 2*time.Minute && d%time.Second == 0 && d != time.Minute {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
