package crash

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// points reads the constants of this package: name and label.
func points(t *testing.T) (names, labels []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "crash.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		lit, ok := v.Values[0].(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		label, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		names, labels = append(names, v.Names[0].Name), append(labels, label)
		return true
	})
	return names, labels
}

func TestLabels(t *testing.T) {
	_, labels := points(t)
	if !slices.Equal(labels, Labels()) {
		t.Errorf("Labels() is %v, declared are %v", Labels(), labels)
	}
	slices.Sort(labels)
	if len(slices.Compact(labels)) != len(Labels()) {
		t.Error("a label is used twice")
	}
}

// A point that no code passes kills nothing: its crash test would prove nothing.
func TestEveryPointIsPassed(t *testing.T) {
	names, _ := points(t)
	var source strings.Builder
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			if p != "../.." {
				return fs.SkipDir
			}
		case strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go"):
			raw, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			source.Write(raw)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if !strings.Contains(source.String(), "crash.Point(crash."+n+")") {
			t.Errorf("no code passes the point %s", n)
		}
	}
}

// In a plain build a point is nothing, whatever the environment says.
func TestPointDoesNothing(t *testing.T) {
	if Enabled {
		t.Skip("built for crash tests")
	}
	for _, l := range Labels() {
		t.Setenv("DEERBOT_CRASH", l)
		Point(l)
	}
}
