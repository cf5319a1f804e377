package discord_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"deerbot/channels"
	"deerbot/channels/discord"

	wire "deerbot/internal/wire/discord"
)

// recovers breaks the connection, says something meanwhile and after it, and checks that both come once, in order.
func recovers(t *testing.T, name string, disturb func(*rig), resumed bool) {
	t.Run(name, func(t *testing.T) {
		r := start(t, wire.Options{Heartbeat: 50 * time.Millisecond})
		r.general.Say(r.ann, "before")
		if in := r.next(); in.Text != "before" {
			t.Fatalf("got %q", in.Text)
		}
		_, ids, res := r.s.Connected()
		began := time.Now()
		disturb(r)
		r.general.Say(r.ann, "meanwhile")
		r.dm.Say(r.bob, "meanwhile, elsewhere")
		r.wait("a new connection", func() bool {
			_, ids2, res2 := r.s.Connected()
			return ids2+res2 > ids+res
		})
		r.general.Say(r.ann, "after")
		got := map[string]int{}
		var order []string
		for range 3 {
			in := r.next()
			got[in.Text]++
			if in.Place.Chat == r.general.ID {
				order = append(order, in.Text)
			}
		}
		t.Logf("time to recovery %v", time.Since(began).Round(time.Millisecond))
		if got["meanwhile"] != 1 || got["meanwhile, elsewhere"] != 1 || got["after"] != 1 || strings.Join(order, ",") != "meanwhile,after" {
			t.Errorf("got %v, in the channel %q", got, order)
		}
		if _, ids2, res2 := r.s.Connected(); resumed != (res2 > res) || resumed != (ids2 == ids) {
			t.Errorf("sessions %d → %d, resumed %d → %d", ids, ids2, res, res2)
		}
		r.eventually("health", func() bool { h := r.c.Health(); return h.Connected && h.Trouble == "" })
	})
}

func TestChaos(t *testing.T) {
	recovers(t, "cut", func(r *rig) { r.s.Cut() }, true)
	recovers(t, "op 7", func(r *rig) { r.s.Reconnect() }, true)
	recovers(t, "op 9 resumable", func(r *rig) { r.s.Invalidate(true) }, true)
	recovers(t, "close 4000", func(r *rig) { r.s.CloseWith(4000) }, true)
	recovers(t, "close 1001", func(r *rig) { r.s.CloseWith(1001) }, true)
	recovers(t, "half-open", func(r *rig) {
		r.s.Freeze(true)
		r.wait("the dead connection to be left", func() bool { n, _, _ := r.s.Connected(); return n == 0 })
		r.s.Freeze(false)
	}, true)
}

// A lost session is a gap: the DM must have been seen before it, as Discord lists no direct messages.
func TestChaosLostSession(t *testing.T) {
	tests := map[string]func(*rig){
		"op 9":       func(r *rig) { r.s.Invalidate(false) },
		"close 4009": func(r *rig) { r.s.CloseWith(4009) },
		"session gone while away": func(r *rig) {
			r.s.EndSessions()
			r.s.Cut()
		},
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			r := start(t, wire.Options{})
			other := r.guild.Text("other") // nothing was ever said here
			r.general.Say(r.ann, "before")
			r.dm.Say(r.ann, "before, directly")
			r.next()
			r.next()
			r.s.EndSessions() // nothing that is said now is in any session
			want := map[string]bool{}
			for i := range 150 { // more than one page
				r.general.Say(r.bob, fmt.Sprint("missed ", i), wire.Unseen())
				want[fmt.Sprint("missed ", i)] = true
			}
			r.dm.Say(r.ann, "missed directly", wire.Unseen())
			other.Say(r.bob, "missed elsewhere", wire.Unseen())
			thread := r.general.Thread(r.bob, "new thread")
			thread.Say(r.bob, "missed in a thread", wire.Unseen())
			for _, s := range []string{"missed directly", "missed elsewhere", "missed in a thread"} {
				want[s] = true
			}
			_, ids, _ := r.s.Connected()
			lose(r)
			r.wait("a new session", func() bool { n, ids2, _ := r.s.Connected(); return n == 1 && ids2 > ids })
			last := ""
			for len(want) > 0 {
				in := r.next()
				if !want[in.Text] {
					t.Fatalf("got %q", in.Text)
				}
				if in.Place.Chat == r.general.ID && in.Place.Topic == "" {
					if last != "" && len(in.MessageID) == len(last) && in.MessageID < last {
						t.Errorf("%s comes after %s", in.MessageID, last)
					}
					last = in.MessageID
				}
				if in.Text == "missed in a thread" && in.Place.Topic != thread.ID {
					t.Errorf("place %+v", in.Place)
				}
				delete(want, in.Text)
			}
			r.general.Say(r.ann, "after")
			if in := r.next(); in.Text != "after" {
				t.Errorf("got %q", in.Text)
			}
		})
	}
}

// A new process without the old one's session fetches what was written while nobody listened.
func TestRestartAfterTheSessionDied(t *testing.T) {
	mem := &memory{}
	r := start(t, wire.Options{}, func(c *discord.Config) { c.Memory = mem })
	r.general.Say(r.ann, "before")
	r.next()
	r.stop()
	r.s.EndSessions()
	r.general.Say(r.ann, "while away")
	r.c = r.channel(func(c *discord.Config) { c.Memory = mem })
	r.run()
	if in := r.next(); in.Text != "while away" {
		t.Errorf("got %q", in.Text)
	}
}

// What was written more than a day ago is not answered any more.
func TestRestartAfterAWeek(t *testing.T) {
	mem := &memory{}
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	change := func(c *discord.Config) { c.Memory, c.Now = mem, clock }
	r := start(t, wire.Options{Now: clock}, change)
	r.general.Say(r.ann, "before")
	r.next()
	r.stop()
	r.s.EndSessions()
	r.general.Say(r.ann, "a week ago")
	mu.Lock()
	now = now.Add(7 * 24 * time.Hour)
	mu.Unlock()
	r.general.Say(r.ann, "now")
	r.c = r.channel(change)
	r.run()
	if in := r.next(); in.Text != "now" {
		t.Errorf("got %q", in.Text)
	}
}

func TestMemoryThatCannotBeRead(t *testing.T) {
	mem := &memory{data: []byte("{broken")}
	r := start(t, wire.Options{}, func(c *discord.Config) { c.Memory = mem })
	r.general.Say(r.ann, "hello")
	r.next()
	if !strings.Contains(r.log.String(), "cannot be read") {
		t.Errorf("log:\n%s", r.log)
	}
}

// Op 7 as the first thing on a connection deadlocks the SDK for good (discordgo#513).
func TestReconnectBeforeReady(t *testing.T) {
	r := setup(t, wire.Options{SayFirst: []int{7, 7, 9}})
	r.run()
	r.connected(1)
	r.general.Say(r.ann, "hello")
	if in := r.next(); in.Text != "hello" {
		t.Errorf("got %q", in.Text)
	}
}

func TestFatalCloseCodes(t *testing.T) {
	for code, word := range map[int]string{4004: "token", 4010: "shard", 4011: "sharding", 4012: "version", 4013: "intents", 4014: "MESSAGE CONTENT INTENT"} {
		r := setup(t, wire.Options{})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.c.Run(ctx, r.in) }()
		r.connected(1)
		r.s.CloseWith(code)
		err := <-done
		cancel()
		if !channels.IsFatal(err) || !strings.Contains(err.Error(), word) {
			t.Errorf("%d: %v", code, err)
		}
		if h := r.c.Health(); !strings.Contains(h.Trouble, word) {
			t.Errorf("%d: health %+v", code, h)
		}
	}
}

func TestIntentNotSwitchedOn(t *testing.T) {
	r := setup(t, wire.Options{NoContent: true})
	err := r.c.Run(r.ctx(), r.in)
	if !channels.IsFatal(err) || !strings.Contains(err.Error(), "MESSAGE CONTENT INTENT") {
		t.Errorf("Run: %v", err)
	}
	if _, ids, _ := r.s.Connected(); ids != 0 {
		t.Errorf("%d sessions", ids)
	}
}

func TestBadToken(t *testing.T) {
	r := setup(t, wire.Options{})
	c := r.channel(func(c *discord.Config) { c.Token = "MTIz.abc.wrongWrongWrong" })
	err := c.Run(r.ctx(), r.in)
	if !channels.IsFatal(err) || !strings.Contains(err.Error(), "token") || strings.Contains(err.Error(), "wrongWrongWrong") {
		t.Errorf("Run: %v", err)
	}
}

// Everything at once: nothing is lost, nothing doubled, the order in a channel stays.
func TestChaosMonkey(t *testing.T) {
	r := start(t, wire.Options{Heartbeat: 40 * time.Millisecond})
	fails := 0
	r.in.refuse = func(*channels.Inbound) error {
		if fails++; fails%7 == 0 {
			return errors.New("disk full")
		}
		return nil
	}
	const n = 300
	rooms := []*wire.Channel{r.general, r.dm, r.guild.Text("two").Thread(r.ann, "thread")}
	for _, ch := range rooms { // direct messages have to be known
		ch.Say(r.ann, "first")
		r.next()
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	disturb := []func(){
		r.s.Cut, r.s.Reconnect, func() { r.s.Invalidate(false) }, func() { r.s.Invalidate(true) }, func() { r.s.CloseWith(4000) },
		func() { r.s.Repeat(3) },
		func() {
			r.s.Fail(wire.Fault{Name: "listMessages", Status: 429, RetryAfter: 0.002})
			r.s.Fail(wire.Fault{Name: "gatewayBot", Status: 502})
		},
	}
	for i := range n {
		rooms[i%3].Say(r.bob, fmt.Sprint(i))
		if i%5 == 4 {
			k := rnd.IntN(len(disturb))
			_, ids, res := r.s.Connected()
			disturb[k]()
			if k < 5 {
				r.wait("a connection", func() bool { n, ids2, res2 := r.s.Connected(); return n > 0 && ids2+res2 > ids+res })
			}
		}
	}
	last := map[string]int{}
	seen := 0
	for seen < n {
		in := r.next()
		if in.Kind != channels.KindMessage {
			continue
		}
		var i int
		if _, err := fmt.Sscan(in.Text, &i); err != nil {
			continue
		}
		key := in.Place.Chat + in.Place.Topic
		if l, ok := last[key]; ok && i <= l {
			t.Errorf("%d comes after %d in %s", i, l, key)
		}
		last[key] = i
		seen++
	}
	_, ids, res := r.s.Connected()
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	t.Logf("%d sessions, %d resumed, %d repeated events were dropped", ids, res, r.in.twice)
}
