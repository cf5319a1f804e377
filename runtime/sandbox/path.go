package sandbox

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// place is a virtual path, resolved as far as strings go. What links do with it is the business of os.Root.
type place struct {
	path  string // clean virtual path
	mount *mount // nil: a virtual directory above the mounts
	rel   string // within the mount's root, "." at its top
}

// mount ties a virtual directory to a directory within an os.Root.
type mount struct {
	path     string
	sub      string // directory in the root that path stands for
	readOnly bool
	dir      string   // host directory of a read-only mount, "" for the thread's own
	root     *os.Root // of a read-only mount; opened at first use
}

// Clean checks a virtual path as a string and returns its shortest form. It accepts absolute paths only, up to
// [MaxPath] bytes, without control characters or backslashes. ".." is resolved lexically; what is left must lie in one
// of the virtual directories, which the methods of [Files] check.
func Clean(p string) (string, error) {
	switch {
	case p == "":
		return "", fault(p, "the path is empty; give one such as "+Workspace+"/notes.md", nil)
	case len(p) > MaxPath:
		return "", fault(p, fmt.Sprintf("the path is longer than %d bytes", MaxPath), nil)
	case !utf8.ValidString(p):
		return "", fault(p, "the path is not valid UTF-8", nil)
	case strings.ContainsRune(p, '\\'):
		return "", fault(p, `the path holds a backslash; directories are separated by "/"`, nil)
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", fault(p, "the path holds a control character", nil)
	case !strings.HasPrefix(p, "/"):
		return "", fault(p, "the path must be absolute; perhaps "+guess(p), ErrOutside)
	}
	c := path.Clean(p)
	for e := range strings.SplitSeq(c, "/") {
		if len(e) > MaxName {
			return "", fault(p, fmt.Sprintf("a name in the path is longer than %d bytes", MaxName), nil)
		}
	}
	return c, nil
}

// guess makes an absolute path out of what looks like a relative one.
func guess(p string) string {
	c := strings.TrimPrefix(path.Clean("/"+p), "/")
	first, _, _ := strings.Cut(c, "/")
	if slices.Contains([]string{"uploads", "workspace", "outputs"}, first) {
		return Root + "/" + c
	}
	return path.Join(Workspace, c)
}

// resolve finds the mount of p.
func (f *Files) resolve(p string) (place, error) {
	c, err := Clean(p)
	if err != nil {
		return place{}, err
	}
	for _, m := range f.mounts {
		if rest, ok := within(c, m.path); ok {
			return place{path: c, mount: m, rel: path.Join(m.sub, rest)}, nil
		}
	}
	if len(f.children(c)) > 0 {
		return place{path: c}, nil
	}
	return place{}, fault(p, "is outside the allowed directories: "+strings.Join(f.roots(), ", "), ErrOutside)
}

// within reports whether p is dir or below it, and the rest.
func within(p, dir string) (string, bool) {
	if p == dir {
		return "", true
	}
	if dir == "/" {
		return p[1:], true
	}
	return strings.CutPrefix(p, dir+"/")
}

// children lists the names in a virtual directory above the mounts, sorted; nil when p is no such directory.
func (f *Files) children(p string) []string {
	var out []string
	for _, m := range f.mounts {
		if rest, ok := within(m.path, p); ok && rest != "" {
			name, _, _ := strings.Cut(rest, "/")
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// roots lists the mounts.
func (f *Files) roots() []string {
	var out []string
	for _, m := range f.mounts {
		out = append(out, m.path)
	}
	return out
}

// Under reports whether the virtual path p is dir or lies below it, by name alone. Both must be clean.
func Under(p, dir string) bool {
	_, ok := within(p, dir)
	return ok
}
