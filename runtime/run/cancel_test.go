package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/tools"
	"deerbot/store"
)

var errUser = agent.ErrUserStop

func (w *world) cancel(id string) {
	w.t.Helper()
	if err := w.m.Cancel(context.Background(), id, "me", errUser); err != nil {
		w.t.Errorf("cancel: %v", err)
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "done"))
	th := w.thread()
	first := w.admit(th, "wait")
	h.await(t)
	r, behind := w.admit(th, ""), w.admit(th, "")
	w.cancel(r.ID)
	rec := w.end(r.ID, store.RunInterrupted)
	wantCodes(t, rec, store.StopUserStop)
	if rec.Stop[0].Source != "me" || rec.Totals.Steps != 0 {
		t.Errorf("record %+v", rec)
	}
	es := w.follow(r.ID)
	if !is[event.RunFinished](es[len(es)-2].Body) {
		t.Errorf("events %v", kinds(es))
	}
	h.release()
	w.end(first.ID, store.RunSuccess)
	w.end(behind.ID, store.RunSuccess) // not held up by the one that is gone
}

// The store cannot end a waiting run: it goes on waiting, and the caller knows.
func TestCancelWhileWaitingFails(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "done"))
	th := w.thread()
	w.admit(th, "wait")
	h.await(t)
	r := w.admit(th, "")
	w.st.on(func(op, _ string) error { return store.ErrFull })
	if err := w.m.Cancel(context.Background(), r.ID, "me", errUser); !errors.Is(err, store.ErrFull) {
		t.Errorf("error %v", err)
	}
	w.st.on(nil)
	h.release()
	w.end(r.ID, store.RunSuccess)
}

// A cancel comes between a waiting run's turn and its claim, or while it is set up.
func TestCancelBeforeStart(t *testing.T) {
	for _, at := range []string{"admit", "claim", "load", "setup"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			th := w.thread()
			w.model("never", func(context.Context, *model.Request, func(string)) (*model.Response, error) {
				t.Error("the model was called")
				return nil, fault(model.ClassCanceled)
			})
			h, first := newHold(), store.Run{}
			w.st.on(func(op, run string) error {
				if op == at && run != first.ID {
					return h.wait(context.Background())
				}
				return nil
			})
			if at == "setup" {
				w.setup = func(ctx context.Context, _ store.Run) error { return h.wait(ctx) }
			}
			req := request(th, "never")
			if at == "claim" {
				front := newHold()
				w.model("front", waits(front, "done"))
				first = w.admit(th, "front")
				front.await(t)
				front.release()
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, _, err := w.m.Admit(context.Background(), req, store.StrategyEnqueue); err != nil {
					t.Error(err)
				}
			}()
			h.await(t)
			w.cancel(req.ID)
			h.release()
			<-done
			wantCodes(t, w.end(req.ID, store.RunInterrupted), store.StopUserStop)
			if msgs := w.messages(th); len(msgs) == 0 || msgs[len(msgs)-1].ID != "in-"+req.ID {
				t.Errorf("what was asked is not in the thread:\n%s", dump(msgs))
			}
			w.sound(th)
		})
	}
}

// A cancel was recorded for a waiting run, but its owner did not see it.
func TestCancelRequestedIsObeyedAtTheClaim(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "done"))
	th := w.thread()
	w.admit(th, "wait")
	h.await(t)
	r := w.admit(th, "")
	if err := w.db.RequestCancel(context.Background(), r.ID, "me"); err != nil {
		t.Fatal(err)
	}
	h.release()
	wantCodes(t, w.end(r.ID, store.RunInterrupted), store.StopUserStop)
}

func TestCancelMidModel(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "never"))
	th := w.thread()
	r := w.admit(th, "wait")
	h.await(t)
	w.cancel(r.ID)
	wantCodes(t, w.end(r.ID, store.RunInterrupted), store.StopUserStop)
	msgs := w.messages(th)
	if len(msgs) != 2 || msgs[1].TextOf() != "partial " {
		t.Errorf("what people saw is not in the thread:\n%s", dump(msgs))
	}
	w.sound(th)
	w.end(w.admit(th, "").ID, store.RunSuccess) // the next turn goes on behind it
	w.sound(th)
}

func TestCancelMidTool(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.tool("quick", func(context.Context, *tools.Env) (string, error) { return "quick result", nil })
	w.tool("slow", func(ctx context.Context, _ *tools.Env) (string, error) { return "", h.wait(ctx) })
	w.model("tools", calls("never", "quick", "slow", "quick"))
	th := w.thread()
	r := w.admit(th, "tools")
	h.await(t)
	w.cancel(r.ID)
	wantCodes(t, w.end(r.ID, store.RunInterrupted), store.StopUserStop)
	w.sound(th)
	msgs := w.messages(th)
	var got []string
	for _, p := range msgs[len(msgs)-1].Parts {
		got = append(got, p.Result.Content)
	}
	if want := []string{"quick result", agent.ResultCancelled, agent.ResultCancelled}; !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
}

// A cancel comes while the step is written, between the answer and its tools: no tool acts, and the calls are answered.
func TestCancelMidCommit(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.tool("act", func(context.Context, *tools.Env) (string, error) {
		t.Error("the tool acted")
		return "", nil
	})
	w.model("tools", calls("never", "act", "act"))
	w.st.on(func(op, _ string) error {
		if op == "write" {
			return h.wait(context.Background())
		}
		return nil
	})
	th := w.thread()
	r := w.admit(th, "tools")
	h.await(t)
	w.cancel(r.ID)
	h.release()
	wantCodes(t, w.end(r.ID, store.RunInterrupted), store.StopUserStop)
	w.sound(th)
	msgs := w.messages(th)
	for _, p := range msgs[len(msgs)-1].Parts {
		if p.Result == nil || p.Result.Content != agent.ResultCancelled {
			t.Errorf("history:\n%s", dump(msgs))
		}
	}
}

// A tool that does not listen is left behind.
func TestCancelMidStubbornTool(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	defer h.release()
	w.tool("deaf", func(context.Context, *tools.Env) (string, error) {
		return "late", h.wait(context.Background())
	})
	w.model("tools", calls("never", "deaf"))
	th := w.thread()
	r := w.admit(th, "tools")
	h.await(t)
	began := time.Now()
	w.cancel(r.ID)
	w.end(r.ID, store.RunInterrupted)
	if d := time.Since(began); d > 300*time.Millisecond && !raceEnabled {
		t.Errorf("took %s", d)
	}
	w.sound(th)
	next := w.admit(th, "")
	w.end(next.ID, store.RunSuccess)
	h.release()
	for _, m := range w.messages(th) {
		for _, p := range m.Parts {
			if p.Result != nil && strings.Contains(p.Result.Content, "late") {
				t.Error("the result that came too late is in the thread")
			}
		}
	}
}

func TestCancelAfterEnd(t *testing.T) {
	w := newWorld(t)
	r := w.admit(w.thread(), "")
	before := w.end(r.ID, store.RunSuccess)
	w.cancel(r.ID)
	w.cancel(r.ID)
	after := w.record(r.ID)
	if after.State != before.State || after.CancelRequested != "" || len(after.Stop) != len(before.Stop) {
		t.Errorf("an ended run changed: %+v", after)
	}
}

func TestCancelUnknown(t *testing.T) {
	w := newWorld(t)
	if err := w.m.Cancel(context.Background(), newID(), "me", errUser); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// The disk is full: a person's stop works all the same.
func TestCancelWithoutDisk(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "never"))
	r := w.admit(w.thread(), "wait")
	h.await(t)
	w.st.on(func(op, _ string) error {
		if op == "request cancel" {
			return store.ErrFull
		}
		return nil
	})
	w.cancel(r.ID)
	w.end(r.ID, store.RunInterrupted)
}

// Another process, or an earlier call, recorded the wish: the owner obeys at its next heartbeat.
func TestCancelByRecord(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "never"))
	r := w.admit(w.thread(), "wait")
	h.await(t)
	if err := w.db.RequestCancel(context.Background(), r.ID, "somebody"); err != nil {
		t.Fatal(err)
	}
	w.m.renew(context.Background())
	wantCodes(t, w.end(r.ID, store.RunInterrupted), store.StopUserStop)
}

// TestCancelLatency tells how long a cancel takes to the durable terminal state, for a tool that obeys its context and
// for one that does not.
func TestCancelLatency(t *testing.T) {
	if raceEnabled {
		t.Skip("figures are of no use with the race detector")
	}
	for _, c := range []struct {
		name  string
		bound time.Duration
		n     int
		deaf  bool
	}{{"polite", 100 * time.Millisecond, 60, false}, {"stubborn", 300 * time.Millisecond, 20, true}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var took []time.Duration
			for range c.n {
				h := newHold()
				w.mu.Lock()
				w.tools = nil
				w.mu.Unlock()
				w.tool("t", func(ctx context.Context, _ *tools.Env) (string, error) {
					if c.deaf {
						ctx = context.Background()
					}
					return "", h.wait(ctx)
				})
				w.model("tools", calls("never", "t"))
				r := w.admit(w.thread(), "tools")
				h.await(t)
				began := time.Now()
				w.cancel(r.ID)
				w.end(r.ID, store.RunInterrupted)
				took = append(took, time.Since(began))
				h.release()
			}
			slices.Sort(took)
			p50, p99 := took[len(took)/2], took[len(took)*99/100]
			t.Logf("cancel to terminal state, %s tool: p50 %s, p99 %s", c.name, p50, p99)
			if p50 > c.bound {
				t.Errorf("p50 %s, want below %s", p50, c.bound)
			}
		})
	}
}
