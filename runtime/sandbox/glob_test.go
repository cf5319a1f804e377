package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPatternMatch(t *testing.T) {
	tests := []struct {
		pattern string
		yes, no []string
	}{
		{"*.md", []string{"a.md", "d/e/a.md"}, []string{"a.txt", "a.md/x"}},
		{"./*.md", []string{"a.md"}, []string{"d/a.md"}},
		{"/a/*", []string{"a/b"}, []string{"a/b/c", "a"}},
		{"**/*.go", []string{"a.go", "x/y/a.go"}, []string{"a.md"}},
		{"src/**", []string{"src/a", "src/a/b"}, []string{"src", "x/src/a"}},
		{"**/test/**/x", []string{"test/x", "a/test/b/c/x"}, []string{"x", "test/y"}},
		{"src/*.{ts,tsx}", []string{"src/a.ts", "src/a.tsx"}, []string{"src/a.js"}},
		{"{a,b}/{c,d}", []string{"a/c", "b/d"}, []string{"a/b"}},
		{"[!a]x", []string{"bx"}, []string{"ax"}},
		{"[a-c]?", []string{"bz"}, []string{"dz", "b"}},
		{"a**b", []string{"axxb", "ab"}, []string{"a/b"}},
		{"日*", []string{"日本"}, []string{"本"}},
	}
	for _, tt := range tests {
		p, err := Compile(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, s := range tt.yes {
			if !p.Match(s) {
				t.Errorf("%s does not match %s", tt.pattern, s)
			}
		}
		for _, s := range tt.no {
			if p.Match(s) {
				t.Errorf("%s matches %s", tt.pattern, s)
			}
		}
	}
	for _, bad := range []string{
		"", "/", ".", "../x", "a/../b", "[", "a[", "{a", "{a,{b}}", `a\*`, strings.Repeat("x", 513),
		"{a,b,c,d,e}{a,b,c,d,e}{a,b,c,d,e}",
	} {
		if _, err := Compile(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestGlob(t *testing.T) {
	f, host := newFiles(t)
	for _, p := range []string{"a.md", "d/b.md", "d/e/c.md", ".git/x.md", "d/.hidden.md"} {
		write(t, f, Workspace+"/"+p, "x")
	}
	glob := func(dir, pattern string, max int, dirs bool) ([]string, bool) {
		t.Helper()
		got, more, err := f.Glob(context.Background(), dir, pattern, max, dirs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], Workspace+"/")
		}
		return got, more
	}
	got, more := glob(Workspace, "*.md", 10, false)
	if diff := cmp.Diff([]string{"a.md", "d/.hidden.md", "d/b.md", "d/e/c.md"}, got); diff != "" || more {
		t.Error(diff, more)
	}
	if got, more = glob(Workspace, "*.md", 4, false); len(got) != 4 || more {
		t.Errorf("the exact limit: %v, %v", got, more)
	}
	if got, more = glob(Workspace, "*.md", 3, false); len(got) != 3 || !more {
		t.Errorf("one less: %v, %v", got, more)
	}
	if got, _ = glob(Workspace, ".git/*", 9, false); len(got) != 1 {
		t.Errorf("named dot directory: %v", got)
	}
	if got, _ = glob(Workspace, "d/*", 9, true); len(got) != 3 {
		t.Errorf("with directories: %v", got)
	}
	if got, _ = glob("/", "**/e/c.md", 9, true); len(got) != 1 {
		t.Errorf("from the top: %v", got)
	}
	_, _, err := f.Glob(context.Background(), Workspace+"/a.md", "*", 9, false)
	checkErr(t, err, nil, host)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := f.Glob(ctx, Workspace, "*", 9, false); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("**/*.md", "a/b.md")
	f.Add("{a,b}*[!c]/**", "ab/c")
	f.Add(strings.Repeat("**/", 100)+"x", strings.Repeat("a/", 300))
	f.Add(strings.Repeat("*a", 100), strings.Repeat("a", 250))
	f.Fuzz(func(t *testing.T, pattern, rel string) {
		p, err := Compile(pattern)
		if err != nil || len(rel) > MaxPath {
			return
		}
		start := time.Now()
		p.Match(rel)
		if d := time.Since(start); d > 3*time.Second {
			t.Fatalf("took %v", d)
		}
	})
}

func FuzzPaths(f *testing.F) {
	for _, s := range []string{Workspace + "/a", "/mnt/user-data/../..", "a/b", "/mnt/user-data/outputs/../uploads/x", "/", "//mnt//user-data/workspace/./in/../up/x", Workspace + "/link/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		files := &Files{}
		for _, name := range []string{Uploads, Workspace, Outputs} {
			files.mounts = append(files.mounts, &mount{path: name, sub: strings.TrimPrefix(name, Root+"/")})
		}
		pl, err := files.resolve(p)
		if err != nil {
			checkErr(t, err, nil, "")
			return
		}
		if pl.mount == nil {
			if len(files.children(pl.path)) == 0 {
				t.Fatalf("%q is %q, which is nothing", p, pl.path)
			}
			return
		}
		if strings.Contains(pl.rel, "..") && strings.Contains("/"+pl.rel+"/", "/../") || strings.HasPrefix(pl.rel, "/") {
			t.Fatalf("%q is %q in the root", p, pl.rel)
		}
		if _, ok := within(pl.rel, pl.mount.sub); !ok || Root+"/"+pl.rel != pl.path {
			t.Fatalf("%q is %q, %q", p, pl.path, pl.rel)
		}
		again, err := files.resolve(pl.path)
		if err != nil || again.path != pl.path || again.rel != pl.rel {
			t.Fatalf("%q: %v is not stable: %v, %v", p, pl, again, err)
		}
	})
}
