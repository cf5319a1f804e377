package boltstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deerbot/store"
)

// fill writes records of 64 KiB until the store says that it is full, and gives how many it took.
func fill(t *testing.T, s *Store, prefix string) int {
	t.Helper()
	body := make([]byte, 64<<10)
	for i := range body {
		body[i] = '1'
	}
	for i := range 100000 {
		_, _, err := s.PutOutgoing(t.Context(), &store.Outgoing{
			Key: fmt.Sprintf("%s%06d", prefix, i), State: store.DeliverySent, Body: body, UpdatedAt: time.Unix(int64(i), 0),
		})
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrFull) {
			t.Fatalf("error %v, want ErrFull", err)
		}
		if !strings.Contains(err.Error(), s.path) {
			t.Errorf("message %q does not name the file", err)
		}
		return i
	}
	t.Fatal("it never was full")
	return 0
}

// whole checks that a store holds the first n records of fill and is sound.
func whole(t *testing.T, s *Store, prefix string, from, n int) {
	t.Helper()
	for i := from; i < n; i++ {
		if _, err := s.Outgoing(t.Context(), fmt.Sprintf("%s%06d", prefix, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestC188MaxSize: a full store refuses writes, reads on, takes deletions, and takes writes again when there is room.
func TestC188MaxSize(t *testing.T) {
	s := openNew(t, Options{MaxSize: 48 << 20})
	n := fill(t, s, "a")
	if n < 100 {
		t.Fatalf("full after %d", n)
	}
	whole(t, s, "a", 0, n)
	if fi, err := os.Stat(s.path); err != nil || fi.Size() > 48<<20 {
		t.Errorf("file has %d bytes, %v", fi.Size(), err)
	}
	if got, err := s.PruneOutgoing(t.Context(), time.Unix(int64(n/2), 0)); err != nil || got != n/2 {
		t.Fatalf("pruned %d, %v", got, err)
	}
	if m := fill(t, s, "b"); m < n/4 {
		t.Errorf("took %d after %d were removed", m, n/2)
	}
	whole(t, s, "a", n/2, n)
}

// TestC188DiskFull: the same on a disk without room; nothing sticks once there is room (C187: nor is anything torn).
func TestC188DiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Join(dir, "store.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := fill(t, s, "a")
	for range 3 { // it goes on saying so
		if err := s.PutUser(t.Context(), &store.User{ID: "u", Name: strings.Repeat("x", 1<<20)}); !errors.Is(err, store.ErrFull) {
			t.Fatalf("error %v, want ErrFull", err)
		}
	}
	if _, err := s.Outgoing(t.Context(), "a000000"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.PutUser(t.Context(), &store.User{ID: "u", Name: "after"}); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	whole(t, s, "a", 0, n)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(s.path, Options{}); err != nil {
		t.Fatal(err)
	}
	whole(t, s, "a", 0, n)
	if u, err := s.User(t.Context(), "u"); err != nil || u.Name != "after" {
		t.Errorf("user %+v, %v", u, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
