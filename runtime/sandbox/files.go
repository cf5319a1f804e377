package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Files is the file tree of one thread. Its methods take virtual paths, return [*PathError], and may be used by
// several goroutines at once.
type Files struct {
	dir    string
	mounts []*mount
	quota  func(add int64) error

	mu     sync.Mutex
	data   *os.Root // of dir, opened at first use
	closed bool
	locks  map[string]*keyLock
}

// Option changes what [Open] makes.
type Option func(*Files)

// ReadOnly mounts a directory of the host for reading at a virtual path such as /mnt/skills/public. The directory need
// not exist yet.
func ReadOnly(virtual, dir string) Option {
	return func(f *Files) {
		f.mounts = append(f.mounts, &mount{path: virtual, sub: ".", dir: dir, readOnly: true})
	}
}

// Quota asks check before bytes are added to the tree. Its error's text is shown to the model.
func Quota(check func(add int64) error) Option {
	return func(f *Files) { f.quota = check }
}

// Open prepares the file tree whose host side is dir: dir is what the model sees as /mnt/user-data, so nothing else may
// be kept in it. Nothing is touched before the first use, which creates dir and the three directories in it. Open fails
// when dir is empty or a mount is not a clean virtual path beside the others.
func Open(dir string, opts ...Option) (*Files, error) {
	if dir == "" {
		return nil, fault(Root, "no directory is configured", nil)
	}
	f := &Files{dir: dir, locks: map[string]*keyLock{}}
	for _, name := range []string{Uploads, Workspace, Outputs} {
		f.mounts = append(f.mounts, &mount{path: name, sub: path.Base(name)})
	}
	for _, o := range opts {
		o(f)
	}
	for i, m := range f.mounts {
		if c, err := Clean(m.path); err != nil || c != m.path || c == "/" || (m.readOnly && m.dir == "") {
			return nil, fault(m.path, "is no place for a mount", nil)
		}
		for _, o := range f.mounts[:i] {
			if Under(m.path, o.path) || Under(o.path, m.path) {
				return nil, fault(m.path, "overlaps with "+o.path, nil)
			}
		}
	}
	return f, nil
}

// Close releases the tree. Later calls fail with [ErrClosed]; files that are open stay usable.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.data != nil {
		_ = f.data.Close()
	}
	for _, m := range f.mounts {
		if m.root != nil {
			_ = m.root.Close()
		}
	}
	return nil
}

// open returns the os.Root of p, opening it at first use.
func (f *Files) open(p place) (*os.Root, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fault(p.path, "the files of this thread are closed", ErrClosed)
	}
	if p.mount.readOnly {
		if p.mount.root == nil {
			r, err := os.OpenRoot(p.mount.dir)
			if err != nil {
				return nil, wrap(p.mount.path, err)
			}
			p.mount.root = r
		}
		return p.mount.root, nil
	}
	if f.data == nil {
		if err := os.MkdirAll(f.dir, dirMode); err != nil {
			return nil, wrap(Root, err)
		}
		r, err := os.OpenRoot(f.dir)
		if err != nil {
			return nil, wrap(Root, err)
		}
		for _, m := range f.mounts {
			if m.readOnly {
				continue
			}
			if err := r.MkdirAll(m.sub, dirMode); err != nil {
				_ = r.Close()
				return nil, wrap(m.path, err)
			}
		}
		f.data = r
	}
	return f.data, nil
}

// locate resolves p and opens its root. For a virtual directory above the mounts the root is nil.
func (f *Files) locate(p string) (place, *os.Root, error) {
	pl, err := f.resolve(p)
	if err != nil || pl.mount == nil {
		return pl, nil, err
	}
	r, err := f.open(pl)
	return pl, r, err
}

// Stat describes the file behind p, links followed.
func (f *Files) Stat(p string) (fs.FileInfo, error) {
	pl, r, err := f.locate(p)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return dirInfo(path.Base(pl.path)), nil
	}
	fi, err := r.Stat(pl.rel)
	if err != nil {
		return nil, wrap(p, err)
	}
	return fi, nil
}

// File is an open regular file. Its errors hold no host path.
type File struct {
	f    *os.File
	path string
}

// Path is the virtual path the file was opened by.
func (f *File) Path() string { return f.path }

// Stat describes the file.
func (f *File) Stat() (fs.FileInfo, error) {
	fi, err := f.f.Stat()
	return fi, wrap(f.path, err)
}

// Read implements io.Reader.
func (f *File) Read(b []byte) (int, error) {
	n, err := f.f.Read(b)
	if err == io.EOF {
		return n, err
	}
	return n, wrap(f.path, err)
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(b, off)
	if err == io.EOF {
		return n, err
	}
	return n, wrap(f.path, err)
}

// Seek implements io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	n, err := f.f.Seek(offset, whence)
	return n, wrap(f.path, err)
}

// Close closes the file.
func (f *File) Close() error { return wrap(f.path, f.f.Close()) }

// Open opens a regular file for reading. Directories, pipes, sockets and devices are refused with [ErrNotRegular].
func (f *Files) Open(p string) (*File, error) {
	pl, r, err := f.locate(p)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fault(p, "is a directory", ErrNotRegular)
	}
	of, err := openRegular(r, pl.rel)
	if err != nil {
		return nil, wrap(p, notRegular(p, err))
	}
	return &File{f: of, path: pl.path}, nil
}

// OpenIn is [Files.Open] for a file that must lie in dir, links followed: a link that leads from dir to elsewhere in the
// tree is refused too.
func (f *Files) OpenIn(dir, p string) (*File, error) {
	pl, r, err := f.locate(p)
	if err != nil {
		return nil, err
	}
	dpl, _, err := f.locate(dir)
	if err != nil {
		return nil, err
	}
	rest, ok := within(pl.path, dpl.path)
	if !ok || rest == "" || r == nil || pl.mount != dpl.mount {
		return nil, fault(p, "is not in "+dir, ErrOutside)
	}
	sub, err := r.OpenRoot(dpl.rel)
	if err != nil {
		return nil, wrap(dir, err)
	}
	defer func() { _ = sub.Close() }()
	of, err := openRegular(sub, rest)
	if err != nil {
		return nil, wrap(p, notRegular(p, err))
	}
	return &File{f: of, path: pl.path}, nil
}

type irregularError fs.FileMode

func (e irregularError) Error() string { return "not a regular file" }

// notRegular words an irregularError, and passes other errors through.
func notRegular(p string, err error) error {
	if m, ok := errors.AsType[irregularError](err); ok {
		if fs.FileMode(m).IsDir() {
			return fault(p, "is a directory", ErrNotRegular)
		}
		return fault(p, "is not a regular file", ErrNotRegular)
	}
	return err
}

// openRegular opens without waiting, so that a pipe somebody planted cannot hold the caller.
func openRegular(r *os.Root, rel string) (*os.File, error) {
	of, err := r.OpenFile(rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	fi, err := of.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = irregularError(fi.Mode())
	}
	if err != nil {
		_ = of.Close()
		return nil, err
	}
	return of, nil
}

// ReadFile reads a whole file of at most max bytes; a larger one fails with [ErrTooLarge].
func (f *Files) ReadFile(p string, max int64) ([]byte, error) {
	in, err := f.Open(p)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > max {
		return nil, fault(p, fmt.Sprintf("is larger than %d bytes", max), ErrTooLarge)
	}
	return b, nil
}

// SHA256 is the hex digest of a file's content, and its size in bytes.
func (f *Files) SHA256(p string) (sum string, size int64, err error) {
	in, err := f.Open(p)
	if err != nil {
		return "", 0, err
	}
	defer in.Close()
	h := sha256.New()
	size, err = io.Copy(h, in)
	if err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// ReadDir lists a directory by name, at most 10,000 entries.
func (f *Files) ReadDir(p string) ([]fs.DirEntry, error) {
	pl, r, err := f.locate(p)
	if err != nil {
		return nil, err
	}
	if r == nil {
		var out []fs.DirEntry
		for _, name := range f.children(pl.path) {
			out = append(out, fs.FileInfoToDirEntry(dirInfo(name)))
		}
		return out, nil
	}
	d, err := r.OpenFile(pl.rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, wrap(p, err)
	}
	defer d.Close()
	fi, err := d.Stat()
	if err != nil {
		return nil, wrap(p, err)
	}
	if !fi.IsDir() {
		return nil, fault(p, "is a file, not a directory", nil)
	}
	out, err := d.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, wrap(p, err)
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

const maxEntries = 10_000

// dirInfo describes a directory that exists in the path contract only.
type dirInfo string

func (d dirInfo) Name() string       { return string(d) }
func (d dirInfo) Size() int64        { return 0 }
func (d dirInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o555 }
func (d dirInfo) ModTime() time.Time { return time.Time{} }
func (d dirInfo) IsDir() bool        { return true }
func (d dirInfo) Sys() any           { return nil }
