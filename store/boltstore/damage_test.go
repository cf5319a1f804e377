package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	bolt "go.etcd.io/bbolt"

	"deerbot/store"
)

// filled makes a file with some pages, and gives its bytes.
func filled(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.update(t.Context(), "fill", func(tx *txn) error {
		for i := range 150 {
			v := bytes.Repeat([]byte{byte(i)}, 100+i%300)
			if err := errors.Join(tx.Bucket(bUser).Put(fmt.Appendf(nil, "user%06d", i), v), tx.Bucket(bMeta).Put(fmt.Appendf(nil, "k%d", i), v)); err != nil {
				return err
			}
		}
		return tx.Bucket(bChat).Put([]byte("big"), make([]byte, 20<<10))
	}); err != nil {
		t.Fatal(err)
	}
	size := 0
	_ = s.view(t.Context(), "size", func(tx *txn) error { size = int(tx.Size()); return nil })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw[:size]
}

// use reads and writes a store that a damaged file gave.
func use(t *testing.T, s *Store) {
	t.Helper()
	_ = s.Check(t.Context())
	_, _ = s.Conversations(t.Context(), "", "", 1000)
	_, _ = s.LiveRuns(t.Context())
	for i := range 4 {
		_ = s.PutUser(t.Context(), &store.User{ID: fmt.Sprint(i)})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestC185Damaged: a damaged file is told, never a panic or a crash.
func TestC185Damaged(t *testing.T) {
	good := filled(t)
	page := os.Getpagesize()
	cases := map[string]struct {
		spoil func(b []byte) []byte
		fine  bool // it may open
	}{
		"both metas garbage": {func(b []byte) []byte {
			for i := range 2 * page {
				b[i] = byte(i * 7)
			}
			return b
		}, false},
		"newer meta garbage": {func(b []byte) []byte { clear(b[:page]); return b }, true},
		"older meta garbage": {func(b []byte) []byte { clear(b[page : 2*page]); return b }, true},
		"60 percent":         {func(b []byte) []byte { return b[:len(b)*6/10] }, false},
		"one page":           {func(b []byte) []byte { return b[:page] }, false},
		"three bytes":        {func(b []byte) []byte { return b[:3] }, false},
		"text":               {func([]byte) []byte { return []byte("this is no store at all, but some notes\n") }, false},
		"zeroed half":        {func(b []byte) []byte { clear(b[len(b)/2/page*page:]); return b }, false},
		"empty":              {func([]byte) []byte { return nil }, true},
	}
	for i := 2; i < len(good)/page; i++ {
		cases[fmt.Sprintf("page %d zeroed", i)] = struct {
			spoil func(b []byte) []byte
			fine  bool
		}{func(b []byte) []byte { clear(b[i*page : (i+1)*page]); return b }, true}
		cases[fmt.Sprintf("page %d garbage", i)] = struct {
			spoil func(b []byte) []byte
			fine  bool
		}{func(b []byte) []byte {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			for j := range page - 8 { // all but its id
				b[i*page+8+j] = byte(rnd.Uint32())
			}
			return b
		}, true}
	}
	dir, bad := t.TempDir(), 0
	for name, c := range cases {
		raw := c.spoil(bytes.Clone(good))
		path := filepath.Join(dir, "store.db")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path, Options{})
		if err == nil {
			if !c.fine {
				t.Errorf("%s: opened", name)
			}
			use(t, s)
			continue
		}
		bad++
		var damaged *DamagedError
		if !errors.As(err, &damaged) || damaged.Path != path {
			t.Errorf("%s: error %v, want a DamagedError", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, raw) {
			t.Errorf("%s: the file was changed", name)
		}
		// Nothing holds the file, so it can be moved aside.
		if err := os.Rename(path, path+".corrupt"); err != nil {
			t.Fatal(err)
		}
		use(t, openAt(t, path, Options{}))
	}
	if bad < 20 {
		t.Errorf("only %d of %d damages were noticed", bad, len(cases))
	}
}

// TestLosePage: a file that becomes shorter under the running store gives errors, not the end of the process.
func TestLosePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, filled(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, path, Options{})
	if err := os.Truncate(path, 2*int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := s.User(t.Context(), "user000001"); !errors.As(err, &damaged) {
		t.Errorf("read: %v", err)
	}
	if err := s.PutUser(t.Context(), &store.User{ID: "user000001"}); err == nil {
		t.Error("a write succeeded")
	}
}

func TestNewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.update(t.Context(), "age", func(tx *txn) error {
		return tx.Bucket(bMeta).Put(kSchema, []byte(strconv.Itoa(Schema+1)))
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, Options{})
	if err == nil {
		t.Fatal("opened")
	}
	if _, ok := errors.AsType[*DamagedError](err); ok {
		t.Fatalf("a newer file is not a damaged one: %v", err)
	}
}

// TestMigrationRunsOnce: a file is brought to the present layout once, and a failing migration leaves it as it was.
func TestMigrationRunsOnce(t *testing.T) {
	runs, fail := 0, true
	first := migrations[0]
	migrations[0] = func(tx *bolt.Tx) error {
		runs++
		return errors.Join(first(tx), map[bool]error{true: errors.New("no")}[fail])
	}
	t.Cleanup(func() { migrations[0] = first })
	path := filepath.Join(t.TempDir(), "store.db")
	if _, err := Open(path, Options{}); err == nil {
		t.Fatal("opened without its migration")
	}
	fail = false
	for range 3 {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if runs != 2 {
		t.Errorf("migration ran %d times, want 2", runs)
	}
}
