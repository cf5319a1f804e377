package tools

import (
	"context"
	"fmt"
	"path"
	"strings"

	"deerbot/runtime/sandbox"
)

const (
	globDefault = 200
	globMax     = 1000
)

type globArgs struct {
	Pattern     string `json:"pattern" jsonschema:"such as **/*.md, src/*.{ts,tsx} or report-[0-9]*.csv"`
	Path        string `json:"path,omitempty" jsonschema:"absolute path of the directory to look in, default /mnt/user-data"`
	IncludeDirs bool   `json:"include_dirs,omitempty" jsonschema:"list directories too, default false"`
	MaxResults  int    `json:"max_results,omitempty" jsonschema:"default 200, at most 1000"`
}

func newGlob() (Tool, error) {
	return New(Spec{
		Name: "glob",
		Description: "Find files by name. In the pattern * and ? match within a name, ** any number of directories, [a-z] one character, " +
			"{a,b} either text; a pattern without / matches names at any depth. Comes back as absolute paths in order, 200 unless " +
			"max_results says otherwise. Directories whose name begins with a dot are left out unless the pattern names them.",
		ReadOnly: true, Timeout: fileTimeout, MaxOutput: 40_000,
		Line: lineOf(func(a globArgs) string { return strings.TrimSpace(a.Pattern + " " + a.Path) }),
	}, glob, limits("max_results", 1, globMax))
}

func glob(ctx context.Context, env *Env, args globArgs) (Result, error) {
	if env.Files == nil {
		return Result{}, errNoFiles
	}
	dir, pattern := args.Path, args.Pattern
	if strings.HasPrefix(pattern, "/") {
		dir, pattern = splitPattern(pattern)
	}
	if dir == "" {
		dir = sandbox.Root
	}
	limit := args.MaxResults
	if limit == 0 {
		limit = globDefault
	}
	paths, more, err := env.Files.Glob(ctx, dir, pattern, limit, args.IncludeDirs)
	if err != nil {
		return Result{}, missing(env.Files, dir, err)
	}
	if len(paths) == 0 {
		return Result{Content: fmt.Sprintf("no file matches %s in %s", clean(pattern, 200), sandbox.Printable(dir))}, nil
	}
	var out strings.Builder
	for _, p := range paths {
		out.WriteString(sandbox.Printable(p) + "\n")
	}
	if more {
		out.WriteString(moreNote(limit, globMax))
	}
	return Result{Content: out.String()}, nil
}

// moreNote tells that there is more than limit.
func moreNote(limit, most int) string {
	if limit < most {
		return fmt.Sprintf("[%s shown, there are more: narrow the search or raise max_results, at most %s]\n", count(limit), count(most))
	}
	return fmt.Sprintf("[%s shown, there are more: narrow the search]\n", count(limit))
}

// splitPattern splits an absolute pattern into the directory before its first special element and the rest.
func splitPattern(p string) (dir, pattern string) {
	elems := strings.Split(strings.TrimPrefix(p, "/"), "/")
	i := 0
	for i < len(elems)-1 && !strings.ContainsAny(elems[i], "*?[{") {
		i++
	}
	dir, pattern = path.Join("/", strings.Join(elems[:i], "/")), strings.Join(elems[i:], "/")
	if !strings.Contains(pattern, "/") {
		pattern = "./" + pattern // an absolute pattern means this directory only
	}
	return dir, pattern
}
