package slack_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/channeltest"
	"deerbot/channels/slack"

	wire "deerbot/internal/wire/slack"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return newPlatform(t) })
}

// platform is the wire server as the conformance suite sees it.
type platform struct {
	s      *wire.Server
	url    string
	people map[string]*wire.User
	chans  map[string]*wire.Channel
	dm     *wire.Channel
	group  *wire.Channel
	other  *wire.Channel
	topic  string
	press  string
}

func newPlatform(t *testing.T) *platform {
	s := wire.New(wire.Options{})
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		ts.Close()
	})
	p := &platform{s: s, url: ts.URL, people: map[string]*wire.User{
		channeltest.Ann: s.Person("Ann Ahn", "ann"), channeltest.Bob: s.Person("Bob Bee", "bob"), channeltest.Bot: s.Robot("other"),
	}, chans: map[string]*wire.Channel{}}
	p.dm, p.group, p.other = s.DM(p.people[channeltest.Ann]), s.Public("team"), s.Private("deploys")
	for _, c := range []*wire.Channel{p.dm, p.group, p.other} {
		p.chans[c.ID()] = c
	}
	// A thread whose first message is gone: there is nothing to quote.
	p.topic = p.other.Say(p.people[channeltest.Ann], "deploys")
	p.other.Remove(p.topic)
	s.Lose()
	return p
}

// RepliesAreThreads tells the suite that a message answers another by standing in its thread.
func (p *platform) RepliesAreThreads() bool { return true }

func (p *platform) config(log *slog.Logger) slack.Config {
	bot, app := p.s.Tokens()
	return slack.Config{
		BotToken: bot, AppToken: app, APIURL: p.url + "/api", Dialect: cards.Slack(), Log: log,
		RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond,
	}
}

func (p *platform) make(t *testing.T, cfg slack.Config) channels.Channel {
	c, err := slack.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *platform) Channel(t *testing.T, log *slog.Logger) channels.Channel {
	return p.make(t, p.config(log))
}

func (p *platform) Dead(t *testing.T, log *slog.Logger) channels.Channel {
	cfg := p.config(log)
	cfg.APIURL = "http://127.0.0.1:1/api" // nothing listens there
	return p.make(t, cfg)
}

func (p *platform) Secrets() []string {
	bot, app := p.s.Tokens()
	return []string{bot, app, "wireWire", "ticket="}
}

func (p *platform) DM() channels.Place            { return at(p.dm, "") }
func (p *platform) Group() channels.Place         { return at(p.group, "") }
func (p *platform) Topic() (channels.Place, bool) { return at(p.other, p.topic), true }

func (p *platform) Say(pl channels.Place, who string, s channeltest.Say) string {
	var opts []wire.SayOption
	switch {
	case pl.Topic != "":
		opts = append(opts, wire.InThread(pl.Topic))
	case s.ReplyTo != "":
		opts = append(opts, wire.InThread(s.ReplyTo))
	}
	if s.File != nil {
		opts = append(opts, wire.WithFile(s.File.Name, s.File.MIME, s.File.Data))
	}
	return p.chans[pl.Chat].Say(p.people[who], s.Text, opts...)
}

func (p *platform) Edit(pl channels.Place, id, text string) bool {
	p.chans[pl.Chat].Edit(id, text)
	return true
}

func (p *platform) Remove(pl channels.Place, id string) { p.chans[pl.Chat].Remove(id) }

func (p *platform) Mention(who string) string {
	if who == channeltest.Me {
		return "<@" + wire.BotUser + ">"
	}
	return "<@" + p.people[who].ID + ">"
}

func (p *platform) Shown(pl channels.Place) []channeltest.Shown {
	var out []channeltest.Shown
	for _, m := range p.chans[pl.Chat].Messages() {
		if m.Ephemeral != "" || pl.Topic != "" && m.Thread != pl.Topic && m.TS != pl.Topic {
			continue
		}
		s := channeltest.Shown{
			ID: m.TS, Bot: m.Bot, Text: m.Text, Bold: strings.Join(m.Bold, " "), Topic: m.Thread, Buttons: m.Buttons, Edits: m.Edits,
		}
		for _, f := range m.Files {
			s.Files = append(s.Files, channeltest.File{Name: f.Name, MIME: f.MIME, Data: f.Data})
		}
		out = append(out, s)
	}
	return out
}

func (p *platform) Press(pl channels.Place, id, label, who string) {
	press, err := p.chans[pl.Chat].Press(p.url, p.people[who], id, label)
	if err != nil {
		panic(err)
	}
	p.press = press
}

func (p *platform) PressAnswered() (string, bool) {
	n := p.s.Notices(p.press)
	if len(n) == 0 {
		return "", false
	}
	return n[0], true
}

func (p *platform) Commands() []string { return nil }

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (p *platform) Body(text, bold string) cards.Body {
	mrkdwn := escape.Replace(text)
	if bold != "" {
		mrkdwn = strings.Replace(mrkdwn, bold, "*"+bold+"*", 1)
	}
	return cards.Body{Text: mrkdwn, Plain: text, Format: "mrkdwn"}
}

func (p *platform) Refused() (cards.Body, bool) {
	long := strings.Repeat("x", 3001)
	return cards.Body{
		Text: "a half", Plain: "a half", Format: "mrkdwn", Data: []byte(`[{"type":"section","text":{"type":"mrkdwn","text":"` + long + `"}}]`),
	}, true
}

func (p *platform) Long() cards.Body { return p.Body(strings.Repeat("word ", 820)+"end", "") }

func (p *platform) Break(f channeltest.Fault) {
	fault := map[channeltest.Fault]wire.Fault{
		channeltest.RateLimited: {RetryAfter: channeltest.RetryAfter},
		channeltest.Forbidden:   {Error: "not_in_channel"},
		channeltest.ServerError: {Status: 502, Body: "<html>Bad Gateway</html>"},
		channeltest.LostAnswer:  {DropAfter: true},
	}[f]
	fault.Times = -1
	for _, m := range []string{"chat.postMessage", "chat.update", "chat.delete", "files.completeUploadExternal"} {
		fault.Method = m
		p.s.Fail(fault)
	}
}

func (p *platform) Heal()               { p.s.ClearFaults() }
func (p *platform) Cut()                { p.s.Cut() }
func (p *platform) Down(down bool)      { p.s.SetDown(down) }
func (p *platform) Unacknowledged() int { return p.s.Unacked() }
