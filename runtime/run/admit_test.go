package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/store"
)

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Fatal("an empty config is taken")
	}
}

func TestRunToItsEnd(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	r := w.admit(th, "")
	got := w.follow(r.ID)
	want := []string{
		"run.started", "title.updated", "step.started", "message.delta", "usage.updated", "message.completed", "step.finished",
		"run.finished", "end",
	}
	if !slices.Equal(kinds(got), want) {
		t.Errorf("events %v\nwant   %v", kinds(got), want)
	}
	rec := w.record(r.ID)
	if rec.State != store.RunSuccess || rec.Totals.Steps != 1 || rec.Totals.Tokens() != 15 || rec.EndedAt.IsZero() {
		t.Errorf("record %+v", rec)
	}
	wantCodes(t, rec, store.StopCompleted)
	w.sound(th)
	if msgs := w.messages(th); len(msgs) != 2 || msgs[1].TextOf() != "ok" || msgs[1].RunID != r.ID {
		t.Errorf("history:\n%s", dump(msgs))
	}
	thr, err := w.db.Thread(context.Background(), th)
	if err != nil || thr.Title == "" {
		t.Errorf("thread %+v, %v", thr, err)
	}
	if err := w.m.Wait(context.Background(), r.ID); err != nil {
		t.Error(err)
	}
}

func TestAdmitReject(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "done"))
	th := w.thread()
	r := w.admit(th, "wait")
	h.await(t)
	if _, _, err := w.m.Admit(context.Background(), request(th, ""), store.StrategyReject); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a second run was admitted: %v", err)
	}
	h.release()
	w.end(r.ID, store.RunSuccess)
	if err := w.m.Wait(context.Background(), r.ID); err != nil {
		t.Fatal(err)
	}
	again, _, err := w.m.Admit(context.Background(), request(th, ""), store.StrategyReject)
	if err != nil {
		t.Fatalf("on a free thread: %v", err)
	}
	w.end(again.ID, store.RunSuccess)
}

func TestAdmitEnqueue(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "first"))
	th := w.thread()
	var ids []string
	ids = append(ids, w.admit(th, "wait").ID)
	h.await(t)
	for range 5 {
		ids = append(ids, w.admit(th, "").ID)
	}
	if _, waiting := w.m.Live(); waiting != 5 {
		t.Errorf("%d wait, want 5", waiting)
	}
	h.release()
	var order []string
	for _, id := range ids {
		w.end(id, store.RunSuccess)
	}
	for _, m := range w.messages(th) {
		if m.Role == model.RoleUser {
			order = append(order, m.ID[len("in-"):])
		}
	}
	if !slices.Equal(order, ids) {
		t.Errorf("worked on in order %v, admitted in order %v", order, ids)
	}
	w.sound(th)
}

func TestAdmitInterrupt(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "never"))
	th := w.thread()
	old := w.admit(th, "wait")
	h.await(t)
	r, _, err := w.m.Admit(context.Background(), request(th, ""), store.StrategyInterrupt)
	if err != nil {
		t.Fatal(err)
	}
	wantCodes(t, w.end(old.ID, store.RunInterrupted), store.StopInterrupted)
	w.end(r.ID, store.RunSuccess)
	w.sound(th)
	// On a free thread it is a plain admission.
	r, _, err = w.m.Admit(context.Background(), request(th, ""), store.StrategyInterrupt)
	if err != nil {
		t.Fatal(err)
	}
	w.end(r.ID, store.RunSuccess)
}

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	th := w.thread()
	first := request(th, "")
	first.IdempotencyKey = "k"
	r, reused, err := w.m.Admit(ctx, first, store.StrategyReject)
	if err != nil || reused {
		t.Fatalf("reused %t, %v", reused, err)
	}
	for range 2 { // while it is live or just over, and after
		second := request(th, "")
		second.IdempotencyKey = "k"
		got, reused, err := w.m.Admit(ctx, second, store.StrategyReject)
		if err != nil || !reused || got.ID != r.ID {
			t.Errorf("got run %s, reused %t, %v; want %s", got.ID, reused, err, r.ID)
		}
		w.end(r.ID, store.RunSuccess)
	}
	other := request(w.thread(), "")
	other.IdempotencyKey = "k"
	if got, reused, err := w.m.Admit(ctx, other, store.StrategyReject); err != nil || reused {
		t.Errorf("on another thread: reused %t, %v", reused, err)
	} else {
		w.end(got.ID, store.RunSuccess)
	}
	if ids, waiting := w.m.Live(); waiting != 0 || len(ids) > 1 {
		t.Errorf("left over: %v, %d", ids, waiting)
	}
}

// Many admissions at once on a few threads: never two runs of a thread at work, and all come to their end.
func TestAdmissionsAtOnce(t *testing.T) {
	w := newWorld(t)
	var busy [4]atomic.Int32
	var threads []string
	for i := range busy {
		threads = append(threads, w.thread())
		w.model(fmt.Sprint(i), func(_ context.Context, req *model.Request, _ func(string)) (*model.Response, error) {
			if n := busy[i].Add(1); n != 1 {
				t.Errorf("%d runs of thread %d at work", n, i)
			}
			defer busy[i].Add(-1)
			if req.Messages[len(req.Messages)-1].Role != model.RoleTool {
				return ask("nothing"), nil
			}
			return answer("ok"), nil
		})
	}
	var (
		mu  sync.Mutex
		ids []string
		wg  sync.WaitGroup
	)
	for i := range 40 {
		wg.Go(func() {
			n := i % len(busy)
			req := request(threads[n], fmt.Sprint(n))
			if i%3 == 0 {
				req.IdempotencyKey = fmt.Sprint("key", i/12)
			}
			r, _, err := w.m.Admit(context.Background(), req, store.StrategyEnqueue)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, r.ID)
		})
	}
	wg.Wait()
	for _, id := range ids {
		w.end(id, store.RunSuccess)
	}
	for _, th := range threads {
		w.sound(th)
	}
}

// order holds the admission of one run back until another is admitted behind its back: it has the slot, but comes second.
func overtake(t *testing.T, w *world, first, second store.Run, s store.Strategy) (a, b store.Run, errA error) {
	t.Helper()
	h := newHold()
	w.st.on(func(op, run string) error {
		if op == "admit" && run == first.ID {
			return h.wait(context.Background())
		}
		return nil
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		a, _, errA = w.m.Admit(context.Background(), first, s)
	}()
	h.await(t)
	b, _, err := w.m.Admit(context.Background(), second, store.StrategyEnqueue)
	if err != nil {
		t.Fatal(err)
	}
	h.release()
	<-done
	return a, b, errA
}

// A run that has the slot but is admitted second must not be lost: the store lets only the older one begin.
func TestOvertakenAdmission(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	a, b, err := overtake(t, w, request(th, ""), request(th, ""), store.StrategyEnqueue)
	if err != nil {
		t.Fatal(err)
	}
	w.end(b.ID, store.RunSuccess)
	w.end(a.ID, store.RunSuccess)
	if a, b := w.record(a.ID), w.record(b.ID); a.Seq < b.Seq || a.StartedAt.Before(b.EndedAt) {
		t.Errorf("order: seq %d before %d", a.Seq, b.Seq)
	}
	w.sound(th)
}

// An admission that comes to nothing gives its slot to the run that came in meanwhile.
func TestSlotOfRefusedAdmission(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	_, b, err := overtake(t, w, request(th, ""), request(th, ""), store.StrategyReject)
	if !errors.Is(err, store.ErrConflict) {
		t.Fatalf("error %v", err)
	}
	w.end(b.ID, store.RunSuccess)
}

func TestSlotOfReusedAdmission(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	first, second := request(th, ""), request(th, "")
	first.IdempotencyKey, second.IdempotencyKey = "k", "k"
	a, b, err := overtake(t, w, first, second, store.StrategyEnqueue)
	if err != nil || a.ID != b.ID {
		t.Fatalf("one key gave %s and %s, %v", a.ID, b.ID, err)
	}
	w.end(b.ID, store.RunSuccess)
}

func TestSlotsAndPositions(t *testing.T) {
	w := newWorld(t)
	w.slots = 2
	holds := []*hold{newHold(), newHold()}
	for i, h := range holds {
		w.model(fmt.Sprint("wait", i), waits(h, "done"))
		w.admit(w.thread(), fmt.Sprint("wait", i))
		h.await(t)
	}
	var ids []string
	for range 3 {
		ids = append(ids, w.admit(w.thread(), "").ID)
	}
	position := func(id string, n int) {
		t.Helper()
		w.until(id, func(b event.Body) bool { return b == event.RunQueued{Position: n} })
	}
	for i, id := range ids {
		position(id, i+1)
	}
	if err := w.m.Cancel(context.Background(), ids[0], "me", errUser); err != nil {
		t.Fatal(err)
	}
	position(ids[1], 1)
	position(ids[2], 2)
	holds[0].release()
	for _, id := range ids[1:] {
		w.end(id, store.RunSuccess)
	}
	if live, waiting := w.m.Live(); waiting != 0 || !slices.Contains(live, w.live(t, "wait1")) {
		t.Errorf("live %v, waiting %d", live, waiting)
	}
	holds[1].release()
}

// live finds the live run of a model.
func (w *world) live(t *testing.T, mdl string) string {
	list, err := w.db.LiveRuns(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if r.Model == mdl {
			return r.ID
		}
	}
	return ""
}

// A thread that waits for its own run does not keep others from the free slots.
func TestWaitingThreadBlocksNobody(t *testing.T) {
	w := newWorld(t)
	w.slots = 2
	h := newHold()
	w.model("wait", waits(h, "done"))
	th := w.thread()
	first := w.admit(th, "wait")
	h.await(t)
	behind := w.admit(th, "")
	w.end(w.admit(w.thread(), "").ID, store.RunSuccess)
	h.release()
	w.end(first.ID, store.RunSuccess)
	w.end(behind.ID, store.RunSuccess)
}

// The store cannot claim for a while. The run goes on waiting and is asked for again.
func TestClaimFails(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.model("wait", waits(h, "done"))
	th := w.thread()
	first := w.admit(th, "wait")
	h.await(t)
	behind := w.admit(th, "")
	failed := make(chan struct{}, 10)
	w.st.on(func(op, _ string) error {
		if op == "claim" {
			failed <- struct{}{}
			return errDisk
		}
		return nil
	})
	h.release()
	w.end(first.ID, store.RunSuccess)
	<-failed
	w.st.on(nil)
	w.m.pump() // what the next tick does
	w.end(behind.ID, store.RunSuccess)
}

func TestAdmitFails(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	w.st.on(func(op, _ string) error { return store.ErrFull })
	if _, _, err := w.m.Admit(context.Background(), request(th, ""), store.StrategyEnqueue); !errors.Is(err, store.ErrFull) {
		t.Errorf("error %v", err)
	}
	if ids, waiting := w.m.Live(); len(ids) != 0 || waiting != 0 {
		t.Errorf("a run that does not exist is live: %v, %d", ids, waiting)
	}
	w.st.on(nil)
	w.end(w.admit(th, "").ID, store.RunSuccess)
	w.close()
}

func TestAdmitAfterClose(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	w.suspend()
	if _, _, err := w.m.Admit(context.Background(), request(th, ""), store.StrategyEnqueue); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
}
