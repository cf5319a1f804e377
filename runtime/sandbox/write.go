package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// writable resolves p for a change. The tops of the mounts cannot be changed.
func (f *Files) writable(p string) (place, *os.Root, error) {
	pl, err := f.resolve(p)
	if err != nil {
		return pl, nil, err
	}
	if pl.mount == nil || pl.path == pl.mount.path {
		return pl, nil, fault(p, "is a fixed directory; name a file in it", ErrNotRegular)
	}
	if pl.mount.readOnly {
		return pl, nil, fault(p, "is read-only; write under "+Workspace+" or "+Outputs, ErrReadOnly)
	}
	r, err := f.open(pl)
	return pl, r, err
}

func (f *Files) room(p string, add int64) error {
	if f.quota == nil {
		return nil
	}
	if err := f.quota(add); err != nil {
		return fault(p, err.Error(), ErrNoSpace)
	}
	return nil
}

// WriteFile writes a whole file and creates missing parents. The file is replaced in one step: a reader sees the old
// content or the new. Its permissions are kept. A file behind a link is written in place, so the link stays.
func (f *Files) WriteFile(p string, data []byte) error {
	pl, r, err := f.writable(p)
	if err != nil {
		return err
	}
	if err := f.room(p, int64(len(data))); err != nil {
		return err
	}
	if err := makeDirs(r, p, path.Dir(pl.rel)); err != nil {
		return err
	}
	mode := fs.FileMode(fileMode)
	switch fi, err := r.Lstat(pl.rel); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return wrap(p, err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return wrap(p, notRegular(p, store(r, pl.rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode, data)))
	case !fi.Mode().IsRegular():
		return notRegular(p, irregularError(fi.Mode()))
	default:
		mode = fi.Mode().Perm()
	}
	tmp := path.Join(path.Dir(pl.rel), ".tmp-"+token())
	if err := store(r, tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode, data); err != nil {
		_ = r.Remove(tmp)
		return wrap(p, err)
	}
	if err := r.Rename(tmp, pl.rel); err != nil {
		_ = r.Remove(tmp)
		return wrap(p, err)
	}
	return nil
}

// Append adds to a file, which is created with its parents when missing.
func (f *Files) Append(p string, data []byte) error {
	pl, r, err := f.writable(p)
	if err != nil {
		return err
	}
	if err := f.room(p, int64(len(data))); err != nil {
		return err
	}
	if err := makeDirs(r, p, path.Dir(pl.rel)); err != nil {
		return err
	}
	err = store(r, pl.rel, os.O_WRONLY|os.O_CREATE|os.O_APPEND, fileMode, data)
	return wrap(p, notRegular(p, err))
}

// store opens, checks, writes and closes.
func store(r *os.Root, rel string, flag int, mode fs.FileMode, data []byte) error {
	if fi, err := r.Stat(rel); err == nil && !fi.Mode().IsRegular() {
		return irregularError(fi.Mode())
	}
	out, err := r.OpenFile(rel, flag|nonblock, mode)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// MkdirAll creates a directory and its parents. One that exists is fine.
func (f *Files) MkdirAll(p string) error {
	pl, r, err := f.locate(p)
	if err != nil || r == nil {
		return err
	}
	if pl.path == pl.mount.path {
		return nil
	}
	if _, _, err := f.writable(p); err != nil {
		return err
	}
	return makeDirs(r, p, pl.rel)
}

// makeDirs creates rel and its parents, as part of work on p.
func makeDirs(r *os.Root, p, rel string) error {
	err := r.MkdirAll(rel, dirMode)
	if errors.Is(err, fs.ErrExist) { // MkdirAll's way to say that it met a file
		err = syscall.ENOTDIR
	}
	return wrap(p, err)
}

// Remove removes a file, a link or an empty directory.
func (f *Files) Remove(p string) error {
	pl, r, err := f.writable(p)
	if err != nil {
		return err
	}
	return wrap(p, r.Remove(pl.rel))
}

// keyLock is a mutex with the number of those who hold or want it.
type keyLock struct {
	mu sync.Mutex
	n  int
}

// Lock serialises work on one file, by its clean path: whoever checks a file's content and writes on that ground holds
// it over both. The methods of Files and the built-in tools do not take it, so a caller may hold it around them.
func (f *Files) Lock(p string) (unlock func()) {
	if c, err := Clean(p); err == nil {
		p = c
	}
	f.mu.Lock()
	l := f.locks[p]
	if l == nil {
		l = &keyLock{}
		f.locks[p] = l
	}
	l.n++
	f.mu.Unlock()
	l.mu.Lock()
	return sync.OnceFunc(func() {
		l.mu.Unlock()
		f.mu.Lock()
		defer f.mu.Unlock()
		if l.n--; l.n == 0 {
			delete(f.locks, p)
		}
	})
}

// token is 12 random hex digits.
func token() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
