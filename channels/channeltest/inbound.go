package channeltest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"deerbot/channels"
)

func testDM(b *bench) {
	b.start()
	id := b.p.Say(b.p.DM(), Ann, Say{Text: "hello 👋 你好"})
	in := b.in.Next(b)
	if in.Kind != channels.KindMessage || in.Text != "hello 👋 你好" || in.MessageID != id || in.EventID == "" {
		b.Errorf("event: %+v", in)
	}
	if in.Place != b.p.DM() || in.ChatKind != "dm" {
		b.Errorf("place %+v of kind %q, want %+v", in.Place, in.ChatKind, b.p.DM())
	}
	if in.Sender.ID == "" || in.Sender.Name == "" || in.Sender.Bot {
		b.Errorf("sender: %+v", in.Sender)
	}
	if d := time.Since(in.SentAt); d < -time.Minute || d > time.Minute {
		b.Errorf("sent at %v", in.SentAt)
	}
	if in.BotName == "" {
		b.Error("no name of the bot")
	}
}

func testGroup(b *bench) {
	b.start()
	me, bob := b.p.Mention(Me), b.p.Mention(Bob)
	tests := []struct {
		say                   string
		mentioned, otherFirst bool
		want                  string // "" leaves the text unchecked
	}{
		{"just talk", false, false, "just talk"},
		{me + " what is new?", true, false, "what is new?"},
		{"👋 " + me + " hi", true, false, "👋 hi"},
		{"please " + me + " 你好", true, false, "please 你好"},
		{me + " ask " + bob, true, false, ""},
		{bob + " ask " + me, true, true, ""},
		{bob + " lunch?", false, true, ""},
	}
	for _, tt := range tests {
		b.p.Say(b.p.Group(), Ann, Say{Text: tt.say})
		in := b.in.Next(b)
		if in.ChatKind != "group" || in.Place.Chat != b.p.Group().Chat {
			b.Errorf("%q: kind %q in %+v", tt.say, in.ChatKind, in.Place)
		}
		if in.Mentioned != tt.mentioned || in.OtherFirst != tt.otherFirst {
			b.Errorf("%q: mentioned %v, other first %v", tt.say, in.Mentioned, in.OtherFirst)
		}
		if tt.want != "" && in.Text != tt.want {
			b.Errorf("%q: text %q, want %q", tt.say, in.Text, tt.want)
		}
		if strings.Contains(in.Text, me) {
			b.Errorf("%q: the bot's mention is still in %q", tt.say, in.Text)
		}
		if strings.Contains(tt.say, bob) && in.Text == strings.ReplaceAll(strings.ReplaceAll(tt.say, me, ""), bob, "") {
			b.Errorf("%q: the other's mention was taken out", tt.say)
		}
	}
}

// testBots: a platform may keep other bots' messages to itself; when they come they must be marked.
func testBots(b *bench) {
	b.start()
	b.p.Say(b.p.Group(), Bot, Say{Text: "beep"})
	b.p.Say(b.p.Group(), Ann, Say{Text: "after"})
	in := b.in.Next(b)
	if in.Text == "beep" {
		if !in.Sender.Bot {
			b.Error("a bot's message is not marked")
		}
		in = b.in.Next(b)
	}
	if in.Text != "after" || in.Sender.Bot {
		b.Errorf("event: %+v", in)
	}
}

func testQuote(b *bench) {
	b.start()
	id := b.p.Say(b.p.Group(), Bob, Say{Text: "deploy at 18:00"})
	first := b.in.Next(b)
	b.p.Say(b.p.Group(), Ann, Say{Text: b.p.Mention(Me) + " what about this?", ReplyTo: id})
	in := b.in.Next(b)
	if in.Quote == nil || in.Quote.Text != "deploy at 18:00" || in.Quote.MessageID != id || in.Quote.FromBot ||
		in.Quote.Author != first.Sender.Name || in.RepliesToBot {
		b.Errorf("quote of a person: %+v, replies to bot %v", in.Quote, in.RepliesToBot)
	}
	ref := b.send(b.p.Group(), b.message("the answer", ""))
	b.p.Say(ref.Place, Ann, Say{Text: "why?", ReplyTo: ref.ID})
	in = b.in.Next(b)
	if in.Quote == nil || !in.Quote.FromBot || in.Quote.MessageID != ref.ID || !in.RepliesToBot {
		b.Errorf("quote of the bot: %+v, replies to bot %v", in.Quote, in.RepliesToBot)
	}
}

func testEditIn(b *bench) {
	b.start()
	id := b.p.Say(b.p.DM(), Ann, Say{Text: "write page"})
	first := b.in.Next(b)
	if !b.p.Edit(b.p.DM(), id, "write page and test it") {
		b.Skip("the platform does not tell edits")
	}
	b.p.Edit(b.p.DM(), id, "write page, test it, ship it")
	for _, want := range []string{"write page and test it", "write page, test it, ship it"} {
		in := b.in.Next(b)
		if in.Kind != channels.KindEdit || in.MessageID != id || in.EventID == first.EventID || in.Text != want {
			b.Errorf("edit: %+v, want text %q", in, want)
		}
	}
}

func testTopic(b *bench) {
	p, ok := b.p.Topic()
	if !ok {
		b.Skip("no topics")
	}
	b.start()
	b.p.Say(p, Ann, Say{Text: b.p.Mention(Me) + " here"})
	in := b.in.Next(b)
	if in.Place != p || in.Quote != nil || in.RepliesToBot {
		b.Errorf("event in a topic: %+v", in)
	}
	ref := b.send(in.Place, b.message("answer", ""))
	if got := b.shown(ref); got.Topic != p.Topic {
		b.Errorf("the answer is in topic %q, want %q", got.Topic, p.Topic)
	}
	if err := b.c.Edit(b.ctx(), ref, b.message("answer, edited", "")); err != nil {
		b.Errorf("edit in a topic: %v", err)
	}
}

func testFilesIn(b *bench) {
	f, ok := b.c.(channels.FileFetcher)
	if !ok {
		b.Skip("no files")
	}
	b.start()
	data := bytes.Repeat([]byte("0123456789abcdef"), 5000)
	b.p.Say(b.p.DM(), Ann, Say{Text: "look at this", File: &File{Name: "notes.txt", MIME: "text/plain", Data: data}})
	in := b.in.Next(b)
	if in.Text != "look at this" || len(in.Attachments) != 1 {
		b.Fatalf("event: %+v", in)
	}
	a := in.Attachments[0]
	if a.ID == "" || a.Kind != "document" || a.Name != "notes.txt" || a.MIME != "text/plain" || a.Size != int64(len(data)) {
		b.Errorf("attachment: %+v", a)
	}
	r, err := f.Fetch(b.ctx(), a)
	if err != nil {
		b.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err2 := r.Close(); err != nil || err2 != nil || !bytes.Equal(got, data) {
		b.Errorf("fetched %d bytes, errors %v, %v", len(got), err, err2)
	}
	if _, err := f.Fetch(b.ctx(), channels.Attachment{ID: "no-such-file", Kind: "document"}); err == nil {
		b.Error("a file that is not there was fetched")
	}
}

func testOrder(b *bench) {
	const n = 250
	for i := range n / 2 { // waits while nobody listens
		b.p.Say(b.p.DM(), Ann, Say{Text: fmt.Sprint("message ", i)})
	}
	b.start()
	for i := n / 2; i < n; i++ {
		b.p.Say(b.p.DM(), Ann, Say{Text: fmt.Sprint("message ", i)})
	}
	for i := range n {
		if in := b.in.Next(b); in.Text != fmt.Sprint("message ", i) {
			b.Fatalf("event %d is %q", i, in.Text)
		}
	}
}

// testRefused: an event that cannot be stored is not acknowledged; nothing is lost, nothing doubled, order stays.
func testRefused(b *bench) {
	refusals := 0
	refused := make(chan struct{})
	b.in.Refuse(func(in *channels.Inbound) error {
		if in.Text != "two" || refusals == 3 {
			return nil
		}
		if refusals++; refusals == 1 {
			close(refused)
		}
		return errors.New("disk full")
	})
	b.start()
	for _, s := range []string{"one", "two", "three"} {
		b.p.Say(b.p.DM(), Ann, Say{Text: s})
	}
	for _, want := range []string{"one", "two", "three"} {
		if in := b.in.Next(b); in.Text != want {
			b.Errorf("got %q, want %q", in.Text, want)
		}
	}
	<-refused
	if n := b.in.Len(); n != 3 {
		b.Errorf("%d events were taken, want 3", n)
	}
}

// testRestart: what was refused before a stop comes to the next adapter.
func testRestart(b *bench) {
	refused := make(chan struct{}, 100)
	b.in.Refuse(func(in *channels.Inbound) error {
		if in.Text == "one" {
			return nil
		}
		select {
		case refused <- struct{}{}:
		default:
		}
		return errors.New("store is closed")
	})
	stop := b.start()
	for _, s := range []string{"one", "two", "three"} {
		b.p.Say(b.p.DM(), Ann, Say{Text: s})
	}
	if in := b.in.Next(b); in.Text != "one" {
		b.Fatalf("got %q", in.Text)
	}
	select {
	case <-refused:
	case <-time.After(patience):
		b.Fatal("the second event was not offered")
	}
	stop()
	if n := b.p.Unacknowledged(); n >= 0 && n < 2 {
		b.Errorf("%d events are left to deliver, want 2 or more", n)
	}
	b.in.Refuse(nil)
	b.c = b.p.Channel(b.T, b.logger())
	b.start()
	for _, want := range []string{"two", "three"} {
		if in := b.in.Next(b); in.Text != want {
			b.Errorf("got %q, want %q", in.Text, want)
		}
	}
}

func testReconnect(b *bench) {
	b.start()
	b.p.Say(b.p.DM(), Ann, Say{Text: "before"})
	b.in.Next(b)
	b.p.Cut()
	b.p.Say(b.p.DM(), Ann, Say{Text: "after the cut"})
	if in := b.in.Next(b); in.Text != "after the cut" {
		b.Errorf("got %q", in.Text)
	}
	b.p.Down(true)
	b.p.Say(b.p.DM(), Ann, Say{Text: "while down"})
	h, ok := b.c.(channels.HealthReporter)
	ctx := b.ctx()
	for ok && h.Health().Trouble == "" {
		if ctx.Err() != nil {
			b.Fatal("no trouble is reported while the platform is down")
		}
		pause()
	}
	b.p.Down(false)
	if in := b.in.Next(b); in.Text != "while down" {
		b.Errorf("got %q", in.Text)
	}
	if ok && (h.Health().Trouble != "" || !h.Health().Connected) {
		b.Errorf("health after all is well: %+v", h.Health())
	}
}
