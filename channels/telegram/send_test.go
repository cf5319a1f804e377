package telegram_test

import (
	"strings"
	"testing"

	"deerbot/cards"
	"deerbot/channels"

	wire "deerbot/internal/wire/telegram"
)

func TestParametersOfSendsAndEdits(t *testing.T) {
	r, ch := dm(t)
	m := text("<b>x</b>")
	m.Silent = true
	ref := r.send(at(ch, ""), m)
	if err := r.c.Edit(r.ctx(), ref, text("<b>y</b>")); err != nil {
		t.Fatal(err)
	}
	r.send(at(ch, ""), channels.Message{Body: cards.Body{Text: "<b>as it is", Plain: "<b>as it is", Format: "plain"}})
	calls := r.s.Calls("", ch.ID())
	if len(calls) != 3 {
		t.Fatalf("%d calls", len(calls))
	}
	for i, c := range calls {
		if c.Params["link_preview_options"] != `{"is_disabled":true}` {
			t.Errorf("%s: link previews are on: %v", c.Method, c.Params)
		}
		if mode := c.Params["parse_mode"]; (i < 2) != (mode == "HTML") {
			t.Errorf("%s: parse mode %q", c.Method, mode)
		}
	}
	if calls[0].Params["disable_notification"] != "true" || !ch.Messages()[0].Silent {
		t.Errorf("not silent: %v", calls[0].Params)
	}
	if got := ch.Messages()[1].Text; got != "<b>as it is" {
		t.Errorf("plain text shown as %q", got)
	}
}

func TestPlacesThatAreNotTelegrams(t *testing.T) {
	r, ch := dm(t)
	p := at(ch, "")
	for _, bad := range []channels.Place{{Chat: "C123"}, {Chat: ""}, {Chat: "0"}, {Chat: p.Chat, Topic: "x"}} {
		if _, err := r.c.Send(r.ctx(), bad, text("x"), ""); !is[*channels.Refused](err) {
			t.Errorf("%v: %v", bad, err)
		}
		if err := r.c.Typing(r.ctx(), bad); !is[*channels.Refused](err) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := r.c.Edit(r.ctx(), channels.Ref{Place: p, ID: "1.5"}, text("x")); !is[*channels.Refused](err) {
		t.Errorf("Edit: %v", err)
	}
	if err := r.c.Delete(r.ctx(), channels.Ref{Place: p, ID: ""}); !is[*channels.Refused](err) {
		t.Errorf("Delete: %v", err)
	}
	if n := len(r.s.Calls("", 0)); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestNoticeIsCut(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	m := text("go on?")
	m.Body.Buttons = [][]cards.Button{{{Label: "Yes", Action: "y"}}}
	ref := r.send(at(ch, ""), m)
	press, err := ch.Press(ann, num(ref.ID), "Yes")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.c.AnswerAction(r.ctx(), r.next().Action.ID, strings.Repeat("好", 300)); err != nil {
		t.Fatal(err)
	}
	if got := r.s.PressState(press.ID); !got.Answered || len([]rune(got.Notice)) != 200 {
		t.Errorf("press: %+v", got)
	}
	r.s.Expire(press)
	if err := r.c.AnswerAction(r.ctx(), press.ID, "late"); err != nil {
		t.Errorf("an answer that comes too late: %v", err)
	}
}

// A body whose button holds too much is a bug of ours: it is refused, not tried again.
func TestButtonDataIsRefused(t *testing.T) {
	r, ch := dm(t)
	m := text("x")
	m.Body.Buttons = [][]cards.Button{{{Label: "Yes", Action: strings.Repeat("y", 65)}}}
	if _, err := r.c.Send(r.ctx(), at(ch, ""), m, ""); !is[*channels.Refused](err) || !strings.Contains(err.Error(), "BUTTON_DATA_INVALID") {
		t.Errorf("Send: %v", err)
	}
}
