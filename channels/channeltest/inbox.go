package channeltest

import (
	"context"
	"sync"
	"testing"
	"time"

	"deerbot/channels"
)

// patience is how long the suite waits for what must happen.
const patience = 10 * time.Second

// Inbox keeps what an adapter delivers. The zero value is not ready: use NewInbox.
type Inbox struct {
	mu     sync.Mutex
	refuse func(*channels.Inbound) error
	all    []*channels.Inbound
	fresh  chan *channels.Inbound
	seen   map[string]bool
}

// NewInbox makes an inbox that takes everything.
func NewInbox() *Inbox {
	return &Inbox{fresh: make(chan *channels.Inbound, 10_000), seen: make(map[string]bool)}
}

// Refuse makes Accept fail when f returns an error; nil takes everything again.
func (b *Inbox) Refuse(f func(*channels.Inbound) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = f
}

// Accept implements channels.Inbox. Like the real one it drops what it has by (workspace, chat, EventID).
func (b *Inbox) Accept(_ context.Context, in *channels.Inbound) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		if err := b.refuse(in); err != nil {
			return err
		}
	}
	key := in.Place.Workspace + "\x00" + in.Place.Chat + "\x00" + in.EventID
	if b.seen[key] {
		return nil
	}
	b.seen[key] = true
	b.all = append(b.all, in)
	b.fresh <- in
	return nil
}

// Next is the next event; the test fails when none comes.
func (b *Inbox) Next(t testing.TB) *channels.Inbound {
	t.Helper()
	select {
	case in := <-b.fresh:
		return in
	case <-time.After(patience):
		t.Fatal("no event came")
		return nil
	}
}

// Len is the number of events taken.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}
