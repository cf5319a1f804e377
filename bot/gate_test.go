package bot

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"deerbot/channels"
)

func quietGate() *gate { return newGate(time.Now, func(string, time.Time) {}) }

// A final waits for penalties and for nothing else, however many edits went before.
func TestFinalWaitsOnlyForPenalties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quietGate()
		p, pace := place("a"), channels.Pace{Gap: 3 * time.Second, PerMinute: 20, PerSecond: 1}
		for range 4 {
			if err := g.waitEdit(t.Context(), p, pace); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		for range 30 {
			if err := g.waitFinal(t.Context(), p, pace); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("finals waited %s without a penalty", d)
		}
		g.penalize(chatScope(p), 7*time.Second)
		g.penalize(chatScope(p), 2*time.Second) // a shorter one does not shorten
		if err := g.waitFinal(t.Context(), p, pace); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 7*time.Second {
			t.Errorf("a final went after %s of a penalty of 7 s", d)
		}
	})
}

// A penalty that is made longer while somebody waits holds for them too.
func TestPenaltyGrowsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quietGate()
		p := place("a")
		g.penalize(chatScope(p), 5*time.Second)
		began := time.Now()
		done := make(chan time.Duration, 2)
		go func() {
			_ = g.waitFinal(t.Context(), p, channels.Pace{})
			done <- time.Since(began)
		}()
		go func() {
			_ = g.waitEdit(t.Context(), p, channels.Pace{})
			done <- time.Since(began)
		}()
		time.Sleep(2 * time.Second)
		g.penalize(accountScope(p), 10*time.Second)
		for range 2 {
			if d := <-done; d != 12*time.Second {
				t.Errorf("went after %s, want 12 s", d)
			}
		}
	})
}

func TestPenaltyScopes(t *testing.T) {
	g := quietGate()
	a, b, topic := place("a"), place("b"), place("a")
	topic.Topic = "7"
	g.penalize(chatScope(a), time.Hour)
	if g.penalty(a) <= 0 || g.penalty(topic) <= 0 || g.penalty(b) > 0 {
		t.Error("a chat's penalty holds for the chat with its topics, and for no other")
	}
	g.penalize(accountScope(a), time.Hour)
	other := b
	other.Workspace = "elsewhere"
	if g.penalty(b) <= 0 || g.penalty(other) > 0 {
		t.Error("an account's penalty holds for all its chats, and for no other account")
	}
}

// Edits keep the gap among themselves and behind a final.
func TestEditsKeepTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quietGate()
		p, pace := place("a"), channels.Pace{Gap: time.Second}
		var at []time.Duration
		began := time.Now()
		for i := range 6 {
			if i == 3 {
				if err := g.waitFinal(t.Context(), p, pace); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.waitEdit(t.Context(), p, pace); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(began))
		}
		for i := 1; i < len(at); i++ {
			want := time.Second
			if i == 3 {
				want = 2 * time.Second // the final took a turn
			}
			if d := at[i] - at[i-1]; d != want {
				t.Errorf("edit %d came %s after the one before, want %s", i, d, want)
			}
		}
		other := place("b")
		if err := g.waitEdit(t.Context(), other, pace); err != nil || time.Since(began) != at[len(at)-1] {
			t.Errorf("another chat's edit waited, %v", err)
		}
	})
}

// In no minute are there more edits of a chat than the platform allows, and the chat is never silent for long.
func TestMinuteBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quietGate()
		p, pace := place("a"), channels.Pace{PerMinute: 20}
		var at []time.Time
		for range 100 {
			if err := g.waitEdit(t.Context(), p, pace); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Now())
		}
		for i := range at {
			n := 0
			for j := i; j < len(at) && at[j].Sub(at[i]) < time.Minute; j++ {
				n++
			}
			if n > pace.PerMinute {
				t.Fatalf("%d edits within a minute, the limit is %d", n, pace.PerMinute)
			}
			if i > 0 && at[i].Sub(at[i-1]) > 5*time.Second {
				t.Errorf("silent for %s", at[i].Sub(at[i-1]))
			}
		}
	})
}

// The account's calls a second hold over all chats.
func TestAccountBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quietGate()
		pace := channels.Pace{PerSecond: 5}
		began := time.Now()
		for i := range 55 {
			if err := g.waitEdit(t.Context(), place(string(rune('a'+i%10))), pace); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began).Round(time.Millisecond); d != 10*time.Second {
			t.Errorf("55 edits took %s, want 10 s at 5 a second after the first 5", d)
		}
	})
}

func TestPenaltiesOutliveTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := map[string]time.Time{}
		g := newGate(time.Now, func(scope string, until time.Time) { kept[scope] = until })
		p := place("a")
		g.penalize(chatScope(p), time.Minute)
		next := quietGate()
		next.restore(kept)
		began := time.Now()
		if err := next.waitFinal(t.Context(), p, channels.Pace{}); err != nil || time.Since(began) != time.Minute {
			t.Errorf("went after %s, %v; want a minute", time.Since(began), err)
		}
	})
}

func TestWaitersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quietGate()
		p := place("a")
		g.penalize(chatScope(p), time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.waitFinal(ctx, p, channels.Pace{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("final: %v", err)
		}
		if err := g.waitEdit(ctx, p, channels.Pace{Gap: time.Second}); err == nil {
			t.Error("edit: no error")
		}
	})
}
