package telegram_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"deerbot/channels"

	wire "deerbot/internal/wire/telegram"
)

// dm starts a rig with one private chat.
func dm(t *testing.T) (*rig, *wire.Chat) {
	r := setup(t, wire.Options{})
	return r, r.s.DM(r.s.Person("Ann", "ann"))
}

func TestC037_FinalEditIdenticalToPreview(t *testing.T) {
	r, ch := dm(t)
	ref := r.send(at(ch, ""), text("Hello"))
	for range 2 {
		if err := r.c.Edit(r.ctx(), ref, text("Hello")); err != nil {
			t.Errorf("Edit: %v", err)
		}
	}
	if n := len(ch.Messages()); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
	if got := r.log.String(); strings.Contains(got, "ERROR") {
		t.Errorf("log: %s", got)
	}
}

// The outbox waits; the adapter tells it how long, and calls once.
func TestC041_RetryAfterIsPassedOn(t *testing.T) {
	r, ch := dm(t)
	r.s.Fail(wire.Fault{Method: "sendMessage", Code: 429, RetryAfter: 9})
	_, err := r.c.Send(r.ctx(), at(ch, ""), text("x"), "")
	var limited *channels.RateLimited
	if !errors.As(err, &limited) || limited.RetryAfter != 9*time.Second || limited.Account {
		t.Errorf("error %#v", err)
	}
	if n := len(r.s.Calls("sendMessage", 0)); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

func TestC045_EditErrorsAreToldApart(t *testing.T) {
	r, ch := dm(t)
	ref := r.send(at(ch, ""), text("Thinking..."))
	r.s.Fail(wire.Fault{Method: "editMessageText", Code: 429, RetryAfter: 3})
	r.s.Fail(wire.Fault{Method: "editMessageText", Code: 502, Body: "<h1>502</h1>"})
	if err := r.c.Edit(r.ctx(), ref, text("a")); !is[*channels.RateLimited](err) {
		t.Errorf("429: %v", err)
	}
	if err := r.c.Edit(r.ctx(), ref, text("a")); !is[*channels.Transient](err) {
		t.Errorf("502: %v", err)
	}
	ch.Remove(num(ref.ID))
	if err := r.c.Edit(r.ctx(), ref, text("a")); !is[*channels.Gone](err) {
		t.Errorf("deleted: %v", err)
	}
}

func TestC046_DeletedPreviewIsGone(t *testing.T) {
	r, ch := dm(t)
	ref := r.send(at(ch, ""), text("Thinking..."))
	ch.Remove(num(ref.ID))
	var gone *channels.Gone
	if err := r.c.Edit(r.ctx(), ref, text("a")); !errors.As(err, &gone) || gone.What != "message" {
		t.Errorf("Edit: %v", err)
	}
}

func TestC058_EditOfAMessageWithoutText(t *testing.T) {
	r, ch := dm(t)
	ref, err := r.c.SendFile(r.ctx(), at(ch, ""), pngFile(40, 30, "pick one"), "", "")
	if err != nil {
		t.Fatal(err)
	}
	m := text("<b>picked</b>")
	for range 2 {
		if err := r.c.Edit(r.ctx(), ref, m); err != nil {
			t.Fatalf("Edit: %v", err)
		}
	}
	got := ch.Messages()
	if len(got) != 1 || got[0].Text != "picked" || len(got[0].Files) != 1 || got[0].Files[0].Kind != "photo" {
		t.Errorf("chat: %+v", got)
	}
	// Media without a caption cannot become the text: the outbox sends it anew.
	r.s.Fail(wire.Fault{Method: "editMessageText", Code: 400, Description: "Bad Request: there is no text in the message to edit"})
	r.s.Fail(wire.Fault{Method: "editMessageCaption", Code: 400, Description: "Bad Request: there is no caption in the message to edit"})
	if err := r.c.Edit(r.ctx(), ref, m); !is[*channels.Gone](err) {
		t.Errorf("Edit of a sticker: %v", err)
	}
}

func TestC059_LostAnswerIsMaybeSent(t *testing.T) {
	r, ch := dm(t)
	tests := []struct {
		name  string
		fault wire.Fault
		limit time.Duration
		shown int
	}{
		{"connection dropped after", wire.Fault{Drop: wire.DropAfter}, 0, 1},
		{"connection dropped before", wire.Fault{Drop: wire.DropBefore}, 0, 1},
		{"timeout", wire.Fault{Hold: make(chan struct{})}, 50 * time.Millisecond, 1},
		{"gateway", wire.Fault{Code: 504, Body: "<h1>504</h1>"}, 0, 1},
		{"server error", wire.Fault{Code: 500, Description: "Internal Server Error"}, 0, 1},
	}
	for _, tt := range tests {
		ctx := r.ctx()
		if tt.limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, tt.limit)
			defer cancel()
		}
		tt.fault.Method = "sendMessage"
		r.s.Fail(tt.fault)
		_, err := r.c.Send(ctx, at(ch, ""), text("answer"), "")
		var tr *channels.Transient
		if !errors.As(err, &tr) || !tr.MaybeSent {
			t.Errorf("%s: %#v", tt.name, err)
		}
		if n := len(ch.Messages()); n != tt.shown {
			t.Errorf("%s: %d messages, want %d: the adapter must not send again", tt.name, n, tt.shown)
		}
	}
	if tr := unreachable(t, r); tr.MaybeSent {
		t.Error("nothing listens, yet the error says that something may have been sent")
	}
}

func TestC060_TypingErrorsAreOnlyErrors(t *testing.T) {
	r, ch := dm(t)
	for _, f := range []wire.Fault{
		{Code: 429, RetryAfter: 4}, {Code: 403, Description: "Forbidden: bot was blocked by the user"}, {Drop: wire.DropBefore},
	} {
		f.Method = "sendChatAction"
		r.s.Fail(f)
		if err := r.c.Typing(r.ctx(), at(ch, "")); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}
	r.send(at(ch, ""), text("the answer"))
	if got := ch.BotMessages(); len(got) != 1 {
		t.Errorf("chat: %+v", got)
	}
}

func TestC096_GeneralTopic(t *testing.T) {
	r := start(t, wire.Options{})
	ann, forum := r.s.Person("Ann", "ann"), r.s.Forum("Team")
	topic := forum.Topic(ann, "deploys")
	forum.Say(ann, "in general")
	in := r.next()
	if in.Place != at(forum, "") {
		t.Errorf("place %v, want General without a topic", in.Place)
	}
	forum.Say(ann, "in deploys", wire.InTopic(topic))
	if other := r.next(); other.Place == in.Place {
		t.Error("General and a topic have the same place")
	}
	for _, p := range []channels.Place{in.Place, at(forum, "1")} { // 1 is General too, and refused on sends
		r.send(p, text("answer"))
		if err := r.c.Typing(r.ctx(), p); err != nil {
			t.Errorf("typing: %v", err)
		}
	}
	for _, c := range r.s.Calls("", forum.ID()) {
		if th, ok := c.Params["message_thread_id"]; ok {
			t.Errorf("%s has message_thread_id %s", c.Method, th)
		}
	}
}

func TestC098_EverythingStaysInTheTopic(t *testing.T) {
	r := start(t, wire.Options{})
	ann, forum := r.s.Person("Ann", "ann"), r.s.Forum("Team")
	id := strconv.Itoa(forum.Topic(ann, "deploys"))
	forum.Say(ann, "/status", wire.InTopic(num(id)))
	in := r.next()
	if in.Place.Topic != id || in.Quote != nil {
		t.Fatalf("event: %+v", in)
	}
	r.send(in.Place, text("answer"))
	if _, err := r.c.SendFile(r.ctx(), in.Place, pngFile(10, 10, ""), in.MessageID, ""); err != nil {
		t.Fatal(err)
	}
	f := pngFile(10, 10, "")
	f.MIME = "application/zip"
	if _, err := r.c.SendFile(r.ctx(), in.Place, f, "", ""); err != nil {
		t.Fatal(err)
	}
	if err := r.c.Typing(r.ctx(), in.Place); err != nil {
		t.Fatal(err)
	}
	for _, c := range r.s.Calls("", forum.ID()) {
		if c.Params["message_thread_id"] != id {
			t.Errorf("%s went to thread %q", c.Method, c.Params["message_thread_id"])
		}
	}
	for _, m := range forum.BotMessages() {
		if strconv.Itoa(m.Topic) != id {
			t.Errorf("message in topic %d", m.Topic)
		}
	}
	forum.CloseTopic(num(id))
	var gone *channels.Gone
	if _, err := r.c.Send(r.ctx(), in.Place, text("late"), ""); !errors.As(err, &gone) || gone.What != "topic" {
		t.Errorf("send to a deleted topic: %v", err)
	}
}

func TestC113_UpgradedGroup(t *testing.T) {
	r := start(t, wire.Options{})
	ann, group := r.s.Person("Ann", "ann"), r.s.Group("Team")
	super := group.Upgrade(ann)
	in := r.next()
	if in.Kind != channels.KindMoved || in.MovedTo != super.Key() || in.Place != at(group, "") {
		t.Errorf("event: %+v", in)
	}
	var moved *channels.Moved
	if _, err := r.c.Send(r.ctx(), at(group, ""), text("x"), ""); !errors.As(err, &moved) || moved.To != super.Key() {
		t.Errorf("send to the old group: %v", err)
	}
	super.Say(ann, "here now") // migrate_from_chat_id came before and is no event
	if in := r.next(); in.Text != "here now" || in.Place != at(super, "") {
		t.Errorf("event: %+v", in)
	}
	r.s.Fail(wire.Fault{Method: "sendMessage", Code: 403, Description: "Forbidden: the group chat was deleted"})
	var gone *channels.Gone
	if _, err := r.c.Send(r.ctx(), at(group, ""), text("x"), ""); !errors.As(err, &gone) || gone.What != "chat" {
		t.Errorf("deleted group: %v", err)
	}
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func num(s string) int { n, _ := strconv.Atoi(s); return n }

func pngFile(w, h int, caption string) channels.File {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)))
	data := b.Bytes()
	return channels.File{
		Name: "picture.png", MIME: "image/png", Size: int64(len(data)), Caption: caption,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}
