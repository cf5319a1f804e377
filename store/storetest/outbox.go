package storetest

import (
	"fmt"
	"time"

	"deerbot/store"
)

func outgoing(k string, sec int) *store.Outgoing {
	return &store.Outgoing{
		Key: k, Conversation: chat("1"), RunID: "run1", Kind: "final", State: store.DeliveryPending, Body: raw("text"),
		Parts: []store.OutgoingPart{{State: store.DeliveryPending}}, NotBefore: at(1), CreatedAt: at(sec), UpdatedAt: at(sec),
	}
}

func (v *env) post(o *store.Outgoing) *store.Outgoing {
	v.Helper()
	got, created, err := v.PutOutgoing(v.ctx, o)
	v.ok(err)
	if !created {
		v.Fatalf("%s existed", o.Key)
	}
	v.same(got, *o)
	return o
}

func (v *env) set(o *store.Outgoing, s store.DeliveryState, sec int) {
	v.Helper()
	o.State, o.UpdatedAt = s, at(sec)
	v.ok(v.UpdateOutgoing(v.ctx, o))
}

func keys(os []store.Outgoing) []string {
	return list(os, func(o store.Outgoing) string { return o.Key })
}

var outboxTests = []test{
	{"CreateOnce", func(v *env) {
		o := v.post(outgoing("k/1", 0))
		again := outgoing("k/1", 9)
		again.Body = raw("other")
		got, created, err := v.PutOutgoing(v.ctx, again)
		v.ok(err)
		if created {
			v.Fatal("created twice")
		}
		v.same(got, *o)
		v.set(o, store.DeliverySent, 3)
		v.reopen()
		got, created, err = v.PutOutgoing(v.ctx, again)
		v.ok(err)
		if created || got.State != store.DeliverySent {
			v.Fatalf("created %v, state %s", created, got.State)
		}
		v.same(must(v.Outgoing(v.ctx, "k/1"))(v), *o)
		_, err = v.Outgoing(v.ctx, "k")
		v.is(err, store.ErrNotFound)
	}},
	{"Update", func(v *env) {
		o := v.post(outgoing("a", 0))
		o.State, o.Attempts, o.Error, o.NotBefore, o.UpdatedAt = store.DeliveryFailed, 3, "429", at(60), at(5)
		o.Parts = []store.OutgoingPart{{MessageID: "p1", State: store.DeliverySent, Hash: "h"}, {State: store.DeliveryFailed}}
		v.ok(v.UpdateOutgoing(v.ctx, o))
		v.same(must(v.Outgoing(v.ctx, "a"))(v), *o)
		late := *o
		late.CreatedAt = at(1000) // when it was created never changes
		v.ok(v.UpdateOutgoing(v.ctx, &late))
		v.same(must(v.Outgoing(v.ctx, "a"))(v), *o)
		v.is(v.UpdateOutgoing(v.ctx, outgoing("unknown", 0)), store.ErrNotFound)
	}},
	{"IndexesParts", func(v *env) {
		in := outgoing("a", 0)
		in.Conversation.Topic = "t"
		o := v.post(in)
		o.Parts = []store.OutgoingPart{{MessageID: "p1", State: store.DeliverySent}, {State: store.DeliverySending}}
		v.set(o, store.DeliverySending, 1)
		v.same(must(v.ConversationOfMessage(v.ctx, chat("1"), "p1"))(v), o.Conversation)
		_, err := v.ConversationOfMessage(v.ctx, chat("1"), "")
		v.is(err, store.ErrNotFound)
		o.Parts[1] = store.OutgoingPart{MessageID: "p2", State: store.DeliverySent}
		v.set(o, store.DeliverySent, 2)
		v.same(must(v.ConversationOfMessage(v.ctx, chat("1"), "p2"))(v), o.Conversation)
	}},
	{"Settles", func(v *env) {
		for _, s := range []store.DeliveryState{store.DeliverySent, store.DeliveryPermanent} {
			a := v.accept(entry(chat("1"), string(s)+"a", base), true)
			b := v.accept(entry(chat("1"), string(s)+"b", base), true)
			v.ok(v.TakeInbound(v.ctx, "run1", a.ID))
			o := outgoing(string(s), 0)
			o.Settles = []string{a.ID, b.ID, "unknown"}
			v.post(o)
			for _, before := range []store.DeliveryState{store.DeliverySending, store.DeliveryFailed, store.DeliveryUnknown} {
				v.set(o, before, 1)
				must(v.Inbound(v.ctx, a.ID))(v)
			}
			v.set(o, s, 2)
			for _, e := range []*store.InboxEntry{a, b} {
				_, err := v.Inbound(v.ctx, e.ID)
				v.is(err, store.ErrNotFound)
			}
			v.same(v.pending(chat("1")), []string{})
		}
	}},
	{"UpdateIsAtomic", func(v *env) {
		e := v.accept(entry(chat("1"), "m", base), true)
		o := outgoing("a", 0)
		o.Settles = []string{e.ID}
		v.post(o)
		broken := *o
		broken.State, broken.Body = store.DeliverySent, big(store.MaxValue)
		broken.Parts = []store.OutgoingPart{{MessageID: "p", State: store.DeliverySent}}
		v.is(v.UpdateOutgoing(v.ctx, &broken), store.ErrTooLarge)
		v.same(must(v.Outgoing(v.ctx, "a"))(v), *o)
		must(v.Inbound(v.ctx, e.ID))(v)
		_, err := v.ConversationOfMessage(v.ctx, chat("1"), "p")
		v.is(err, store.ErrNotFound)
		v.same(keys(must(v.UnsentOutgoing(v.ctx))(v)), []string{"a"})
		_, _, err = v.PutOutgoing(v.ctx, &store.Outgoing{Key: "big", Body: big(store.MaxValue)})
		v.is(err, store.ErrTooLarge)
	}},
	{"Unsent", func(v *env) {
		states := []store.DeliveryState{
			store.DeliveryPending, store.DeliverySent, store.DeliverySending, store.DeliveryFailed, store.DeliveryPermanent, store.DeliveryUnknown,
		}
		var want []string
		for i, s := range states {
			k := fmt.Sprint(9-i, s) // keys do not give the order
			o := v.post(outgoing(k, i))
			v.set(o, s, 100-i)
			if s != store.DeliverySent && s != store.DeliveryPermanent {
				want = append(want, k)
			}
		}
		v.same(keys(must(v.UnsentOutgoing(v.ctx))(v)), want)
		o := must(v.Outgoing(v.ctx, fmt.Sprint(8, store.DeliverySent)))(v)
		v.set(&o, store.DeliveryFailed, 200) // and back
		v.same(keys(must(v.UnsentOutgoing(v.ctx))(v)), append([]string{want[0], o.Key}, want[1:]...))
		v.set(&o, store.DeliverySent, 201)
		v.reopen()
		v.same(keys(must(v.UnsentOutgoing(v.ctx))(v)), want)
	}},
	{"PutDone", func(v *env) { // a record may be done when it is written
		o := outgoing("a", 0)
		o.State = store.DeliverySent
		v.post(o)
		v.same(len(must(v.UnsentOutgoing(v.ctx))(v)), 0)
		v.same(must(v.PruneOutgoing(v.ctx, at(1)))(v), 1)
	}},
	{"OfRun", func(v *env) {
		var want []string
		for i := range 6 {
			o := outgoing(fmt.Sprint(9-i), i)
			if i%2 == 1 {
				o.RunID = []string{"", "run", "run10"}[i/2]
			} else {
				want = append(want, o.Key)
			}
			v.post(o)
			v.set(o, store.DeliverySent, 50)
		}
		v.same(keys(must(v.RunOutgoing(v.ctx, "run1"))(v)), want)
		v.same(len(must(v.RunOutgoing(v.ctx, "unknown"))(v)), 0)
	}},
	{"Prune", func(v *env) {
		const n = 1100
		for i := range n {
			o := outgoing(fmt.Sprintf("%05d", i), 0)
			if i%100 != 0 {
				o.State, o.UpdatedAt = store.DeliverySent, at(i)
			}
			v.post(o)
		}
		o := must(v.Outgoing(v.ctx, "00001"))(v)
		v.set(&o, store.DeliveryPermanent, 5000) // touched later
		v.same(must(v.PruneOutgoing(v.ctx, at(1051)))(v), 1051-11-1)
		v.same(must(v.PruneOutgoing(v.ctx, at(1051)))(v), 0)
		must(v.Outgoing(v.ctx, "00000"))(v) // not sent yet, however old
		must(v.Outgoing(v.ctx, "00001"))(v)
		must(v.Outgoing(v.ctx, "01051"))(v)
		_, err := v.Outgoing(v.ctx, "01050")
		v.is(err, store.ErrNotFound)
		v.same(len(must(v.RunOutgoing(v.ctx, "run1"))(v)), n-1039)
		v.same(len(must(v.UnsentOutgoing(v.ctx))(v)), 11)
		v.post(outgoing("01050", 7)) // its key is free again
	}},
	{"Penalties", func(v *env) {
		now := time.Now().UTC()
		soon, later := now.Add(time.Hour), now.Add(2*time.Hour)
		v.ok(v.PutPenalty(v.ctx, "telegram/bot1", soon))
		v.ok(v.PutPenalty(v.ctx, "telegram/bot1/chat", later))
		v.ok(v.PutPenalty(v.ctx, "slack", now.Add(-time.Minute)))
		v.reopen()
		v.same(must(v.Penalties(v.ctx, now))(v), map[string]time.Time{"telegram/bot1": soon, "telegram/bot1/chat": later})
		v.same(must(v.Penalties(v.ctx, soon))(v), map[string]time.Time{"telegram/bot1/chat": later})
		v.ok(v.PutPenalty(v.ctx, "telegram/bot1/chat", now.Add(-time.Second)))
		v.same(must(v.Penalties(v.ctx, now))(v), map[string]time.Time{"telegram/bot1": soon})
		v.ok(v.PutPenalty(v.ctx, "unknown", time.Time{}))
	}},
}

var usageTests = []test{
	{"OfRun", func(v *env) {
		a, b := v.running(), v.running()
		row := usage(a, 5)
		row.RunID = "" // the run is given once
		early := usage(a, 1)
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: a.ID, Epoch: 1, Usage: []store.UsageRow{row, early}}))
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: b.ID, Epoch: 1, Usage: []store.UsageRow{usage(b, 2)}}))
		row.RunID = a.ID
		v.same(must(v.RunUsage(v.ctx, a.ID))(v), []store.UsageRow{early, row})
		v.same(len(must(v.RunUsage(v.ctx, "unknown"))(v)), 0)
	}},
	{"Between", func(v *env) {
		r := v.running()
		const n = 1203 // more than a page
		var rows []store.UsageRow
		for i := range n {
			rows = append(rows, usage(r, i/2)) // two at each second
		}
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Usage: rows}))
		collect := func(from, to time.Time, limit int) (got []store.UsageRow) {
			v.ok(v.UsageBetween(v.ctx, from, to, func(u store.UsageRow) bool {
				got = append(got, u)
				return len(got) < limit
			}))
			return got
		}
		v.same(collect(at(0), at(n), n+1), rows)
		v.same(collect(at(10), at(12), n), rows[20:24]) // from is in, to is out
		v.same(collect(at(10), at(12), 3), rows[20:23])
		v.same(len(collect(at(12), at(10), n)), 0)
		v.same(len(collect(time.Time{}, at(1), n)), 2)
		v.same(len(collect(at(n), at(2*n), n)), 0)
	}},
}
