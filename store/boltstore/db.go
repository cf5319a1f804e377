package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
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
	opts := &bolt.Options{
		Timeout: o.LockTimeout, FreelistType: bolt.FreelistMapType, NoFreelistSync: true, InitialMmapSize: mmapSize,
		MaxSize: o.MaxSize,
	}
	db, err = bolt.Open(path, 0o600, opts)
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, berrors.ErrTimeout):
		return nil, &store.LockedError{Path: path, PID: holder(path)}
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, &DamagedError{Path: path, Err: err}
	}
	return nil, fmt.Errorf("store %s: %w", path, full(path, err))
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
	for _, line := range strings.Split(string(locks), "\n") {
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
		// The first and last key of every bucket touch the pages that a torn file has lost first.
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			if b == nil {
				return nil
			}
			c := b.Cursor()
			c.First()
			c.Last()
			return nil
		})
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

// write is one caller's function on its way into a transaction.
type write struct {
	fn   func(tx *bolt.Tx) error
	err  error
	done chan struct{}

	mu      sync.Mutex
	started bool
	gone    bool // the caller left before it started
}

// claim marks w as started; false means that nobody waits for it.
func (w *write) claim() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = true
	return !w.gone
}

// leave gives w up unless it was started.
func (w *write) leave() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return false
	}
	w.gone = true
	return true
}

// update runs fn in a transaction that may carry other writes too. A write that was started is waited for, so its outcome
// is never unknown.
func (s *Store) update(ctx context.Context, op string, fn func(tx *bolt.Tx) error) error {
	w := &write{fn: fn, done: make(chan struct{})}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return fmt.Errorf("store: %s: %w", op, store.ErrClosed)
	}
	select {
	case s.queue <- w:
		s.mu.RUnlock()
	case <-ctx.Done():
		s.mu.RUnlock()
		return fmt.Errorf("store: %s: %w", op, ctx.Err())
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.leave() {
			return fmt.Errorf("store: %s: %w", op, ctx.Err())
		}
		<-w.done
	}
	if w.err != nil {
		return fmt.Errorf("store: %s: %w", op, w.err)
	}
	return nil
}

// maxBatch bounds the writes of one commit, and so the work that a failing one makes others do again.
const maxBatch = 256

// commit is the committer: it takes what is queued and makes one transaction of it.
func (s *Store) commit() {
	defer close(s.done)
	batch := make([]*write, 0, maxBatch)
	for first := range s.queue {
		batch = append(batch[:0], first)
	more:
		for len(batch) < maxBatch {
			select {
			case w, ok := <-s.queue:
				if !ok {
					break more
				}
				batch = append(batch, w)
			default:
				break more
			}
		}
		s.run(batch)
	}
}

func (s *Store) run(batch []*write) {
	live := batch[:0:len(batch)]
	for _, w := range batch {
		if w.claim() {
			live = append(live, w)
		} else {
			close(w.done)
		}
	}
	for len(live) > 0 {
		failed := -1
		err := s.db.Update(func(tx *bolt.Tx) error {
			for i, w := range live {
				if err := safely(w.fn, tx); err != nil {
					failed = i
					return err
				}
			}
			return nil
		})
		if failed < 0 {
			err = full(s.path, err)
			for _, w := range live {
				w.err = err
				close(w.done)
			}
			return
		}
		w := live[failed]
		w.err = full(s.path, err)
		close(w.done)
		live = append(live[:failed], live[failed+1:]...)
	}
}

// safely turns a panic of one caller's function into that caller's error.
func safely(fn func(tx *bolt.Tx) error, tx *bolt.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v", p)
		}
	}()
	return fn(tx)
}

// full makes ErrFull of the ways in which a disk or the size bound says no.
func full(path string, err error) error {
	if err == nil || !(errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, berrors.ErrMaxSizeReached)) {
		return err
	}
	free := ""
	var st syscall.Statfs_t
	if syscall.Statfs(filepath.Dir(path), &st) == nil {
		free = fmt.Sprintf(", %d KiB are free", st.Bavail*uint64(st.Bsize)>>10)
	}
	return fmt.Errorf("%w: %s%s: %w", store.ErrFull, path, free, err)
}

// view runs fn in a read transaction.
func (s *Store) view(ctx context.Context, op string, fn func(tx *bolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %s: %w", op, err)
	}
	err := s.db.View(fn)
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
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("store %s: close: %w", s.path, err)
	}
	return nil
}

// key joins parts so that different sequences never collide: a zero byte inside a part becomes 0x00 0xFF, and 0x00 0x01
// ends a part. The order of keys is the order of their parts.
func key(parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p) + 2
	}
	out := make([]byte, 0, n)
	for _, p := range parts {
		for i := range len(p) {
			out = append(out, p[i])
			if p[i] == 0 {
				out = append(out, 0xFF)
			}
		}
		out = append(out, 0, 1)
	}
	return out
}

// num is n as eight bytes that sort like numbers.
func num(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// when is t as eight bytes that sort by time.
func when(t time.Time) []byte {
	if t.IsZero() {
		return num(0)
	}
	return num(uint64(t.UnixNano()) ^ 1<<63)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// put writes v as JSON.
func put(b *bolt.Bucket, k []byte, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(raw) > store.MaxValue {
		return fmt.Errorf("%w: %d bytes, at most %d", store.ErrTooLarge, len(raw), store.MaxValue)
	}
	return b.Put(k, raw)
}

// get reads JSON. A missing key is ErrNotFound.
func get[T any](b *bolt.Bucket, k []byte, what string) (T, error) {
	var v T
	raw := b.Get(k)
	if raw == nil {
		return v, fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("%s: %w", what, err)
	}
	return v, nil
}

// scan calls fn for the keys of b with the prefix, in order, until it returns false.
func scan(b *bolt.Bucket, prefix []byte, fn func(k, v []byte) (bool, error)) error {
	c := b.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if more, err := fn(k, v); err != nil || !more {
			return err
		}
	}
	return nil
}

// drop deletes keys that were collected before.
func drop(b *bolt.Bucket, keys [][]byte) error {
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
