package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"deerbot/store"
)

// nasty are ids, of valid UTF-8, that collide when keys are joined carelessly.
var nasty = []string{"", "a", "b", "a/b", "a:b", "a\x00b", "\x00", "\x00\x01", "a\x00", "\x01", "a\x00\x01b", "é", "a|b", " "}

var engineTests = []test{
	{"Closed", func(v *env) {
		closed := v.Store
		v.ok(closed.Close())
		v.ok(closed.Close())
		for name, err := range everyMethod(v.ctx, closed) {
			if !errors.Is(err, store.ErrClosed) {
				v.Errorf("%s: %v", name, err)
			}
		}
		v.Store = v.engine.Open(v.T)
	}},
	{"Cancelled", func(v *env) {
		ctx, cancel := context.WithCancel(v.ctx)
		cancel()
		for name, err := range everyMethod(ctx, v.Store) {
			if !errors.Is(err, context.Canceled) {
				v.Errorf("%s: %v", name, err)
			}
		}
		v.same(v.pending(chat("1")), []string{}) // nothing was written
		v.same(len(must(v.Chats(v.ctx, 9))(v)), 0)
	}},
	{"UTC", func(v *env) {
		zone := time.FixedZone("far", 5*3600)
		e := entry(chat("1"), "m", base.In(zone))
		v.accept(e, true)
		r := runningRun(v.thread())
		r.CreatedAt, r.LeaseUntil = base.In(zone), at(30).In(zone)
		v.admit(r, store.StrategyReject)
		got := must(v.Run(v.ctx, r.ID))(v)
		for name, at := range map[string]time.Time{
			"entry": must(v.Inbound(v.ctx, e.ID))(v).ReceivedAt, "created": got.CreatedAt, "lease": got.LeaseUntil,
		} {
			if at.Location() != time.UTC || at.Nanosecond() != base.Nanosecond() {
				v.Errorf("%s is %v", name, at)
			}
		}
	}},
	{"NothingAliased", func(v *env) { // what a caller does to its copies reaches nobody else
		e := v.accept(entry(chat("1"), "m", base), true)
		want := string(e.Payload)
		spoil := func(b []byte) {
			for i := range b {
				b[i] = 'X'
			}
		}
		spoil(e.Payload)
		got := must(v.Inbound(v.ctx, e.ID))(v)
		v.same(string(got.Payload), want)
		spoil(got.Payload)
		v.same(string(must(v.Inbound(v.ctx, e.ID))(v).Payload), want)
		payload := raw("new")
		v.ok(v.ReplaceInbound(v.ctx, e.ID, payload))
		spoil(payload)
		v.same(string(must(v.Inbound(v.ctx, e.ID))(v).Payload), `"new"`)
		o := v.post(outgoing("k", 0))
		spoil(o.Body)
		v.same(string(must(v.Outgoing(v.ctx, "k"))(v).Body), `"text"`)
	}},
	{"CollidingPlaces", func(v *env) {
		places := map[store.ConversationKey]string{}
		for i, a := range nasty {
			for j, b := range nasty {
				k := store.ConversationKey{Channel: "c" + a, Workspace: b, Chat: "x" + nasty[(i+j)%len(nasty)], Topic: a}
				places[k] = fmt.Sprint(i, " ", j)
			}
		}
		var wg sync.WaitGroup
		for k, title := range places {
			wg.Go(func() {
				if err := v.PutConversation(v.ctx, &store.Conversation{Key: k, Title: title, UpdatedAt: base}); err != nil {
					v.Error(err)
				}
				if err := v.IndexMessage(v.ctx, k, "m\x00"+k.Topic+title); err != nil {
					v.Error(err)
				}
				if _, err := v.AcceptInbound(v.ctx, entry(k, title, base)); err != nil {
					v.Error(err)
				}
			})
		}
		wg.Wait()
		for k, title := range places {
			v.same(must(v.Conversation(v.ctx, k))(v).Title, title)
			v.same(must(v.ConversationOfMessage(v.ctx, k, "m\x00"+k.Topic+title))(v), k)
			v.same(v.pending(k), []string{title})
		}
		if n := len(must(v.Conversations(v.ctx, "", "", 10000))(v)); n != len(places) {
			v.Fatalf("%d conversations, want %d", n, len(places))
		}
	}},
	{"CollidingIDs", func(v *env) {
		for i, id := range nasty[1:] {
			v.ok(v.PutThread(v.ctx, &store.Thread{ID: id, Title: fmt.Sprint(i), CreatedAt: base, UpdatedAt: base}))
		}
		for i, id := range nasty[1:] {
			v.same(must(v.Thread(v.ctx, id))(v).Title, fmt.Sprint(i))
			for j, k := range nasty {
				r := pendingRun(id)
				r.ID, r.IdempotencyKey = fmt.Sprintf("%s/%d/%d", id, i, j), k
				v.admit(r, store.StrategyEnqueue)
			}
		}
		for i, id := range nasty[1:] {
			var want []string
			for j := range nasty {
				want = append(want, fmt.Sprintf("%s/%d/%d", id, i, j))
			}
			v.same(runIDs(must(v.PendingRuns(v.ctx, id))(v)), want)
			v.same(len(must(v.ThreadRuns(v.ctx, id, 999))(v)), len(want))
		}
		for _, a := range nasty[1:] {
			for _, b := range nasty[1:] {
				m := store.ChatMessage{Chat: a, ID: b, Body: raw(a + "|" + b)}
				v.ok(v.PutChatMessage(v.ctx, &m))
				c := store.Connection{UserID: a, Channel: "c", Workspace: a, Account: b}
				must(v.PutConnection(v.ctx, &c))(v)
			}
		}
		for _, a := range nasty[1:] {
			v.same(len(must(v.ChatMessages(v.ctx, a, 0, 999))(v)), len(nasty)-1)
			v.same(len(must(v.UserConnections(v.ctx, a))(v)), len(nasty)-1)
			for _, b := range nasty[1:] {
				v.same(must(v.ChatMessage(v.ctx, a, b))(v).Body, raw(a+"|"+b))
			}
		}
		v.ok(v.DeleteChat(v.ctx, "a"))
		v.same(len(must(v.Chats(v.ctx, 999))(v)), len(nasty)-2)
		v.same(len(must(v.ChatMessages(v.ctx, "a\x00", 0, 999))(v)), len(nasty)-1)
	}},
	{"Concurrent", func(v *env) { // whole turns side by side, readers among them
		const chats, turns = 16, 8
		var wg sync.WaitGroup
		for i := range chats {
			wg.Go(func() {
				if err := converse(v.ctx, v.Store, chat(fmt.Sprint(i)), turns); err != nil {
					v.Error(err)
				}
			})
			wg.Go(func() {
				for range turns {
					if _, err := v.LiveRuns(v.ctx); err != nil {
						v.Error(err)
					}
					if _, err := v.UnsettledInbound(v.ctx); err != nil {
						v.Error(err)
					}
				}
			})
		}
		wg.Wait()
		v.same(len(must(v.LiveRuns(v.ctx))(v)), 0)
		v.same(len(must(v.UnsettledInbound(v.ctx))(v)), 0)
		v.same(len(must(v.UnsentOutgoing(v.ctx))(v)), 0)
		v.reopen()
		for i := range chats {
			c := must(v.Conversation(v.ctx, chat(fmt.Sprint(i))))(v)
			v.same(len(must(v.Checkpoints(v.ctx, c.ThreadID, ""))(v)), turns)
			v.same(len(must(v.ThreadRuns(v.ctx, c.ThreadID, 99))(v)), turns)
		}
	}},
}

// converse takes a number of turns in one place.
func converse(ctx context.Context, s store.Store, c store.ConversationKey, turns int) error {
	thread, head := newID(), ""
	if err := s.PutConversation(ctx, &store.Conversation{Key: c, ThreadID: thread, UpdatedAt: base}); err != nil {
		return err
	}
	for i := range turns {
		e := entry(c, fmt.Sprint("m", i), base)
		if _, err := s.AcceptInbound(ctx, e); err != nil {
			return err
		}
		r, _, err := s.AdmitRun(ctx, runningRun(thread), store.StrategyReject)
		if err != nil {
			return err
		}
		cp := checkpoint(head, i)
		o := outgoing("run/"+r.ID, i)
		o.Conversation, o.RunID, o.Settles = c, r.ID, []string{e.ID}
		sent := *o
		sent.State = store.DeliverySent
		sent.Parts = []store.OutgoingPart{{MessageID: "r" + r.ID, State: store.DeliverySent}}
		_, _, perr := s.PutOutgoing(ctx, o)
		if err := errors.Join(
			perr,
			s.TakeInbound(ctx, r.ID, e.ID),
			s.WriteRun(ctx, &store.RunWrite{
				RunID: r.ID, Epoch: 1, Checkpoint: cp, Events: events(r.ID, 1, 5), Usage: []store.UsageRow{usage(r, i)}, To: store.RunSuccess,
			}),
			s.UpdateOutgoing(ctx, &sent),
		); err != nil {
			return err
		}
		head = cp.ID
	}
	return nil
}

var _ testing.TB = (*env)(nil)
