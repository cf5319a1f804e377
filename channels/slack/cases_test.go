package slack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/slack"

	wire "deerbot/internal/wire/slack"
)

const me = "<@" + wire.BotUser + ">"

// A click on a card with a long command; after the decision the message has no buttons.
func TestC023_LongApproval(t *testing.T) {
	r := start(t, wire.Options{})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Public("ops")
	body := cards.Slack().Markdown("```\n" + strings.Repeat("make deploy # really\n", 160) + "```")[0]
	body.Buttons = [][]cards.Button{{{Label: "Approve", Action: "ok:1", Style: "primary"}}}
	ref := r.send(at(ch, ""), channels.Message{Body: body})
	if _, err := ch.Press(r.url, ann, ref.ID, "Approve"); err != nil {
		t.Fatal(err)
	}
	if in := r.next(); in.Action == nil || in.Action.Data != "ok:1" {
		t.Fatalf("event: %+v", in)
	}
	body.Buttons = nil
	if err := r.c.Edit(r.ctx(), ref, channels.Message{Body: body}); err != nil {
		t.Fatal(err)
	}
	if m := ch.Messages()[0]; len(m.Buttons) != 0 || m.Complaint != "" || strings.Count(m.Text, "really") < 150 {
		t.Errorf("shown: %q %q", m.Buttons, m.Complaint)
	}
}

// What can be posted but not edited is refused before it is posted.
func TestC025_NothingThatCannotBeEdited(t *testing.T) {
	r := setup(t, wire.Options{})
	ch := r.s.Public("ops")
	_, err := r.c.Send(r.ctx(), at(ch, ""), text(strings.Repeat("x", 4001)), "")
	var long *channels.TooLong
	if !errors.As(err, &long) || len(r.s.Calls("chat.postMessage")) != 0 {
		t.Errorf("%v", err)
	}
	ref := r.send(at(ch, ""), text(strings.Repeat("x", 3900)))
	if err := r.c.Edit(r.ctx(), ref, text(strings.Repeat("y", 4000))); err != nil {
		t.Error(err)
	}
}

func TestC090_PreviewsAndOwnEditsAreNoMessages(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	hold := make(chan struct{})
	r.s.Fail(wire.Fault{Method: "users.info", Hold: hold}) // B comes before A's look-ups are done
	ts := ch.Say(ann, "see <https://a.example>")
	ch.Unfurl(ts)
	r.s.Inject(json.RawMessage(fmt.Sprintf(`{"type":"message","subtype":"message_changed","hidden":true,"ts":"2.2","channel":%q,
		"message":{"ts":%q,"text":"see <https://a.example>","user":%q}}`, ch.ID(), ts, ann.ID)))
	close(hold)
	if in := r.next(); in.Kind != channels.KindMessage || in.Text != "see https://a.example" {
		t.Errorf("event: %+v", in)
	}
	ref := r.send(at(ch, ""), text("answer <https://b.example>"))
	if err := r.c.Edit(r.ctx(), ref, text("better")); err != nil {
		t.Fatal(err)
	}
	ch.Unfurl(ref.ID)
	ch.Say(ann, "after")
	if in := r.next(); in.Text != "after" {
		t.Errorf("event: %+v", in)
	}
}

func TestC092_RetriesAreOneEvent(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	r.s.InjectTwice(json.RawMessage(fmt.Sprintf(`{"type":"message","ts":"1700000000.000100","channel":%q,"channel_type":"im","user":%q,"text":"once"}`, ch.ID(), ann.ID)), 4)
	ch.Say(ann, "next")
	for _, want := range []string{"once", "next"} {
		if in := r.next(); in.Text != want {
			t.Errorf("got %q, want %q", in.Text, want)
		}
	}
	r.wait("acknowledgements", func() bool { return r.s.Unacked() == 0 })
}

// One mention fires app_mention and message: one event, whichever comes first or alone.
func TestMentionIsOneEvent(t *testing.T) {
	r := start(t, wire.Options{})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Public("team")
	ts := ch.Say(ann, me+" hi")
	alone := ch.Say(ann, me+": hi", wire.MentionOnly())
	ch.Say(ann, "end")
	for _, want := range []struct{ text, topic string }{{"hi", ts}, {"hi", alone}, {"end", ""}} {
		if in := r.next(); in.Text != want.text || in.Place.Topic != want.topic || in.ChatTitle != "team" || in.Sender.Name != "Ann" {
			t.Errorf("event: %+v, want %v", in, want)
		}
	}
}

func TestC102_ConnectWaitsAsTold(t *testing.T) {
	r := setup(t, wire.Options{})
	r.s.Fail(wire.Fault{Method: "apps.connections.open", RetryAfter: time.Second})
	r.run()
	r.wait("a connection", func() bool { return r.s.Sockets() == 1 })
	calls := r.s.Calls("apps.connections.open")
	if len(calls) != 2 || calls[1].At.Sub(calls[0].At) < time.Second {
		t.Errorf("%d calls, %v", len(calls), calls)
	}
}

func TestC102_FatalErrorsStop(t *testing.T) {
	for _, tt := range []struct{ method, code, want string }{
		{"auth.test", "invalid_auth", "bot_token"},
		{"auth.test", "token_revoked", "bot_token"},
		{"auth.test", "account_inactive", "bot_token"},
		{"auth.test", "token_expired", "bot_token"},
		{"apps.connections.open", "not_allowed_token_type", "app_token"},
		{"apps.connections.open", "invalid_auth", "app_token"},
		{"apps.connections.open", "missing_scope", "connections:write"},
	} {
		r := setup(t, wire.Options{})
		r.s.Fail(wire.Fault{Method: tt.method, Error: tt.code, Needed: "x", Times: -1})
		err := r.c.Run(r.ctx(), r.in)
		if !channels.IsFatal(err) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(r.c.Health().Trouble, tt.code) {
			t.Errorf("%s %s: %v; %+v", tt.method, tt.code, err, r.c.Health())
		}
		if n := len(r.s.Calls(tt.method)); n != 1 {
			t.Errorf("%s: %d calls", tt.code, n)
		}
	}
}

// A server that greets and drops at once is not called in a circle.
func TestBackOffWhenDroppedAtOnce(t *testing.T) {
	r := setup(t, wire.Options{})
	r.c = r.channel(func(c *slack.Config) { c.RetryMin, c.RetryMax = 20*time.Millisecond, 10*time.Second })
	r.run()
	for n := range 5 {
		r.wait("a connection", func() bool { return len(r.s.Opens()) > n && r.s.Sockets() > 0 })
		r.s.Disconnect("refresh_requested")
		r.wait("its end", func() bool { return r.s.Sockets() == 0 || len(r.s.Opens()) > n+1 })
	}
	opens := r.s.Opens()
	// Waits of 0, 20, 40, 80 ms and so on, at least half of each.
	if d := opens[4].Sub(opens[0]); d < 70*time.Millisecond {
		t.Errorf("five connections within %v", d)
	}
}

func TestHalfOpenSocket(t *testing.T) {
	r := setup(t, wire.Options{})
	r.c = r.channel(func(c *slack.Config) { c.DeadAfter, c.PingEvery = 100*time.Millisecond, 20*time.Millisecond })
	r.run()
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	ch.Say(ann, "one")
	r.next()
	r.s.Freeze()
	ch.Say(ann, "two")
	if in := r.next(); in.Text != "two" {
		t.Errorf("got %q", in.Text)
	}
}

// What Slack gave up on comes from the history, in channels, threads and direct messages, with later edits.
func TestMissedMessagesAreFetched(t *testing.T) {
	r := start(t, wire.Options{})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Public("team")
	dm := r.s.DM(ann)
	root := ch.Say(ann, me+" start")
	ch.Say(ann, "more", wire.InThread(root))
	old := dm.Say(ann, "hello")
	for range 3 {
		r.next()
	}
	r.s.SetDown(true)
	r.wait("the end", func() bool { return r.s.Sockets() == 0 })
	ch.Say(ann, me+" lost")
	ch.Say(ann, "lost reply", wire.InThread(root))
	dm.Say(ann, "lost dm")
	dm.Edit(old, "hello there")
	r.s.Lose()
	r.s.SetDown(false)
	got := map[string]channels.Kind{}
	for range 4 {
		in := r.next()
		got[in.Text] = in.Kind
		if in.Text == "lost reply" && in.Place.Topic != root {
			t.Errorf("event: %+v", in)
		}
	}
	if got["lost"] != channels.KindMessage || got["lost reply"] != channels.KindMessage || got["lost dm"] != channels.KindMessage || got["hello there"] != channels.KindEdit {
		t.Errorf("got %v", got)
	}
}

func TestC199_TokenStaysWithSlack(t *testing.T) {
	var asked, token string
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked, token = req.URL.Path, req.Header.Get("Authorization")
	}))
	defer foreign.Close()
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	r.s.DM(ann).Say(ann, "look", wire.WithRedirect("a.txt", foreign.URL+"/x"))
	in := r.next()
	if body, err := r.c.Fetch(r.ctx(), in.Attachments[0]); err == nil {
		body.Close()
		t.Error("a redirect to another host was followed")
	}
	if token != "" || asked != "" {
		t.Errorf("the other host saw %q at %q", token, asked)
	}
}

func TestC203_NoSecretInErrors(t *testing.T) {
	r := setup(t, wire.Options{})
	bot, app := r.s.Tokens()
	c := r.channel(func(cfg *slack.Config) { cfg.APIURL = "http://127.0.0.1:1/api" })
	_, err := c.Send(r.ctx(), channels.Place{Chat: "C1"}, text("x"), "k")
	said := fmt.Sprintf("%v %+v %#v %+v %v", err, err, errors.Unwrap(err), c, slack.Config{BotToken: bot, AppToken: app})
	for _, cfg := range []slack.Config{{BotToken: app, AppToken: bot}, {BotToken: bot + " x", AppToken: "nonsense-" + app}} {
		_, err := slack.New(cfg)
		said += fmt.Sprintf("%v %+v", err, cfg)
	}
	for _, secret := range []string{bot, app, "wireWire"} {
		if strings.Contains(said, secret) {
			t.Errorf("a secret was said: %s", said)
		}
	}
}

// A send whose answer was lost is found by its key.
func TestFind(t *testing.T) {
	r := start(t, wire.Options{})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Public("team")
	root := ch.Say(ann, me+" go")
	for _, p := range []channels.Place{at(ch, ""), at(ch, root)} {
		r.s.Fail(wire.Fault{Method: "chat.postMessage", DropAfter: true})
		_, err := r.c.Send(r.ctx(), p, text("answer"), "run-1:"+p.Topic)
		var tr *channels.Transient
		if !errors.As(err, &tr) || !tr.MaybeSent {
			t.Fatalf("%v", err)
		}
		ref, ok, err := r.c.Find(r.ctx(), p, "run-1:"+p.Topic)
		if err != nil || !ok || ref.Place != p {
			t.Errorf("%+v %v %v", ref, ok, err)
		}
		if err := r.c.Edit(r.ctx(), ref, text("found")); err != nil {
			t.Error(err)
		}
		if _, ok, err := r.c.Find(r.ctx(), p, "run-2"); ok || err != nil {
			t.Errorf("found what was not sent: %v", err)
		}
	}
}

func TestSlashCommands(t *testing.T) {
	r := start(t, wire.Options{})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Public("team")
	for _, tt := range []struct{ command, text, want string }{
		{"/deer", "sum &amp; compare", "sum & compare"},
		{"/deer", "", "/help"},
		{"/deer-new", "big title", "/new big title"},
		{"/deer-stop", "", "/stop"},
		{"/status", "", "/status"},
	} {
		ch.Command(r.url, ann, tt.command, tt.text)
		if in := r.next(); in.Text != tt.want || !in.Mentioned || in.Place != at(ch, "") || in.Sender.ID != ann.ID {
			t.Errorf("%v: %+v", tt, in)
		}
	}
}

func TestRecall(t *testing.T) {
	r := start(t, wire.Options{})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Public("team")
	ts := ch.Say(ann, me+" oops")
	r.next()
	ch.Remove(ts)
	if in := r.next(); in.Kind != channels.KindRecall || in.MessageID != ts || in.Place != at(ch, ts) {
		t.Errorf("event: %+v", in)
	}
	ref := r.send(at(ch, ""), text("mine"))
	ch.Remove(ref.ID)
	ch.Say(ann, "after")
	if in := r.next(); in.Text != "after" {
		t.Errorf("event: %+v", in)
	}
}

func TestTypingAndMissingScope(t *testing.T) {
	r := start(t, wire.Options{})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Public("team")
	root := ch.Say(ann, me+" go")
	if err := r.c.Typing(r.ctx(), at(ch, root)); err != nil || len(r.s.Statuses()) != 1 {
		t.Errorf("%v %v", err, r.s.Statuses())
	}
	r.s.Fail(wire.Fault{Method: "chat.postMessage", Error: "missing_scope", Needed: "chat:write.public"})
	_, err := r.c.Send(r.ctx(), at(ch, ""), text("x"), "")
	var no *channels.Forbidden
	if !errors.As(err, &no) || !strings.Contains(err.Error(), "chat:write.public") {
		t.Errorf("%v", err)
	}
}

func TestAnswerAfterRestart(t *testing.T) {
	r := start(t, wire.Options{})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Public("team")
	m := text("go on?")
	m.Body.Buttons = [][]cards.Button{{{Label: "Yes", Action: "y"}}}
	ref := r.send(at(ch, ""), m)
	press, err := ch.Press(r.url, ann, ref.ID, "Yes")
	if err != nil {
		t.Fatal(err)
	}
	in := r.next()
	if strings.Contains(in.Action.ID, "http") {
		t.Errorf("an address is in the id %q", in.Action.ID)
	}
	other := r.channel(func(*slack.Config) {}) // knows no address
	if err := other.AnswerAction(r.ctx(), in.Action.ID, "taken & done"); err != nil {
		t.Fatal(err)
	}
	if n := r.s.Notices(press); len(n) != 1 || n[0] != "taken &amp; done" {
		t.Errorf("%q", n)
	}
	other.Run(cancelled(), nil)
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestManifest(t *testing.T) {
	var m struct {
		Settings struct {
			Socket bool `json:"socket_mode_enabled"`
			Events struct {
				Bot []string `json:"bot_events"`
			} `json:"event_subscriptions"`
		} `json:"settings"`
		Features struct {
			Commands []struct{ Command, Description string } `json:"slash_commands"`
		} `json:"features"`
	}
	raw := slack.Manifest("", channels.CommandInfo{Name: "goal", Description: map[string]string{"en": "twice"}}, channels.CommandInfo{Name: "bad name"})
	if err := json.Unmarshal(raw, &m); err != nil || !m.Settings.Socket || len(m.Settings.Events.Bot) == 0 || len(m.Features.Commands) < 5 {
		t.Errorf("%v %s", err, raw)
	}
	seen := map[string]bool{}
	for _, c := range m.Features.Commands {
		if seen[c.Command] || c.Description == "" || strings.Contains(c.Command, " ") {
			t.Errorf("command %+v", c)
		}
		seen[c.Command] = true
	}
}

func TestExternalAndLostFiles(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	r.s.Inject(json.RawMessage(fmt.Sprintf(`{"type":"message","subtype":"file_share","ts":"1700000000.000200","channel":%q,"user":%q,"text":"",
		"files":[{"id":"F1","mode":"tombstone"},{"id":"F2","is_external":true,"title":"Plan","url_private":"https://d.example/p"}]}`, ch.ID(), ann.ID)))
	if in := r.next(); len(in.Attachments) != 0 || !strings.Contains(in.Note, "Plan https://d.example/p") || !strings.Contains(in.Note, "no longer has") {
		t.Errorf("event: %+v", in)
	}
}

func TestSendFileOfUnknownSize(t *testing.T) {
	r := start(t, wire.Options{})
	ch := r.s.Public("team")
	f := channels.File{Name: "a.txt", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil }}
	ref, err := r.c.SendFile(r.ctx(), at(ch, ""), f, "", "")
	if err != nil || strings.HasPrefix(ref.ID, "file:") {
		t.Fatalf("%+v %v", ref, err)
	}
	f.Size = 5 // it has three
	if _, err := r.c.SendFile(r.ctx(), at(ch, ""), f, "", ""); err == nil {
		t.Error("half a file was sent")
	}
}
