package storetest

import (
	"fmt"

	"deerbot/store"
)

var conversationTests = []test{
	{"PutAndThread", func(v *env) {
		c := store.Conversation{
			Key: chat("1"), ThreadID: newID(), Model: "m", Agent: "a", Locale: "de", Kind: "group", Title: "T",
			Settings: map[string]string{"x": "y"}, CreatedAt: base, UpdatedAt: at(1),
		}
		_, err := v.Conversation(v.ctx, c.Key)
		v.is(err, store.ErrNotFound)
		v.ok(v.PutConversation(v.ctx, &c))
		v.same(must(v.Conversation(v.ctx, c.Key))(v), c)
		th := must(v.Thread(v.ctx, c.ThreadID))(v)
		if th.Head != "" || !th.CreatedAt.Equal(at(1)) {
			v.Fatalf("thread is %+v", th)
		}
		// An existing thread is left alone.
		head := v.step(c.ThreadID, "")
		c.Model = "other"
		v.ok(v.PutConversation(v.ctx, &c))
		v.same(must(v.Thread(v.ctx, c.ThreadID))(v).Head, head)
		v.reopen()
		v.same(must(v.Conversation(v.ctx, c.Key))(v), c)
		v.ok(v.PutConversation(v.ctx, &store.Conversation{Key: chat("2"), UpdatedAt: base})) // no thread yet
		c.Title = string(big(store.MaxValue))
		c.ThreadID = newID()
		v.is(v.PutConversation(v.ctx, &c), store.ErrTooLarge)
		_, err = v.Thread(v.ctx, c.ThreadID)
		v.is(err, store.ErrNotFound) // one transaction
	}},
	{"List", func(v *env) {
		put := func(channel, workspace, chat string, sec int) {
			v.ok(v.PutConversation(v.ctx, &store.Conversation{
				Key: store.ConversationKey{Channel: channel, Workspace: workspace, Chat: chat}, ThreadID: newID(), UpdatedAt: at(sec),
			}))
		}
		put("slack", "T1", "a", 5)
		put("slack", "T1", "b", 9)
		put("slack", "T2", "c", 7)
		put("telegram", "", "d", 8)
		put("slac", "T1", "e", 6)
		get := func(channel, workspace string, limit int) []string {
			return list(must(v.Conversations(v.ctx, channel, workspace, limit))(v), func(c store.Conversation) string { return c.Key.Chat })
		}
		v.same(get("slack", "T1", 99), []string{"b", "a"})
		v.same(get("slack", "", 99), []string{"b", "c", "a"})
		v.same(get("slack", "", 2), []string{"b", "c"})
		v.same(get("", "", 99), []string{"b", "d", "c", "e", "a"})
		v.same(get("", "T1", 99), []string{"b", "e", "a"})
		v.same(get("none", "", 99), []string{})
		v.same(get("slack", "", 0), []string{})
	}},
	{"MessageIndex", func(v *env) {
		topic := chat("1")
		topic.Topic = "t"
		v.ok(v.IndexMessage(v.ctx, topic, "m1"))
		for _, k := range []store.ConversationKey{topic, chat("1"), {Channel: "telegram", Workspace: "bot1", Chat: "1", Topic: "other"}} {
			v.same(must(v.ConversationOfMessage(v.ctx, k, "m1"))(v), topic)
		}
		_, err := v.ConversationOfMessage(v.ctx, chat("2"), "m1")
		v.is(err, store.ErrNotFound)
		_, err = v.ConversationOfMessage(v.ctx, chat("1"), "m2")
		v.is(err, store.ErrNotFound)
		v.ok(v.IndexMessage(v.ctx, chat("1"), "m1")) // the last word stands
		v.same(must(v.ConversationOfMessage(v.ctx, topic, "m1"))(v), chat("1"))
		e := entry(topic, "m9", base)
		v.accept(e, true)
		v.same(must(v.ConversationOfMessage(v.ctx, chat("1"), "m9"))(v), topic)
	}},
	{"MoveChatLeavesOthers", func(v *env) {
		for _, name := range []string{"1", "11", "1/1"} {
			v.ok(v.PutConversation(v.ctx, &store.Conversation{Key: chat(name), Title: name, UpdatedAt: base}))
		}
		foreign := store.ConversationKey{Channel: "telegram", Workspace: "bot2", Chat: "1"}
		v.ok(v.PutConversation(v.ctx, &store.Conversation{Key: foreign, UpdatedAt: base}))
		v.ok(v.MoveChat(v.ctx, "telegram", "bot1", "1", "2"))
		_, err := v.Conversation(v.ctx, chat("1"))
		v.is(err, store.ErrNotFound)
		v.same(must(v.Conversation(v.ctx, chat("2")))(v).Title, "1")
		v.same(must(v.Conversation(v.ctx, chat("11")))(v).Key, chat("11"))
		v.same(must(v.Conversation(v.ctx, chat("1/1")))(v).Key, chat("1/1"))
		v.same(must(v.Conversation(v.ctx, foreign))(v).Key, foreign)
		v.ok(v.MoveChat(v.ctx, "telegram", "bot1", "1", "2")) // again: nothing to do
		v.ok(v.MoveChat(v.ctx, "telegram", "bot1", "2", "2"))
		v.same(must(v.Conversation(v.ctx, chat("2")))(v).Title, "1")
	}},
	{"MoveChatKeepsTheNewer", func(v *env) {
		v.ok(v.PutConversation(v.ctx, &store.Conversation{Key: chat("old"), Title: "old", UpdatedAt: base}))
		v.ok(v.PutConversation(v.ctx, &store.Conversation{Key: chat("new"), Title: "new", UpdatedAt: base}))
		var want []string
		for i := range 6 { // messages to both, in turn
			c := chat("old")
			if i%2 == 1 {
				c = chat("new")
			}
			v.accept(entry(c, fmt.Sprint(i), base), true)
			want = append(want, fmt.Sprint(i))
		}
		v.ok(v.MoveChat(v.ctx, "telegram", "bot1", "old", "new"))
		v.same(must(v.Conversation(v.ctx, chat("new")))(v).Title, "new")
		v.same(v.pending(chat("new")), want)
		v.same(v.pending(chat("old")), []string{})
	}},
}
