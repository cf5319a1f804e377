package discord_test

import (
	"strings"
	"testing"

	"deerbot/channels"
	"deerbot/channels/discord"

	wire "deerbot/internal/wire/discord"
)

func TestMentionOpensAThread(t *testing.T) {
	r := start(t, wire.Options{})
	m := r.general.Say(r.ann, r.me()+" compare the runtimes")
	in := r.next()
	if in.Place != (channels.Place{Channel: "discord", Workspace: r.guild.ID, Chat: r.general.ID, Topic: m.ID}) || in.Text != "compare the runtimes" {
		t.Fatalf("event %+v", in)
	}
	th := r.s.Channel(m.ID)
	if th == nil || th.Name != "compare the runtimes" {
		t.Fatalf("thread %+v", th)
	}
	r.send(in.Place, text("here"))
	th.Say(r.bob, "and in the thread")
	if in := r.next(); in.Place != at(th) || in.Mentioned || in.Quote != nil {
		t.Errorf("event %+v", in)
	}
	// an edit and the deletion of the message belong to its thread
	r.general.Edit(m.ID, r.me()+" compare all runtimes")
	if in := r.next(); in.Kind != channels.KindEdit || in.Place.Topic != m.ID || in.Text != "compare all runtimes" {
		t.Errorf("edit %+v", in)
	}
	r.general.Remove(m.ID)
	if in := r.next(); in.Kind != channels.KindRecall || in.MessageID != m.ID || in.Place.Topic != m.ID {
		t.Errorf("recall %+v", in)
	}
	// another mention is a conversation beside it
	m2 := r.general.Say(r.bob, "hello "+r.me())
	if in := r.next(); in.Place.Topic != m2.ID || in.Place.Chat != r.general.ID {
		t.Errorf("second %+v", in.Place)
	}
}

func TestNoThread(t *testing.T) {
	tests := map[string]struct {
		change func(*discord.Config)
		deny   bool
	}{
		"off":       {change: func(c *discord.Config) { c.Thread = discord.ThreadOff }},
		"forbidden": {deny: true},
		"unwanted":  {change: func(c *discord.Config) { c.Wants = func(*channels.Inbound) bool { return false } }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			change := tt.change
			if change == nil {
				change = func(*discord.Config) {}
			}
			r := start(t, wire.Options{}, change)
			r.general.Deny(wire.Threads, tt.deny)
			for range 2 {
				r.general.Say(r.ann, r.me()+" hello")
				if in := r.next(); in.Place != at(r.general) || !in.Mentioned {
					t.Errorf("event %+v", in)
				}
			}
			if n := len(r.s.Calls("startThread")); tt.deny && n != 1 || !tt.deny && n != 0 {
				t.Errorf("%d tries to open a thread", n)
			}
		})
	}
}

// Discord does not open threads now: nobody's messages wait for it.
func TestThreadsAreSlow(t *testing.T) {
	r := start(t, wire.Options{})
	for _, f := range []wire.Fault{{Status: 429, RetryAfter: 600}, {Status: 502, Times: 3}} {
		f.Name = "startThread"
		r.s.Fail(f)
		r.general.Say(r.ann, r.me()+" hello")
		if in := r.next(); in.Place != at(r.general) {
			t.Errorf("%d: place %+v", f.Status, in.Place)
		}
	}
	m := r.general.Say(r.ann, r.me()+" hello")
	if in := r.next(); in.Place.Topic != m.ID {
		t.Errorf("and then: place %+v", in.Place)
	}
}

// The answer to opening a thread is lost: it is found on the next try.
func TestThreadAnswerLost(t *testing.T) {
	r := start(t, wire.Options{})
	r.s.Fail(wire.Fault{Name: "startThread", Drop: wire.DropAfter})
	m := r.general.Say(r.ann, r.me()+" hello")
	if in := r.next(); in.Place.Topic != m.ID {
		t.Errorf("place %+v", in.Place)
	}
}

func TestMentionsByIDOnly(t *testing.T) {
	r := start(t, wire.Options{}, func(c *discord.Config) { c.Thread = discord.ThreadOff })
	role := r.guild.Role("ops")
	tests := []struct {
		say, want             string
		mentioned, otherFirst bool
	}{
		{"@deer_bot hello", "@deer_bot hello", false, false},
		{r.me() + " ask <@" + r.bob.ID + ">", "ask @Bob", true, false},
		{"<@!" + r.bob.ID + "> and " + r.me(), "@Bob and", true, true},
		{"<@&" + role + "> look", "@ops look", false, true},
		{r.me() + " see <#" + r.general.ID + "> <:deer:123456789>", "see #general :deer:", true, false},
		{"in code `" + r.me() + "`", "in code `" + r.me() + "`", false, false},
		{r.me() + " `/new`", "`/new`", true, false},
		{r.me() + "\n/new title", "/new title", true, false},
		{r.me(), "", true, false},
	}
	for _, tt := range tests {
		r.general.Say(r.ann, tt.say)
		in := r.next()
		if in.Text != tt.want || in.Mentioned != tt.mentioned || in.OtherFirst != tt.otherFirst {
			t.Errorf("%q: text %q, mentioned %v, other first %v", tt.say, in.Text, in.Mentioned, in.OtherFirst)
		}
		if in.LeadingCode != strings.HasPrefix(tt.want, "`") {
			t.Errorf("%q: leading code %v", tt.say, in.LeadingCode)
		}
	}
}

func TestQuotesForwardsStickersAndNotices(t *testing.T) {
	r := start(t, wire.Options{})
	m := r.general.Say(r.bob, "the log", wire.WithFile("log.txt", "text/plain; charset=utf-8", []byte("line")))
	r.next()
	r.general.Say(r.ann, "what is it?", wire.ReplyTo(m.ID))
	in := r.next()
	if in.Quote == nil || in.Quote.Text != "the log" || in.Quote.Author != "Bob" || len(in.Quote.Attachments) != 1 || in.Mentioned {
		t.Errorf("quote %+v", in.Quote)
	}
	if f, err := r.c.Fetch(r.ctx(), in.Quote.Attachments[0]); err != nil {
		t.Errorf("file of the quote: %v", err)
	} else {
		f.Close()
	}
	r.general.Remove(m.ID)
	r.next()
	r.general.Say(r.ann, "gone?", wire.ReplyTo(m.ID))
	if in := r.next(); in.Quote == nil || in.Quote.MessageID != m.ID {
		t.Errorf("quote of a deleted message %+v", in.Quote)
	}
	r.general.Say(r.ann, "", wire.Forward("the forwarded text"))
	if in := r.next(); in.Quote == nil || in.Quote.Text != "the forwarded text" || in.Note == "" {
		t.Errorf("forward %+v %+v", in, in.Quote)
	}
	r.general.Say(r.ann, "", wire.Sticker("wave"))
	if in := r.next(); !strings.Contains(in.Note, "wave") {
		t.Errorf("sticker %+v", in)
	}
	// notices and previews are no messages
	r.general.Say(r.ann, "", wire.OfType(7))
	r.general.Say(r.ann, "pinned", wire.OfType(6))
	m = r.general.Say(r.ann, "https://example.org")
	r.next()
	r.general.Unfurl(m.ID)
	r.general.Edit(m.ID, "https://example.org !")
	if in := r.next(); in.Kind != channels.KindEdit {
		t.Errorf("edit %+v", in)
	}
	r.general.Unfurl(m.ID) // says the old edit again
	hook := r.general.Say(r.ann, "by a hook", wire.ByWebhook("77"))
	if in := r.next(); in.MessageID != hook.ID || !in.Sender.Bot {
		t.Errorf("hook %+v", in)
	}
	a, b := r.general.Say(r.ann, "a"), r.general.Say(r.ann, "b")
	r.next()
	r.next()
	r.general.Remove(a.ID, b.ID)
	for _, id := range []string{a.ID, b.ID} {
		if in := r.next(); in.Kind != channels.KindRecall || in.MessageID != id {
			t.Errorf("bulk %+v", in)
		}
	}
}

// C093: what bots write is marked, so that the bot's rules can end a loop; its own messages never come back.
func TestC093BotsAreMarked(t *testing.T) {
	r := start(t, wire.Options{})
	peer := r.s.Robot("Peer", "peer")
	r.send(at(r.general), text("hello"))
	r.general.Say(peer, r.me()+" hello")
	in := r.next()
	if !in.Sender.Bot || in.Sender.ID != peer.ID || in.Place.Topic != "" {
		t.Errorf("event %+v", in)
	}
	if n := len(r.s.Calls("startThread")); n != 0 {
		t.Errorf("a bot opened %d threads", n)
	}
}

func TestSlashCommand(t *testing.T) {
	r := start(t, wire.Options{})
	r.s.SetLocale(r.ann, "zh-CN")
	it := r.general.Slash(r.ann, "queue", "write `it` down")
	in := r.next()
	if in.Kind != channels.KindMessage || in.Text != "/queue write `it` down" || in.Place != at(r.general) || !in.Mentioned ||
		in.Sender.Name != "Ann" || in.Sender.Locale != "zh-cn" {
		t.Errorf("event %+v", in)
	}
	r.wait("the acknowledgement", func() bool { return r.s.State(it.ID).Acked })
	if st := r.s.State(it.ID); st.Type != 4 || st.Text != "`/queue write 'it' down`" || len(r.general.Messages()) != 0 {
		t.Errorf("answered %+v", st)
	}
	r.dm.Slash(r.ann, "new", "")
	if in := r.next(); in.Text != "/new" || in.Place != at(r.dm) || in.ChatKind != "dm" {
		t.Errorf("event %+v", in)
	}
}

// An interaction is acknowledged when it was stored, once, also when its event comes twice.
func TestInteractionTwice(t *testing.T) {
	r := start(t, wire.Options{})
	it := r.general.Slash(r.ann, "help", "")
	r.next()
	r.s.Repeat(1)
	r.general.Say(r.ann, "after")
	if in := r.next(); in.Text != "after" {
		t.Errorf("got %+v", in)
	}
	r.wait("the acknowledgement", func() bool { return r.s.State(it.ID).Acked })
	if n := len(r.s.Calls("interactionCallback")); n != 1 {
		t.Errorf("%d acknowledgements", n)
	}
}

func TestFileWhoseAddressExpired(t *testing.T) {
	r := start(t, wire.Options{})
	r.dm.Say(r.ann, "look", wire.WithFile("a.png", "image/png", []byte("png")))
	in := r.next()
	if len(in.Attachments) != 1 || in.Attachments[0].Kind != "image" {
		t.Fatalf("event %+v", in)
	}
	r.s.ExpireFiles()
	f, err := r.c.Fetch(r.ctx(), in.Attachments[0])
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
