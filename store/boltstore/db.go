package boltstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"deerbot/store"
)

// Options of an engine.
type Options struct {
	// MaxSize bounds the file in bytes; writes beyond fail with store.ErrFull. 0 = no bound.
	MaxSize int
	// LockTimeout is how long Open waits for another process to let go, 0 = 1 s.
	LockTimeout time.Duration
}

// Store is the engine. See store.Store for its contract.
type Store struct {
	path string
	db   *bolt.DB

	mu     sync.RWMutex // held shared while a write is being queued, so that Close knows when none comes any more
	closed bool
	queue  chan *write
	done   chan struct{}
	damage atomic.Pointer[DamagedError] // set once: the file turned out to be damaged
}

var _ store.Store = (*Store)(nil)

// DamagedError says that the file is not a sound store. Nothing was changed in it.
type DamagedError struct {
	Path string
	Err  error
}

// Error names the file and what to do.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("store %s is damaged (%v); move it aside and start with a backup or without", e.Path, e.Err)
}

// Unwrap returns what the check found.
func (e *DamagedError) Unwrap() error { return e.Err }

// Open opens or creates the file. A file another process holds is a *store.LockedError, one that is no sound store a
// *DamagedError, one of a newer deerbot an error that says so.
func Open(path string, o Options) (*Store, error) {
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	db, err := open(path, o)
	if err != nil {
		return nil, err
	}
	if err := prepare(path, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &Store{path: path, db: db, queue: make(chan *write, 1024), done: make(chan struct{})}
	go s.commit() // ends with Close, which waits for it
	return s, nil
}

func open(path string, o Options) (db *bolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, &DamagedError{Path: path, Err: fmt.Errorf("%v", p)}
		}
	}()
	var refused error // bbolt does not wrap what OpenFile says
	opts := &bolt.Options{
		Timeout: o.LockTimeout, FreelistType: bolt.FreelistMapType, NoFreelistSync: true, InitialMmapSize: mmapSize,
		MaxSize: o.MaxSize, NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			f, err = openLocked(name, flag, mode, o.LockTimeout)
			refused = err
			return f, err
		},
	}
	db, err = bolt.Open(path, 0o600, opts)
	switch {
	case err == nil:
		return db, nil
	case refused != nil:
		err = refused
	case errors.Is(err, berrors.ErrTimeout):
		return nil, &store.LockedError{Path: path, PID: holder(path)}
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, &DamagedError{Path: path, Err: err}
	}
	var locked *store.LockedError
	var damaged *DamagedError
	if errors.As(err, &locked) || errors.As(err, &damaged) {
		return nil, err
	}
	return nil, fmt.Errorf("store %s: %w", path, full(path, err))
}

// openLocked opens the file, takes the lock that bbolt will ask for again, and looks at the pages under it.
func openLocked(path string, flag int, mode os.FileMode, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	if err := lock(f, timeout); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() > 0 {
		if bad := verify(f, fi.Size()); bad != nil {
			err = &DamagedError{Path: path, Err: bad}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lock waits for the file's lock until the timeout.
func lock(f *os.File, timeout time.Duration) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock: %w", err)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return &store.LockedError{Path: f.Name(), PID: holder(f.Name())}
		}
	}
}

// mmapSize is reserved address space, so that growing seldom has to wait for readers. It costs no memory.
const mmapSize = 1 << 30

// holder finds the process that has the file's lock, 0 when the system does not say.
func holder(path string) int {
	fi, err := os.Stat(path)
	if err != nil {
		return 0
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	inode := ":" + strconv.FormatUint(st.Ino, 10)
	for line := range strings.SplitSeq(string(locks), "\n") {
		f := strings.Fields(line)
		if len(f) > 5 && strings.HasSuffix(f[5], inode) {
			pid, _ := strconv.Atoi(f[4])
			return pid
		}
	}
	return 0
}

// Schema is the version of the layout this engine writes.
const Schema = 1

// migrations[i] brings a file from version i to i+1.
var migrations = []func(tx *bolt.Tx) error{
	func(tx *bolt.Tx) error { // 1: the first layout
		for _, b := range buckets {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		return nil
	},
}

// prepare checks the file's roots and brings its layout up to date.
func prepare(path string, db *bolt.DB) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &DamagedError{Path: path, Err: fmt.Errorf("%v", p)}
		}
	}()
	version := 0
	err = db.View(func(tx *bolt.Tx) error {
		if m := tx.Bucket(bMeta); m != nil {
			v, err := strconv.Atoi(string(m.Get(kSchema)))
			if err != nil {
				return &DamagedError{Path: path, Err: fmt.Errorf("schema version: %w", err)}
			}
			version = v
		}
		return nil
	})
	if err != nil {
		return err
	}
	if version > Schema {
		return fmt.Errorf("store %s has layout %d, this deerbot knows %d: use a newer deerbot", path, version, Schema)
	}
	if version == Schema {
		return nil
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for v := version; v < Schema; v++ {
			if err := migrations[v](tx); err != nil {
				return fmt.Errorf("store %s: migration to layout %d: %w", path, v+1, err)
			}
		}
		return tx.Bucket(bMeta).Put(kSchema, []byte(strconv.Itoa(Schema)))
	})
	return full(path, err)
}

// full makes ErrFull of the ways in which a disk or the size bound says no.
func full(path string, err error) error {
	if err == nil || errors.Is(err, store.ErrFull) || !noRoom(err) {
		return err
	}
	free := ""
	var st syscall.Statfs_t
	if syscall.Statfs(filepath.Dir(path), &st) == nil {
		free = fmt.Sprintf(", %d KiB are free", st.Bavail*uint64(st.Bsize)>>10)
	}
	return fmt.Errorf("%w: %s%s: %w", store.ErrFull, path, free, err)
}

// noRoom reports whether a disk, a quota or a bound has no room. bbolt wraps some causes as text only.
func noRoom(err error) bool {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, berrors.ErrMaxSizeReached} {
		if errors.Is(err, cause) || strings.Contains(err.Error(), cause.Error()) {
			return true
		}
	}
	return false
}

// view runs fn in a read transaction.
func (s *Store) view(ctx context.Context, op string, fn func(tx *txn) error) (err error) {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %s: %w", op, err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			_ = s.fault(p)
			err = fmt.Errorf("store: %s: %w", op, &DamagedError{Path: s.path, Err: fmt.Errorf("%v", p)})
		}
	}()
	err = s.db.View(func(tx *bolt.Tx) error { return fn(&txn{Tx: tx}) })
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		err = store.ErrClosed
	}
	if err != nil {
		return fmt.Errorf("store: %s: %w", op, err)
	}
	return nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	<-s.done
	s.saveFreelist()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("store %s: close: %w", s.path, err)
	}
	return nil
}

// saveFreelist stores the list of free pages once, so that the next Open need not look for them. While the store is open
// each commit would write the list again, which can be long. It does not matter when this fails.
func (s *Store) saveFreelist() {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }()
	if s.broken() != nil {
		return
	}
	s.db.NoFreelistSync = false
	_ = s.db.Update(func(*bolt.Tx) error { return nil })
}
