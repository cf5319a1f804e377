package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

type sampleArgs struct {
	Path  string   `json:"path" jsonschema:"a path"`
	Count int      `json:"count,omitempty" jsonschema:"how many"`
	Ratio float64  `json:"ratio,omitempty"`
	Deep  bool     `json:"deep,omitempty"`
	Names []string `json:"names,omitempty"`
	Items []struct {
		Name string `json:"name"`
	} `json:"items,omitempty"`
	Mode string         `json:"mode,omitempty"`
	Opt  *int           `json:"opt,omitempty"`
	Map  map[string]int `json:"map,omitempty"`
}

func sample(t *testing.T, name string) Tool {
	t.Helper()
	tool, err := New(Spec{Name: name, Description: "A sample."}, func(_ context.Context, _ *Env, a sampleArgs) (Result, error) {
		b, err := json.Marshal(a)
		return Result{Content: string(b)}, err
	}, limits("count", 1, 10), func(s *jsonschema.Schema) {
		s.Properties["mode"].Enum = []any{"fast", "slow"}
		two := 2
		s.Properties["names"].MaxItems = &two
	})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestNewSet(t *testing.T) {
	raw := func(name, schema string) Tool { return stub{Spec{Name: name, Schema: json.RawMessage(schema)}} }
	set, err := NewSet(sample(t, "b"), raw("a", `{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "a"}, set.Names()); diff != "" {
		t.Error(diff)
	}
	_, err = NewSet(raw("x y", `{"type":"object"}`), raw("", `{"type":"object"}`), raw("ok", `[]`), raw("list", `{"type":"array"}`),
		raw("dup", `{"type":"object"}`), raw("dup", `{"type":"object"}`), raw(strings.Repeat("x", 65), `{"type":"object"}`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"x y"`, `tool ""`, "ok:", "list:", "dup:", "xxx"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if more, err := set.With(sample(t, "c")); err != nil || more.Len() != 3 || set.Len() != 2 {
		t.Errorf("With: %v", err)
	}
	if _, err := set.With(sample(t, "a")); err == nil {
		t.Error("With took a name twice")
	}
}

type stub struct{ spec Spec }

func (s stub) Spec() Spec { return s.spec }
func (s stub) Call(context.Context, *Env, json.RawMessage) (Result, error) {
	return Result{}, nil
}

func TestSelect(t *testing.T) {
	set, err := NewSet(sample(t, "read_file"), sample(t, "write_file"), sample(t, "grep"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name                       string
		allow, deny, want, unknown []string
	}{
		{"all", nil, nil, []string{"read_file", "write_file", "grep"}, nil},
		{"empty allow is all", []string{}, nil, []string{"read_file", "write_file", "grep"}, nil},
		{"allow keeps the order", []string{"grep", "read_file"}, nil, []string{"read_file", "grep"}, nil},
		{"deny is stronger", []string{"grep", "read_file"}, []string{"grep"}, []string{"read_file"}, nil},
		{"unknown", []string{"grep", "bash"}, []string{"bash", "gerp"}, []string{"grep"}, []string{"bash", "gerp"}},
		{"only unknown allows none", []string{"bash"}, nil, []string{}, []string{"bash"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, unknown := set.Select(tt.allow, tt.deny)
			if diff := cmp.Diff(tt.want, append([]string{}, got.Names()...)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.unknown, unknown); diff != "" {
				t.Error(diff)
			}
		})
	}
	if err := set.Unknown("ReadFile"); !strings.Contains(err.Error(), `perhaps "read_file"`) {
		t.Error(err)
	}
	if _, err := set.Check("nothing\nlike that", nil); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "grep") {
		t.Error(err)
	}
	if _, ok := set.Get("x"); ok {
		t.Error("found x")
	}
}

func TestCheckFaults(t *testing.T) {
	set, err := NewSet(sample(t, "s"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, args string
		want       []string
	}{
		{"missing", `{}`, []string{"path is required (a string)"}},
		{"nothing", ``, []string{"path is required"}},
		{"unknown", `{"path":"x","cuont":3}`, []string{`cuont is not an argument; did you mean "count"?`, "known are"}},
		{"unknown and missing", `{"file_path":"x"}`, []string{`file_path is not an argument; did you mean "path"?`, "path is required"}},
		{"wrong type", `{"path":3}`, []string{"path must be a string, got a number (3)"}},
		{"null", `{"path":null}`, []string{"path must be a string, got null"}},
		{"words for a number", `{"path":"x","count":"three"}`, []string{`count must be a whole number, got the string "three"`}},
		{"fraction", `{"path":"x","count":1.5}`, []string{"count must be a whole number, got a number (1.5)"}},
		{"range", `{"path":"x","count":0}`, []string{"count must be at least 1, got 0"}},
		{"range above", `{"path":"x","count":"11"}`, []string{"count must be at most 10, got 11"}},
		{"huge", `{"path":"x","count":1e99}`, []string{"count must be a whole number"}},
		{"enum", `{"path":"x","mode":"quick"}`, []string{"mode must be one of fast, slow"}},
		{"items", `{"path":"x","names":["a",2]}`, []string{"names[1] must be a string"}},
		{"too many", `{"path":"x","names":["a","b","c"]}`, []string{"names takes at most 2 items, got 3"}},
		{"nested", `{"path":"x","items":[{"nam":"a"}]}`, []string{`items[0].nam is not an argument; did you mean "name"?`, "items[0].name is required"}},
		{"list", `[1]`, []string{"must be a JSON object, got a list"}},
		{"not JSON", `{"path":`, []string{"not valid JSON"}},
		{"two objects", `{"path":"x"}{}`, []string{"text after"}},
		{"map value", `{"path":"x","map":{"a":"b"}}`, []string{"map"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := set.Check("s", json.RawMessage(tt.args))
			if _, ok := errors.AsType[*ArgumentError](err); !ok {
				t.Fatalf("got %v", err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			// Called directly the tool refuses just the same.
			tool, _ := set.Get("s")
			if _, derr := tool.Call(t.Context(), &Env{}, json.RawMessage(tt.args)); derr == nil || derr.Error() != err.Error() {
				t.Errorf("directly: %v", derr)
			}
		})
	}
	long := `{"path":"x","` + strings.Repeat("k", 5000) + `":1}`
	if _, err := set.Check("s", json.RawMessage(long)); err == nil || len(err.Error()) > 2100 {
		t.Errorf("long key: %d bytes", len(err.Error()))
	}
}

func TestCheckRepairs(t *testing.T) {
	set, err := NewSet(sample(t, "s"))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"path":"x","count":"3"}`:                     `{"path":"x","count":3}`,
		`{"path":"x","count":3.0}`:                     `{"path":"x","count":3}`,
		`{"path":"x","count":" 3e0 "}`:                 `{"path":"x","count":3}`,
		`{"path":"x","ratio":"0.5"}`:                   `{"path":"x","ratio":0.5}`,
		`{"path":"x","deep":"True"}`:                   `{"path":"x","deep":true}`,
		`{"path":"x","names":"a"}`:                     `{"path":"x","names":["a"]}`,
		`{"path":"x","names":"[\"a\",\"b\"]"}`:         `{"path":"x","names":["a","b"]}`,
		`{"path":"x","items":"[{\"name\":\"a\"}]"}`:    `{"path":"x","items":[{"name":"a"}]}`,
		`{"path":"x","count":null,"names":null}`:       `{"path":"x"}`,
		`{"path":"x","opt":"4","map":"{\"a\":\"1\"}"}`: `{"path":"x","opt":4,"map":{"a":1}}`,
		`{"path":"3"}`:                                 `{"path":"3"}`,
	} {
		got, err := set.Check("s", json.RawMessage(in))
		if strings.Contains(in, `"map":"{`) { // values of free-form objects are the schema's business
			if err == nil {
				t.Errorf("%s: a text passed as number in a map", in)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		var a, b any
		_ = json.Unmarshal(got, &a)
		_ = json.Unmarshal([]byte(want), &b)
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
		again, err := set.Check("s", got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: checking twice gave %s, %v", in, again, err)
		}
	}
}

func TestForeignSchemas(t *testing.T) {
	for name, tt := range map[string]struct {
		schema, args string
		ok           bool
	}{
		"no properties":  {`{"type":"object"}`, `{"a":1}`, true},
		"any of":         {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"a":1}`, true},
		"any of, bad":    {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"a":[]}`, false},
		"ref":            {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`, `{"a":1}`, false},
		"unresolvable":   {`{"type":"object","properties":{"a":{"$ref":"https://x.example/s"}}}`, `{"a":1}`, true},
		"pattern props":  {`{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}`, `{"x1":1}`, true},
		"null allowed":   {`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, true},
		"odd keyword":    {`{"type":"object","properties":{"a":{"type":"string","format":"uri","x-y":1}}}`, `{"a":"b"}`, true},
		"unreadable":     {`{"type":"object","properties":{"a":{"minLength":"x"}}}`, `{"a":"b"}`, true},
		"draft 7 tuples": {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`, `{"a":["b"]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := NewSet(stub{Spec{Name: "m", Schema: json.RawMessage(tt.schema)}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := set.Check("m", json.RawMessage(tt.args)); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	fn := func(context.Context, *Env, sampleArgs) (Result, error) { return Result{}, nil }
	for _, s := range []Spec{{Name: "a b", Description: "x"}, {Name: "ok"}} {
		if _, err := New(s, fn); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
	if _, err := New(Spec{Name: "ok", Description: "x"}, func(context.Context, *Env, []string) (Result, error) { return Result{}, nil }); err == nil {
		t.Error("a list was accepted as arguments")
	}
	tool := sample(t, "s")
	if got := tool.Spec().Line(json.RawMessage(`{"path":"a\nb` + strings.Repeat("x", 300) + `.md"}`)); len([]rune(got)) > 120 || !strings.HasSuffix(got, ".md") || strings.Contains(got, "\n") {
		t.Errorf("line %q", got)
	}
}

func FuzzCheckArguments(f *testing.F) {
	f.Add(`{"path":"x","count":"3"}`)
	f.Add(`{"path":"x","names":"a","items":[{"name":1}],"ratio":"1e5"}`)
	f.Add(`{"count":1e400}`)
	tool, err := New(Spec{Name: "s", Description: "x"}, func(_ context.Context, _ *Env, a sampleArgs) (Result, error) { return Result{}, nil })
	if err != nil {
		f.Fatal(err)
	}
	set, err := NewSet(tool)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		got, err := set.Check("s", json.RawMessage(args))
		if err != nil {
			if len(err.Error()) > 9000 {
				t.Fatalf("%d bytes", len(err.Error()))
			}
			return
		}
		if _, err := tool.Call(t.Context(), &Env{}, got); err != nil {
			t.Fatalf("%s passed as %s, then %v", args, got, err)
		}
		again, err := set.Check("s", got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("%s became %s, that became %s, %v", args, got, again, err)
		}
	})
}
