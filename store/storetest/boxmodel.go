package storetest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"deerbot/store"
)

// boxModel knows what the inbox and outbox of one place must hold.
type boxModel struct {
	v       *env
	place   store.ConversationKey
	seen    map[string]bool // message ids
	entries []*store.InboxEntry
	out     []*store.Outgoing
}

func (m *boxModel) accept(t *rapid.T) {
	e := entry(m.place, fmt.Sprint(rapid.IntRange(0, 20).Draw(t, "message")), base)
	got, err := m.v.AcceptInbound(m.v.ctx, e)
	expect(t, "accept", err, nil)
	if got == m.seen[e.MessageID] {
		t.Fatalf("message %s accepted: %v", e.MessageID, got)
	}
	if m.seen[e.MessageID] = true; got {
		m.entries = append(m.entries, e)
	}
}

func (m *boxModel) pick(t *rapid.T) *store.InboxEntry {
	if len(m.entries) == 0 {
		t.Skip("no entry")
	}
	return m.entries[rapid.IntRange(0, len(m.entries)-1).Draw(t, "entry")]
}

func (m *boxModel) take(t *rapid.T) {
	a, b, run := m.pick(t), m.pick(t), rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "taker")
	var want error
	for _, e := range []*store.InboxEntry{a, b} {
		if e.State == store.InboxTaken && e.RunID != run {
			want = store.ErrConflict
		}
	}
	if expect(t, "take", m.v.TakeInbound(m.v.ctx, run, a.ID, b.ID), want) {
		for _, e := range []*store.InboxEntry{a, b} {
			e.State, e.RunID = store.InboxTaken, run
		}
	}
}

func (m *boxModel) remove(ids []string) {
	m.entries = slices.DeleteFunc(m.entries, func(e *store.InboxEntry) bool { return slices.Contains(ids, e.ID) })
}

func (m *boxModel) settle(t *rapid.T) {
	id := m.pick(t).ID
	expect(t, "settle", m.v.SettleInbound(m.v.ctx, id), nil)
	m.remove([]string{id})
}

func (m *boxModel) post(t *rapid.T) {
	o := outgoing(m.place.Chat+fmt.Sprint("/", rapid.IntRange(0, 9).Draw(t, "out")), len(m.out))
	o.Conversation, o.RunID = m.place, m.place.Chat
	if len(m.entries) > 0 {
		o.Settles = []string{m.pick(t).ID}
	}
	known := slices.ContainsFunc(m.out, func(p *store.Outgoing) bool { return p.Key == o.Key })
	_, created, err := m.v.PutOutgoing(m.v.ctx, o)
	expect(t, "post", err, nil)
	if created == known {
		t.Fatalf("%s created: %v", o.Key, created)
	}
	if created {
		m.out = append(m.out, o)
	}
}

func (m *boxModel) deliver(t *rapid.T) {
	if len(m.out) == 0 {
		t.Skip("nothing to send")
	}
	o := m.out[rapid.IntRange(0, len(m.out)-1).Draw(t, "out")]
	o.State = rapid.SampledFrom([]store.DeliveryState{
		store.DeliverySending, store.DeliveryFailed, store.DeliveryUnknown, store.DeliverySent, store.DeliveryPermanent,
	}).Draw(t, "state")
	o.Attempts, o.UpdatedAt = o.Attempts+1, at(100+o.Attempts)
	o.Parts[0].MessageID = "sent" + o.Key
	expect(t, "deliver", m.v.UpdateOutgoing(m.v.ctx, o), nil)
	if o.State == store.DeliverySent || o.State == store.DeliveryPermanent {
		m.remove(o.Settles)
	}
}

func (m *boxModel) check(t *rapid.T) {
	pending, err := m.v.PendingInbound(m.v.ctx, m.place, 1000)
	expect(t, "pending", err, nil)
	var want []string
	for _, e := range m.entries {
		if e.State == store.InboxPending {
			want = append(want, e.ID)
		}
		got, err := m.v.Inbound(m.v.ctx, e.ID)
		expect(t, "entry", err, nil)
		if got.State != e.State || got.RunID != e.RunID || got.Seq != e.Seq {
			t.Fatalf("entry\n got %+v\nwant %+v", got, *e)
		}
	}
	if got := list(pending, func(e store.InboxEntry) string { return e.ID }); len(got)+len(want) > 0 && !slices.Equal(got, want) {
		t.Fatalf("pending %v, want %v", got, want)
	}
	out, err := m.v.RunOutgoing(m.v.ctx, m.place.Chat)
	expect(t, "outgoing", err, nil)
	if len(out) != len(m.out) {
		t.Fatalf("%d outgoing, want %d", len(out), len(m.out))
	}
	for i, o := range m.out {
		if out[i].Key != o.Key || out[i].State != o.State || out[i].Attempts != o.Attempts {
			t.Fatalf("outgoing\n got %+v\nwant %+v", out[i], *o)
		}
		if id := o.Parts[0].MessageID; id != "" {
			k, err := m.v.ConversationOfMessage(m.v.ctx, m.place, id)
			if expect(t, "message", err, nil); k != m.place {
				t.Fatalf("message %s is of %s", id, k)
			}
		}
	}
}
