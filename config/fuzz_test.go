package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// FuzzLoad throws files at the loader: it never panics, its errors are faults that name a place and hold no line of the
// file, and what it accepts is valid.
func FuzzLoad(f *testing.F) {
	f.Add(string(Example()))
	f.Add("models:\n- {name: a, api_key: ${K:-x}, extra: {a: [1, {b: ~}]}}\n")
	f.Add("channels: &c {telegram: {allow: [1, -2]}}\nlog: {<<: *c}\n")
	f.Add("a: |\n  b\n? c\n: d\n")
	f.Add("x: \"\\x00\"\r\n\t- }{][")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := Load(LoadOptions{
			Path:     "f",
			Env:      envOf(map[string]string{"K": "v"}),
			ReadFile: func(string) ([]byte, error) { return []byte("# sk-CANARY\n" + text + "\n# sk-CANARY"), nil },
		})
		if err == nil {
			if faults := validate(cfg, func(string) bool { return false }); len(faults) > 0 {
				t.Fatalf("accepted, but not valid: %v", faults)
			}
			if l, r := Diff(cfg, cfg); len(l)+len(r) > 0 {
				t.Fatalf("differs from itself: %v %v", l, r)
			}
			return
		}
		var fs Faults
		if !errors.As(err, &fs) || len(fs) == 0 || strings.Contains(err.Error(), "sk-CANARY") {
			t.Fatalf("error %q", err)
		}
	})
}

// FuzzExpand: expansion never panics, and a text without variables is itself once its dollars are doubled.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"${A}", "$$", "${A:-${B}}", "$", "${", "${}", "a$b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = expand(s, envOf(map[string]string{"A": "$B"}))
		got, err := expand(strings.ReplaceAll(s, "$", "$$"), envOf(nil))
		if err != nil || got != s {
			t.Fatalf("expand of the escaped %q = %q, %v", s, got, err)
		}
	})
}

// TestApplyProperty: after Apply nothing is left that needs a restart, and every live change has arrived.
func TestApplyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *Config {
			c := Default()
			c.DataDir = rapid.SampledFrom([]string{"a", "b"}).Draw(t, name+" data_dir")
			c.Log.Level = rapid.SampledFrom([]string{"info", "debug"}).Draw(t, name+" level")
			c.Limits.ConcurrentRuns = rapid.IntRange(1, 3).Draw(t, name+" runs")
			c.Channels.Telegram.Allow = rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2"}), 0, 2).Draw(t, name+" allow")
			c.Store.Path = rapid.SampledFrom([]string{"", "x"}).Draw(t, name+" path")
			for range rapid.IntRange(0, 2).Draw(t, name+" models") {
				c.Models = append(c.Models, DefaultModel(rapid.SampledFrom([]string{"m", "n"}).Draw(t, name+" model")))
			}
			return c
		}
		old, new := draw("old"), draw("new")
		merged := Apply(old, new)
		live, restart := Diff(merged, new)
		if len(live) != 0 {
			t.Fatalf("live keys did not arrive: %v", live)
		}
		if _, want := Diff(old, new); !cmp.Equal(restart, want, cmpopts.EquateEmpty()) {
			t.Fatalf("keys kept back: %v, want %v", restart, want)
		}
		if _, r := Diff(old, merged); len(r) != 0 {
			t.Fatalf("restart keys changed: %v", r)
		}
	})
}
