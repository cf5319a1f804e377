package boltstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"deerbot/store"
)

func sizedEntry(id, chat string, n int) *store.InboxEntry {
	return &store.InboxEntry{
		ID: id, Conversation: store.ConversationKey{Channel: "telegram", Chat: chat}, DedupeKey: id, ReceivedAt: time.Now(),
		Payload: json.RawMessage(`"` + strings.Repeat("x", n) + `"`),
	}
}

func openSized(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A commit that meets a damaged neighbour page (rebalance) must not end the process: DB.Update's deferred rollback walks the
// file in a goroutine of bbolt's, where its panic cannot be recovered.
func TestC185DamageMetInsideCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := openSized(t, path, Options{})
	for i := range 400 {
		id := fmt.Sprintf("%04d", i)
		c := &store.Conversation{Key: store.ConversationKey{Channel: "c", Chat: id}, ThreadID: id, Title: strings.Repeat("x", 300)}
		if err := s.PutConversation(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fi, _ := f.Stat()
	prefix := func(chat string) []byte { k := key("c", "", chat); return k[:len(k)-2] }
	for at, buf := int64(8192), make([]byte, 4096); at < fi.Size(); at += 4096 {
		_, _ = f.ReadAt(buf, at)
		if bytes.Contains(buf, prefix("0")) && !bytes.Contains(buf, prefix("0000")) {
			_, _ = f.WriteAt(make([]byte, 4096), at)
		}
	}
	_ = f.Close()
	var damaged *DamagedError
	for i := range 12 {
		if err := s.MoveChat(t.Context(), "c", "", fmt.Sprintf("%04d", i), "00000"); errors.As(err, &damaged) {
			return
		}
	}
	t.Error("no write met the damage")
}

// A value that does not fit must not take the small writes of its group with it.
func TestLargeWriteBesideSmallOne(t *testing.T) {
	s := openSized(t, filepath.Join(t.TempDir(), "s.db"), Options{MaxSize: 4 << 20})
	entered, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	held := make(chan error, 1)
	go func() {
		held <- s.update(t.Context(), "hold", func(*txn) error { once.Do(func() { close(entered) }); <-gate; return nil })
	}()
	<-entered
	large, small := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.AcceptInbound(t.Context(), sizedEntry("large", "1", 6<<20)); large <- err }()
	for len(s.queue) < 1 {
		runtime.Gosched()
	}
	go func() { _, err := s.AcceptInbound(t.Context(), sizedEntry("small", "1", 10)); small <- err }()
	for len(s.queue) < 2 {
		runtime.Gosched()
	}
	close(gate)
	if err := errors.Join(<-held, <-small); err != nil {
		t.Errorf("small: %v", err)
	}
	if err := <-large; !errors.Is(err, store.ErrFull) {
		t.Errorf("large: %v", err)
	}
}

// Telegram's dedupe key is the message id, which begins anew in the supergroup: a moved key swallows a new message.
func TestC113NewMessageAfterMove(t *testing.T) {
	s := openSized(t, filepath.Join(t.TempDir(), "s.db"), Options{})
	old, fresh := sizedEntry("a", "-123", 1), sizedEntry("b", "-100123", 1)
	old.DedupeKey, fresh.DedupeKey = "17", "17"
	if _, err := s.AcceptInbound(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := s.MoveChat(t.Context(), "telegram", "", "-123", "-100123"); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.AcceptInbound(t.Context(), fresh); !ok || err != nil {
		t.Errorf("message 17 of the new chat: accepted %v, %v", ok, err)
	}
}

// A sender that read its record before the move must not move it back.
func TestC113StaleUpdateAfterMove(t *testing.T) {
	s := openSized(t, filepath.Join(t.TempDir(), "s.db"), Options{})
	o := &store.Outgoing{Key: "k", Conversation: store.ConversationKey{Channel: "telegram", Chat: "-123"}, State: store.DeliverySending}
	if _, _, err := s.PutOutgoing(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := s.MoveChat(t.Context(), "telegram", "", "-123", "-100123"); err != nil {
		t.Fatal(err)
	}
	o.State = store.DeliveryFailed
	if err := s.UpdateOutgoing(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Outgoing(t.Context(), "k"); err != nil || got.Conversation.Chat != "-100123" {
		t.Errorf("the record is in chat %q, %v", got.Conversation.Chat, err)
	}
}
