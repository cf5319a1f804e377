package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Walk visits p and everything below it in lexical order, p itself first. Links are named but not followed, except p.
// fn may return [fs.SkipDir] and [fs.SkipAll]; any other error ends the walk and is returned. Directories that cannot be
// read are passed over. Walk ends with the context's error when ctx ends.
func (f *Files) Walk(ctx context.Context, p string, fn func(p string, d fs.DirEntry) error) error {
	err := f.walk(ctx, p, fn)
	if errors.Is(err, fs.SkipAll) || errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

func (f *Files) walk(ctx context.Context, p string, fn func(p string, d fs.DirEntry) error) error {
	pl, r, err := f.locate(p)
	if err != nil {
		return err
	}
	if r == nil {
		if err := fn(pl.path, fs.FileInfoToDirEntry(dirInfo(path.Base(pl.path)))); err != nil {
			return err
		}
		for _, name := range f.children(pl.path) {
			// A mount that cannot be opened, such as skills that are not there, hides nothing else.
			child := path.Join(pl.path, name)
			if err := f.walk(ctx, child, fn); err != nil && !errors.Is(err, fs.SkipDir) {
				pe := &PathError{}
				if errors.As(err, &pe) {
					continue
				}
				return err
			}
		}
		return nil
	}
	return fs.WalkDir(r.FS(), pl.rel, func(rel string, d fs.DirEntry, err error) error {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if err != nil {
			if rel == pl.rel && d == nil {
				return wrap(p, err)
			}
			return nil
		}
		if rest, ok := within(rel, pl.rel); pl.rel != "." && ok {
			rel = rest
		}
		return fn(path.Join(pl.path, rel), d)
	})
}

// Glob lists files below dir whose path relative to dir matches pattern, in lexical order, at most max of them; more
// reports that there are others. With dirs set directories are listed too. Directories whose name begins with a dot are
// left out unless the pattern names one. For the pattern's language see [Compile].
func (f *Files) Glob(ctx context.Context, dir, pattern string, max int, dirs bool) (paths []string, more bool, err error) {
	pat, err := Compile(pattern)
	if err != nil {
		return nil, false, fault(dir, err.Error(), nil)
	}
	base, err := Clean(dir)
	if err != nil {
		return nil, false, err
	}
	fi, err := f.Stat(dir)
	if err != nil {
		return nil, false, err
	}
	if !fi.IsDir() {
		return nil, false, fault(dir, "is a file, not a directory", nil)
	}
	err = f.Walk(ctx, dir, func(p string, d fs.DirEntry) error {
		rel, _ := within(p, base)
		if rel == "" {
			return nil
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && !pat.dotted {
				return fs.SkipDir
			}
			if !dirs {
				return nil
			}
		}
		if !pat.Match(rel) {
			return nil
		}
		if len(paths) == max {
			more = true
			return fs.SkipAll
		}
		paths = append(paths, p)
		return nil
	})
	return paths, more, err
}
