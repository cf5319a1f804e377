package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const maxTwins = 1000 // files of one name in one directory

// SaveUpload streams a file that somebody sent to uploads/<msgID>/ under a safe name and returns its virtual path and
// size. At most max bytes are taken: a larger file fails with [ErrTooLarge]. Nothing is ever overwritten, a second
// file of the same name gets a suffix; links on the way are refused; a name without an extension gets the one of its
// content. After an error nothing of the file is left. The caller bounds r in time.
func (f *Files) SaveUpload(msgID, name string, r io.Reader, max int64) (virtualPath string, size int64, err error) {
	return f.SaveNew(path.Join(Uploads, safeDir(msgID)), name, r, max)
}

// SaveNew is [Files.SaveUpload] into any directory of the tree, which is created when missing.
func (f *Files) SaveNew(dir, name string, r io.Reader, max int64) (virtualPath string, size int64, err error) {
	pl, root, err := f.writable(path.Join(dir, "x"))
	if err != nil {
		return "", 0, err
	}
	pl.path, pl.rel = path.Dir(pl.path), path.Dir(pl.rel)
	br := bufio.NewReaderSize(r, 4096)
	head, err := br.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", 0, fault(dir, "the file could not be received", err)
	}
	name = SafeName(name)
	if path.Ext(name) == "" {
		name += extension(head)
	}
	if err := plainDirs(root, pl.rel); err != nil {
		return "", 0, wrap(dir, err)
	}
	// The name is claimed before a byte is written, so two writers can never meet in one file.
	out, name, err := claim(root, pl.rel, name)
	if err != nil {
		return "", 0, wrap(dir, err)
	}
	p, rel := path.Join(pl.path, name), path.Join(pl.rel, name)
	size, err = io.Copy(&meter{f: f, p: p, w: out}, io.LimitReader(br, max+1))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil && size > max {
		err = fault(p, fmt.Sprintf("the file is larger than %d bytes", max), ErrTooLarge)
	}
	if err != nil {
		_ = root.Remove(rel)
		_ = root.Remove(pl.rel) // succeeds only when empty
		var host *os.PathError
		if _, ours := errors.AsType[*PathError](err); ours || errors.As(err, &host) {
			return "", 0, wrap(p, err)
		}
		return "", 0, fault(p, "the file could not be received", err) // the reader's error
	}
	return p, size, nil
}

// meter asks the quota before each write.
type meter struct {
	f *Files
	p string
	w io.Writer
}

func (m *meter) Write(b []byte) (int, error) {
	if err := m.f.room(m.p, int64(len(b))); err != nil {
		return 0, err
	}
	return m.w.Write(b)
}

// plainDirs creates rel and its parents and refuses when one of them is a link.
func plainDirs(r *os.Root, rel string) error {
	done := ""
	for e := range strings.SplitSeq(rel, "/") {
		done = path.Join(done, e)
		if err := r.Mkdir(done, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		fi, err := r.Lstat(done)
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return fault(path.Join(Root, done), "a link or file is where a directory must be", ErrOutside)
		}
	}
	return nil
}

// claim creates a new file called name in rel, or with a number behind its stem when the name is taken.
func claim(r *os.Root, rel, name string) (*os.File, string, error) {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	try := name
	for n := 2; n <= maxTwins; n++ {
		out, err := r.OpenFile(path.Join(rel, try), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if err == nil {
			return out, try, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, "", err
		}
		try = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
	return nil, "", fault(path.Join(Root, rel), "too many files of one name", fs.ErrExist)
}
