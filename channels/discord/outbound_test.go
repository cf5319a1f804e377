package discord_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/discord"

	wire "deerbot/internal/wire/discord"
)

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

func TestC026LongTextIsTwoMessages(t *testing.T) {
	r := setup(t, wire.Options{})
	if _, err := r.c.Send(r.ctx(), at(r.general), text(strings.Repeat("z", 2001)), ""); !is[*channels.TooLong](err) {
		t.Errorf("Send: %v", err)
	}
	r.s.Fail(wire.Fault{Name: "createMessage", Status: 400, Code: 50035, Message: "Invalid Form Body"})
	if _, err := r.c.Send(r.ctx(), at(r.general), text("x"), ""); !is[*channels.Refused](err) {
		t.Errorf("another fault of the form: %v", err)
	}
	all := ""
	for i, b := range cards.Discord().Markdown(strings.Repeat("z", 2001)) {
		if _, err := r.c.Send(r.ctx(), at(r.general), channels.Message{Body: b}, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range r.general.Messages() {
		all += m.Content
	}
	if all != strings.Repeat("z", 2001) || len(r.general.Messages()) != 2 {
		t.Errorf("%d messages of %d characters", len(r.general.Messages()), len(all))
	}
}

func TestC095NobodyIsPinged(t *testing.T) {
	r := start(t, wire.Options{})
	q := r.general.Say(r.ann, "question")
	const s = "Attention @everyone and @here <@&123456789012345678> <@1>" // as if a dialect had let it through
	m := text(s)
	m.ReplyTo = q.ID
	ref := r.send(at(r.general), m)
	if err := r.c.Edit(r.ctx(), ref, m); err != nil {
		t.Fatal(err)
	}
	f := channels.File{Name: "a", Size: 1, Caption: s, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("a")), nil }}
	if _, err := r.c.SendFile(r.ctx(), at(r.general), f, "", ""); err != nil {
		t.Fatal(err)
	}
	it := r.general.Slash(r.ann, "help", s)
	r.wait("the acknowledgement", func() bool { return r.s.State(it.ID).Acked })
	if p := r.s.Pings(); len(p) != 0 {
		t.Errorf("pings: %+v", p)
	}
	for _, c := range r.s.Calls("") {
		if c.Name != "createMessage" && c.Name != "editMessage" {
			continue
		}
		var b struct {
			Allowed *struct {
				Parse *[]string `json:"parse"`
			} `json:"allowed_mentions"`
		}
		if json.Unmarshal(c.Body, &b) != nil || b.Allowed == nil || b.Allowed.Parse == nil || len(*b.Allowed.Parse) != 0 {
			t.Errorf("%s: %s", c.Name, c.Body)
		}
	}
}

// C203: the token, and the token of an interaction, are in no error and no line of the log.
func TestC203SecretsStay(t *testing.T) {
	r := start(t, wire.Options{})
	it := r.general.Slash(r.ann, "help", "")
	r.next()
	r.wait("the acknowledgement", func() bool { return r.s.State(it.ID).Acked })
	ref := r.send(at(r.general), channels.Message{Body: cards.Body{Text: "go?", Buttons: [][]cards.Button{{{Label: "Go", Action: "go"}}}}})
	press, err := r.general.Press(r.bob, ref.ID, "Go")
	if err != nil {
		t.Fatal(err)
	}
	r.s.Fail(wire.Fault{Name: "interactionCallback", Drop: wire.DropBefore})
	r.s.Fail(wire.Fault{Name: "followup", Drop: wire.DropBefore})
	in := r.next()
	err = r.c.AnswerAction(r.ctx(), in.Action.ID, "done")
	r.s.SetDown(true)
	_, err2 := r.c.Send(r.ctx(), ref.Place, text("x"), "")
	r.eventually("trouble", func() bool { return r.c.Health().Trouble != "" })
	said := fmt.Sprintf("%v %+v %#v %v %+v %v %+v %#v %s %+v", err, err, err, err2, err2, r.c, r.c, r.c, r.log, r.c.Health())
	if b, _ := json.Marshal(in); bytes.Contains(b, []byte(press.Token)) {
		t.Error("the event holds the token of its interaction")
	}
	tok := r.s.Token()
	for _, secret := range []string{tok, tok[strings.LastIndexByte(tok, '.')+1:], it.Token, press.Token} {
		if i := strings.Index(said, secret); i >= 0 {
			t.Errorf("a secret was said: …%s…", said[max(0, i-80):min(len(said), i+100)])
		}
	}
	r.s.SetDown(false)
}

// A send whose answer was lost is sent again with its key and is there once.
func TestSameKeyIsOneMessage(t *testing.T) {
	r := setup(t, wire.Options{})
	r.s.Fail(wire.Fault{Name: "createMessage", Drop: wire.DropAfter})
	_, err := r.c.Send(r.ctx(), at(r.general), text("answer"), "run-1/part-1")
	var tr *channels.Transient
	if !errors.As(err, &tr) || !tr.MaybeSent {
		t.Fatalf("Send: %v", err)
	}
	ref, err := r.c.Send(r.ctx(), at(r.general), text("answer"), "run-1/part-1")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.general.Messages(); len(got) != 1 || got[0].ID != ref.ID {
		t.Errorf("shown: %+v", got)
	}
	if _, err := r.c.Send(r.ctx(), at(r.dm), text("answer"), "run-1/part-1"); err != nil || len(r.dm.Messages()) != 1 {
		t.Errorf("the same key elsewhere: %v", err)
	}
	f := channels.File{Name: "a.txt", Size: 1, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("a")), nil }}
	for range 2 {
		if _, err := r.c.SendFile(r.ctx(), at(r.general), f, "", "file"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.general.Messages()); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

func TestClasses(t *testing.T) {
	r := setup(t, wire.Options{})
	tests := []struct {
		fault wire.Fault
		ok    func(error) bool
	}{
		{wire.Fault{Status: 429, RetryAfter: 1.5}, func(err error) bool {
			var l *channels.RateLimited
			return errors.As(err, &l) && l.RetryAfter == 1500*time.Millisecond && !l.Account
		}},
		{wire.Fault{Status: 429, RetryAfter: 2, Global: true}, func(err error) bool {
			var l *channels.RateLimited
			return errors.As(err, &l) && l.Account
		}},
		{wire.Fault{Status: 429, Body: "<html>banned</html>"}, is[*channels.RateLimited]},
		{wire.Fault{Status: 401, Message: "401: Unauthorized"}, channels.IsFatal},
		{wire.Fault{Status: 404, Code: 10003, Message: "Unknown Channel"}, is[*channels.Gone]},
		{wire.Fault{Status: 404, Code: 10008, Message: "Unknown Message"}, is[*channels.Gone]},
		{wire.Fault{Status: 400, Code: 30046, Message: "edits"}, is[*channels.Gone]},
		{wire.Fault{Status: 403, Code: 50001, Message: "Missing Access"}, is[*channels.Forbidden]},
		{wire.Fault{Status: 403, Code: 50007, Message: "Cannot send"}, is[*channels.Forbidden]},
		{wire.Fault{Status: 403, Code: 160005, Message: "locked"}, is[*channels.Forbidden]},
		{wire.Fault{Status: 403, Code: 200000, Message: "automod"}, is[*channels.Forbidden]},
		{wire.Fault{Status: 400, Code: 200000, Message: "automod"}, is[*channels.Refused]},
		{wire.Fault{Status: 400, Code: 20016, Message: "slowmode"}, is[*channels.RateLimited]},
		{wire.Fault{Status: 500, Message: "500"}, is[*channels.Transient]},
		{wire.Fault{Status: 403, Body: "<html>a proxy</html>"}, is[*channels.Transient]},
	}
	for _, tt := range tests {
		r.s.Fail(tt.fault)
		_, err := r.c.Send(r.ctx(), at(r.general), text("x"), "")
		if !tt.ok(err) {
			t.Errorf("%d %d: %T %v", tt.fault.Status, tt.fault.Code, err, err)
		}
	}
	r.s.CloseDMs(r.ann)
	if _, err := r.c.Send(r.ctx(), at(r.dm), text("x"), ""); !is[*channels.Forbidden](err) || !strings.Contains(err.Error(), "direct messages") {
		t.Errorf("closed DMs: %v", err)
	}
	r.general.Deny(wire.Send, true)
	if _, err := r.c.Send(r.ctx(), at(r.general), text("x"), ""); !is[*channels.Forbidden](err) || !strings.Contains(err.Error(), "Send Messages") {
		t.Errorf("no permission: %v", err)
	}
	if _, err := r.c.Send(r.ctx(), channels.Place{Channel: "discord", Chat: "../users/@me"}, text("x"), ""); !is[*channels.Refused](err) {
		t.Errorf("bad id: %v", err)
	}
}

func TestReplyWithoutHistory(t *testing.T) {
	r := start(t, wire.Options{})
	q := r.general.Say(r.ann, "question")
	r.general.Deny(wire.History, true)
	m := text("answer")
	m.ReplyTo = q.ID
	r.send(at(r.general), m)
	got := r.general.Messages()
	if len(got) != 2 || got[1].Content != "answer" || got[1].ReplyTo != "" {
		t.Errorf("shown: %+v", got)
	}
}

func TestArchivedThread(t *testing.T) {
	r := setup(t, wire.Options{})
	th := r.general.Thread(r.ann, "old")
	ref := r.send(at(th), text("working"))
	th.Archive(false)
	if err := r.c.Edit(r.ctx(), ref, text("done")); err != nil {
		t.Errorf("Edit: %v", err)
	}
	th.Archive(true)
	if err := r.c.Edit(r.ctx(), ref, text("again")); !is[*channels.Forbidden](err) {
		t.Errorf("Edit in a locked thread: %v", err)
	}
	if _, err := r.c.Send(r.ctx(), at(th), text("x"), ""); !is[*channels.Forbidden](err) {
		t.Errorf("Send in a locked thread: %v", err)
	}
}

func TestCommandsAreRegisteredWhenTheyChanged(t *testing.T) {
	for scope, change := range map[string]func(*rig) func(*discord.Config){
		"global": func(*rig) func(*discord.Config) { return func(*discord.Config) {} },
		"guild": func(r *rig) func(*discord.Config) {
			return func(c *discord.Config) { c.ApplicationCommands = "guild:" + r.guild.ID }
		},
		"off": func(*rig) func(*discord.Config) {
			return func(c *discord.Config) { c.ApplicationCommands = "off" }
		},
	} {
		r := setup(t, wire.Options{})
		guild := ""
		if scope == "guild" {
			guild = r.guild.ID
		}
		cmds := []channels.CommandInfo{
			{Name: "new", Description: map[string]string{"en": "fresh thread", "zh": "新会话"}, Args: "[title]"},
			{Name: "stop", Description: map[string]string{"en": "stop the run", "zh": "停止"}},
		}
		for range 2 {
			c := r.channel(change(r)) // as after a restart
			if err := c.RegisterCommands(r.ctx(), cmds); err != nil {
				t.Fatal(err)
			}
		}
		got, puts := r.s.Commands(guild)
		if scope == "off" {
			if puts != 0 {
				t.Errorf("off: %d", puts)
			}
			continue
		}
		if puts != 1 || len(got) != 2 || got[0].DescriptionLocal["zh-CN"] != "新会话" || len(got[0].Options) != 1 ||
			got[0].Options[0].Name != "args" || got[0].Options[0].Type != 3 {
			t.Errorf("%s: %d puts, %+v", scope, puts, got)
		}
		cmds[1].Description["en"] = "stop it"
		if err := r.channel(change(r)).RegisterCommands(r.ctx(), cmds); err != nil {
			t.Fatal(err)
		}
		if _, puts := r.s.Commands(guild); puts != 2 {
			t.Errorf("%s: %d puts after a change", scope, puts)
		}
	}
}

func TestAnswerTooLate(t *testing.T) {
	r := start(t, wire.Options{})
	ref := r.send(at(r.general), channels.Message{Body: cards.Body{Text: "go?", Buttons: [][]cards.Button{{{Label: "Go", Action: "go"}}}}})
	it, err := r.general.Press(r.bob, ref.ID, "Go")
	if err != nil {
		t.Fatal(err)
	}
	in := r.next()
	r.wait("the acknowledgement", func() bool { return r.s.State(it.ID).Acked })
	if st := r.s.State(it.ID); st.Type != 6 || st.After > 3*time.Second {
		t.Errorf("acknowledged %+v", st)
	}
	r.s.Expire(it)
	if err := r.c.AnswerAction(r.ctx(), in.Action.ID, "late"); err != nil {
		t.Errorf("AnswerAction: %v", err)
	}
}

// The real limits: a card edited as the pace allows gets no 429.
func TestPaceKeepsTheLimits(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := setup(t, wire.Options{Limits: true, Now: func() time.Time { return now }})
	ref := r.send(at(r.general), text("0"))
	gap := r.c.Capabilities().Pace(ref.Place).Gap
	for i := range 40 {
		now = now.Add(gap)
		if err := r.c.Edit(context.Background(), ref, text(fmt.Sprint(i))); err != nil {
			t.Fatalf("edit %d: %v", i, err)
		}
	}
	if n := r.s.Counts()["429"]; n != 0 {
		t.Errorf("%d times 429", n)
	}
	for range 10 { // and without the pace there is one
		if err := r.c.Edit(context.Background(), ref, text("x")); is[*channels.RateLimited](err) {
			return
		}
	}
	t.Error("the server does not limit")
}

// An answer of 20 KB: no refusal, at most one part more than the limit needs.
func TestLongAnswer(t *testing.T) {
	r := setup(t, wire.Options{})
	var md strings.Builder
	for i := 0; md.Len() < 20<<10; i++ {
		fmt.Fprintf(&md, "## Part %d\n\nSome words of **this** part, `code` and [a link](https://example.org/%d). 中文段落，说明一下情况。\n\n- one\n- two\n\n```go\nfunc f%d() {}\n```\n\n", i, i, i)
	}
	units := 0
	bodies := cards.Discord().Markdown(md.String())
	for i, b := range bodies {
		units += cards.UTF16Len(b.Text)
		if _, err := r.c.Send(r.ctx(), at(r.general), channels.Message{Body: b}, fmt.Sprint(i)); err != nil {
			t.Fatalf("part %d: %v", i, err)
		}
	}
	if need := (units + 1899) / 1900; len(bodies) > need+1 {
		t.Errorf("%d parts for %d units", len(bodies), units)
	}
	t.Logf("%d bytes in %d parts", md.Len(), len(bodies))
}

func TestNewRefusesNonsense(t *testing.T) {
	good := discord.Config{Token: "a.b.c", Dialect: cards.Discord()}
	if _, err := discord.New(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*discord.Config){
		"token":  func(c *discord.Config) { c.Token = "nonsense" },
		"empty":  func(c *discord.Config) { c.Token = " " },
		"url":    func(c *discord.Config) { c.APIURL = "ftp://x" },
		"proxy":  func(c *discord.Config) { c.Proxy = "gopher://x" },
		"scope":  func(c *discord.Config) { c.ApplicationCommands = "guild:x" },
		"thread": func(c *discord.Config) { c.Thread = "yes" },
		"dial":   func(c *discord.Config) { c.Dialect = nil },
	} {
		c := good
		change(&c)
		if _, err := discord.New(c); err == nil {
			t.Errorf("%s is taken", name)
		} else if strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
