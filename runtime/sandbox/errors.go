package sandbox

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// Causes a caller may test for with [errors.Is], beside [fs.ErrNotExist], [fs.ErrExist] and [fs.ErrPermission].
var (
	ErrOutside    = errors.New("outside the allowed directories")
	ErrReadOnly   = errors.New("read-only")
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("too large")
	ErrNoSpace    = errors.New("no space left")
	ErrClosed     = errors.New("closed")
)

// PathError is the only error type of [Files]. It names the virtual path and says in words a model can act on what was
// wrong. It never holds a host path.
type PathError struct {
	Path   string // virtual, as given
	Reason string
	cause  error // a sentinel, or the error of the reader an upload came from; never an error of the os package
}

// Error implements error.
func (e *PathError) Error() string {
	p := e.Path
	if len(p) > 200 {
		p = strings.ToValidUTF8(p[:200], "") + "…"
	}
	return Printable(p) + ": " + e.Reason
}

// Unwrap gives the cause, nil when there is none to test for.
func (e *PathError) Unwrap() error { return e.cause }

func fault(path, reason string, cause error) *PathError {
	return &PathError{Path: path, Reason: reason, cause: cause}
}

// reasons maps what the system says to what a reader needs. The order counts: errno values also match the fs sentinels.
var reasons = []struct {
	is     error
	reason string
	cause  error
}{
	{syscall.ENOSPC, "no space left on the disk; nothing more can be written until files are removed", ErrNoSpace},
	{syscall.EDQUOT, "the disk quota is used up; nothing more can be written until files are removed", ErrNoSpace},
	{syscall.EFBIG, "the file is too large for the disk", ErrTooLarge},
	{syscall.ENAMETOOLONG, "the name is too long", nil},
	{syscall.ELOOP, "too many links", ErrOutside},
	{syscall.ENOTDIR, "a part of the path is a file, not a directory", fs.ErrNotExist},
	{syscall.EISDIR, "is a directory", ErrNotRegular},
	{syscall.ENOTEMPTY, "the directory is not empty", nil},
	{syscall.EROFS, "is read-only", ErrReadOnly},
	{fs.ErrNotExist, "does not exist", fs.ErrNotExist},
	{fs.ErrExist, "exists already", fs.ErrExist},
	{fs.ErrPermission, "permission denied", fs.ErrPermission},
	{fs.ErrClosed, "the files of this thread are closed", ErrClosed},
}

// wrap turns an error of the os package into a PathError without its host paths.
func wrap(path string, err error) error {
	if err == nil {
		return nil
	}
	if pe, ok := errors.AsType[*PathError](err); ok {
		return pe
	}
	for _, r := range reasons {
		if errors.Is(err, r.is) {
			return fault(path, r.reason, r.cause)
		}
	}
	// os.Root has no exported error for this.
	if strings.Contains(err.Error(), "path escapes from parent") {
		return fault(path, "a link in the path leads out of the allowed directories", ErrOutside)
	}
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return fault(path, no.Error(), nil)
	}
	return fault(path, "input or output failed", nil)
}
