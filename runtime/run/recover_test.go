package run

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/stream"
	"deerbot/runtime/tools"
	"deerbot/store"
)

func (w *world) recover(p Recovery) Recovered {
	w.t.Helper()
	rec, err := w.m.Recover(context.Background(), p)
	if err != nil {
		w.t.Fatalf("recover: %v", err)
	}
	return rec
}

// cut runs a run on th until its tool acts, and returns the world that a kill at that moment leaves.
func cut(t *testing.T, w *world, th string) (*world, store.Run) {
	t.Helper()
	h := newHold()
	t.Cleanup(h.release)
	w.tool("act", func(ctx context.Context, _ *tools.Env) (string, error) { return "acted", h.wait(ctx) })
	w.model("act", calls("ok", "act"))
	r := w.admit(th, "act")
	h.await(t)
	w.flushed(r.ID)
	return w.crash(), r
}

// flushed waits until the journal of a live run is on disk up to its last tool's start.
func (w *world) flushed(runID string) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if j := w.journal(runID); len(j) > 0 && is[event.ToolStarted](j[len(j)-1].Body) {
			return
		}
	}
	w.t.Fatalf("the journal of run %s is not flushed", runID)
}

func TestResume(t *testing.T) {
	old := newWorld(t)
	th := old.thread()
	w, r := cut(t, old, th)
	before := w.journal(r.ID)

	rec := w.recover(RecoverResume)
	if !slices.Equal(rec.Resumed, []string{r.ID}) || len(rec.Ended)+len(rec.Waiting) != 0 {
		t.Fatalf("recovered %+v", rec)
	}
	es := w.follow(r.ID)
	got := w.end(r.ID, store.RunSuccess)
	if got.Resumes != 1 || got.Epoch != 2 || !slices.Contains(codes(got.Stop), store.StopRecovered) {
		t.Errorf("record %+v", got)
	}

	// The journal comes first, then the new owner's events, numbered above every old cursor.
	if es[0].Seq != stream.Base(2)+1 {
		t.Errorf("first sequence %d", es[0].Seq)
	}
	if !slices.Equal(kinds(es[:len(before)]), kinds(before)) {
		t.Errorf("replayed %v\nwant     %v", kinds(es[:len(before)]), kinds(before))
	}
	started, ok := es[len(before)].Body.(event.RunStarted)
	if !ok || started.Resumed != 1 {
		t.Errorf("after the journal comes %+v", es[len(before)].Body)
	}

	// The open call has an outcome, and what was asked stands once.
	w.sound(th)
	msgs := w.messages(th)
	asked := 0
	for _, m := range msgs {
		if m.ID == "in-"+r.ID {
			asked++
		}
	}
	if asked != 1 || len(msgs) != 4 || msgs[2].Parts[0].Result.Content != agent.ResultUnknown || msgs[2].Origin != "recovery" {
		t.Errorf("history:\n%s", dump(msgs))
	}
	told := slices.ContainsFunc(es, func(e event.Event) bool {
		f, ok := e.Body.(event.ToolFinished)
		return ok && f.Unknown && f.CallID == msgs[1].Calls()[0].ID
	})
	if !told {
		t.Error("no event tells that the outcome is unknown")
	}
	// Steps count on, they do not begin again.
	if got.Totals.Steps != 2 {
		t.Errorf("steps %d", got.Totals.Steps)
	}
}

// A run that did not get to its first commit is resumed with its input.
func TestResumeBeforeFirstCommit(t *testing.T) {
	old := newWorld(t)
	h := newHold()
	defer h.release()
	old.model("wait", waits(h, "ok"))
	th := old.thread()
	r := old.admit(th, "wait")
	h.await(t)
	w := old.crash()
	w.model("wait", says("ok"))
	w.recover(RecoverResume)
	w.end(r.ID, store.RunSuccess)
	if msgs := w.messages(th); len(msgs) != 2 || msgs[0].ID != "in-"+r.ID {
		t.Errorf("history:\n%s", dump(msgs))
	}
}

func TestRecoverPolicies(t *testing.T) {
	for _, policy := range []Recovery{RecoverAsk, RecoverInterrupt} {
		t.Run(string(policy), func(t *testing.T) {
			old := newWorld(t)
			th := old.thread()
			behind := newHold()
			defer behind.release()
			w, r := cut(t, old, th)
			rec := w.recover(policy)
			if !slices.Equal(rec.Ended, []string{r.ID}) || len(rec.Resumed) != 0 {
				t.Fatalf("recovered %+v", rec)
			}
			got := w.end(r.ID, store.RunInterrupted)
			wantCodes(t, got, store.StopInterrupted)
			if got.Stop[0].Source != "recovery" || got.Stop[0].Detail == "" {
				t.Errorf("reason %+v", got.Stop[0])
			}
			w.sound(th)
			next := w.admit(th, "") // the thread is free
			w.end(next.ID, store.RunSuccess)
			w.sound(th)
		})
	}
}

// A run that never began to work is ended with its input in the thread, so that it can be asked for again.
func TestInterruptKeepsTheInput(t *testing.T) {
	old := newWorld(t)
	h := newHold()
	defer h.release()
	old.model("wait", waits(h, "ok"))
	th := old.thread()
	r := old.admit(th, "wait")
	h.await(t)
	w := old.crash()
	w.recover(RecoverInterrupt)
	w.end(r.ID, store.RunInterrupted)
	if msgs := w.messages(th); len(msgs) != 1 || msgs[0].ID != "in-"+r.ID {
		t.Errorf("history:\n%s", dump(msgs))
	}
}

func TestCancelledRunIsNotResumed(t *testing.T) {
	old := newWorld(t)
	th := old.thread()
	h := newHold()
	defer h.release()
	old.model("wait", waits(h, "ok"))
	live, waiting := old.admit(th, "wait"), old.admit(th, "")
	h.await(t)
	for _, id := range []string{live.ID, waiting.ID} {
		if err := old.db.RequestCancel(context.Background(), id, "me"); err != nil {
			t.Fatal(err)
		}
	}
	w := old.crash()
	rec := w.recover(RecoverResume)
	if len(rec.Ended) != 2 || len(rec.Resumed)+len(rec.Waiting) != 0 {
		t.Fatalf("recovered %+v", rec)
	}
	wantCodes(t, w.end(live.ID, store.RunInterrupted), store.StopUserStop)
	wantCodes(t, w.end(waiting.ID, store.RunInterrupted), store.StopUserStop)
}

func TestWaitingRunsWaitAgain(t *testing.T) {
	old := newWorld(t)
	old.slots = 1
	h := newHold()
	defer h.release()
	old.model("wait", waits(h, "ok"))
	th := old.thread()
	first := old.admit(th, "wait")
	h.await(t)
	ids := []string{old.admit(th, "").ID, old.admit(old.thread(), "").ID, old.admit(th, "").ID}
	w := old.crash()
	rec := w.recover(RecoverResume)
	if !slices.Equal(rec.Resumed, []string{first.ID}) || !slices.Equal(rec.Waiting, ids) {
		t.Fatalf("recovered %+v, want %v waiting", rec, ids)
	}
	for i, id := range ids {
		w.until(id, func(b event.Body) bool { return b == event.RunQueued{Position: i + 1} })
	}
	h.release()
	w.end(first.ID, store.RunSuccess)
	for _, id := range ids {
		w.end(id, store.RunSuccess)
	}
	w.sound(th)
}

// A run that falls with the process again and again is given up after MaxResumes.
func TestResumedTooOften(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	h := newHold()
	defer h.release()
	w.model("wait", waits(h, "ok"))
	r := w.admit(th, "wait")
	h.await(t)
	for i := 1; i <= MaxResumes; i++ {
		w = w.crash()
		again := newHold()
		defer again.release()
		w.model("wait", waits(again, "ok"))
		if rec := w.recover(RecoverResume); len(rec.Resumed) != 1 {
			t.Fatalf("start %d: %+v", i, rec)
		}
		again.await(t)
		if got := w.record(r.ID); got.Resumes != i || got.Epoch != uint64(i+1) {
			t.Fatalf("start %d: resumes %d, epoch %d", i, got.Resumes, got.Epoch)
		}
	}
	w = w.crash()
	if rec := w.recover(RecoverResume); !slices.Equal(rec.Ended, []string{r.ID}) {
		t.Fatalf("recovered %+v", rec)
	}
	wantCodes(t, w.end(r.ID, store.RunInterrupted), store.StopInterrupted)
	w.sound(th)
}

// A stop in the middle of a streamed answer keeps what people saw, and the run goes on behind it.
func TestResumeAfterPartialAnswer(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	h := newHold()
	w.model("wait", waits(h, "and the rest"))
	r := w.admit(th, "wait")
	h.await(t)
	w.restart()
	h.release()
	w.recover(RecoverResume)
	w.end(r.ID, store.RunSuccess)
	w.sound(th)
	msgs := w.messages(th)
	if last := msgs[len(msgs)-1]; last.Role != model.RoleAssistant || last.TextOf() != "partial and the rest" && last.TextOf() != "and the rest" {
		t.Errorf("history:\n%s", dump(msgs))
	}
}

// TestRestartWithManyRuns measures a start with 100 runs in flight: until each of them works again.
func TestRestartWithManyRuns(t *testing.T) {
	const n = 100
	old := newWorld(t)
	old.slots = n
	h := newHold()
	t.Cleanup(h.release)
	at := make(chan struct{}, n)
	old.tool("act", func(ctx context.Context, _ *tools.Env) (string, error) {
		at <- struct{}{}
		return "acted", h.wait(ctx)
	})
	old.model("act", calls("ok", "act"))
	var ids []string
	for range n {
		ids = append(ids, old.admit(old.thread(), "act").ID)
	}
	for range n {
		select {
		case <-at:
		case <-time.After(patience):
			t.Fatal("not all runs got to their tool")
		}
	}
	w := old.crash()
	w.model("act", waits(h, "ok")) // a model that is waited for: the run works again
	began := time.Now()
	rec := w.recover(RecoverResume)
	for _, id := range ids {
		w.until(id, func(b event.Body) bool { s, ok := b.(event.RunStarted); return ok && s.Resumed == 1 })
		w.until(id, is[event.MessageDelta])
	}
	took := time.Since(began)
	t.Logf("restart with %d runs in flight: all at work after %s", n, took)
	if len(rec.Resumed) != n {
		t.Errorf("resumed %d", len(rec.Resumed))
	}
	if took > 2*time.Second && !raceEnabled {
		t.Errorf("took %s, want below 2 s", took)
	}
	h.release()
	for _, id := range ids {
		w.end(id, store.RunSuccess)
	}
}

func TestRecoverNothing(t *testing.T) {
	w := newWorld(t)
	if rec := w.recover(RecoverResume); fmt.Sprint(rec) != fmt.Sprint(Recovered{}) {
		t.Errorf("recovered %+v", rec)
	}
}
