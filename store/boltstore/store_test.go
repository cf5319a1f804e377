package boltstore

import (
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
		return s
	}})
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
