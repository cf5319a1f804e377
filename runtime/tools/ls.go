package tools

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"deerbot/runtime/sandbox"
)

const (
	lsDepth = 2
	lsMax   = 20_000 // characters
)

type lsArgs struct {
	Path string `json:"path,omitempty" jsonschema:"absolute path of a directory, default /mnt/user-data"`
}

func newLs() (Tool, error) {
	return New(Spec{
		Name: "ls",
		Description: "List a directory two levels deep, with file sizes. Directories end in /. The output is cut after 20,000 " +
			"characters; list a subdirectory or use glob to see more. What is in directories whose name begins with a dot is shown " +
			"only when they are listed themselves.",
		ReadOnly: true, Timeout: fileTimeout, MaxOutput: lsMax + 500,
		Line: lineOf(func(a lsArgs) string { return a.Path }),
	}, ls)
}

func ls(ctx context.Context, env *Env, args lsArgs) (Result, error) {
	if env.Files == nil {
		return Result{}, errNoFiles
	}
	if args.Path == "" {
		args.Path = sandbox.Root
	}
	if fi, err := env.Files.Stat(args.Path); err != nil {
		return Result{}, missing(env.Files, args.Path, err)
	} else if !fi.IsDir() {
		return Result{}, fmt.Errorf("%s is a file (%s); use read_file", sandbox.Printable(args.Path), bytesText(fi.Size()))
	}
	w := &lister{files: env.Files}
	w.add(strings.TrimRight(args.Path, "/") + "/")
	if err := w.dir(ctx, args.Path, 1); err != nil {
		return Result{}, err
	}
	out := w.out.String()
	switch {
	case w.left > 0:
		out += fmt.Sprintf("[cut: %s not shown; list a subdirectory]\n", plural(w.left, "more entry"))
		out = strings.Replace(out, "more entrys", "more entries", 1)
	case w.entries == 0:
		out += "(empty)\n"
	}
	return Result{Content: out}, nil
}

// lister writes a tree until lsMax characters are full, then counts.
type lister struct {
	files   *sandbox.Files
	out     strings.Builder
	runes   int
	entries int
	left    int
}

func (w *lister) add(line string) {
	n := len([]rune(line)) + 1
	if w.left > 0 || w.runes+n > lsMax {
		w.left++
		return
	}
	w.runes += n
	w.out.WriteString(line + "\n")
}

func (w *lister) dir(ctx context.Context, p string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	list, err := w.files.ReadDir(p)
	if err != nil {
		if depth == 1 {
			return err
		}
		return nil
	}
	indent := strings.Repeat("  ", depth)
	for _, d := range list {
		w.entries++
		name := sandbox.Printable(d.Name())
		switch {
		case d.IsDir():
			w.add(indent + name + "/")
			if depth < lsDepth && !strings.HasPrefix(d.Name(), ".") {
				if err := w.dir(ctx, path.Join(p, d.Name()), depth+1); err != nil {
					return err
				}
			}
		case d.Type()&fs.ModeSymlink != 0:
			w.add(indent + name + " (link)")
		case d.Type().IsRegular():
			if fi, err := d.Info(); err == nil {
				name += "  " + bytesText(fi.Size())
			}
			w.add(indent + name)
		default:
			w.add(indent + name + " (special file)")
		}
	}
	return nil
}

// splitPath splits a clean absolute path.
func splitPath(p string) (dir, base string) { return path.Dir(p), path.Base(p) }
