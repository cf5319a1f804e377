package channeltest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"deerbot/cards"
	"deerbot/channels"
)

func testSendEdit(b *bench) {
	b.start()
	ref := b.send(b.p.DM(), b.message("some loud words & <signs>", "loud"))
	got := b.shown(ref)
	if !got.Bot || got.Text != "some loud words & <signs>" || got.Bold != "loud" {
		b.Errorf("shown: %+v", got)
	}
	if !b.c.Capabilities().Edits {
		return
	}
	for range 2 { // the second changes nothing, which is success
		if err := b.c.Edit(b.ctx(), ref, b.message("other words", "other")); err != nil {
			b.Fatalf("Edit: %v", err)
		}
	}
	if got = b.shown(ref); got.Text != "other words" || got.Bold != "other" || got.Edits < 1 {
		b.Errorf("shown after the edit: %+v", got)
	}
	if n := len(b.p.Shown(b.p.DM())); n != 1 {
		b.Errorf("%d messages are shown, want 1", n)
	}
}

func testReply(b *bench) {
	threads, _ := b.p.(interface{ RepliesAreThreads() bool })
	b.start()
	id := b.p.Say(b.p.DM(), Ann, Say{Text: "question"})
	m := b.message("answer", "")
	m.ReplyTo = id
	if got := b.shown(b.send(b.p.DM(), m)); got.ReplyTo != id && (threads == nil || !threads.RepliesAreThreads()) {
		b.Errorf("the answer replies to %q, want %q", got.ReplyTo, id)
	}
	b.p.Remove(b.p.DM(), id)
	if got := b.shown(b.send(b.p.DM(), m)); got.Text != "answer" { // a deleted question must not hold the answer back
		b.Errorf("shown: %+v", got)
	}
}

func testButtons(b *bench) {
	b.start()
	m := b.message("go on?", "")
	m.Body.Buttons = [][]cards.Button{
		{{Label: "Yes", Action: "yes:1", Style: "primary"}, {Label: "No", Action: "no:1", Style: "danger"}},
		{{Label: "Details", Action: strings.Repeat("d", 64)}},
	}
	ref := b.send(b.p.Group(), m)
	if got := b.shown(ref).Buttons; !slices.Equal(got, []string{"Yes", "No", "Details"}) {
		b.Fatalf("buttons: %q", got)
	}
	b.p.Press(b.p.Group(), ref.ID, "No", Bob)
	in := b.in.Next(b)
	if in.Kind != channels.KindAction || in.Action == nil || in.Action.Data != "no:1" || in.MessageID != ref.ID ||
		in.Place != b.p.Group() || in.EventID == "" || in.ChatKind != "group" {
		b.Fatalf("event: %+v %+v", in, in.Action)
	}
	if in.Sender.ID == "" || in.Sender.Bot {
		b.Errorf("presser: %+v", in.Sender)
	}
	if a, ok := b.c.(channels.ActionAnswerer); ok {
		if err := a.AnswerAction(b.ctx(), in.Action.ID, "Stopped."); err != nil {
			b.Errorf("AnswerAction: %v", err)
		}
		if notice, ok := b.p.PressAnswered(); !ok || notice != "Stopped." {
			b.Errorf("answered %v with %q", ok, notice)
		}
		if err := a.AnswerAction(b.ctx(), "0", ""); err != nil {
			b.Errorf("an answer that comes too late is an error: %v", err)
		}
	}
	m.Body = b.p.Body("done", "")
	if err := b.c.Edit(b.ctx(), ref, m); err != nil {
		b.Fatal(err)
	}
	if got := b.shown(ref).Buttons; len(got) != 0 {
		b.Errorf("buttons after an edit without: %q", got)
	}
}

func testFilesOut(b *bench) {
	fs, ok := b.c.(channels.FileSender)
	if !ok {
		b.Skip("no files")
	}
	b.start()
	data := bytes.Repeat([]byte("report "), 30_000)
	f := channels.File{
		Name: "ré\"port 1.csv", MIME: "text/csv", Size: int64(len(data)), Caption: "the report",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
	ref, err := fs.SendFile(b.ctx(), b.p.DM(), f, "", "key")
	if err != nil {
		b.Fatal(err)
	}
	got := b.shown(ref)
	if len(got.Files) != 1 || got.Files[0].Name != f.Name || !bytes.Equal(got.Files[0].Data, data) || got.Text != "the report" {
		b.Errorf("shown: %q with %d files", got.Text, len(got.Files))
	}
	f.Size = b.c.Capabilities().MaxFile + 1
	f.Open = func() (io.ReadCloser, error) {
		b.Error("a file over the limit was opened")
		return nil, errors.New("no")
	}
	if _, err := fs.SendFile(b.ctx(), b.p.DM(), f, "", "key"); err == nil {
		b.Error("a file over the limit was sent")
	}
	f.Size, f.Open = 3, func() (io.ReadCloser, error) { return nil, errors.New("gone from the disk") }
	if _, err := fs.SendFile(b.ctx(), b.p.DM(), f, "", "key"); err == nil {
		b.Error("a file that cannot be opened was sent")
	}
}

func testTyping(b *bench) {
	ty, ok := b.c.(channels.Typer)
	if !ok {
		b.Skip("no working sign")
	}
	b.start()
	places := []channels.Place{b.p.DM(), b.p.Group()}
	if p, ok := b.p.Topic(); ok {
		places = append(places, p)
	}
	for _, p := range places {
		if err := ty.Typing(b.ctx(), p); err != nil {
			b.Errorf("typing in %v: %v", p, err)
		}
	}
}

func testCommands(b *bench) {
	reg, ok := b.c.(channels.CommandRegistrar)
	if !ok {
		b.Skip("no native commands")
	}
	b.start()
	cmds := []channels.CommandInfo{
		{Name: "new", Description: map[string]string{"en": "fresh thread", "zh": "新会话"}, Args: "[title]"},
		{Name: "stop", Description: map[string]string{"en": "stop the run", "zh": "停止"}},
		{Name: "bad name!", Description: map[string]string{"en": "no platform takes this"}},
		{Name: "long", Description: map[string]string{"en": strings.Repeat("very ", 100) + "long"}},
	}
	for range 2 {
		if err := reg.RegisterCommands(b.ctx(), cmds); err != nil {
			b.Fatal(err)
		}
	}
	if got := b.p.Commands(); !slices.Equal(got, []string{"new", "stop", "long"}) {
		b.Errorf("registered: %q", got)
	}
}

func testDelete(b *bench) {
	d, ok := b.c.(channels.Deleter)
	if !ok {
		b.Skip("no deleting")
	}
	b.start()
	ref := b.send(b.p.DM(), b.message("oops", ""))
	for range 2 { // the second time it is gone, which is what was wanted
		if err := d.Delete(b.ctx(), ref); err != nil {
			b.Errorf("Delete: %v", err)
		}
	}
	if got := b.p.Shown(b.p.DM()); len(got) != 0 {
		b.Errorf("shown: %+v", got)
	}
}
