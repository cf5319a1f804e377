package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pkg is what go list tells about a package of this module.
type pkg struct {
	ImportPath   string
	Name         string
	Doc          string
	Imports      []string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// graph maps a package to its imports.
type graph map[string][]string

// listPackages asks with -e: a package that does not compile is for the compiler to report.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	touchSources(t)
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Doc,Imports,GoFiles,TestGoFiles,XTestGoFiles", "deerbot/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var list []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// touchSources looks at every source file of the module. The go command notes what a test looks at, and does not see what
// a child process reads: without this it would give a cached result after an import was added.
func touchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			_, err = os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
				err = nil
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestImports holds every package to the rules.
func TestImports(t *testing.T) {
	g := graph{}
	for _, p := range listPackages(t) {
		g[p.ImportPath] = p.Imports
	}
	if len(g) < 10 {
		t.Fatalf("only %d packages listed", len(g))
	}
	for _, bad := range violations(g, rules) {
		t.Error(bad)
	}
}

// TestPackageDocs: every package says in a comment what it is for.
func TestPackageDocs(t *testing.T) {
	for _, p := range listPackages(t) {
		switch {
		case len(p.GoFiles) == 0 && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0:
			t.Errorf("%s has only test files; give it a doc.go", p.ImportPath)
		case p.Name == "main" && !strings.HasPrefix(p.Doc, "Command "):
			t.Errorf("%s: the package comment starts with %q, want \"Command …\"", p.ImportPath, firstWords(p.Doc))
		case p.Name != "main" && !strings.HasPrefix(p.Doc, "Package "+p.Name+" "):
			t.Errorf("%s: the package comment starts with %q, want \"Package %s …\"", p.ImportPath, firstWords(p.Doc), p.Name)
		}
	}
}

func firstWords(s string) string {
	f := strings.Fields(s)
	return strings.Join(f[:min(len(f), 3)], " ")
}

// violations lists the forbidden dependencies of g, each with its path and reason.
func violations(g graph, rules []rule) []string {
	var out []string
	for _, from := range slices.Sorted(maps.Keys(g)) {
		paths := reach(g, from)
		for _, r := range rules {
			if !matches(from, r.from) || matches(from, r.except) {
				continue
			}
			for _, to := range slices.Sorted(maps.Keys(paths)) {
				path := paths[to]
				if !matches(to, r.to) || matches(to, r.allow) || to == from || r.direct && len(path) > 2 {
					continue
				}
				// A package on the way that may do it takes the blame from this one.
				if slices.ContainsFunc(path[1:len(path)-1], func(p string) bool { return matches(p, r.except) || matches(p, r.from) }) {
					continue
				}
				out = append(out, fmt.Sprintf("%s must not depend on %s: %s (%s)", from, to, r.why, strings.Join(path, " -> ")))
			}
		}
	}
	return out
}

// reach finds the shortest import path from a package to everything it depends on. Packages outside the graph end a path.
func reach(g graph, from string) map[string][]string {
	paths := map[string][]string{from: {from}}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, to := range g[queue[0]] {
			if _, seen := paths[to]; !seen {
				paths[to] = append(slices.Clone(paths[queue[0]]), to)
				queue = append(queue, to)
			}
		}
	}
	delete(paths, from)
	return paths
}

func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if base, ok := strings.CutSuffix(p, "/..."); ok {
			return path == base || strings.HasPrefix(path, base+"/")
		}
		if base, ok := strings.CutSuffix(p, "/*"); ok {
			rest, below := strings.CutPrefix(path, base+"/")
			return below && rest != ""
		}
		return path == p
	})
}

// TestViolations shows that the rules bite: each edge here breaks one, and is found with its reason.
func TestViolations(t *testing.T) {
	for _, tt := range []struct {
		name string
		g    graph
		want string // part of the only violation, "" for none
	}{
		{"runtime to channels", graph{"deerbot/runtime/agent": {"deerbot/channels"}}, "deerbot/runtime/agent must not depend on deerbot/channels: runtime can be embedded"},
		{"through another package", graph{"deerbot/runtime/agent": {"deerbot/internal/x"}, "deerbot/internal/x": {"deerbot/commands"}}, "(deerbot/runtime/agent -> deerbot/internal/x -> deerbot/commands)"},
		{"store to runtime", graph{"deerbot/store": {"deerbot/runtime/model"}}, "store is a leaf"},
		{"cards to the network", graph{"deerbot/cards": {"net/http"}}, "cards is pure"},
		{"adapter to adapter", graph{"deerbot/channels/slack": {"deerbot/channels/discord"}}, "no adapter imports another"},
		{"adapter to runtime", graph{"deerbot/channels/slack": {"deerbot/runtime/run"}}, "an adapter translates"},
		{"SDK outside its adapter", graph{"deerbot/bot": {"github.com/go-telegram/bot/models"}}, "SDK types stop"},
		{"SDK in its adapter", graph{"deerbot/channels/telegram": {"github.com/go-telegram/bot/models"}, "deerbot/cmd/deerbot": {"deerbot/channels/telegram"}}, ""},
		{"commands to a run", graph{"deerbot/commands": {"deerbot/runtime/run"}}, "a command acts on a Session"},
		{"commands to data", graph{"deerbot/commands": {"deerbot/runtime/model", "deerbot/config/nearest", "deerbot/cards"}}, ""},
		{"config from a package", graph{"deerbot/bot": {"deerbot/config"}}, "deerbot/config"},
		{"wire servers in the program", graph{"deerbot/bot": {"deerbot/internal/wire/openai"}}, "the wire servers stand in"},
		{"testing in the binary", graph{"deerbot/bot": {"testing"}}, "what only tests need"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := violations(tt.g, rules)
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
