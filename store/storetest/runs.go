package storetest

import (
	"fmt"
	"time"

	"deerbot/store"
)

// thread makes a thread.
func (v *env) thread() string {
	v.Helper()
	id := newID()
	v.ok(v.PutThread(v.ctx, &store.Thread{ID: id, CreatedAt: base, UpdatedAt: base}))
	return id
}

// pendingRun is a run to be admitted.
func pendingRun(thread string) *store.Run {
	return &store.Run{
		ID: newID(), ThreadID: thread, State: store.RunPending, Origin: "chat", UserID: "u1", Model: "m",
		Input: raw([]string{"hi"}), Meta: raw(map[string]int{"n": 1}), CreatedAt: base,
	}
}

// runningRun is a run to be admitted and claimed at once.
func runningRun(thread string) *store.Run {
	r := pendingRun(thread)
	r.State, r.Owner, r.Epoch, r.LeaseUntil, r.StartedAt = store.RunRunning, "me", 1, at(30), base
	return r
}

func (v *env) admit(r *store.Run, s store.Strategy) store.Run {
	v.Helper()
	got, reused, err := v.AdmitRun(v.ctx, r, s)
	v.ok(err)
	if reused {
		v.Fatalf("run %s was known", r.ID)
	}
	return got
}

// running gives a thread with a running run.
func (v *env) running() store.Run {
	v.Helper()
	return v.admit(runningRun(v.thread()), store.StrategyReject)
}

// end brings an active run to its end.
func (v *env) end(r store.Run, to store.RunState) {
	v.Helper()
	v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: r.Epoch, To: to, At: at(9)}))
}

func runIDs(rs []store.Run) []string {
	return list(rs, func(r store.Run) string { return r.ID })
}

var runTests = []test{
	{"AdmitPending", func(v *env) {
		in := pendingRun(v.thread())
		in.IdempotencyKey = "k"
		got := v.admit(in, store.StrategyReject)
		if got.Seq == 0 || got.Epoch != 0 || got.Owner != "" {
			v.Fatalf("admitted as %+v", got)
		}
		want := *in
		want.Seq = got.Seq
		v.same(got, want)
		v.reopen()
		v.same(must(v.Run(v.ctx, in.ID))(v), want)
		v.same(must(v.PendingRuns(v.ctx, in.ThreadID))(v), []store.Run{want})
		_, err := v.ActiveRun(v.ctx, in.ThreadID)
		v.is(err, store.ErrNotFound)
	}},
	{"AdmitRunning", func(v *env) {
		in := runningRun(v.thread())
		got := v.admit(in, store.StrategyReject)
		want := *in
		want.Seq = got.Seq
		v.same(got, want)
		v.same(must(v.ActiveRun(v.ctx, in.ThreadID))(v), want)
		v.same(must(v.Run(v.ctx, in.ID))(v), want)
		v.same(len(must(v.PendingRuns(v.ctx, in.ThreadID))(v)), 0)
	}},
	{"AdmitUnknownThread", func(v *env) {
		_, _, err := v.AdmitRun(v.ctx, pendingRun("nowhere"), store.StrategyReject)
		v.is(err, store.ErrNotFound)
	}},
	{"AdmitSameID", func(v *env) {
		r := v.running()
		again := pendingRun(r.ThreadID)
		again.ID = r.ID
		_, _, err := v.AdmitRun(v.ctx, again, store.StrategyEnqueue)
		v.is(err, store.ErrConflict)
		v.same(must(v.Run(v.ctx, r.ID))(v), r)
	}},
	{"AdmitReject", func(v *env) {
		r := v.running()
		_, _, err := v.AdmitRun(v.ctx, runningRun(r.ThreadID), store.StrategyReject)
		v.is(err, store.ErrConflict)
		v.end(r, store.RunSuccess)
		p := v.admit(pendingRun(r.ThreadID), store.StrategyReject)
		_, _, err = v.AdmitRun(v.ctx, pendingRun(r.ThreadID), store.StrategyReject)
		v.is(err, store.ErrConflict) // a pending one is live too
		v.same(runIDs(must(v.ThreadRuns(v.ctx, r.ThreadID, 9))(v)), []string{p.ID, r.ID})
	}},
	{"AdmitEnqueue", func(v *env) {
		r := v.running()
		var want []string
		for range 5 {
			in := runningRun(r.ThreadID) // wants to run, has to wait
			got := v.admit(in, store.StrategyEnqueue)
			if got.State != store.RunPending || got.Epoch != 0 || got.Owner != "" || !got.LeaseUntil.IsZero() || !got.StartedAt.IsZero() {
				v.Fatalf("enqueued as %+v", got)
			}
			want = append(want, got.ID)
		}
		v.same(runIDs(must(v.PendingRuns(v.ctx, r.ThreadID))(v)), want)
		v.end(r, store.RunSuccess)
		// The queue comes first, though nothing is active.
		late := v.admit(runningRun(r.ThreadID), store.StrategyInterrupt)
		v.same(late.State, store.RunPending)
	}},
	{"AdmitIdempotent", func(v *env) {
		in := runningRun(v.thread())
		in.IdempotencyKey = "key/1"
		first := v.admit(in, store.StrategyReject)
		for _, s := range []store.Strategy{store.StrategyReject, store.StrategyEnqueue, store.StrategyInterrupt} {
			again := pendingRun(in.ThreadID)
			again.IdempotencyKey = "key/1"
			got, reused, err := v.AdmitRun(v.ctx, again, s)
			v.ok(err)
			if !reused {
				v.Fatalf("%s: admitted twice", s)
			}
			v.same(got, first)
		}
		v.end(first, store.RunSuccess)
		v.reopen()
		again := pendingRun(in.ThreadID)
		again.IdempotencyKey = "key/1"
		got, reused, err := v.AdmitRun(v.ctx, again, store.StrategyReject)
		v.ok(err)
		if !reused || got.State != store.RunSuccess {
			v.Fatalf("reused %v: %+v", reused, got)
		}
		other := pendingRun(v.thread()) // the key is the thread's own
		other.IdempotencyKey = "key/1"
		v.admit(other, store.StrategyReject)
	}},
	{"BaseHead", func(v *env) {
		r := v.running()
		cp := &store.Checkpoint{ID: newID(), RunID: r.ID, CreatedAt: base}
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Checkpoint: cp}))
		p := v.admit(pendingRun(r.ThreadID), store.StrategyEnqueue)
		v.end(r, store.RunSuccess)
		got := must(v.ClaimRun(v.ctx, p.ID, "me", at(30)))(v)
		v.same(got.BaseHead, cp.ID)
		v.end(got, store.RunSuccess)
		v.same(v.admit(runningRun(r.ThreadID), store.StrategyReject).BaseHead, cp.ID)
	}},
	{"ClaimOrder", func(v *env) {
		th := v.thread()
		a, b := v.admit(pendingRun(th), store.StrategyEnqueue), v.admit(pendingRun(th), store.StrategyEnqueue)
		_, err := v.ClaimRun(v.ctx, b.ID, "me", at(30))
		v.is(err, store.ErrConflict) // an older one waits
		got := must(v.ClaimRun(v.ctx, a.ID, "me", at(30)))(v)
		if got.State != store.RunRunning || got.Owner != "me" || got.Epoch != 1 || !got.LeaseUntil.Equal(at(30)) || got.StartedAt.IsZero() {
			v.Fatalf("claimed as %+v", got)
		}
		v.same(must(v.Run(v.ctx, a.ID))(v), got)
		_, err = v.ClaimRun(v.ctx, a.ID, "me", at(30))
		v.is(err, store.ErrConflict)
		_, err = v.ClaimRun(v.ctx, b.ID, "me", at(30))
		v.is(err, store.ErrConflict) // one is active
		v.end(got, store.RunError)
		v.same(must(v.ClaimRun(v.ctx, b.ID, "me", at(30)))(v).ID, b.ID)
		_, err = v.ClaimRun(v.ctx, "unknown", "me", at(30))
		v.is(err, store.ErrNotFound)
	}},
	{"TakeOver", func(v *env) {
		r := v.running() // its lease ends at 30
		_, err := v.TakeOverRun(v.ctx, r.ID, "other", at(29), at(60))
		v.is(err, store.ErrConflict)
		_, err = v.TakeOverRun(v.ctx, r.ID, "other", at(30), at(60))
		v.is(err, store.ErrConflict) // ended before now, not at now
		got := must(v.TakeOverRun(v.ctx, r.ID, "other", at(31), at(60)))(v)
		if got.Owner != "other" || got.Epoch != 2 || got.Resumes != 1 || got.State != store.RunRunning || !got.LeaseUntil.Equal(at(60)) {
			v.Fatalf("taken over as %+v", got)
		}
		v.is(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Title: "stale"}), store.ErrFenced)
		_, err = v.RenewLease(v.ctx, r.ID, 1, at(90))
		v.is(err, store.ErrFenced)
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 2, To: store.RunFinalizing, At: at(40)}))
		got = must(v.TakeOverRun(v.ctx, r.ID, "third", at(61), at(90)))(v)
		if got.State != store.RunFinalizing || got.Epoch != 3 || got.Resumes != 2 {
			v.Fatalf("taken over as %+v", got)
		}
		v.same(must(v.Run(v.ctx, r.ID))(v), got)
		v.end(got, store.RunSuccess)
		_, err = v.TakeOverRun(v.ctx, r.ID, "fourth", at(1000), at(2000))
		v.is(err, store.ErrConflict)
		p := v.admit(pendingRun(r.ThreadID), store.StrategyReject)
		_, err = v.TakeOverRun(v.ctx, p.ID, "fourth", at(1000), at(2000))
		v.is(err, store.ErrConflict)
	}},
	{"RenewLease", func(v *env) {
		r := v.running()
		v.ok(v.RequestCancel(v.ctx, r.ID, "user:7"))
		got := must(v.RenewLease(v.ctx, r.ID, 1, at(120)))(v)
		if !got.LeaseUntil.Equal(at(120)) || got.CancelRequested != "user:7" || got.Epoch != 1 || string(got.Input) != string(r.Input) {
			v.Fatalf("renewed as %+v", got)
		}
		_, err := v.TakeOverRun(v.ctx, r.ID, "other", at(100), at(130))
		v.is(err, store.ErrConflict)
		v.end(r, store.RunSuccess)
		_, err = v.RenewLease(v.ctx, r.ID, 1, at(150))
		v.is(err, store.ErrFenced)
		_, err = v.RenewLease(v.ctx, "unknown", 1, at(150))
		v.is(err, store.ErrNotFound)
	}},
	{"EndPending", func(v *env) {
		r := v.running()
		p := v.admit(pendingRun(r.ThreadID), store.StrategyEnqueue)
		stop := []store.StopReason{{Code: store.StopUserStop, Source: "chat", At: base}}
		v.is(v.EndPending(v.ctx, r.ID, store.RunInterrupted, stop), store.ErrConflict)
		v.is(v.EndPending(v.ctx, p.ID, store.RunRunning, stop), store.ErrConflict)
		v.is(v.EndPending(v.ctx, "unknown", store.RunInterrupted, stop), store.ErrNotFound)
		v.ok(v.EndPending(v.ctx, p.ID, store.RunInterrupted, stop))
		got := must(v.Run(v.ctx, p.ID))(v)
		v.same(got.State, store.RunInterrupted)
		v.same(got.Stop, stop)
		if got.EndedAt.IsZero() {
			v.Fatal("no time of the end")
		}
		v.is(v.EndPending(v.ctx, p.ID, store.RunError, nil), store.ErrConflict)
		v.same(len(must(v.PendingRuns(v.ctx, r.ThreadID))(v)), 0)
		v.same(runIDs(must(v.LiveRuns(v.ctx))(v)), []string{r.ID})
		_, err := v.ClaimRun(v.ctx, p.ID, "me", at(30))
		v.is(err, store.ErrConflict)
	}},
	{"RequestCancel", func(v *env) {
		r := v.running()
		v.ok(v.RequestCancel(v.ctx, r.ID, "first"))
		v.ok(v.RequestCancel(v.ctx, r.ID, "second"))
		v.same(must(v.Run(v.ctx, r.ID))(v).CancelRequested, "first")
		v.end(r, store.RunInterrupted)
		v.is(v.RequestCancel(v.ctx, r.ID, "late"), store.ErrConflict)
		v.is(v.RequestCancel(v.ctx, "unknown", "x"), store.ErrNotFound)
		p := v.admit(pendingRun(r.ThreadID), store.StrategyReject)
		v.ok(v.RequestCancel(v.ctx, p.ID, "early"))
		v.same(must(v.ClaimRun(v.ctx, p.ID, "me", at(30)))(v).CancelRequested, "early")
	}},
	{"LiveAndThreadRuns", func(v *env) {
		var live, all []string
		threads := []string{v.thread(), v.thread(), v.thread()}
		for i := range 12 {
			th := threads[(i*2)%3] // not in the order of the threads' ids
			r := v.admit(runningRun(th), store.StrategyEnqueue)
			live = append(live, r.ID)
			if th == threads[0] {
				all = append([]string{r.ID}, all...)
			}
		}
		v.same(runIDs(must(v.LiveRuns(v.ctx))(v)), live)
		v.same(runIDs(must(v.ThreadRuns(v.ctx, threads[0], 99))(v)), all)
		v.same(runIDs(must(v.ThreadRuns(v.ctx, threads[0], 2))(v)), all[:2])
		v.same(len(must(v.ThreadRuns(v.ctx, threads[0], 0))(v)), 0)
		v.same(len(must(v.ThreadRuns(v.ctx, "unknown", 9))(v)), 0)
		r := must(v.Run(v.ctx, live[0]))(v)
		v.end(r, store.RunSuccess)
		v.reopen()
		v.same(runIDs(must(v.LiveRuns(v.ctx))(v)), live[1:])
		v.same(runIDs(must(v.ThreadRuns(v.ctx, threads[0], 99))(v)), all) // the ended one too
	}},
	{"Missing", func(v *env) {
		_, err := v.Run(v.ctx, "unknown")
		v.is(err, store.ErrNotFound)
		_, err = v.ActiveRun(v.ctx, "unknown")
		v.is(err, store.ErrNotFound)
		v.is(v.WriteRun(v.ctx, &store.RunWrite{RunID: "unknown", Epoch: 1}), store.ErrNotFound)
		v.same(len(must(v.PendingRuns(v.ctx, "unknown"))(v)), 0)
	}},
	{"OneActive", func(v *env) { // many claim and admit at once
		th := v.thread()
		type result struct {
			run store.Run
			err error
		}
		const n = 32
		results := make(chan result, n)
		for i := range n {
			go func() {
				r := runningRun(th)
				r.Owner = fmt.Sprint("owner", i)
				got, _, err := v.AdmitRun(v.ctx, r, store.StrategyReject)
				results <- result{got, err}
			}()
		}
		won := 0
		for range n {
			r := <-results
			if r.err == nil {
				won++
				continue
			}
			v.is(r.err, store.ErrConflict)
		}
		v.same(won, 1)
	}},
	{"TooLarge", func(v *env) {
		r := pendingRun(v.thread())
		r.Input = big(store.MaxValue)
		r.IdempotencyKey = "k"
		_, _, err := v.AdmitRun(v.ctx, r, store.StrategyReject)
		v.is(err, store.ErrTooLarge)
		r.Input = nil
		v.admit(r, store.StrategyReject)
	}},
	{"ZeroTimes", func(v *env) {
		r := pendingRun(v.thread())
		got := v.admit(r, store.StrategyReject)
		if got = must(v.Run(v.ctx, got.ID))(v); !got.LeaseUntil.Equal(time.Time{}) || !got.EndedAt.IsZero() {
			v.Fatalf("times of %+v", got)
		}
	}},
}
