package telegram_test

import (
	"strconv"
	"testing"

	"deerbot/channels"

	wire "deerbot/internal/wire/telegram"
)

func TestTextInAndOut(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	dm := r.s.DM(ann)
	said := dm.Say(ann, "hello 👋")
	in := r.next()
	if in.Kind != channels.KindMessage || in.Text != "hello 👋" || in.ChatKind != "dm" || in.Place != at(dm, "") ||
		in.EventID != strconv.Itoa(said.ID) || in.MessageID != in.EventID || in.Sender.ID != strconv.FormatInt(ann.ID, 10) ||
		in.Sender.Name != "Ann" || in.Sender.Handle != "ann" || in.BotName != "deer_bot" {
		t.Errorf("inbound: %+v", in)
	}
	m := text("<b>hi</b> &amp; welcome")
	m.ReplyTo = in.MessageID
	ref := r.send(in.Place, m)
	if err := r.c.Edit(r.ctx(), ref, text("<b>done</b>")); err != nil {
		t.Fatal(err)
	}
	got := dm.BotMessages()
	if len(got) != 1 || got[0].Text != "done" || got[0].Edits != 1 || got[0].ReplyTo != said.ID || len(got[0].Entities) != 1 {
		t.Errorf("chat: %+v", got)
	}
	if h := r.c.Health(); !h.Connected || h.Account != "@deer_bot" || h.Trouble != "" {
		t.Errorf("health: %+v", h)
	}
}
