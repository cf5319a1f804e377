package storetest

import (
	"fmt"
	"time"

	"deerbot/store"
)

// entry is an inbound message as an adapter makes it.
func entry(c store.ConversationKey, msg string, received time.Time) *store.InboxEntry {
	return &store.InboxEntry{
		ID: newID(), Conversation: c, DedupeKey: "d-" + msg, MessageID: msg, ReceivedAt: received,
		Payload: raw(map[string]string{"text": "hello " + msg}),
	}
}

func (v *env) accept(e *store.InboxEntry, want bool) *store.InboxEntry {
	v.Helper()
	got, err := v.AcceptInbound(v.ctx, e)
	v.ok(err)
	if got != want {
		v.Fatalf("message %s accepted: %v, want %v", e.MessageID, got, want)
	}
	return e
}

func (v *env) pending(c store.ConversationKey) []string {
	v.Helper()
	all := must(v.PendingInbound(v.ctx, c, 1000))(v)
	if n := must(v.CountPending(v.ctx, c))(v); n != len(all) {
		v.Fatalf("CountPending = %d, PendingInbound has %d", n, len(all))
	}
	return list(all, func(e store.InboxEntry) string { return e.MessageID })
}

var inboxTests = []test{
	{"AcceptReturnsWhole", func(v *env) {
		e := v.accept(entry(chat("1"), "m1", base), true)
		if e.Seq == 0 || e.State != store.InboxPending {
			v.Fatalf("accepted entry has seq %d and state %q", e.Seq, e.State)
		}
		v.same(must(v.Inbound(v.ctx, e.ID))(v), *e)
		v.same(must(v.PendingInbound(v.ctx, e.Conversation, 9))(v), []store.InboxEntry{*e})
		v.reopen()
		v.same(must(v.Inbound(v.ctx, e.ID))(v), *e)
	}},
	{"DedupeScope", func(v *env) {
		v.accept(entry(chat("1"), "m1", base), true)
		again := v.accept(entry(chat("1"), "m1", at(5)), false)
		if again.Seq != 0 {
			v.Fatalf("a duplicate got seq %d", again.Seq)
		}
		_, err := v.Inbound(v.ctx, again.ID)
		v.is(err, store.ErrNotFound)
		topic := chat("1")
		topic.Topic = "7"
		v.accept(entry(topic, "m1", at(5)), false) // the topic is no part of the scope
		other := chat("1")
		other.Workspace = "bot2"
		v.accept(entry(other, "m1", at(5)), true)
		other.Channel = "lark"
		v.accept(entry(other, "m1", at(5)), true)
		v.accept(entry(chat("2"), "m1", at(5)), true)
		v.same(v.pending(chat("1")), []string{"m1"})
	}},
	{"DedupeOutlivesSettle", func(v *env) {
		e := v.accept(entry(chat("1"), "m1", base), true)
		v.ok(v.SettleInbound(v.ctx, e.ID))
		v.accept(entry(chat("1"), "m1", at(60)), false)
		v.reopen()
		v.accept(entry(chat("1"), "m1", at(61)), false)
	}},
	{"DedupeEnds", func(v *env) { // also when nobody prunes
		v.accept(entry(chat("1"), "m1", base), true)
		v.accept(entry(chat("1"), "m1", base.Add(store.DedupeKeep-time.Second)), false)
		v.accept(entry(chat("1"), "m1", base.Add(store.DedupeKeep+time.Second)), true)
		v.accept(entry(chat("1"), "m1", base.Add(store.DedupeKeep+2*time.Second)), false)
		// The first key's age does not take the second one away.
		must(v.PruneDedupe(v.ctx, base.Add(time.Second)))(v)
		v.accept(entry(chat("1"), "m1", base.Add(store.DedupeKeep+3*time.Second)), false)
	}},
	{"NoDedupeKey", func(v *env) {
		for i := range 2 {
			e := entry(chat("1"), fmt.Sprint(i), base)
			e.DedupeKey = ""
			v.accept(e, true)
		}
	}},
	{"PruneDedupe", func(v *env) {
		const n = 2500
		for i := range n {
			e := entry(chat("1"), fmt.Sprintf("m%04d", i), at(i))
			v.accept(e, true)
			v.ok(v.SettleInbound(v.ctx, e.ID))
		}
		if got := must(v.PruneDedupe(v.ctx, at(n-10)))(v); got != n-10 {
			v.Fatalf("pruned %d keys, want %d", got, n-10)
		}
		if got := must(v.PruneDedupe(v.ctx, at(n-10)))(v); got != 0 {
			v.Fatalf("pruned %d keys again", got)
		}
		v.accept(entry(chat("1"), "m0003", at(n)), true)
		v.accept(entry(chat("1"), fmt.Sprintf("m%04d", n-5), at(n)), false)
	}},
	{"OrderBySeq", func(v *env) {
		var want []string
		for i := range 30 {
			m := fmt.Sprintf("m%d", 30-i) // neither ids nor message ids nor times give the order
			e := entry(chat("1"), m, at(-i))
			v.accept(e, true)
			v.accept(entry(chat("2"), m, at(i)), true)
			want = append(want, m)
		}
		v.same(v.pending(chat("1")), want)
		got := must(v.PendingInbound(v.ctx, chat("1"), 7))(v)
		v.same(list(got, func(e store.InboxEntry) string { return e.MessageID }), want[:7])
		if got := must(v.PendingInbound(v.ctx, chat("1"), 0))(v); len(got) != 0 {
			v.Fatalf("limit 0 gave %d", len(got))
		}
	}},
	{"TakeAndSettle", func(v *env) {
		a, b := v.accept(entry(chat("1"), "a", base), true), v.accept(entry(chat("1"), "b", base), true)
		v.ok(v.TakeInbound(v.ctx, "run1", a.ID))
		v.same(v.pending(chat("1")), []string{"b"})
		v.ok(v.TakeInbound(v.ctx, "run1", a.ID, b.ID)) // a is left alone
		v.is(v.TakeInbound(v.ctx, "run2", b.ID), store.ErrConflict)
		got := must(v.Inbound(v.ctx, b.ID))(v)
		if got.State != store.InboxTaken || got.RunID != "run1" {
			v.Fatalf("taken entry is %+v", got)
		}
		c := v.accept(entry(chat("1"), "c", base), true)
		v.is(v.TakeInbound(v.ctx, "run2", c.ID, a.ID), store.ErrConflict)
		v.same(v.pending(chat("1")), []string{"c"}) // all or nothing
		v.ok(v.SettleInbound(v.ctx, a.ID, "unknown", c.ID))
		v.ok(v.SettleInbound(v.ctx, a.ID))
		v.ok(v.SettleInbound(v.ctx))
		v.ok(v.TakeInbound(v.ctx, "run1", a.ID)) // settled meanwhile
		_, err := v.Inbound(v.ctx, a.ID)
		v.is(err, store.ErrNotFound)
		v.same(v.pending(chat("1")), []string{})
	}},
	{"TakeForCommand", func(v *env) {
		e := v.accept(entry(chat("1"), "a", base), true)
		v.ok(v.TakeInbound(v.ctx, "", e.ID))
		v.ok(v.TakeInbound(v.ctx, "", e.ID))
		v.is(v.TakeInbound(v.ctx, "run", e.ID), store.ErrConflict)
		v.same(v.pending(chat("1")), []string{})
	}},
	{"Replace", func(v *env) {
		e := v.accept(entry(chat("1"), "a", base), true)
		v.ok(v.ReplaceInbound(v.ctx, e.ID, raw("edited")))
		e.Payload = raw("edited")
		v.same(must(v.Inbound(v.ctx, e.ID))(v), *e)
		v.same(must(v.PendingInbound(v.ctx, chat("1"), 9))(v), []store.InboxEntry{*e})
		v.is(v.ReplaceInbound(v.ctx, e.ID, big(store.MaxValue)), store.ErrTooLarge)
		v.ok(v.TakeInbound(v.ctx, "run", e.ID))
		v.is(v.ReplaceInbound(v.ctx, e.ID, raw("late")), store.ErrConflict)
		got := must(v.Inbound(v.ctx, e.ID))(v)
		v.same(string(got.Payload), `"edited"`)
		v.is(v.ReplaceInbound(v.ctx, "unknown", raw("x")), store.ErrNotFound)
	}},
	{"ByMessage", func(v *env) {
		e := v.accept(entry(chat("1"), "a", base), true)
		v.same(must(v.InboundByMessage(v.ctx, chat("1"), "a"))(v), *e)
		for _, c := range []store.ConversationKey{chat("2"), {Channel: "telegram", Workspace: "bot1", Chat: "1", Topic: "x"}} {
			_, err := v.InboundByMessage(v.ctx, c, "a")
			v.is(err, store.ErrNotFound)
		}
		v.ok(v.TakeInbound(v.ctx, "run", e.ID))
		if got := must(v.InboundByMessage(v.ctx, chat("1"), "a"))(v); got.State != store.InboxTaken {
			v.Fatalf("state %q", got.State)
		}
		// Naming the message's place again does not lose the entry.
		v.ok(v.IndexMessage(v.ctx, chat("1"), "a"))
		v.same(must(v.InboundByMessage(v.ctx, chat("1"), "a"))(v).ID, e.ID)
		v.ok(v.SettleInbound(v.ctx, e.ID))
		_, err := v.InboundByMessage(v.ctx, chat("1"), "a")
		v.is(err, store.ErrNotFound)
		// The message is still known to belong there.
		v.same(must(v.ConversationOfMessage(v.ctx, chat("1"), "a"))(v), chat("1"))
	}},
	{"Unsettled", func(v *env) {
		var want []string
		for i := range 20 {
			e := v.accept(entry(chat(fmt.Sprint(i%3)), fmt.Sprint(i), at(i)), true)
			switch i % 4 {
			case 0:
				v.ok(v.TakeInbound(v.ctx, "r", e.ID))
			case 1:
				v.ok(v.SettleInbound(v.ctx, e.ID))
				continue
			}
			want = append(want, e.MessageID)
		}
		v.reopen()
		got := list(must(v.UnsettledInbound(v.ctx))(v), func(e store.InboxEntry) string { return e.MessageID })
		v.same(got, want)
	}},
	{"UnsettledOrder", func(v *env) { // ids of one millisecond, or of another clock, do not give the order
		first, second := entry(chat("1"), "first", base), entry(chat("1"), "second", base)
		first.ID, second.ID = second.ID, first.ID
		v.accept(first, true)
		v.accept(second, true)
		got := list(must(v.UnsettledInbound(v.ctx))(v), func(e store.InboxEntry) string { return e.MessageID })
		v.same(got, []string{"first", "second"})
	}},
	{"TooLarge", func(v *env) {
		e := entry(chat("1"), "a", base)
		e.Payload = big(store.MaxValue)
		_, err := v.AcceptInbound(v.ctx, e)
		v.is(err, store.ErrTooLarge)
		e.Payload = raw("small")
		v.accept(e, true) // nothing of the first try is left
	}},
}
