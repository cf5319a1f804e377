package storetest

import (
	"encoding/json"
	"fmt"

	"deerbot/store"
)

type rawMessage = json.RawMessage

func ids(cs []store.Checkpoint) []string {
	return list(cs, func(c store.Checkpoint) string { return c.ID })
}

// step appends a checkpoint in a run of its own.
func (v *env) step(thread, parent string) string {
	v.Helper()
	r := v.admit(runningRun(thread), store.StrategyReject)
	cp := checkpoint(parent, 1)
	v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Checkpoint: cp, To: store.RunSuccess, At: at(1)}))
	return cp.ID
}

var threadTests = []test{
	{"Put", func(v *env) {
		th := store.Thread{
			ID: newID(), Head: "not from here", Depth: 7, Title: "t", UserID: "u", Meta: raw(map[string]int{"a": 1}),
			CreatedAt: base, UpdatedAt: at(1),
		}
		v.ok(v.PutThread(v.ctx, &th))
		th.Head, th.Depth = "", 0
		v.same(must(v.Thread(v.ctx, th.ID))(v), th)
		head := v.step(th.ID, "")
		th.Title, th.UpdatedAt = "new", at(100)
		v.ok(v.PutThread(v.ctx, &th))
		got := must(v.Thread(v.ctx, th.ID))(v)
		if got.Head != head || got.Depth != 1 || got.Title != "new" || !got.UpdatedAt.Equal(at(100)) {
			v.Fatalf("thread is %+v", got)
		}
		_, err := v.Thread(v.ctx, "unknown")
		v.is(err, store.ErrNotFound)
		th.Meta = big(store.MaxValue)
		v.is(v.PutThread(v.ctx, &th), store.ErrTooLarge)
	}},
	{"Chain", func(v *env) {
		th := v.thread()
		v.same(len(must(v.Checkpoints(v.ctx, th, ""))(v)), 0)
		var want []string
		head := ""
		for range 70 {
			head = v.step(th, head)
			want = append(want, head)
		}
		got := must(v.Checkpoints(v.ctx, th, ""))(v)
		v.same(ids(got), want)
		for i, c := range got {
			if c.Depth != uint64(i+1) || c.ThreadID != th {
				v.Fatalf("checkpoint %d is %+v", i, c)
			}
		}
		v.same(ids(must(v.Checkpoints(v.ctx, th, want[9]))(v)), want[:10])
		rec := must(v.Thread(v.ctx, th))(v)
		if rec.Head != head || rec.Depth != 70 {
			v.Fatalf("thread is %+v", rec)
		}
	}},
	{"ChainErrors", func(v *env) {
		th, other := v.thread(), v.thread()
		head := v.step(th, "")
		_, err := v.Checkpoints(v.ctx, "unknown", "")
		v.is(err, store.ErrNotFound)
		_, err = v.Checkpoints(v.ctx, th, "unknown")
		v.is(err, store.ErrNotFound)
		_, err = v.Checkpoints(v.ctx, other, head) // another thread's
		v.is(err, store.ErrNotFound)
	}},
	{"Branch", func(v *env) {
		th := v.thread()
		a := v.step(th, "")
		b := v.step(th, a)
		v.ok(v.MoveHead(v.ctx, th, b, a))
		c := v.step(th, a)
		v.same(ids(must(v.Checkpoints(v.ctx, th, ""))(v)), []string{a, c})
		v.same(ids(must(v.Checkpoints(v.ctx, th, b))(v)), []string{a, b}) // nothing is lost
		v.ok(v.MoveHead(v.ctx, th, c, b))
		v.reopen()
		v.same(ids(must(v.Checkpoints(v.ctx, th, ""))(v)), []string{a, b})
		v.same(must(v.Thread(v.ctx, th))(v).Depth, uint64(2))
	}},
	{"MoveHeadToStart", func(v *env) {
		th := v.thread()
		a := v.step(th, "")
		v.ok(v.MoveHead(v.ctx, th, a, ""))
		v.same(len(must(v.Checkpoints(v.ctx, th, ""))(v)), 0)
		got := must(v.Thread(v.ctx, th))(v)
		if got.Head != "" || got.Depth != 0 {
			v.Fatalf("thread is %+v", got)
		}
		b := v.step(th, "") // a second root
		v.same(ids(must(v.Checkpoints(v.ctx, th, ""))(v)), []string{b})
		v.ok(v.MoveHead(v.ctx, th, b, a))
	}},
	{"MoveHeadConflicts", func(v *env) {
		th, other := v.thread(), v.thread()
		a := v.step(th, "")
		foreign := v.step(other, "")
		v.is(v.MoveHead(v.ctx, th, "", a), store.ErrConflict)
		v.is(v.MoveHead(v.ctx, th, "unknown", a), store.ErrConflict)
		v.is(v.MoveHead(v.ctx, th, a, "unknown"), store.ErrNotFound)
		v.is(v.MoveHead(v.ctx, th, a, foreign), store.ErrNotFound)
		v.is(v.MoveHead(v.ctx, "unknown", "", ""), store.ErrNotFound)
		r := v.admit(runningRun(th), store.StrategyReject)
		v.is(v.MoveHead(v.ctx, th, a, ""), store.ErrConflict)
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, To: store.RunFinalizing}))
		v.is(v.MoveHead(v.ctx, th, a, ""), store.ErrConflict)
		v.end(r, store.RunSuccess)
		v.admit(pendingRun(th), store.StrategyEnqueue) // waiting is not active
		v.ok(v.MoveHead(v.ctx, th, a, ""))
	}},
	{"CheckpointWhole", func(v *env) {
		r := v.running()
		cp := &store.Checkpoint{
			ID: newID(), RunID: r.ID, Step: 3, Snapshot: true, CreatedAt: base, Depth: 99, ThreadID: "set by the engine",
			Messages: []rawMessage{raw(map[string]string{"text": "<b> & \u2028 \x00 é 日本"}), raw(nil)},
			State:    map[string]rawMessage{"todo": raw([]int{1}), "gone": rawMessage("null")},
		}
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Checkpoint: cp}))
		want := *cp
		want.ThreadID, want.Depth = r.ThreadID, 1
		got := must(v.Checkpoints(v.ctx, r.ThreadID, cp.ID))(v)[0]
		for i := range want.Messages { // JSON may be written in another form
			v.same(decoded(v, got.Messages[i]), decoded(v, want.Messages[i]))
		}
		v.same(string(got.State["gone"]), "null") // null deletes; it must not be lost
		got.Messages, want.Messages = nil, nil
		v.same(got, want)
	}},
	{"CheckpointWithoutID", func(v *env) {
		r := v.running()
		if err := v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Checkpoint: &store.Checkpoint{CreatedAt: base}}); err == nil {
			v.Fatal("a checkpoint without id was taken")
		}
	}},
	{"OwnParent", func(v *env) { // a chain never becomes a ring
		th := v.thread()
		a := v.step(th, "")
		r := v.admit(runningRun(th), store.StrategyReject)
		err := v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Checkpoint: &store.Checkpoint{ID: a, Parent: a}})
		v.is(err, store.ErrConflict)
		v.same(ids(must(v.Checkpoints(v.ctx, th, ""))(v)), []string{a})
	}},
}

func decoded(v *env, m rawMessage) (out any) {
	v.Helper()
	v.ok(json.Unmarshal(m, &out))
	return fmt.Sprintf("%#v", out)
}
