package features

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"deerbot/config"
)

var update = flag.Bool("update", false, "rewrite docs/features.md")

const module = "../.."

// TestPage holds docs/features.md to the code.
func TestPage(t *testing.T) {
	got, err := Page(module, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(module, "docs", "features.md")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			t.Fatalf("docs/features.md ends early; go test ./internal/features -update\nthe code says: %s", b[i])
		case i >= len(b) || a[i] != b[i]:
			t.Fatalf("docs/features.md is not what the code says; go test ./internal/features -update\nline %d: %s", i+1, a[i])
		}
	}
}

// TestAbilities: every optional interface of package channels has its row.
func TestAbilities(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(module, "channels", "channels.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(f, func(n ast.Node) bool {
		if ts, ok := n.(*ast.TypeSpec); ok {
			if _, ok := ts.Type.(*ast.InterfaceType); ok && ts.Name.Name != "Channel" && ts.Name.Name != "Inbox" {
				want = append(want, ts.Name.Name)
			}
		}
		return true
	})
	var got []string
	for _, a := range abilities {
		got = append(got, a.name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has the abilities %v, package channels %v", got, want)
	}
}

// TestChannels: a channel that can be configured is in the table, or reported as not there yet.
func TestChannels(t *testing.T) {
	list, err := allChannels(dirs{module, t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range list {
		got = append(got, c.Name())
	}
	for f := range reflect.TypeFor[config.Channels]().Fields() {
		name := f.Tag.Get("yaml")
		cfg := config.Default()
		reflect.ValueOf(cfg).Elem().FieldByName("Channels").FieldByIndex(f.Index).FieldByName("Enabled").SetString("true")
		missing := slices.ContainsFunc(config.NotYet(cfg), func(n config.Notice) bool { return strings.HasPrefix(n.Key, "channels."+name+".") })
		if there := slices.Contains(got, name); there == missing {
			t.Errorf("channel %s: in the table: %v, reported as not there yet: %v", name, there, missing)
		}
	}
}

// TestProviders: the table has the providers that can be configured.
func TestProviders(t *testing.T) {
	f, _ := reflect.TypeFor[config.Model]().FieldByName("Provider")
	page, err := Page(module, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for p := range strings.SplitSeq(f.Tag.Get("enum"), ",") {
		if !strings.Contains(page, "\n| `"+p+"` |") {
			t.Errorf("provider %s has no row", p)
		}
	}
}
