package sandbox

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

const maxOutputs = 10_000 // files a snapshot looks at

// Snapshot is the state of the outputs directory at one time, by virtual path.
type Snapshot map[string]fs.FileInfo

// Output is a file under outputs that is new or changed. Its hash is a call of [Files.SHA256] away.
type Output struct {
	Path    string // virtual
	Size    int64  // bytes
	ModTime time.Time
	New     bool // did not exist before
}

// SnapshotOutputs notes the regular files under outputs, at most 10,000. Directories and files whose name begins with a
// dot are left out, links too. On a tree that was never used it creates nothing.
func (f *Files) SnapshotOutputs() (Snapshot, error) {
	out := Snapshot{}
	f.mu.Lock()
	unused := f.data == nil && !f.closed
	f.mu.Unlock()
	if unused {
		if _, err := os.Stat(f.dir); err != nil {
			return out, nil
		}
	}
	err := f.Walk(context.Background(), Outputs, func(p string, d fs.DirEntry) error {
		switch {
		case p == Outputs:
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), "."):
		case d.Type().IsRegular():
			if fi, err := d.Info(); err == nil { // else it went meanwhile
				out[p] = fi
			}
			if len(out) == maxOutputs {
				return fs.SkipAll
			}
		}
		return nil
	})
	return out, err
}

// ChangedOutputs lists what is new or changed under outputs since before, by path. A file counts as changed when its
// size, its modification time or its identity on disk differs; whether its content does, its hash tells.
func (f *Files) ChangedOutputs(before Snapshot) ([]Output, error) {
	now, err := f.SnapshotOutputs()
	if err != nil {
		return nil, err
	}
	var out []Output
	for p, fi := range now {
		old, had := before[p]
		if had && old.Size() == fi.Size() && old.ModTime().Equal(fi.ModTime()) && os.SameFile(old, fi) {
			continue
		}
		out = append(out, Output{Path: p, Size: fi.Size(), ModTime: fi.ModTime(), New: !had})
	}
	slices.SortFunc(out, func(a, b Output) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}
