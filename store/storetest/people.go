package storetest

import (
	"fmt"
	"time"

	"deerbot/store"
)

var userTests = []test{
	{"Users", func(v *env) {
		u := store.User{ID: "u1", Name: "Ada", Role: "owner", CreatedAt: base}
		_, err := v.User(v.ctx, "u1")
		v.is(err, store.ErrNotFound)
		v.ok(v.PutUser(v.ctx, &u))
		u.Role = "operator"
		v.ok(v.PutUser(v.ctx, &u))
		v.reopen()
		v.same(must(v.User(v.ctx, "u1"))(v), u)
	}},
	{"OneOwner", func(v *env) {
		c := store.Connection{UserID: "u1", Channel: "slack", Workspace: "T1", Account: "U7", Name: "ada", CreatedAt: base}
		v.same(must(v.PutConnection(v.ctx, &c))(v), "")
		v.same(must(v.PutConnection(v.ctx, &c))(v), "") // again: nobody loses it
		other := c
		other.UserID = "u2"
		v.same(must(v.PutConnection(v.ctx, &other))(v), "u1")
		v.same(must(v.ConnectionOf(v.ctx, "slack", "T1", "U7"))(v), other)
		v.same(len(must(v.UserConnections(v.ctx, "u1"))(v)), 0)
		v.same(must(v.UserConnections(v.ctx, "u2"))(v), []store.Connection{other})
		_, err := v.ConnectionOf(v.ctx, "slack", "T2", "U7") // another workspace's U7 is another person
		v.is(err, store.ErrNotFound)
		second := store.Connection{UserID: "u2", Channel: "lark", Account: "ou_1", CreatedAt: base}
		v.same(must(v.PutConnection(v.ctx, &second))(v), "")
		v.same(len(must(v.UserConnections(v.ctx, "u2"))(v)), 2)
		v.same(len(must(v.UserConnections(v.ctx, "u"))(v)), 0)
		v.reopen()
		v.ok(v.DeleteConnection(v.ctx, "slack", "T1", "U7"))
		v.ok(v.DeleteConnection(v.ctx, "slack", "T1", "U7"))
		_, err = v.ConnectionOf(v.ctx, "slack", "T1", "U7")
		v.is(err, store.ErrNotFound)
		v.same(must(v.UserConnections(v.ctx, "u2"))(v), []store.Connection{second})
	}},
}

func schedule(id string, next time.Time) *store.Schedule {
	return &store.Schedule{
		ID: id, Conversation: chat("1"), UserID: "u", Kind: "cron", Spec: "0 9 * * *", Zone: "Europe/Berlin", Text: "news", Active: true,
		Next: next, CreatedAt: base, Extra: raw(map[string]int{"n": 1}),
	}
}

func (v *env) due(sec, limit int) []string {
	v.Helper()
	return list(must(v.DueSchedules(v.ctx, at(sec), limit))(v), func(s store.Schedule) string { return s.ID })
}

var scheduleTests = []test{
	{"PutAndDelete", func(v *env) {
		s := schedule("a", at(10))
		v.ok(v.PutSchedule(v.ctx, s))
		v.reopen()
		v.same(must(v.Schedule(v.ctx, "a"))(v), *s)
		other := schedule("b", at(5))
		other.Conversation = chat("2")
		v.ok(v.PutSchedule(v.ctx, other))
		v.same(must(v.Schedules(v.ctx, chat("1")))(v), []store.Schedule{*s})
		v.same(len(must(v.Schedules(v.ctx, chat("3")))(v)), 0)
		v.ok(v.DeleteSchedule(v.ctx, "a"))
		v.ok(v.DeleteSchedule(v.ctx, "a"))
		_, err := v.Schedule(v.ctx, "a")
		v.is(err, store.ErrNotFound)
		v.same(v.due(100, 9), []string{"b"})
	}},
	{"Due", func(v *env) {
		for i := range 5 {
			v.ok(v.PutSchedule(v.ctx, schedule(fmt.Sprint(9-i), at(10*i))))
		}
		v.same(v.due(-1, 9), []string{})
		v.same(v.due(20, 9), []string{"9", "8", "7"}) // at now is due
		v.same(v.due(100, 2), []string{"9", "8"})
		v.same(v.due(100, 0), []string{})
		s := schedule("9", at(200)) // it ran: the next time
		v.ok(v.PutSchedule(v.ctx, s))
		v.same(v.due(20, 9), []string{"8", "7"})
		s.Active = false
		v.ok(v.PutSchedule(v.ctx, s))
		v.same(v.due(1000, 9), []string{"8", "7", "6", "5"})
		s.Active = true
		v.ok(v.PutSchedule(v.ctx, s))
		never := schedule("8", time.Time{})
		v.ok(v.PutSchedule(v.ctx, never))
		v.reopen()
		v.same(v.due(1000, 9), []string{"7", "6", "5", "9"})
	}},
}

var chatLogTests = []test{
	{"SeqAndRev", func(v *env) {
		put := func(chat, id, text string) store.ChatMessage {
			v.Helper()
			m := store.ChatMessage{Chat: chat, ID: id, Body: raw(text)}
			v.ok(v.PutChatMessage(v.ctx, &m))
			return m
		}
		a, b := put("c", "a", "1"), put("c", "b", "1")
		if a.Seq != 1 || b.Seq != 2 || b.Rev <= a.Rev || a.CreatedAt.IsZero() || a.UpdatedAt.IsZero() {
			v.Fatalf("messages are %+v, %+v", a, b)
		}
		edited := put("c", "a", "2")
		if edited.Seq != a.Seq || edited.Rev <= b.Rev || !edited.CreatedAt.Equal(a.CreatedAt) {
			v.Fatalf("edited as %+v", edited)
		}
		other := put("d", "a", "1")
		v.same(other.Seq, uint64(1))
		v.reopen()
		v.same(must(v.ChatMessage(v.ctx, "c", "a"))(v), edited)
		v.same(must(v.ChatMessages(v.ctx, "c", 0, 9))(v), []store.ChatMessage{edited, b})
		v.same(must(v.ChatMessages(v.ctx, "c", 0, 1))(v), []store.ChatMessage{edited})
		v.same(must(v.ChatMessages(v.ctx, "c", 1, 9))(v), []store.ChatMessage{b})
		v.same(len(must(v.ChatMessages(v.ctx, "c", 2, 9))(v)), 0)
		v.same(len(must(v.ChatMessages(v.ctx, "c", ^uint64(0), 9))(v)), 0)
		v.same(len(must(v.ChatMessages(v.ctx, "c", 0, 0))(v)), 0)
		_, err := v.ChatMessage(v.ctx, "c", "x")
		v.is(err, store.ErrNotFound)
		_, err = v.ChatMessage(v.ctx, "x", "a")
		v.is(err, store.ErrNotFound)
		m := store.ChatMessage{Chat: "c", ID: "big", Body: big(store.MaxValue)}
		v.is(v.PutChatMessage(v.ctx, &m), store.ErrTooLarge)
		v.same(put("c", "next", "1").Seq, uint64(3)) // no gap
	}},
	{"Chats", func(v *env) {
		summary := func() []string {
			return list(must(v.Chats(v.ctx, 99))(v), func(c store.ChatSummary) string { return fmt.Sprint(c.Chat, c.Title, c.Messages) })
		}
		say := func(chat, id string) {
			v.ok(v.PutChatMessage(v.ctx, &store.ChatMessage{Chat: chat, ID: id, Body: raw(1)}))
		}
		say("a", "1")
		say("b", "1")
		say("a", "2")
		v.same(summary(), []string{"a2", "b1"})
		v.ok(v.PutChatTitle(v.ctx, "b", "T"))
		v.ok(v.PutChatTitle(v.ctx, "empty", "E"))
		v.same(summary(), []string{"emptyE0", "a2", "bT1"})
		say("b", "1")
		v.same(summary(), []string{"bT1", "emptyE0", "a2"})
		v.same(len(must(v.Chats(v.ctx, 2))(v)), 2)
		v.ok(v.DeleteChat(v.ctx, "a"))
		v.ok(v.DeleteChat(v.ctx, "a"))
		v.reopen()
		v.same(summary(), []string{"bT1", "emptyE0"})
		_, err := v.ChatMessage(v.ctx, "a", "1")
		v.is(err, store.ErrNotFound)
		v.same(len(must(v.ChatMessages(v.ctx, "a", 0, 9))(v)), 0)
	}},
}

var lifeTests = []test{
	{"Marks", func(v *env) {
		unclean := func(now, since int) []time.Time {
			v.Helper()
			return must(v.MarkStart(v.ctx, at(now), at(since)))(v)
		}
		v.same(unclean(0, -100), []time.Time{})
		v.same(unclean(10, -100), []time.Time{at(0)}) // the first never stopped
		v.reopen()
		v.same(unclean(20, -100), []time.Time{at(0), at(10)})
		v.same(unclean(30, 10), []time.Time{at(10), at(20)}) // since is in
		v.ok(v.MarkStop(v.ctx))
		v.ok(v.MarkStop(v.ctx))
		v.same(unclean(40, -100), []time.Time{})
		v.same(unclean(50, -100), []time.Time{at(40)})
	}},
}
