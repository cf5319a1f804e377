package storetest

import (
	"errors"
	"fmt"

	"deerbot/store"
)

// events are n journal events from seq on.
func events(run string, from, n int) []store.JournalEvent {
	var out []store.JournalEvent
	for i := range n {
		out = append(out, store.JournalEvent{
			RunID: run, Seq: uint64(from + i), At: at(i), Kind: "tool.started", Data: raw(map[string]int{"i": from + i}),
		})
	}
	return out
}

func checkpoint(parent string, n int) *store.Checkpoint {
	return &store.Checkpoint{
		ID: newID(), Parent: parent, Step: n, CreatedAt: at(n), Messages: []rawMessage{raw(fmt.Sprintf("message %d", n))},
		State: map[string]rawMessage{"k": raw(n)},
	}
}

func usage(r store.Run, sec int) store.UsageRow {
	return store.UsageRow{
		ID: newID(), RunID: r.ID, ThreadID: r.ThreadID, Provider: "p", Model: "m", Conversation: chat("1"),
		InputTokens: 10, OutputTokens: 5, CostUSD: 0.25, At: at(sec),
	}
}

func artifact(r store.Run, name string) store.Artifact {
	return store.Artifact{
		ID: newID(), ThreadID: r.ThreadID, RunID: r.ID, Path: "/mnt/user-data/outputs/" + name, Name: name, MIME: "text/plain",
		Size: 3, SHA256: "abc", CreatedAt: base,
	}
}

// footprint is everything that a WriteRun may touch.
type footprint struct {
	Run         store.Run
	Thread      store.Thread
	Checkpoints []store.Checkpoint
	Events      []store.JournalEvent
	Usage       []store.UsageRow
	Artifacts   []store.Artifact
	OfThread    []store.Artifact
	Live        []store.Run
}

func (v *env) footprint(r store.Run) footprint {
	v.Helper()
	return footprint{
		Run: must(v.Run(v.ctx, r.ID))(v), Thread: must(v.Thread(v.ctx, r.ThreadID))(v),
		Checkpoints: must(v.Checkpoints(v.ctx, r.ThreadID, ""))(v), Events: must(v.JournalEvents(v.ctx, r.ID, 0, 1000))(v),
		Usage: must(v.RunUsage(v.ctx, r.ID))(v), Artifacts: must(v.RunArtifacts(v.ctx, r.ID))(v),
		OfThread: must(v.ThreadArtifacts(v.ctx, r.ThreadID))(v), Live: must(v.LiveRuns(v.ctx))(v),
	}
}

// full is a write with every part.
func full(r store.Run, parent string, seq int) *store.RunWrite {
	return &store.RunWrite{
		RunID: r.ID, Epoch: r.Epoch, Checkpoint: checkpoint(parent, 1), Events: events(r.ID, seq, 3),
		Usage: []store.UsageRow{usage(r, 1), usage(r, 2)}, Artifacts: []store.Artifact{artifact(r, "a.txt")}, Title: "title",
		To: store.RunSuccess, Stop: []store.StopReason{{Code: store.StopCompleted, Source: "loop", Step: 1, At: at(3)}},
		Totals: &store.Totals{Steps: 1, InputTokens: 20, OutputTokens: 10, CostUSD: 0.5}, At: at(4),
	}
}

var writeRunTests = []test{
	{"EveryPart", func(v *env) {
		r := v.running()
		w := full(r, "", 1)
		v.ok(v.WriteRun(v.ctx, w))
		v.reopen()
		got := v.footprint(r)
		cp := *w.Checkpoint
		cp.ThreadID, cp.Depth = r.ThreadID, 1
		v.same(got.Checkpoints, []store.Checkpoint{cp})
		v.same(got.Events, w.Events)
		v.same(got.Usage, w.Usage)
		v.same(got.Artifacts, w.Artifacts)
		v.same(got.OfThread, w.Artifacts)
		v.same(len(got.Live), 0)
		want := r
		want.State, want.Stop, want.Totals, want.JournalSeq, want.EndedAt = store.RunSuccess, w.Stop, *w.Totals, 3, at(4)
		got.Run.LeaseUntil = want.LeaseUntil // of no meaning any more
		v.same(got.Run, want)
		if th := got.Thread; th.Head != cp.ID || th.Depth != 1 || th.Title != "title" {
			v.Fatalf("thread is %+v", th)
		}
	}},
	{"Atomic", func(v *env) { // a part that fails leaves nothing of the others
		r := v.running()
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Checkpoint: checkpoint("", 0), Events: events(r.ID, 1, 1)}))
		before := v.footprint(r)
		head := before.Thread.Head
		for name, c := range map[string]struct {
			spoil func(w *store.RunWrite)
			want  error
		}{
			"epoch":           {func(w *store.RunWrite) { w.Epoch = 2 }, store.ErrFenced},
			"epoch zero":      {func(w *store.RunWrite) { w.Epoch = 0 }, store.ErrFenced},
			"parent":          {func(w *store.RunWrite) { w.Checkpoint.Parent = "other" }, store.ErrConflict},
			"root again":      {func(w *store.RunWrite) { w.Checkpoint.Parent = "" }, store.ErrConflict},
			"checkpoint id":   {func(w *store.RunWrite) { w.Checkpoint.ID = head }, store.ErrConflict},
			"gap":             {func(w *store.RunWrite) { w.Events = events(r.ID, 3, 2) }, store.ErrConflict},
			"event again":     {func(w *store.RunWrite) { w.Events = events(r.ID, 1, 2) }, store.ErrConflict},
			"hole":            {func(w *store.RunWrite) { w.Events[2].Seq = 9 }, store.ErrConflict},
			"state":           {func(w *store.RunWrite) { w.To = store.RunPending }, store.ErrConflict},
			"unknown state":   {func(w *store.RunWrite) { w.To = "rolling" }, store.ErrConflict},
			"big checkpoint":  {func(w *store.RunWrite) { w.Checkpoint.Messages[0] = big(store.MaxValue) }, store.ErrTooLarge},
			"big event":       {func(w *store.RunWrite) { w.Events[2].Data = big(store.MaxValue) }, store.ErrTooLarge},
			"big artifact":    {func(w *store.RunWrite) { w.Artifacts[0].Name = string(big(store.MaxValue)) }, store.ErrTooLarge},
			"big stop detail": {func(w *store.RunWrite) { w.Stop[0].Detail = string(big(store.MaxValue)) }, store.ErrTooLarge},
			"big usage":       {func(w *store.RunWrite) { w.Usage[1].Model = string(big(store.MaxValue)) }, store.ErrTooLarge},
			"big title":       {func(w *store.RunWrite) { w.Title = string(big(store.MaxValue)) }, store.ErrTooLarge},
			"not JSON":        {func(w *store.RunWrite) { w.Events[1].Data = rawMessage("{") }, nil},
		} {
			w := full(r, head, 2)
			c.spoil(w)
			err := v.WriteRun(v.ctx, w)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				v.Fatalf("%s: error %v, want %v", name, err, c.want)
			}
			v.same(v.footprint(r), before)
		}
		v.ok(v.WriteRun(v.ctx, full(r, head, 2)))
	}},
	{"PartsAlone", func(v *env) { // a zero part leaves what is there alone
		r := v.running()
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Totals: &store.Totals{Steps: 2}}))
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Title: "t"}))
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Checkpoint: checkpoint("", 1)}))
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Stop: []store.StopReason{{Code: store.StopLoopCapped}}}))
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Stop: []store.StopReason{{Code: store.StopCompleted}}}))
		got := v.footprint(r)
		v.same(got.Run.State, store.RunRunning)
		v.same(got.Run.Totals, store.Totals{Steps: 2})
		v.same(list(got.Run.Stop, func(s store.StopReason) store.StopCode { return s.Code }), []store.StopCode{store.StopLoopCapped, store.StopCompleted})
		v.same(got.Thread.Title, "t")
		v.same(got.Run.LeaseUntil, r.LeaseUntil)
	}},
	{"Journal", func(v *env) {
		r := v.running()
		var want []store.JournalEvent
		for _, n := range []int{1, 5, 0, 70, 3} {
			es := events(r.ID, len(want)+1, n)
			v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Events: es}))
			want = append(want, es...)
		}
		v.same(must(v.Run(v.ctx, r.ID))(v).JournalSeq, uint64(len(want)))
		for after := 0; after <= len(want)+1; after += 7 {
			for _, limit := range []int{0, 1, 10, 1000} {
				from := min(after, len(want))
				v.same(must(v.JournalEvents(v.ctx, r.ID, uint64(after), limit))(v), want[from:min(from+limit, len(want))])
			}
		}
		v.same(len(must(v.JournalEvents(v.ctx, r.ID, ^uint64(0), 9))(v)), 0)
		v.same(len(must(v.JournalEvents(v.ctx, "unknown", 0, 9))(v)), 0)
	}},
	{"JournalIsTheRuns", func(v *env) {
		a, b := v.running(), v.running()
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: a.ID, Epoch: 1, Events: events(a.ID, 1, 3)}))
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: b.ID, Epoch: 1, Events: events("", 1, 2)})) // the run is given once
		v.same(must(v.JournalEvents(v.ctx, b.ID, 0, 9))(v), events(b.ID, 1, 2))
		v.same(must(v.JournalEvents(v.ctx, a.ID, 2, 9))(v), events(a.ID, 1, 3)[2:])
	}},
	{"States", func(v *env) {
		for _, path := range [][]store.RunState{
			{store.RunSuccess},
			{store.RunError},
			{store.RunInterrupted},
			{store.RunFinalizing, store.RunSuccess},
			{store.RunRunning, store.RunFinalizing, store.RunFinalizing, store.RunInterrupted},
		} {
			r := v.running()
			for _, to := range path {
				v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, To: to, At: at(7), Error: "why"}))
				got := must(v.Run(v.ctx, r.ID))(v)
				v.same(got.State, to)
				if !to.Terminal() {
					v.same(got.Error, "")
					v.same(must(v.ActiveRun(v.ctx, r.ThreadID))(v).ID, r.ID)
				} else if got.Error != "why" || !got.EndedAt.Equal(at(7)) {
					v.Fatalf("ended as %+v", got)
				}
			}
			_, err := v.ActiveRun(v.ctx, r.ThreadID)
			v.is(err, store.ErrNotFound)
			v.admit(runningRun(r.ThreadID), store.StrategyReject)
		}
	}},
	{"NoWayBack", func(v *env) {
		r := v.running()
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, To: store.RunFinalizing, At: at(1)}))
		v.is(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, To: store.RunRunning, At: at(1)}), store.ErrConflict)
		v.is(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, To: store.RunPending, At: at(1)}), store.ErrConflict)
		v.end(r, store.RunSuccess)
		before := v.footprint(r)
		for _, w := range []*store.RunWrite{full(r, "", 1), {RunID: r.ID, Epoch: 1}, {RunID: r.ID, Epoch: 1, To: store.RunError}} {
			v.is(v.WriteRun(v.ctx, w), store.ErrFenced) // nobody owns it any more
		}
		v.is(v.RequestCancel(v.ctx, r.ID, "x"), store.ErrConflict)
		v.is(v.EndPending(v.ctx, r.ID, store.RunError, nil), store.ErrConflict)
		v.same(v.footprint(r), before)
	}},
	{"PendingIsFenced", func(v *env) {
		p := v.admit(pendingRun(v.thread()), store.StrategyReject)
		for _, epoch := range []uint64{0, 1} {
			v.is(v.WriteRun(v.ctx, &store.RunWrite{RunID: p.ID, Epoch: epoch, To: store.RunError}), store.ErrFenced)
		}
	}},
	{"ArtifactsInOrder", func(v *env) {
		r := v.running()
		var want []string
		for i := range 5 {
			a := artifact(r, fmt.Sprint("f", 9-i))
			v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Artifacts: []store.Artifact{a}}))
			want = append(want, a.Name)
		}
		v.end(r, store.RunSuccess)
		next := v.admit(runningRun(r.ThreadID), store.StrategyReject)
		a := artifact(next, "later")
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: next.ID, Epoch: 1, Artifacts: []store.Artifact{a}}))
		name := func(a store.Artifact) string { return a.Name }
		v.same(list(must(v.RunArtifacts(v.ctx, r.ID))(v), name), want)
		v.same(list(must(v.RunArtifacts(v.ctx, next.ID))(v), name), []string{"later"})
		v.same(list(must(v.ThreadArtifacts(v.ctx, r.ThreadID))(v), name), append(want, "later"))
	}},
}
