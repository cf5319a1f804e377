package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"deerbot/runtime/sandbox"
	"deerbot/runtime/tools/web"
)

// BuiltinConfig is what the built-in tools need to know.
type BuiltinConfig struct {
	Web web.Config // of web_fetch
}

// Builtin makes the built-in tools of this package, in the order the model sees them: ls, read_file, write_file,
// str_replace, glob, grep, present_files, todo, web_fetch.
func Builtin(cfg BuiltinConfig) ([]Tool, error) {
	var out []Tool
	var errs []error
	for _, make := range []func() (Tool, error){
		newLs, newReadFile, newWriteFile, newStrReplace, newGlob, newGrep, newPresentFiles, newTodo,
		func() (Tool, error) { return newWebFetch(cfg.Web) },
	} {
		t, err := make()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, t)
	}
	return out, errors.Join(errs...)
}

// fileTimeout bounds a call of a file tool.
const fileTimeout = 30 * time.Second

var errNoFiles = errors.New("this conversation has no files")

// limits refines an integer argument; high 0 sets no upper one.
func limits(name string, low, high float64) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		p := s.Properties[name]
		p.Minimum = &low
		if high > 0 {
			p.Maximum = &high
		}
	}
}

// untrustedPath reports whether what lies at a virtual path came from outside whatever tool reads it: saved pages and
// spilled tool output.
func untrustedPath(p string) bool {
	c, err := sandbox.Clean(p)
	return err == nil && (sandbox.Under(c, sandbox.Downloads) || sandbox.Under(c, sandbox.ToolResults))
}

// bytesText writes a size for the model and people: 1,204 B, 80.0 KiB, 3.4 MiB.
func bytesText(n int64) string {
	switch {
	case n < 10<<10:
		return count(n) + " B"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// count writes a number with commas.
func count[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural is "1 line", "2 lines".
func plural[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + one + "s"
}

// missing helps with a path that does not exist by naming the nearest entry of its directory.
func missing(f *sandbox.Files, p string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, cerr := sandbox.Clean(p)
	if cerr != nil {
		return err
	}
	dir, base := splitPath(c)
	list, lerr := f.ReadDir(dir)
	if lerr != nil {
		return err
	}
	var names []string
	for _, d := range list {
		names = append(names, d.Name())
	}
	if n := nearest(base, names); n != "" {
		return fmt.Errorf("%w; there is %s", err, sandbox.Printable(dir+"/"+n))
	}
	return err
}
