package channeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"deerbot/channels"
)

func testTooLong(b *bench) {
	b.start()
	_, err := b.c.Send(b.ctx(), b.p.DM(), channels.Message{Body: b.p.Long()}, "")
	_ = wantClass[*channels.TooLong](b, "send", err)
	ref := b.send(b.p.DM(), b.message("short", ""))
	_ = wantClass[*channels.TooLong](b, "edit", b.c.Edit(b.ctx(), ref, channels.Message{Body: b.p.Long()}))
}

func testFormat(b *bench) {
	body, ok := b.p.Refused()
	if !ok {
		b.Skip("no format is refused")
	}
	b.start()
	_, err := b.c.Send(b.ctx(), b.p.DM(), channels.Message{Body: body}, "")
	_ = wantClass[*channels.BadFormat](b, "send", err)
	ref := b.send(b.p.DM(), channels.Message{Body: body.AsPlain()})
	if got := b.shown(ref); got.Text != body.Plain {
		b.Errorf("plain form shown as %q, want %q", got.Text, body.Plain)
	}
	_ = wantClass[*channels.BadFormat](b, "edit", b.c.Edit(b.ctx(), ref, channels.Message{Body: body}))
}

func testGone(b *bench) {
	b.start()
	ref := b.send(b.p.DM(), b.message("working", ""))
	b.p.Remove(b.p.DM(), ref.ID)
	err := b.c.Edit(b.ctx(), ref, b.message("answer", ""))
	if e := wantClass[*channels.Gone](b, "edit of a deleted message", err); e != nil && e.What != "message" {
		b.Errorf("gone is the %s", e.What)
	}
}

func testClasses(b *bench) {
	b.start()
	ref := b.send(b.p.DM(), b.message("working", ""))
	calls := map[string]func() error{
		"send": func() error {
			_, err := b.c.Send(b.ctx(), b.p.DM(), b.message("hello", ""), "")
			return err
		},
		"edit": func() error { return b.c.Edit(b.ctx(), ref, b.message("hello again", "")) },
	}
	for name, call := range calls {
		b.p.Break(RateLimited)
		if e := wantClass[*channels.RateLimited](b, name, call()); e != nil && e.RetryAfter != RetryAfter {
			b.Errorf("%s: retry after %v, want %v", name, e.RetryAfter, RetryAfter)
		}
		b.p.Heal()
		b.p.Break(Forbidden)
		_ = wantClass[*channels.Forbidden](b, name, call())
		b.p.Heal()
		b.p.Break(ServerError)
		_ = wantClass[*channels.Transient](b, name, call())
		b.p.Heal()
		b.p.Break(LostAnswer)
		if e := wantClass[*channels.Transient](b, name, call()); e != nil && !e.MaybeSent {
			b.Errorf("%s: the answer was lost, but the error says that nothing was sent", name)
		}
		b.p.Heal()
	}
	if got := b.shown(ref).Text; got != "hello again" {
		b.Errorf("the edit whose answer was lost shows %q", got)
	}
}

// testUnreachable: nothing can have been sent when there is no connection.
func testUnreachable(b *bench) {
	c := b.p.Dead(b.T, b.logger())
	_, err := c.Send(b.ctx(), b.p.DM(), b.message("hello", ""), "")
	if e := wantClass[*channels.Transient](b, "send", err); e != nil && e.MaybeSent {
		b.Error("the error says that the message may have been sent")
	}
}

func testCancelled(b *bench) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.c.Send(ctx, b.p.DM(), b.message("hello", ""), ""); !errors.Is(err, context.Canceled) {
		b.Errorf("Send: %v, want context canceled", err)
	}
	if n := len(b.p.Shown(b.p.DM())); n != 0 {
		b.Errorf("%d messages are shown", n)
	}
}

// testSecrets calls everything while nothing works and looks for secrets in all that is said about it.
func testSecrets(b *bench) {
	for name, c := range map[string]channels.Channel{"dead": b.p.Dead(b.T, b.logger()), "broken": b.c} {
		if name == "broken" {
			b.p.Break(ServerError)
		}
		var said bytes.Buffer
		see := func(err error) {
			for e := err; e != nil; e = errors.Unwrap(e) {
				fmt.Fprintf(&said, "%v\n%+v\n%#v\n%s\n", e, e, e, e.Error())
			}
		}
		p, m := b.p.DM(), b.message("hello", "")
		ref := channels.Ref{Place: p, ID: "5"}
		_, err := c.Send(b.ctx(), p, m, "")
		see(err)
		see(c.Edit(b.ctx(), ref, m))
		if x, ok := c.(channels.Typer); ok {
			see(x.Typing(b.ctx(), p))
		}
		if x, ok := c.(channels.Deleter); ok {
			see(x.Delete(b.ctx(), ref))
		}
		if x, ok := c.(channels.FileSender); ok {
			f := channels.File{Name: "a", Size: 1, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("a")), nil }}
			_, err := x.SendFile(b.ctx(), p, f, "", "")
			see(err)
		}
		if x, ok := c.(channels.FileFetcher); ok {
			_, err := x.Fetch(b.ctx(), channels.Attachment{ID: "a"})
			see(err)
		}
		if x, ok := c.(channels.CommandRegistrar); ok {
			see(x.RegisterCommands(b.ctx(), []channels.CommandInfo{{Name: "a", Description: map[string]string{"en": "a"}}}))
		}
		if x, ok := c.(channels.ActionAnswerer); ok {
			see(x.AnswerAction(b.ctx(), "1", "a"))
		}
		runBriefly(b, c)
		if x, ok := c.(channels.HealthReporter); ok {
			fmt.Fprintf(&said, "%+v\n", x.Health())
			if name == "dead" && x.Health().Trouble == "" {
				b.Error("a dead platform is no trouble")
			}
		}
		fmt.Fprintf(&said, "%v %+v %s\n", c, c, b.log)
		if said.Len() < 200 {
			b.Errorf("%s: hardly anything was said: %q", name, said.String())
		}
		for _, secret := range b.p.Secrets() {
			if strings.Contains(said.String(), secret) {
				b.Errorf("%s: a secret was said:\n%s", name, said.String())
			}
		}
	}
}

// runBriefly runs c until it had trouble.
func runBriefly(b *bench, c channels.Channel) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, b.in) }()
	if h, ok := c.(channels.HealthReporter); ok {
		limit := b.ctx()
		for h.Health().Trouble == "" && !h.Health().Connected && limit.Err() == nil {
			pause()
		}
	}
	cancel()
	if err := <-done; err != nil {
		b.Errorf("Run: %v", err)
	}
}

// testStop: Run ends soon, twice, and can be started again; leaks are looked for after every test.
func testStop(b *bench) {
	for i := range 3 {
		stop := b.start()
		b.p.Say(b.p.DM(), Ann, Say{Text: fmt.Sprint("round ", i)})
		b.in.Next(b)
		stop()
	}
}

// wantClass checks that err is of the class and returns it.
func wantClass[E error](b *bench, what string, err error) E {
	b.Helper()
	var e E
	if !errors.As(err, &e) {
		b.Errorf("%s: error %T (%v), want %T", what, err, err, e)
	}
	return e
}
