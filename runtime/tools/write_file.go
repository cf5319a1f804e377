package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"deerbot/runtime/sandbox"
)

const (
	writeMax  = 80 << 10 // bytes of a call that replaces
	appendMax = 1 << 20  // bytes of a call that appends
)

type writeFileArgs struct {
	Path    string `json:"path" jsonschema:"absolute path of the file"`
	Content string `json:"content" jsonschema:"the text, exactly as it shall stand in the file"`
	Append  bool   `json:"append,omitempty" jsonschema:"add to the end instead of replacing, default false"`
}

func newWriteFile() (Tool, error) {
	return New(Spec{
		Name: "write_file",
		Description: "Write a text file: create it, replace its whole content, or with append add to its end. Missing directories are " +
			"created. One call that replaces takes at most 80 KiB; write longer files in parts with append. An existing file must have " +
			"been read first, and str_replace is better for small changes. Put what people shall get under /mnt/user-data/outputs, " +
			"everything else under /mnt/user-data/workspace.",
		Timeout: fileTimeout,
		Line:    lineOf(func(a writeFileArgs) string { return a.Path }),
	}, writeFile)
}

func writeFile(ctx context.Context, env *Env, args writeFileArgs) (Result, error) {
	if env.Files == nil {
		return Result{}, errNoFiles
	}
	limit := writeMax
	if args.Append {
		limit = appendMax
	}
	if len(args.Content) > limit {
		return Result{}, fmt.Errorf("content is %s long, one call takes %s; write the first part, then add the others with append=true",
			bytesText(int64(len(args.Content))), bytesText(int64(limit)))
	}
	old, statErr := env.Files.Stat(args.Path)
	lines := plural(lineCount(args.Content), "line")
	if args.Append {
		if err := env.Files.Append(args.Path, []byte(args.Content)); err != nil {
			return Result{}, writeFault(err)
		}
		size := int64(len(args.Content))
		if fi, err := env.Files.Stat(args.Path); err == nil {
			size = fi.Size()
		}
		return Result{Content: fmt.Sprintf("added %s (%s) to %s, now %s",
			bytesText(int64(len(args.Content))), lines, sandbox.Printable(args.Path), bytesText(size))}, nil
	}
	if err := env.Files.WriteFile(args.Path, []byte(args.Content)); err != nil {
		return Result{}, writeFault(err)
	}
	what := "created"
	if statErr == nil {
		what = fmt.Sprintf("replaced (%s before)", bytesText(old.Size()))
	}
	return Result{Content: fmt.Sprintf("%s %s: %s, %s", what, sandbox.Printable(args.Path), bytesText(int64(len(args.Content))), lines)}, nil
}

// writeFault says what to do about a path that is a directory.
func writeFault(err error) error {
	if errors.Is(err, sandbox.ErrNotRegular) {
		return fmt.Errorf("%w; give the path of a file", err)
	}
	return err
}

// lineCount counts lines as editors do: a last line without an end counts.
func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
