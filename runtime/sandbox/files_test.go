package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newFiles opens a tree whose root is reached through a link, and returns its host directory.
func newFiles(t *testing.T, opts ...Option) (*Files, string) {
	t.Helper()
	base := t.TempDir()
	host := filepath.Join(base, "real", "thread")
	if err := os.MkdirAll(filepath.Join(base, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(base, "via")); err != nil {
		t.Fatal(err)
	}
	f, err := Open(filepath.Join(base, "via", "thread"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, host
}

// tree lists every path below a host directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, p); err == nil && rel != "." {
			out = append(out, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func write(t *testing.T, f *Files, p, text string) {
	t.Helper()
	if err := f.WriteFile(p, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, f *Files, p string) string {
	t.Helper()
	b, err := f.ReadFile(p, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkErr checks that err is a PathError with a cause, and tells nothing about the host.
func checkErr(t *testing.T, err, want error, host string) {
	t.Helper()
	if _, ok := errors.AsType[*PathError](err); !ok {
		t.Fatalf("got %v (%T), want a *PathError", err, err)
	}
	if want != nil && !errors.Is(err, want) {
		t.Errorf("got %v, want one that is %v", err, want)
	}
	var hostErr *os.PathError
	if errors.As(err, &hostErr) || host != "" && strings.Contains(err.Error(), host) {
		t.Errorf("the error tells about the host: %v", err)
	}
}

func TestOpenIsLazy(t *testing.T) {
	f, host := newFiles(t)
	if _, err := f.SnapshotOutputs(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(host); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the directory exists before the first use: %v", err)
	}
	list, err := f.ReadDir(Root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range list {
		names = append(names, d.Name())
	}
	if diff := cmp.Diff([]string{"outputs", "uploads", "workspace"}, names); diff != "" {
		t.Error(diff)
	}
	if list, err = f.ReadDir(Workspace); err != nil || len(list) != 0 {
		t.Errorf("workspace: %v, %v", list, err)
	}
	if diff := cmp.Diff([]string{"outputs", "uploads", "workspace"}, tree(t, host)); diff != "" {
		t.Error(diff)
	}
}

func TestPathContract(t *testing.T) {
	f, host := newFiles(t)
	write(t, f, Workspace+"/a.txt", "a")
	tests := []struct {
		name, path string
		want       string // part of the error, "" for success
		cause      error
	}{
		{"plain", Workspace + "/a.txt", "", nil},
		{"not clean", Workspace + "//./b/../a.txt", "", nil},
		{"across roots", Outputs + "/../workspace/a.txt", "", nil},
		{"empty", "", "empty", nil},
		{"relative", "a.txt", "perhaps /mnt/user-data/workspace/a.txt", ErrOutside},
		{"relative with root", "outputs/a.txt", "perhaps /mnt/user-data/outputs/a.txt", ErrOutside},
		{"host", "/etc/passwd", "outside", ErrOutside},
		{"climbs", Workspace + "/../../../etc/passwd", "outside", ErrOutside},
		{"climbs far", "/../../../../etc/passwd", "outside", ErrOutside},
		{"sibling prefix", "/mnt/user-data-2/x", "outside", ErrOutside},
		{"sibling prefix inside", "/mnt/user-data/workspace2/x", "outside", ErrOutside},
		{"the thread's directory", Root + "/x", "outside", ErrOutside},
		{"NUL", Workspace + "/a\x00.txt", "control", nil},
		{"newline", Workspace + "/a\n.txt", "control", nil},
		{"backslash", Workspace + `\..\..\x`, "backslash", nil},
		{"not UTF-8", Workspace + "/\xff", "UTF-8", nil},
		{"long", Workspace + "/" + strings.Repeat("x/", 600), "longer", nil},
		{"long name", Workspace + "/" + strings.Repeat("x", 256), "longer", nil},
		{"missing", Workspace + "/none", "does not exist", fs.ErrNotExist},
		{"through a file", Workspace + "/a.txt/x", "not a directory", fs.ErrNotExist},
		{"skills without a mount", Skills + "/public/x", "outside", ErrOutside},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.Stat(tt.path)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			checkErr(t, err, tt.cause, host)
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want it to say %q", err, tt.want)
			}
		})
	}
}

func TestC207SymlinkInWorkspace(t *testing.T) {
	f, host := newFiles(t)
	write(t, f, Workspace+"/inside/a.txt", "inside")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "id_ed25519"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(host, "workspace")
	for link, target := range map[string]string{
		"escape": "/", "link": outside, "up": "../../..", "dangling": "/tmp/not/there", "upfile": "../../x",
		"in": "inside", "infile": "inside/a.txt", "across": "../outputs", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, filepath.Dir(filepath.Dir(host)))
	for _, p := range []string{"escape/tmp/evil", "link/evil", "up/evil", "dangling", "dangling/x", "upfile", "loop"} {
		p = Workspace + "/" + p
		checkErr(t, f.WriteFile(p, []byte("x")), ErrOutside, host)
		checkErr(t, f.Append(p, []byte("x")), ErrOutside, host)
		_, _, err := f.SaveNew(p, "n.txt", strings.NewReader("x"), 10)
		checkErr(t, err, nil, host)
	}
	for _, p := range []string{"link/id_ed25519", "escape/etc/passwd", "up/x", "dangling"} {
		_, err := f.ReadFile(Workspace+"/"+p, 100)
		checkErr(t, err, ErrOutside, host)
		_, err = f.Stat(Workspace + "/" + p)
		checkErr(t, err, ErrOutside, host)
		_, err = f.ReadDir(Workspace + "/" + p)
		checkErr(t, err, ErrOutside, host)
		checkErr(t, f.MkdirAll(Workspace+"/"+p+"/d"), ErrOutside, host)
	}
	if diff := cmp.Diff(before, tree(t, filepath.Dir(filepath.Dir(host)))); diff != "" {
		t.Errorf("something was created: %s", diff)
	}
	if list, _ := os.ReadDir(outside); len(list) != 1 {
		t.Errorf("something was created outside: %v", list)
	}

	if got := read(t, f, Workspace+"/in/a.txt"); got != "inside" {
		t.Errorf("through a link inside: %q", got)
	}
	write(t, f, Workspace+"/in/new/b.txt", "b")
	write(t, f, Workspace+"/infile", "changed")
	write(t, f, Workspace+"/across/o.txt", "o")
	if got := read(t, f, Workspace+"/inside/a.txt") + read(t, f, Workspace+"/inside/new/b.txt") + read(t, f, Outputs+"/o.txt"); got != "changedbo" {
		t.Errorf("written through links inside: %q", got)
	}
	if fi, err := os.Lstat(filepath.Join(ws, "infile")); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link did not stay: %v, %v", fi, err)
	}
	// Links are not followed by walks.
	var seen []string
	if err := f.Walk(context.Background(), Workspace, func(p string, d fs.DirEntry) error {
		seen = append(seen, p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range seen {
		if strings.HasPrefix(p, Workspace+"/escape/") || strings.HasPrefix(p, Workspace+"/in/") {
			t.Errorf("walked through a link: %s", p)
		}
	}
}

func TestWriteFile(t *testing.T) {
	f, host := newFiles(t)
	p := Workspace + "/d/e/f.sh"
	write(t, f, p, "one")
	if err := os.Chmod(filepath.Join(host, "workspace/d/e/f.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, f, p, "two")
	if err := f.Append(p, []byte("three")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, f, p); got != "twothree" {
		t.Errorf("got %q", got)
	}
	if fi, _ := f.Stat(p); fi.Mode().Perm() != 0o755 {
		t.Errorf("permissions changed to %v", fi.Mode())
	}
	if list, _ := f.ReadDir(Workspace + "/d/e"); len(list) != 1 {
		t.Errorf("something was left behind: %v", list)
	}
	checkErr(t, f.WriteFile(Workspace+"/d", nil), ErrNotRegular, host)
	checkErr(t, f.WriteFile(Workspace, nil), ErrNotRegular, host)
	checkErr(t, f.WriteFile(Root, nil), ErrNotRegular, host)
	checkErr(t, f.Append(Workspace+"/d", nil), ErrNotRegular, host)
	checkErr(t, f.Remove(Outputs), nil, host)
	checkErr(t, f.Remove(Workspace+"/d"), nil, host)
	if err := f.Remove(p); err != nil {
		t.Error(err)
	}
	if _, err := f.ReadFile(p, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed file: %v", err)
	}
	write(t, f, p, "12345")
	if _, err := f.ReadFile(p, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("bounded read: %v", err)
	}
	if b, err := f.ReadFile(p, 5); err != nil || len(b) != 5 {
		t.Errorf("read of the exact size: %q, %v", b, err)
	}
}

func TestOpenIn(t *testing.T) {
	f, host := newFiles(t)
	write(t, f, Workspace+"/secret", "s")
	write(t, f, Outputs+"/a/real", "r")
	for link, target := range map[string]string{"out": "../workspace/secret", "in": "a/real"} {
		if err := os.Symlink(target, filepath.Join(host, "outputs", link)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.OpenIn(Outputs, Outputs+"/out")
	checkErr(t, err, ErrOutside, host)
	_, err = f.OpenIn(Outputs, Workspace+"/secret")
	checkErr(t, err, ErrOutside, host)
	in, err := f.OpenIn(Outputs, Outputs+"/in")
	if err != nil {
		t.Fatal(err)
	}
	if in.Path() != Outputs+"/in" {
		t.Errorf("path %s", in.Path())
	}
	in.Close()
	if _, err := in.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), host) {
		t.Errorf("read after close: %v", err)
	}
}

func TestReadOnlyMount(t *testing.T) {
	skills := t.TempDir()
	if err := os.WriteFile(filepath.Join(skills, "SKILL.md"), []byte("skill"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, host := newFiles(t, ReadOnly(Skills+"/public", skills), ReadOnly(Skills+"/custom", skills+"/none"))
	if got := read(t, f, Skills+"/public/SKILL.md"); got != "skill" {
		t.Errorf("got %q", got)
	}
	for _, err := range []error{
		f.WriteFile(Skills+"/public/x", nil), f.Append(Skills+"/public/SKILL.md", nil),
		f.Remove(Skills + "/public/SKILL.md"), f.MkdirAll(Skills + "/public/d"),
	} {
		checkErr(t, err, ErrReadOnly, host)
		checkErr(t, err, nil, skills)
	}
	_, err := f.ReadDir(Skills + "/custom")
	checkErr(t, err, fs.ErrNotExist, skills)
	list, err := f.ReadDir(Skills)
	if err != nil || len(list) != 2 {
		t.Errorf("skills: %v, %v", list, err)
	}
	var seen []string
	if err := f.Walk(context.Background(), "/mnt", func(p string, d fs.DirEntry) error {
		seen = append(seen, p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/mnt", "/mnt/skills", "/mnt/skills/public", "/mnt/skills/public/SKILL.md", "/mnt/user-data",
		"/mnt/user-data/outputs", "/mnt/user-data/uploads", "/mnt/user-data/workspace",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	for _, v := range []string{"", "/", "/mnt/user-data", Workspace + "/skills", "/mnt/skills/../skills"} {
		if _, err := Open("x", ReadOnly(v, "y")); err == nil {
			t.Errorf("a mount at %q was accepted", v)
		}
	}
}

func TestClose(t *testing.T) {
	f, host := newFiles(t)
	write(t, f, Workspace+"/a", "a")
	f.Close()
	f.Close()
	_, err := f.ReadFile(Workspace+"/a", 10)
	checkErr(t, err, ErrClosed, host)
}

func TestNoSpaceIsLegible(t *testing.T) {
	err := wrap(Workspace+"/a", &os.PathError{Op: "write", Path: "/srv/data/a", Err: syscall.ENOSPC})
	checkErr(t, err, ErrNoSpace, "/srv/data")
	if !strings.Contains(err.Error(), "no space left") {
		t.Error(err)
	}
	f, host := newFiles(t, Quota(func(add int64) error {
		if add > 3 {
			return errors.New("this conversation may keep 3 bytes")
		}
		return nil
	}))
	write(t, f, Workspace+"/a", "abc")
	checkErr(t, f.WriteFile(Workspace+"/a", []byte("abcd")), ErrNoSpace, host)
	_, _, err = f.SaveUpload("m", "b", strings.NewReader("abcd"), 10)
	checkErr(t, err, ErrNoSpace, host)
	if diff := cmp.Diff([]string{"outputs", "uploads", "workspace", "workspace/a"}, tree(t, host)); diff != "" {
		t.Error(diff)
	}
}

func TestLock(t *testing.T) {
	f, _ := newFiles(t)
	n := 0
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			unlock := f.Lock(Workspace + "/./a")
			defer unlock()
			n++
		})
	}
	wg.Wait()
	unlock := f.Lock(Workspace + "/a")
	unlock()
	unlock()
	if n != 50 || len(f.locks) != 0 {
		t.Errorf("n %d, %d locks left", n, len(f.locks))
	}
}
