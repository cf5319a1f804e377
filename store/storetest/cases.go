package storetest

import (
	"time"

	"deerbot/store"
)

// caseTests are inputs that broke others, named by their number.
var caseTests = []test{
	{"C062RetryLadder", func(v *env) { // one message, delivered over six hours, across a restart
		k := store.ConversationKey{Channel: "lark", Workspace: "cli_1", Chat: "oc_1"}
		for i, after := range []time.Duration{0, 15 * time.Second, 5 * time.Minute, time.Hour, 6 * time.Hour, 8 * time.Hour} {
			e := v.accept(entry(k, "om_1", base.Add(after)), i == 0)
			if i == 0 {
				v.ok(v.SettleInbound(v.ctx, e.ID)) // answered long ago
			}
			// The clean-up job runs in between, and the daemon restarts.
			must(v.PruneDedupe(v.ctx, base.Add(after-store.DedupeKeep)))(v)
			if i == 2 {
				v.reopen()
			}
		}
	}},
	{"C063OtherEventID", func(v *env) { // the message is the key; its edit and its recall are events of their own
		k := store.ConversationKey{Channel: "lark", Workspace: "cli_1", Chat: "oc_1"}
		e1, e2 := entry(k, "om_1", base), entry(k, "om_1", at(15))
		v.accept(e1, true)
		v.accept(e2, false)
		edit := entry(k, "om_1", at(20))
		edit.DedupeKey = "edit/om_1/2"
		v.accept(edit, true)
		recall := entry(k, "om_1", at(30))
		recall.DedupeKey = "recall/om_1"
		v.accept(recall, true)
		v.same(v.pending(k), []string{"om_1", "om_1", "om_1"})
		other := k
		other.Workspace = "cli_2" // another bot in the same chat
		v.accept(entry(other, "om_1", base), true)
	}},
	{"C103Separate", func(v *env) { // nothing of a group is in a person's chat, and a schedule keeps its place
		group := store.ConversationKey{Channel: "telegram", Workspace: "bot1", Chat: "-100"}
		dm := store.ConversationKey{Channel: "telegram", Workspace: "bot1", Chat: "100"}
		for _, k := range []store.ConversationKey{group, dm} {
			v.ok(v.PutConversation(v.ctx, &store.Conversation{Key: k, ThreadID: newID(), UpdatedAt: base}))
		}
		g, d := must(v.Conversation(v.ctx, group))(v), must(v.Conversation(v.ctx, dm))(v)
		v.step(g.ThreadID, "")
		v.accept(entry(group, "secret", base), true)
		s := schedule("s", at(1))
		s.Conversation = group
		v.ok(v.PutSchedule(v.ctx, s))
		v.ok(v.PutConversation(v.ctx, &d)) // the last one to talk
		v.same(len(must(v.Checkpoints(v.ctx, d.ThreadID, ""))(v)), 0)
		v.same(v.pending(dm), []string{})
		_, err := v.ConversationOfMessage(v.ctx, dm, "secret")
		v.is(err, store.ErrNotFound)
		v.same(must(v.DueSchedules(v.ctx, at(2), 9))(v)[0].Conversation, group)
		v.same(len(must(v.Schedules(v.ctx, dm))(v)), 0)
	}},
	{"C113Supergroup", func(v *env) { // everything follows the chat to its new id, in one step
		const old, id = "-123", "-1009876543210"
		topic := store.ConversationKey{Channel: "telegram", Workspace: "bot1", Chat: old, Topic: "7"}
		v.ok(v.PutConversation(v.ctx, &store.Conversation{Key: chat(old), ThreadID: newID(), Model: "m", UpdatedAt: base}))
		v.ok(v.PutConversation(v.ctx, &store.Conversation{Key: topic, ThreadID: newID(), UpdatedAt: base}))
		v.ok(v.IndexMessage(v.ctx, topic, "m1"))
		waits := v.accept(entry(chat(old), "m2", base), true)
		taken := v.accept(entry(chat(old), "m3", base), true)
		v.ok(v.TakeInbound(v.ctx, "run1", taken.ID))
		o := outgoing("k", 0)
		o.Conversation = chat(old)
		v.post(o)
		s := schedule("s", at(1))
		s.Conversation = chat(old)
		v.ok(v.PutSchedule(v.ctx, s))

		v.ok(v.MoveChat(v.ctx, "telegram", "bot1", old, id))
		v.reopen()
		moved := topic
		moved.Chat = id
		c := must(v.Conversation(v.ctx, chat(id)))(v)
		v.same(c.Key, chat(id))
		v.same(c.Model, "m")
		v.same(must(v.Conversation(v.ctx, moved))(v).Key, moved)
		v.same(len(must(v.Conversations(v.ctx, "telegram", "bot1", 9))(v)), 2)
		v.same(must(v.ConversationOfMessage(v.ctx, chat(id), "m1"))(v), moved)
		v.same(v.pending(chat(id)), []string{"m2"})
		v.same(v.pending(chat(old)), []string{})
		v.same(must(v.InboundByMessage(v.ctx, chat(id), "m2"))(v).ID, waits.ID)
		got := must(v.Inbound(v.ctx, taken.ID))(v)
		if got.Conversation != chat(id) || got.State != store.InboxTaken || got.RunID != "run1" || got.Seq != taken.Seq {
			v.Fatalf("taken entry is %+v", got)
		}
		out := must(v.Outgoing(v.ctx, "k"))(v)
		v.same(out.Conversation, chat(id))
		v.same(must(v.UnsentOutgoing(v.ctx))(v), []store.Outgoing{out})
		v.same(must(v.Schedules(v.ctx, chat(id)))(v)[0].ID, "s")
		v.same(must(v.DueSchedules(v.ctx, at(2), 9))(v)[0].Conversation, chat(id))
		fresh := v.accept(entry(chat(id), "m2", at(5)), true) // the new chat counts its messages anew
		// What was moved ends like anything else.
		out.Settles = []string{waits.ID, taken.ID, fresh.ID}
		v.set(&out, store.DeliverySent, 9)
		v.same(len(must(v.UnsettledInbound(v.ctx))(v)), 0)
		v.same(must(v.PruneDedupe(v.ctx, at(100)))(v), 3)
		v.accept(entry(chat(id), "m2", at(200)), true)
		_, err := v.Conversation(v.ctx, chat(old))
		v.is(err, store.ErrNotFound)
	}},
	{"C190BigValue", func(v *env) { // refused before anything is written, and the next write works
		r := v.running()
		huge := big(300 << 20)
		w := full(r, "", 1)
		w.Checkpoint.Messages = append(w.Checkpoint.Messages, huge)
		before := v.footprint(r)
		v.is(v.WriteRun(v.ctx, w), store.ErrTooLarge)
		v.same(v.footprint(r), before)
		w.Checkpoint.Messages = w.Checkpoint.Messages[:1]
		v.ok(v.WriteRun(v.ctx, w))
	}},
	{"LargestValue", func(v *env) {
		r := v.running()
		w := &store.RunWrite{RunID: r.ID, Epoch: 1, Checkpoint: checkpoint("", 1)}
		w.Checkpoint.Messages = []rawMessage{big(store.MaxValue - 4096)}
		v.ok(v.WriteRun(v.ctx, w))
		v.reopen()
		v.same(len(must(v.Checkpoints(v.ctx, r.ThreadID, ""))(v)[0].Messages[0]), len(w.Checkpoint.Messages[0]))
		v.ok(v.WriteRun(v.ctx, &store.RunWrite{RunID: r.ID, Epoch: 1, Title: "next"}))
	}},
}
