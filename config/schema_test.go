package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"
)

func TestExampleLoadsAsTheDefaults(t *testing.T) {
	example := string(Example())
	if first, _, _ := strings.Cut(example, "\n"); first != "# yaml-language-server: $schema="+SchemaURL {
		t.Errorf("first line %q", first)
	}
	cfg := mustLoad(t, example, nil)
	cfg.File = ""
	if d := cmp.Diff(Default(), cfg, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-default +example):\n%s", d)
	}
	walkKeys(typeOfConfig, "", func(path string, _ field) {
		if !strings.Contains(path, "[]") && !strings.Contains(path, "<name>") && !cfg.IsSet(path) {
			t.Errorf("%s is not in the example", path)
		}
	})

	// The commented model entry is one that works.
	entry := example[strings.Index(example, "# models:\n"):]
	entry = entry[:strings.Index(entry, "\n\n")]
	entry = strings.ReplaceAll("\n"+entry, "\n# ", "\n")
	cfg = mustLoad(t, strings.Replace(entry, `api_key: ""`, "api_key: k", 1), nil)
	want := DefaultModel("main")
	want.APIKey, want.Model = "k", DefaultOpenAIModel
	if d := cmp.Diff([]Model{want}, cfg.Models, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +commented entry):\n%s", d)
	}
}

// TestSchema holds the schema to the loader: what one takes the other takes.
func TestSchema(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, yaml string
		ok         bool
	}{
		{"example", string(Example()), true},
		{"empty sections", "channels:\n  telegram:\nlog:\n", true},
		{"variables", "agent: {max_steps: '${N}'}\nlocale: ${L}\nmemory: {enabled: '${B:-true}'}\nshutdown_grace: ${D}\nchannels: {web: {enabled: true}}", true},
		{"ids as numbers", "channels: {telegram: {allow: [1, '2']}}", true},
		{"free form", "models:\n- {name: a, api_key: k, extra: {a: {b: [1]}}}\nmcp: {servers: {x: {command: y, autoApprove: []}}}", true},
		{"unknown key", "log: {lvel: debug}", false},
		{"enum", "locale: de", false},
		{"type", "agent: {max_steps: many}", false},
		{"bounds", "agent: {max_steps: 0}", false},
		{"duration", "shutdown_grace: soon", false},
		{"list", "skills: {dirs: a}", false},
		{"list item", "models:\n- {nam: a}", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var doc any
			if err := yaml.Unmarshal([]byte(tt.yaml), &doc); err != nil {
				t.Fatal(err)
			}
			err := schema.Validate(jsonForm(t, doc))
			if (err == nil) != tt.ok {
				t.Errorf("schema: %v", err)
			}
			_, err = load(t, tt.yaml, map[string]string{"N": "1", "L": "zh", "B": "true", "D": "1s"})
			if (err == nil) != tt.ok {
				t.Errorf("loader: %v", err)
			}
		})
	}
	walkKeys(typeOfConfig, "", func(path string, f field) {
		if !strings.Contains(string(Schema()), quoted(f.doc)) {
			t.Errorf("the words of %s are not in the schema", path)
		}
	})
}

func quoted(s string) string { out, _ := json.Marshal(s); return string(out) }

func jsonForm(t *testing.T, doc any) any {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
