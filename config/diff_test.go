package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var typeOfConfig = reflect.TypeFor[Config]()

func TestDiffAndApply(t *testing.T) {
	old := mustLoad(t, "models:\n- {name: a, api_key: k}\n- {name: b, api_key: k}\n", nil)
	new := mustLoad(t, `
data_dir: /else
log: {level: debug, format: json}
server: {listen: 127.0.0.1:1}
models:
- {name: a, api_key: changed}
channels: {telegram: {token: "1:a", allow: [1]}}
agent: {instructions: be brief}
limits: {concurrent_runs: 2}
store: {path: x}
skills: {dirs: []}
`, nil)
	live, restart := Diff(old, new)
	if d := cmp.Diff([]string{"log.level", "models[0]", "models[1]", "channels.telegram.allow", "agent.instructions", "skills.dirs", "limits.concurrent_runs"}, live); d != "" {
		t.Errorf("live (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"data_dir", "log.format", "server.listen", "channels.telegram.token", "store.path"}, restart); d != "" {
		t.Errorf("restart (-want +got):\n%s", d)
	}

	merged := Apply(old, new)
	live2, restart2 := Diff(old, merged)
	if d := cmp.Diff(live, live2); d != "" || len(restart2) != 0 {
		t.Errorf("Apply took over the wrong keys: %v, restart %v", d, restart2)
	}
	if merged.Log.Level != "debug" || merged.Log.Format != "text" || merged.Channels.Telegram.Token.IsSet() || merged.Channels.Telegram.Allow[0] != "1" {
		t.Errorf("merged: %+v", merged.Log)
	}
	if new.Log.Format != "json" {
		t.Error("Apply changed its argument")
	}
	if l, r := Diff(new, new); len(l)+len(r) != 0 {
		t.Errorf("a configuration differs from itself: %v %v", l, r)
	}
}

// TestTags holds the tags to their own rules: the bounds parse, the defaults are within them, every key has words.
func TestTags(t *testing.T) {
	walkKeys(typeOfConfig, "", func(path string, f field) {
		if f.doc == "" || !strings.HasSuffix(f.doc, ".") {
			t.Errorf("%s: doc %q is not a sentence", path, f.doc)
		}
		for _, b := range []string{f.min, f.max} {
			if b == "" {
				continue
			}
			if _, err := time.ParseDuration(b); f.typ == durationType && err != nil {
				t.Errorf("%s: bound %q: %v", path, b, err)
			}
			if f.typ != durationType && mustFloat(b) == 0 && b != "0" {
				t.Errorf("%s: bound %q is no number", path, b)
			}
		}
		switch k := f.typ.Kind(); {
		case isSection(f.typ), k == reflect.String, k == reflect.Bool, k == reflect.Slice, k == reflect.Map:
		default:
			if f.typ != durationType && f.typ != sizeType && k != reflect.Int && k != reflect.Int64 && k != reflect.Float64 {
				t.Errorf("%s: the decoder knows no %s", path, f.typ)
			}
		}
	})
	defaults := func(v reflect.Value, path string) {
		walkValues(v, v, path, func(path string, a, _ reflect.Value) {
			for _, f := range fieldByPath(path) {
				if text := check(a, f); text != "" {
					t.Errorf("the default of %s %s", path, text)
				}
			}
		})
	}
	defaults(reflect.ValueOf(*Default()), "")
	if faults := validate(Default(), func(string) bool { return false }); len(faults) > 0 {
		t.Errorf("the defaults are not valid: %v", faults)
	}
}

// fieldByPath finds the field of a key.
func fieldByPath(path string) (out []field) {
	walkKeys(typeOfConfig, "", func(p string, f field) {
		if p == path {
			out = append(out, f)
		}
	})
	return out
}
