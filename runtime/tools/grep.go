package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"deerbot/runtime/sandbox"
)

const (
	grepDefault = 100
	grepMax     = 500
	grepFile    = 1_000_000 // bytes; larger files are passed over
	grepLine    = 200       // characters of a line
	grepPattern = 1000      // characters
)

type grepArgs struct {
	Pattern       string `json:"pattern" jsonschema:"regular expression (RE2), or plain text with literal"`
	Path          string `json:"path,omitempty" jsonschema:"absolute path of a directory or file to search, default /mnt/user-data"`
	Glob          string `json:"glob,omitempty" jsonschema:"search only files that match, such as *.go"`
	Literal       bool   `json:"literal,omitempty" jsonschema:"take the pattern as plain text, default false"`
	CaseSensitive bool   `json:"case_sensitive,omitempty" jsonschema:"default false"`
	MaxResults    int    `json:"max_results,omitempty" jsonschema:"lines, default 100, at most 500"`
}

func newGrep() (Tool, error) {
	return New(Spec{
		Name: "grep",
		Description: "Search text files line by line. The pattern is a regular expression in RE2 syntax (no lookaround, no " +
			"backreferences) or, with literal, plain text; case is ignored unless case_sensitive is set. Comes back as path:line: text, " +
			"long lines cut to 200 characters around the match, 100 lines unless max_results says otherwise. Binary files, files over " +
			"1 MB and directories whose name begins with a dot are passed over unless path names them.",
		ReadOnly: true, Timeout: fileTimeout, MaxOutput: 40_000,
		Line: lineOf(func(a grepArgs) string { return strings.TrimSpace(a.Pattern + " " + a.Glob + " " + a.Path) }),
	}, grep, limits("max_results", 1, grepMax))
}

func grep(ctx context.Context, env *Env, args grepArgs) (Result, error) {
	if env.Files == nil {
		return Result{}, errNoFiles
	}
	re, err := grepRegexp(args)
	if err != nil {
		return Result{}, err
	}
	s := &searcher{files: env.Files, re: re, limit: args.MaxResults}
	if s.limit == 0 {
		s.limit = grepDefault
	}
	if args.Glob != "" {
		if s.glob, err = sandbox.Compile(args.Glob); err != nil {
			return Result{}, fmt.Errorf("glob: %w", err)
		}
	}
	if args.Path == "" {
		args.Path = sandbox.Root
	}
	base, err := sandbox.Clean(args.Path)
	if err != nil {
		return Result{}, err
	}
	fi, err := env.Files.Stat(base)
	if err != nil {
		return Result{}, missing(env.Files, base, err)
	}
	if !fi.IsDir() {
		if fi.Size() > grepFile {
			return Result{}, fmt.Errorf("%s is larger than 1 MB; read a part of it with read_file", sandbox.Printable(base))
		}
		if err := s.file(ctx, base); err != nil && !errors.Is(err, fs.SkipAll) {
			return Result{}, err
		}
	} else if err := s.tree(ctx, base); err != nil {
		return Result{}, err
	}
	return Result{Content: s.report(args, base), Untrusted: s.untrusted}, nil
}

func grepRegexp(args grepArgs) (*regexp.Regexp, error) {
	switch {
	case args.Pattern == "":
		return nil, errors.New("pattern is empty")
	case utf8.RuneCountInString(args.Pattern) > grepPattern:
		return nil, fmt.Errorf("pattern is longer than %s characters", count(grepPattern))
	}
	expr := args.Pattern
	if args.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if !args.CaseSensitive {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("pattern is no RE2 expression (%s); mend it, or set literal=true to search for it as plain text",
			clean(strings.TrimPrefix(err.Error(), "error parsing regexp: "), 200))
	}
	return re, nil
}

// searcher collects matching lines.
type searcher struct {
	files     *sandbox.Files
	re        *regexp.Regexp
	glob      *sandbox.Pattern
	limit     int
	out       strings.Builder
	hits      int
	searched  int
	skipped   int // too large
	more      bool
	untrusted bool
}

func (s *searcher) tree(ctx context.Context, base string) error {
	return s.files.Walk(ctx, base, func(p string, d fs.DirEntry) error {
		switch {
		case d.IsDir():
			if p != base && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		case s.glob != nil && !s.glob.Match(strings.TrimPrefix(strings.TrimPrefix(p, base), "/")):
			return nil
		}
		if fi, err := d.Info(); err != nil || fi.Size() > grepFile {
			if err == nil {
				s.skipped++
			}
			return nil
		}
		err := s.file(ctx, p)
		if _, ok := errors.AsType[*sandbox.PathError](err); ok {
			return nil // unreadable, or gone meanwhile
		}
		return err
	})
}

// file searches one file; fs.SkipAll says that the limit is reached.
func (s *searcher) file(ctx context.Context, p string) error {
	b, err := s.files.ReadFile(p, grepFile)
	if err != nil {
		return err
	}
	if bytes.IndexByte(b[:min(len(b), binaryProbe)], 0) >= 0 {
		return nil
	}
	s.searched++
	n := 0
	for line := range bytes.Lines(b) {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line = bytes.TrimRight(line, "\r\n")
		loc := s.re.FindIndex(line)
		if loc == nil {
			continue
		}
		if s.hits == s.limit {
			s.more = true
			return fs.SkipAll
		}
		s.hits++
		s.untrusted = s.untrusted || untrustedPath(p)
		fmt.Fprintf(&s.out, "%s:%d: %s\n", sandbox.Printable(p), n, window(string(line), loc[0], loc[1]))
	}
	return nil
}

func (s *searcher) report(args grepArgs, base string) string {
	var note string
	if s.skipped > 0 {
		note = fmt.Sprintf("[%s over 1 MB not searched]\n", plural(s.skipped, "file"))
	}
	if s.hits == 0 {
		return fmt.Sprintf("no line matches %s in %s (%s searched)\n%s",
			clean(args.Pattern, 200), sandbox.Printable(base), plural(s.searched, "file"), note)
	}
	if s.more {
		note = moreNote(s.limit, grepMax) + note
	}
	return s.out.String() + note
}

// window cuts a line to grepLine characters so that the match from byte a to b stays in view.
func window(line string, a, b int) string {
	line, a = strings.ToValidUTF8(line, "\uFFFD"), min(a, len(line))
	if utf8.RuneCountInString(line) <= grepLine {
		return line
	}
	r := []rune(line)
	at := utf8.RuneCountInString(line[:min(a, len(line))])
	start := 0
	if length := b - a; at+length > grepLine-2 {
		start = max(0, min(at-40, len(r)-(grepLine-2)))
	}
	end := min(len(r), start+grepLine-2)
	out := string(r[start:end])
	if start > 0 {
		out = "…" + out
	}
	if end < len(r) {
		out += "…"
	}
	return out
}
