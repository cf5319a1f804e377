package boltstore

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"deerbot/store"
)

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func openBench(tb testing.TB) *Store {
	tb.Helper()
	s, err := Open(filepath.Join(tb.TempDir(), "store.db"), Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// talk is a conversation that a benchmark takes turns in.
type talk struct {
	key    store.ConversationKey
	thread string
	head   string
	n      int
}

func newTalk(ctx context.Context, s *Store, i int) (*talk, error) {
	t := &talk{key: store.ConversationKey{Channel: "telegram", Workspace: "7123456789", Chat: fmt.Sprint(-1001000000 - i)}, thread: newID()}
	return t, s.PutConversation(ctx, &store.Conversation{Key: t.key, ThreadID: t.thread, UpdatedAt: time.Now()})
}

var (
	message = json.RawMessage(`{"role":"user","content":[{"type":"text","text":"what is the weather like in the mountains today? say it short."}],"name":"Ada"}`)
	data    = json.RawMessage(`{"step":1,"tool":"web_search","arguments":{"query":"weather in the mountains"},"result":"sunny, 21 degrees, light wind from the west"}`)
)

// turn is what one message costs the store.
func (t *talk) turn(ctx context.Context, s *Store) error {
	t.n++
	now := time.Now().UTC()
	e := &store.InboxEntry{
		ID: newID(), Conversation: t.key, DedupeKey: fmt.Sprint("m", t.n), MessageID: fmt.Sprint(t.n), Payload: message, ReceivedAt: now,
	}
	if _, err := s.AcceptInbound(ctx, e); err != nil {
		return err
	}
	r, _, err := s.AdmitRun(ctx, &store.Run{
		ID: newID(), ThreadID: t.thread, IdempotencyKey: e.ID, State: store.RunRunning, Origin: "chat", Input: message, Meta: data,
		Owner: "owner", Epoch: 1, LeaseUntil: now.Add(30 * time.Second), CreatedAt: now, StartedAt: now,
	}, store.StrategyEnqueue)
	if err != nil {
		return err
	}
	if err := s.TakeInbound(ctx, r.ID, e.ID); err != nil {
		return err
	}
	if err := s.WriteRun(ctx, t.write(r)); err != nil {
		return err
	}
	o := &store.Outgoing{
		Key: "run/" + r.ID + "/final", Conversation: t.key, RunID: r.ID, Kind: "final", State: store.DeliverySending, Body: message,
		Parts: []store.OutgoingPart{{State: store.DeliveryPending}}, Settles: []string{e.ID}, CreatedAt: now, UpdatedAt: now,
	}
	if _, _, err := s.PutOutgoing(ctx, o); err != nil {
		return err
	}
	o.State, o.UpdatedAt = store.DeliverySent, time.Now().UTC()
	o.Parts[0] = store.OutgoingPart{MessageID: fmt.Sprint("r", t.n), State: store.DeliverySent, Hash: "abcdef0123456789"}
	return s.UpdateOutgoing(ctx, o)
}

// write ends a run as a turn of one step does.
func (t *talk) write(r store.Run) *store.RunWrite {
	now := time.Now().UTC()
	w := &store.RunWrite{
		RunID: r.ID, Epoch: r.Epoch, To: store.RunSuccess, At: now, Totals: &store.Totals{Steps: 1, InputTokens: 900, OutputTokens: 40},
		Checkpoint: &store.Checkpoint{
			ID: newID(), Parent: t.head, RunID: r.ID, Step: 1, Messages: []json.RawMessage{message, message},
			State: map[string]json.RawMessage{"todo": data}, CreatedAt: now,
		},
		Stop: []store.StopReason{{Code: store.StopCompleted, Source: "loop", Step: 1, At: now}},
		Usage: []store.UsageRow{{
			ID: newID(), RunID: r.ID, ThreadID: r.ThreadID, Step: 1, Provider: "openai", Model: "gpt", Conversation: t.key, InputTokens: 900,
			OutputTokens: 40, At: now,
		}},
	}
	for i := range 8 {
		w.Events = append(w.Events, store.JournalEvent{RunID: r.ID, Seq: r.JournalSeq + uint64(i) + 1, At: now, Kind: "tool.finished", Data: data})
	}
	t.head = w.Checkpoint.ID
	return w
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkTurn(b *testing.B) {
	for _, parallel := range []int{1, 200} {
		b.Run(fmt.Sprint("chats=", parallel), func(b *testing.B) {
			s, ctx := openBench(b), b.Context()
			talks := make([]*talk, parallel)
			for i := range talks {
				t, err := newTalk(ctx, s, i)
				if err != nil {
					b.Fatal(err)
				}
				talks[i] = t
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime()
			for _, t := range talks {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := t.turn(ctx, s); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
			b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-µs/turn")
		})
	}
}

func BenchmarkAcceptInbound(b *testing.B) {
	s, ctx := openBench(b), b.Context()
	t, err := newTalk(ctx, s, 1)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		e := &store.InboxEntry{ID: newID(), Conversation: t.key, DedupeKey: fmt.Sprint(i), MessageID: fmt.Sprint(i), Payload: message, ReceivedAt: time.Now()}
		if _, err := s.AcceptInbound(ctx, e); err != nil {
			b.Fatal(err)
		}
	}
}
