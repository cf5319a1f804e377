package telegram_test

import (
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/channeltest"
	"deerbot/channels/telegram"

	wire "deerbot/internal/wire/telegram"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return newPlatform(t) })
}

// platform is the wire server as the conformance suite sees it.
type platform struct {
	s      *wire.Server
	url    string
	people map[string]*wire.User
	dm     *wire.Chat
	group  *wire.Chat
	forum  *wire.Chat
	topic  int
	press  *wire.Press
}

func newPlatform(t *testing.T) *platform {
	s := wire.New(wire.Options{})
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	p := &platform{s: s, url: ts.URL, people: map[string]*wire.User{
		channeltest.Ann: s.Person("Ann", "ann"), channeltest.Bob: s.Person("Bob", "bob_b"),
		channeltest.Bot: s.Robot("Other", "other_bot"),
	}}
	p.dm, p.group, p.forum = s.DM(p.people[channeltest.Ann]), s.Group("Team"), s.Forum("Forum")
	p.topic = p.forum.Topic(p.people[channeltest.Ann], "deploys")
	return p
}

func (p *platform) config(log *slog.Logger) telegram.Config {
	return telegram.Config{
		Token: p.s.Token(), APIURL: p.url, Dialect: plain{}, Log: log,
		RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond, ConflictWait: 20 * time.Millisecond,
	}
}

func (p *platform) make(t *testing.T, cfg telegram.Config) channels.Channel {
	c, err := telegram.New(cfg)
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
	cfg.APIURL = "http://127.0.0.1:1" // nothing listens there
	return p.make(t, cfg)
}

func (p *platform) Secrets() []string {
	_, secret, _ := strings.Cut(p.s.Token(), ":")
	return []string{p.s.Token(), secret}
}

func (p *platform) DM() channels.Place    { return at(p.dm, "") }
func (p *platform) Group() channels.Place { return at(p.group, "") }

func (p *platform) Topic() (channels.Place, bool) { return at(p.forum, strconv.Itoa(p.topic)), true }

func (p *platform) chat(pl channels.Place) *wire.Chat {
	id, _ := strconv.ParseInt(pl.Chat, 10, 64)
	return p.s.Chat(id)
}

func (p *platform) Say(pl channels.Place, who string, s channeltest.Say) string {
	var opts []wire.SayOption
	if id, err := strconv.Atoi(s.ReplyTo); err == nil {
		opts = append(opts, wire.ReplyTo(id))
	}
	if id, err := strconv.Atoi(pl.Topic); err == nil {
		opts = append(opts, wire.InTopic(id))
	}
	if s.File != nil {
		opts = append(opts, wire.Document(s.File.Name, s.File.MIME, s.File.Data))
	}
	return strconv.Itoa(p.chat(pl).Say(p.people[who], s.Text, opts...).ID)
}

func (p *platform) Edit(pl channels.Place, id, text string) bool {
	n, _ := strconv.Atoi(id)
	p.chat(pl).Edit(n, text)
	return true
}

func (p *platform) Remove(pl channels.Place, id string) {
	n, _ := strconv.Atoi(id)
	p.chat(pl).Remove(n)
}

func (p *platform) Mention(who string) string {
	if who == channeltest.Me {
		return "@" + p.s.Bot().Username
	}
	return "@" + p.people[who].Username
}

func (p *platform) Shown(pl channels.Place) []channeltest.Shown {
	var out []channeltest.Shown
	for _, m := range p.chat(pl).Messages() {
		if m.Service {
			continue
		}
		s := channeltest.Shown{ID: strconv.Itoa(m.ID), Bot: m.Bot, Text: m.Text, Edits: m.Edits}
		if m.ReplyTo != 0 {
			s.ReplyTo = strconv.Itoa(m.ReplyTo)
		}
		if m.Topic != 0 {
			s.Topic = strconv.Itoa(m.Topic)
		}
		for _, e := range m.Entities {
			if e.Type == "bold" {
				s.Bold = m.Text[e.Offset : e.Offset+e.Length] // the suite's texts are ASCII here
			}
		}
		for _, row := range m.Buttons {
			for _, b := range row {
				s.Buttons = append(s.Buttons, b.Text)
			}
		}
		for _, f := range m.Files {
			s.Files = append(s.Files, channeltest.File{Name: f.Name, MIME: f.MIME, Data: f.Data})
		}
		out = append(out, s)
	}
	return out
}

func (p *platform) Press(pl channels.Place, id, label, who string) {
	n, _ := strconv.Atoi(id)
	press, err := p.chat(pl).Press(p.people[who], n, label)
	if err != nil {
		panic(err)
	}
	p.press = press
}

func (p *platform) PressAnswered() (string, bool) {
	st := p.s.PressState(p.press.ID)
	return st.Notice, st.Answered
}

func (p *platform) Commands() []string {
	var names []string
	for _, c := range p.s.Commands("default", "") {
		names = append(names, c.Command)
	}
	return names
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (p *platform) Body(text, bold string) cards.Body {
	html := escape.Replace(text)
	if bold != "" {
		html = strings.Replace(html, bold, "<b>"+bold+"</b>", 1)
	}
	return cards.Body{Text: html, Plain: text, Format: "html"}
}

func (p *platform) Refused() (cards.Body, bool) {
	return cards.Body{Text: "a <b>half", Plain: "a half", Format: "html"}, true
}

func (p *platform) Long() cards.Body { return p.Body(strings.Repeat("word ", 820)+"end", "") }

func (p *platform) Break(f channeltest.Fault) {
	fault := map[channeltest.Fault]wire.Fault{
		channeltest.RateLimited: {Code: 429, RetryAfter: int(channeltest.RetryAfter / time.Second)},
		channeltest.Forbidden:   {Code: 403, Description: "Forbidden: bot was blocked by the user"},
		channeltest.ServerError: {Code: 502, Body: "<html>Bad Gateway</html>"},
		channeltest.LostAnswer:  {Drop: wire.DropAfter},
	}[f]
	fault.Times = -1
	for _, m := range []string{"sendMessage", "editMessageText", "deleteMessage", "sendDocument", "sendPhoto"} {
		fault.Method = m
		p.s.Fail(fault)
	}
}

func (p *platform) Heal()               { p.s.ClearFaults() }
func (p *platform) Cut()                { p.s.Cut() }
func (p *platform) Down(down bool)      { p.s.SetDown(down) }
func (p *platform) Unacknowledged() int { return p.s.Pending() }
