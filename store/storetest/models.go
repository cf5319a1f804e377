package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"deerbot/store"
)

// modelTests compare an engine with a small model of the contract over random histories.
var modelTests = []test{
	{"Runs", func(v *env) {
		rapid.Check(v.T, func(t *rapid.T) {
			m := &runModel{v: v, thread: v.thread(), now: base}
			t.Repeat(map[string]func(*rapid.T){
				"admit": m.admit, "claim": m.claim, "takeOver": m.takeOver, "renew": m.renew, "write": m.write, "stale": m.stale,
				"end": m.endPending, "cancel": m.cancel, "wait": m.wait, "": m.check,
			})
		})
	}},
	{"InboxAndOutbox", func(v *env) {
		n := 0
		rapid.Check(v.T, func(t *rapid.T) {
			n++
			m := &boxModel{v: v, place: chat(fmt.Sprint("chat", n)), seen: map[string]bool{}}
			t.Repeat(map[string]func(*rapid.T){
				"accept": m.accept, "take": m.take, "settle": m.settle, "post": m.post, "deliver": m.deliver, "": m.check,
			})
		})
	}},
}

// runModel knows what the runs of one thread must look like.
type runModel struct {
	v      *env
	thread string
	now    time.Time
	runs   []*store.Run // in order of admission
}

func (m *runModel) pick(t *rapid.T) *store.Run {
	if len(m.runs) == 0 {
		t.Skip("no run")
	}
	return m.runs[rapid.IntRange(0, len(m.runs)-1).Draw(t, "run")]
}

func (m *runModel) active() *store.Run {
	for _, r := range m.runs {
		if r.State.Active() {
			return r
		}
	}
	return nil
}

func (m *runModel) firstPending() *store.Run {
	for _, r := range m.runs {
		if r.State == store.RunPending {
			return r
		}
	}
	return nil
}

// expect compares an error with what the model says.
func expect(t *rapid.T, op string, err, want error) bool {
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", op, err, want)
	}
	return err == nil
}

func (m *runModel) admit(t *rapid.T) {
	r := pendingRun(m.thread)
	if rapid.Bool().Draw(t, "running") {
		r = runningRun(m.thread)
		r.LeaseUntil = m.now.Add(30 * time.Second)
	}
	s := rapid.SampledFrom([]store.Strategy{store.StrategyReject, store.StrategyEnqueue}).Draw(t, "strategy")
	busy := m.active() != nil || m.firstPending() != nil
	var want error
	if busy && s == store.StrategyReject {
		want = store.ErrConflict
	}
	got, _, err := m.v.AdmitRun(m.v.ctx, r, s)
	if !expect(t, "admit", err, want) {
		return
	}
	if state := r.State; !busy && got.State != state || busy && got.State != store.RunPending {
		t.Fatalf("admitted as %s", got.State)
	}
	m.runs = append(m.runs, &got)
}

func (m *runModel) claim(t *rapid.T) {
	r := m.pick(t)
	var want error
	if r.State != store.RunPending || m.active() != nil || m.firstPending() != r {
		want = store.ErrConflict
	}
	until := m.now.Add(30 * time.Second)
	got, err := m.v.ClaimRun(m.v.ctx, r.ID, "me", until)
	if !expect(t, "claim", err, want) {
		return
	}
	r.State, r.Owner, r.LeaseUntil, r.StartedAt, r.Epoch = store.RunRunning, "me", until, got.StartedAt, r.Epoch+1
}

func (m *runModel) takeOver(t *rapid.T) {
	r := m.pick(t)
	var want error
	if !r.State.Active() || !r.LeaseUntil.Before(m.now) {
		want = store.ErrConflict
	}
	until := m.now.Add(30 * time.Second)
	got, err := m.v.TakeOverRun(m.v.ctx, r.ID, "other", m.now, until)
	if !expect(t, "take over", err, want) {
		return
	}
	r.Owner, r.LeaseUntil, r.Epoch, r.Resumes = "other", until, r.Epoch+1, r.Resumes+1
	if got.Epoch != r.Epoch {
		t.Fatalf("epoch %d, want %d", got.Epoch, r.Epoch)
	}
}

func (m *runModel) renew(t *rapid.T) {
	r := m.pick(t)
	var want error
	if !r.State.Active() {
		want = store.ErrFenced
	}
	until := m.now.Add(60 * time.Second)
	if _, err := m.v.RenewLease(m.v.ctx, r.ID, r.Epoch, until); expect(t, "renew", err, want) {
		r.LeaseUntil = until
	}
}

func (m *runModel) write(t *rapid.T) {
	r := m.pick(t)
	to := rapid.SampledFrom([]store.RunState{"", store.RunRunning, store.RunFinalizing, store.RunSuccess, store.RunError}).Draw(t, "to")
	n := rapid.IntRange(0, 3).Draw(t, "events")
	var want error
	switch {
	case !r.State.Active():
		want = store.ErrFenced
	case r.State == store.RunFinalizing && to == store.RunRunning:
		want = store.ErrConflict
	}
	err := m.v.WriteRun(m.v.ctx, &store.RunWrite{
		RunID: r.ID, Epoch: r.Epoch, Events: events(r.ID, int(r.JournalSeq)+1, n), To: to, At: m.now,
	})
	if !expect(t, "write", err, want) {
		return
	}
	r.JournalSeq += uint64(n)
	if to == "" {
		return
	}
	if r.State = to; to.Terminal() {
		r.EndedAt, r.LeaseUntil = m.now, time.Time{}
	}
}

func (m *runModel) stale(t *rapid.T) {
	r := m.pick(t)
	err := m.v.WriteRun(m.v.ctx, &store.RunWrite{RunID: r.ID, Epoch: r.Epoch + 1, To: store.RunError, At: m.now})
	expect(t, "stale write", err, store.ErrFenced)
}

func (m *runModel) endPending(t *rapid.T) {
	r := m.pick(t)
	var want error
	if r.State != store.RunPending {
		want = store.ErrConflict
	}
	if expect(t, "end", m.v.EndPending(m.v.ctx, r.ID, store.RunInterrupted, nil), want) {
		got, err := m.v.Run(m.v.ctx, r.ID)
		expect(t, "run", err, nil)
		r.State, r.EndedAt = store.RunInterrupted, got.EndedAt
	}
}

func (m *runModel) cancel(t *rapid.T) {
	r := m.pick(t)
	var want error
	if r.State.Terminal() {
		want = store.ErrConflict
	}
	if expect(t, "cancel", m.v.RequestCancel(m.v.ctx, r.ID, "me"), want) {
		r.CancelRequested = "me"
	}
}

func (m *runModel) wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
}

func (m *runModel) check(t *rapid.T) {
	got, err := m.v.ThreadRuns(m.v.ctx, m.thread, 1000)
	expect(t, "runs", err, nil)
	slices.Reverse(got)
	if len(got) != len(m.runs) {
		t.Fatalf("%d runs, want %d", len(got), len(m.runs))
	}
	var pending []string
	for i, want := range m.runs {
		if !sameRun(got[i], *want) {
			t.Fatalf("run %d\n got %+v\nwant %+v", i, got[i], *want)
		}
		if want.State == store.RunPending {
			pending = append(pending, want.ID)
		}
	}
	waiting, err := m.v.PendingRuns(m.v.ctx, m.thread)
	expect(t, "pending", err, nil)
	if !slices.Equal(runIDs(waiting), pending) && len(pending)+len(waiting) > 0 {
		t.Fatalf("pending %v, want %v", runIDs(waiting), pending)
	}
	active, err := m.v.ActiveRun(m.v.ctx, m.thread)
	if a := m.active(); a == nil {
		expect(t, "active", err, store.ErrNotFound)
	} else if expect(t, "active", err, nil); active.ID != a.ID {
		t.Fatalf("active is %s, want %s", active.ID, a.ID)
	}
}

func sameRun(a, b store.Run) bool {
	return a.ID == b.ID && a.State == b.State && a.Epoch == b.Epoch && a.Owner == b.Owner && a.Resumes == b.Resumes && a.Seq == b.Seq &&
		a.JournalSeq == b.JournalSeq && a.CancelRequested == b.CancelRequested && a.LeaseUntil.Equal(b.LeaseUntil) &&
		a.EndedAt.Equal(b.EndedAt)
}
