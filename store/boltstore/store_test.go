package boltstore

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"deerbot/store"
	"deerbot/store/storetest"
)

// TestStore runs the conformance suite.
func TestStore(t *testing.T) {
	var dirs sync.Map
	storetest.Run(t, storetest.Engine{Open: func(tb testing.TB) store.Store {
		tb.Helper()
		dir, ok := dirs.Load(tb)
		if !ok {
			dir = tb.TempDir()
			dirs.Store(tb, dir)
		}
		s, err := Open(filepath.Join(dir.(string), "store.db"), Options{})
		if err != nil {
			tb.Fatal(err)
		}
		s.db.NoSync = true // nothing in the suite takes the power away
		return s
	}})
}

// TestMain is also the second process of the tests that need one.
func TestMain(m *testing.M) {
	if mode := os.Getenv("BOLTSTORE_TEST_CHILD"); mode != "" {
		os.Exit(child(mode, os.Getenv("BOLTSTORE_TEST_FILE")))
	}
	goleak.VerifyTestMain(m)
}

// openAt opens a store that the test's end closes.
func openAt(tb testing.TB, path string, o Options) *Store {
	tb.Helper()
	s, err := Open(path, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func openNew(tb testing.TB, o Options) *Store {
	tb.Helper()
	return openAt(tb, filepath.Join(tb.TempDir(), "store.db"), o)
}
