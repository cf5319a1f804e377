package stream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"deerbot/runtime/event"
	"deerbot/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func delta(run, text string) event.Event {
	return event.Event{Run: run, Body: event.MessageDelta{Text: text}}
}

func end(run string) event.Event {
	return event.Event{Run: run, Body: event.End{State: store.RunSuccess}}
}

// poll reads what a subscriber gets now, without waiting for more.
func poll(m *Memory, run string, after uint64) (out []event.Event, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for e, serr := range m.Subscribe(ctx, run, after) {
		if serr != nil {
			if errors.Is(serr, context.Canceled) {
				serr = nil
			}
			return out, serr
		}
		out = append(out, e)
	}
	return out, nil
}

func seqs(es []event.Event) (out []uint64) {
	for _, e := range es {
		out = append(out, e.Seq)
	}
	return out
}

func TestReplayFromAnyCursor(t *testing.T) {
	m := NewMemory(time.Now)
	m.Open("r", 0)
	for range 5 {
		m.Publish(delta("r", "x"))
	}
	m.Publish(end("r"))
	for after := range uint64(9) {
		got, err := poll(m, "r", after)
		if err != nil {
			t.Fatal(err)
		}
		want := 6 - int(min(after, 5)) // a cursor at or past the end still gets the end
		if len(got) != want || got[len(got)-1].Body != (event.End{State: store.RunSuccess}) {
			t.Errorf("after %d: got %v", after, seqs(got))
		}
	}
}

// A reader that comes back with the cursor of the end must be told so, not kept waiting for ever.
func TestCursorAtEndDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(time.Now)
		m.Open("r", 0)
		m.Publish(end("r"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n := 0
		for e, err := range m.Subscribe(ctx, "r", 1) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.Body.(event.End); !ok {
				t.Fatalf("got %s", e.Body.Kind())
			}
			n++
		}
		if n != 1 {
			t.Errorf("got %d ends", n)
		}
	})
}

func TestCursorAheadReadsAll(t *testing.T) {
	m := NewMemory(time.Now)
	m.Open("r", 0)
	m.Publish(delta("r", "a"))
	if got, _ := poll(m, "r", 1<<40); len(got) != 1 {
		t.Errorf("got %v, want the whole log", seqs(got))
	}
}

// A resumed run is published in a higher range. Cursors of the earlier owner are behind it.
func TestResumedRun(t *testing.T) {
	m := NewMemory(time.Now)
	base := Base(3)
	m.Open("r", base)
	m.Open("r", 0) // no-op
	m.Publish(delta("r", "a"))
	m.Publish(delta("r", "b"))

	got, err := poll(m, "r", 0)
	if err != nil || len(got) != 2 || got[0].Seq != base+1 {
		t.Errorf("a new reader got %v, %v; want everything and no gap", seqs(got), err)
	}
	for _, old := range []uint64{7, Base(2), Base(2) + 12} {
		got, _ := poll(m, "r", old)
		if len(got) != 3 || got[0].Body != (event.Gap{From: old + 1, To: base}) || got[1].Seq != base+1 {
			t.Errorf("the old cursor %d got %+v, want one gap and everything", old, got)
		}
	}
	if got, _ := poll(m, "r", base+1); len(got) != 1 || got[0].Seq != base+2 {
		t.Errorf("a cursor of this owner got %v", seqs(got))
	}
	for epoch := uint64(1); epoch < 5; epoch++ {
		if Base(epoch) >= Base(epoch+1) {
			t.Errorf("Base(%d) is not below Base(%d)", epoch, epoch+1)
		}
	}
	if Base(0) != 0 || Base(1) != 0 {
		t.Error("the first owner begins at 0")
	}
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(time.Now)
		m.Open("r", 0)
		m.Publish(delta("r", "a"))
		start := time.Now()
		go func() {
			time.Sleep(Heartbeat + 5*time.Second) // a publication starts the wait anew
			m.Publish(delta("r", "b"))
			time.Sleep(2*Heartbeat + time.Second)
			m.Publish(end("r"))
		}()
		var at []time.Duration
		for e, err := range m.Subscribe(t.Context(), "r", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := e.Body.(event.Heartbeat); ok {
				at = append(at, time.Since(start))
				if e.Seq == 0 || e.Run != "r" {
					t.Errorf("heartbeat %+v does not repeat the cursor", e)
				}
			}
		}
		want := []time.Duration{15 * time.Second, 35 * time.Second, 50 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("heartbeats at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("heartbeats at %v, want %v", at, want)
			}
		}
	})
}

func TestRetention(t *testing.T) {
	now := time.Unix(1000, 0)
	m := NewMemory(func() time.Time { return now })
	m.Open("r", 0)
	m.Publish(end("r"))
	m.Publish(end("r")) // ignored: it must not count as a second log

	now = now.Add(Keep)
	if got, err := poll(m, "r", 0); err != nil || len(got) != 1 {
		t.Fatalf("at %s after End: %v, %v", Keep, got, err)
	}
	now = now.Add(time.Second)
	if _, err := poll(m, "r", 0); !errors.Is(err, ErrUnknown) {
		t.Errorf("after %s the log is still there: %v", Keep, err)
	}
	if m.Len() != 0 || len(m.ended) != 0 {
		t.Errorf("kept %d logs, %d marks", m.Len(), len(m.ended))
	}
}

func TestEndedLogsAreBounded(t *testing.T) {
	m := NewMemory(time.Now)
	for i := range maxEnded + 100 {
		id := strings.Repeat("r", i+1)
		m.Open(id, 0)
		m.Publish(end(id))
	}
	if m.Len() > maxEnded {
		t.Errorf("kept %d ended logs, want at most %d", m.Len(), maxEnded)
	}
}

func TestPublishElsewhere(t *testing.T) {
	m := NewMemory(time.Now)
	m.Publish(delta("nobody", "x"))
	if _, err := poll(m, "nobody", 0); !errors.Is(err, ErrUnknown) {
		t.Errorf("a run that was never opened: %v", err)
	}
	m.Open("r", 0)
	m.Publish(end("r"))
	m.Publish(delta("r", "late"))
	if got, _ := poll(m, "r", 0); len(got) != 1 {
		t.Errorf("after End: got %v", seqs(got))
	}
}

// A subscriber that does not read holds nothing up and makes nothing grow.
func TestSlowSubscriberCostsNothing(t *testing.T) {
	m := NewMemory(time.Now)
	m.Open("r", 0)
	m.Publish(delta("r", "first"))
	stuck, release := make(chan struct{}), make(chan struct{})
	var got []event.Event
	var wg sync.WaitGroup
	wg.Go(func() {
		for e, err := range m.Subscribe(context.Background(), "r", 0) {
			if err != nil {
				t.Error(err)
				return
			}
			if len(got) == 0 {
				close(stuck)
				<-release
			}
			got = append(got, e)
		}
	})
	<-stuck
	for range 3 * MaxEvents {
		m.Publish(delta("r", "more"))
	}
	l := m.logs["r"]
	l.mu.Lock()
	if len(l.events) > MaxEvents || cap(l.events) > 8*MaxEvents {
		t.Errorf("%d events kept in room for %d", len(l.events), cap(l.events))
	}
	l.mu.Unlock()
	m.Publish(end("r"))
	close(release)
	wg.Wait()
	check(t, got, 0, 3*MaxEvents+2)
	if _, ok := got[1].Body.(event.Gap); !ok {
		t.Errorf("second event is %s, want the gap", got[1].Body.Kind())
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check holds a subscriber's events against what was published: 1..last, End being the last.
func check(t fataler, got []event.Event, after, last uint64) {
	t.Helper()
	at, ended := after, false
	for i, e := range got {
		if ended {
			t.Fatalf("event %d (%s) comes after End", i, e.Body.Kind())
		}
		switch b := e.Body.(type) {
		case event.Gap:
			if b.From != at+1 || b.To < b.From {
				t.Fatalf("gap %+v at cursor %d", b, at)
			}
			if i > 0 {
				if _, twice := got[i-1].Body.(event.Gap); twice {
					t.Fatalf("two gaps in a row at %d", at)
				}
			}
			at = b.To
		case event.Heartbeat:
		default:
			if e.Seq != at+1 {
				t.Fatalf("sequence %d at cursor %d", e.Seq, at)
			}
			at = e.Seq
			_, ended = b.(event.End)
		}
	}
	if last > 0 && (!ended || at != last) {
		t.Fatalf("stopped at %d of %d, End %t", at, last, ended)
	}
}

// TestLogProperty: whatever is published and dropped, a subscriber at any cursor gets every retained event once and in
// order, a gap exactly when something between is gone, and one End, last.
func TestLogProperty(t *testing.T) {
	big := []string{strings.Repeat("x", 300<<10), strings.Repeat("x", 1<<20), strings.Repeat("x", MaxBytes+1)}
	rapid.Check(t, func(t *rapid.T) {
		m := NewMemory(time.Now)
		epoch := rapid.Uint64Range(1, 4).Draw(t, "epoch")
		base := Base(epoch)
		m.Open("r", base)
		last, ended := base, false
		cursors := map[int]uint64{} // of readers that come back
		read := func(after uint64) uint64 {
			l := m.logs["r"]
			first := l.next - uint64(len(l.events))
			got, err := poll(m, "r", after)
			if err != nil {
				t.Fatalf("subscribe: %v", err)
			}
			gap := false
			if len(got) > 0 {
				_, gap = got[0].Body.(event.Gap)
			}
			lost := after+1 < first && (after >= base || after > 0 || first > base+1)
			if gap != lost {
				t.Fatalf("cursor %d, first kept %d, base %d: gap %t", after, first, base, gap)
			}
			from := after
			if after == 0 && !gap {
				from = base
			}
			switch {
			case ended && after >= last:
				if len(got) != 1 {
					t.Fatalf("cursor %d past the end %d got %v", after, last, seqs(got))
				}
			case ended:
				check(t, got, from, last)
			default:
				check(t, got, from, 0)
				if n := len(got); n > 0 && got[n-1].Seq != last {
					t.Fatalf("reader at %d stopped at %d of %d", after, got[n-1].Seq, last)
				}
			}
			return last
		}
		t.Repeat(map[string]func(*rapid.T){
			"few": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					m.Publish(delta("r", "small"))
					if !ended {
						last++
					}
				}
			},
			"many": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{MaxEvents - 1, MaxEvents, MaxEvents + 1}).Draw(t, "n") {
					m.Publish(event.Event{Run: "r", Body: event.StepStarted{}})
					if !ended {
						last++
					}
				}
			},
			"big": func(t *rapid.T) {
				m.Publish(delta("r", rapid.SampledFrom(big).Draw(t, "text")))
				if !ended {
					last++
				}
			},
			"end": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
					m.Publish(end("r"))
					if !ended {
						last, ended = last+1, true
					}
				}
			},
			"read": func(t *rapid.T) {
				read(rapid.OneOf(
					rapid.Just(uint64(0)), rapid.Uint64Range(base, last), rapid.Uint64Range(0, base),
				).Draw(t, "after"))
			},
			"come back": func(t *rapid.T) {
				who := rapid.IntRange(0, 2).Draw(t, "who")
				cursors[who] = read(cursors[who])
			},
			"": func(t *rapid.T) {
				l := m.logs["r"]
				if len(l.events) > MaxEvents || (l.bytes > MaxBytes && len(l.events) > 1) {
					t.Fatalf("the log holds %d events, %d bytes", len(l.events), l.bytes)
				}
				sum := 0
				for i, e := range l.events {
					if sizeOf(e.Body) != l.sizes[i] {
						t.Fatalf("size %d of event %d", l.sizes[i], i)
					}
					sum += l.sizes[i]
				}
				if sum != l.bytes {
					t.Fatalf("bytes %d, sum %d", l.bytes, sum)
				}
			},
		})
	})
}

// Many readers at once, none the same speed.
func TestConcurrentReaders(t *testing.T) {
	m := NewMemory(time.Now)
	m.Open("r", 0)
	const n = 2*MaxEvents + 500
	var wg sync.WaitGroup
	for after := range uint64(8) {
		wg.Go(func() {
			var got []event.Event
			for e, err := range m.Subscribe(context.Background(), "r", 0) {
				if err != nil {
					t.Error(err)
					return
				}
				got = append(got, e)
				if len(got)%(int(after)*50+1) == 0 {
					m.Len() // go through the bridge's lock like everybody
				}
			}
			check(t, got, 0, n+1)
		})
	}
	wg.Go(func() {
		for range n {
			m.Publish(delta("r", "x"))
		}
		m.Publish(end("r"))
	})
	wg.Wait()
}

func TestSubscriberLeaves(t *testing.T) {
	m := NewMemory(time.Now)
	m.Open("r", 0)
	m.Publish(delta("r", "a"))
	for range m.Subscribe(context.Background(), "r", 0) {
		break
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("gone"))
	var last error
	for _, err := range m.Subscribe(ctx, "r", 1) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("error %v", last)
	}
}
