package boltstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deerbot/store"
)

// child is what the second process does.
func child(mode, path string) int {
	s, err := Open(path, Options{})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	switch mode {
	case "hold":
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent lets go
		if err := s.Close(); err != nil {
			return 1
		}
	case "write": // until it is killed
		var out sync.Mutex
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				k := store.ConversationKey{Channel: "c", Chat: fmt.Sprint(i)}
				for n := 0; ; n++ {
					e := &store.InboxEntry{ID: newID(), Conversation: k, DedupeKey: newID(), MessageID: fmt.Sprint(n), ReceivedAt: time.Now()}
					if _, err := s.AcceptInbound(context.Background(), e); err != nil {
						fmt.Println("error:", err)
						return
					}
					out.Lock()
					fmt.Println("ack", e.ID)
					out.Unlock()
				}
			})
		}
		wg.Wait()
	}
	return 0
}

func startChild(t *testing.T, mode, path string) (*exec.Cmd, io.WriteCloser, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BOLTSTORE_TEST_CHILD="+mode, "BOLTSTORE_TEST_FILE="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, bufio.NewScanner(out)
}

// TestC180SecondProcess: a store that another process holds is refused soon, and says by whom.
func TestC180SecondProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	cmd, in, out := startChild(t, "hold", path)
	if !out.Scan() || out.Text() != "ready" {
		t.Fatalf("child says %q", out.Text())
	}
	start := time.Now()
	_, err := Open(path, Options{})
	var locked *store.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("error %v, want a LockedError", err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("refused after %v", took)
	}
	if locked.Path != path || locked.PID != cmd.Process.Pid {
		t.Errorf("held by %d at %s, want %d at %s", locked.PID, locked.Path, cmd.Process.Pid, path)
	}
	if msg := err.Error(); !strings.Contains(msg, path) || !strings.Contains(msg, fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("message %q does not name the file and the process", msg)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	openAt(t, path, Options{}) // it let go
}

// TestSecondOpen: the same within one process.
func TestSecondOpen(t *testing.T) {
	s := openNew(t, Options{})
	_, err := Open(s.path, Options{LockTimeout: 50 * time.Millisecond})
	var locked *store.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("error %v", err)
	}
}

// TestKill: what was acknowledged is there after a process was killed in the middle of writing, and the file is sound.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var acked []string
	for round := range 3 {
		cmd, _, out := startChild(t, "write", path)
		n := 0
		for out.Scan() {
			id, ok := strings.CutPrefix(out.Text(), "ack ")
			if !ok {
				t.Fatalf("child says %q", out.Text())
			}
			acked = append(acked, id)
			if n++; n == 150+50*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
	}
	s := openAt(t, path, Options{})
	for _, id := range acked {
		if _, err := s.Inbound(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d acknowledged writes", len(acked))
}
