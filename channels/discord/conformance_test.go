package discord_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/channeltest"
	"deerbot/channels/discord"

	wire "deerbot/internal/wire/discord"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Platform { return newPlatform(t) })
}

// platform is the wire server as the conformance suite sees it.
type platform struct {
	s      *wire.Server
	url    string
	mem    *memory
	people map[string]*wire.User
	dm     *wire.Channel
	group  *wire.Channel
	thread *wire.Channel
	press  *wire.Interaction
}

func newPlatform(t *testing.T) *platform {
	s := wire.New(wire.Options{})
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	s.SetHost(strings.TrimPrefix(ts.URL, "http://"))
	p := &platform{s: s, url: ts.URL, mem: &memory{}, people: map[string]*wire.User{
		channeltest.Ann: s.Person("Ann", "ann"), channeltest.Bob: s.Person("Bob", "bob_b"),
		channeltest.Bot: s.Robot("Other", "other_bot"),
	}}
	p.dm = s.DM(p.people[channeltest.Ann])
	g := s.Guild("Team")
	p.group = g.Text("general")
	p.thread = g.Text("releases").Thread(p.people[channeltest.Ann], "deploys")
	p.live(t)
	return p
}

// live runs an adapter once before the test, as Discord keeps events only for a session that was there.
func (p *platform) live(t *testing.T) {
	c := p.Channel(t, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	in := channeltest.NewInbox()
	go func() { done <- c.Run(ctx, in) }()
	if err := p.s.WaitFor(ctx, func() bool { n, _, _ := p.s.Connected(); return n == 1 }); err != nil {
		t.Fatal(err)
	}
	p.dm.Say(p.people[channeltest.Ann], "first contact")
	in.Next(t)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func (p *platform) make(t *testing.T, cfg discord.Config) channels.Channel {
	cfg.Memory = p.mem
	c, err := discord.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *platform) Channel(t *testing.T, log *slog.Logger) channels.Channel {
	return p.make(t, config(p.s, p.url, log))
}

func (p *platform) Dead(t *testing.T, log *slog.Logger) channels.Channel {
	return p.make(t, config(p.s, "http://127.0.0.1:1", log)) // nothing listens there
}

func (p *platform) Secrets() []string {
	tok := p.s.Token()
	return []string{tok, tok[strings.LastIndexByte(tok, '.')+1:]}
}

func (p *platform) DM() channels.Place            { return at(p.dm) }
func (p *platform) Group() channels.Place         { return at(p.group) }
func (p *platform) Topic() (channels.Place, bool) { return at(p.thread), true }

func (p *platform) chat(pl channels.Place) *wire.Channel {
	if pl.Topic != "" {
		return p.s.Channel(pl.Topic)
	}
	return p.s.Channel(pl.Chat)
}

func (p *platform) Say(pl channels.Place, who string, s channeltest.Say) string {
	var opts []wire.SayOption
	if s.ReplyTo != "" {
		opts = append(opts, wire.ReplyTo(s.ReplyTo))
	}
	if s.File != nil {
		opts = append(opts, wire.WithFile(s.File.Name, s.File.MIME, s.File.Data))
	}
	return p.chat(pl).Say(p.people[who], s.Text, opts...).ID
}

func (p *platform) Edit(pl channels.Place, id, text string) bool {
	p.chat(pl).Edit(id, text)
	return true
}

func (p *platform) Remove(pl channels.Place, id string) { p.chat(pl).Remove(id) }

func (p *platform) Mention(who string) string {
	if who == channeltest.Me {
		u := p.s.Bot()
		return u.Mention()
	}
	return p.people[who].Mention()
}

func (p *platform) Shown(pl channels.Place) []channeltest.Shown {
	var out []channeltest.Shown
	for _, m := range p.chat(pl).Messages() {
		if m.Type != 0 && m.Type != 19 || m.Content == "first contact" {
			continue
		}
		s := channeltest.Shown{ID: m.ID, Bot: m.Bot, Edits: m.Edits, ReplyTo: m.ReplyTo, Topic: pl.Topic}
		s.Text, s.Bold = shownText(m.Content)
		for _, row := range m.Buttons {
			for _, b := range row {
				s.Buttons = append(s.Buttons, b.Label)
			}
		}
		for _, f := range m.Files {
			s.Files = append(s.Files, channeltest.File{Name: f.Name, MIME: f.MIME, Data: f.Data})
		}
		out = append(out, s)
	}
	return out
}

// shownText reads what the suite's texts need of Markdown: escapes and one word in bold.
func shownText(s string) (text, bold string) {
	if _, rest, ok := strings.Cut(s, "**"); ok {
		bold, _, _ = strings.Cut(rest, "**")
	}
	s = strings.ReplaceAll(s, "**", "")
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), bold
}

func (p *platform) Press(pl channels.Place, id, label, who string) {
	it, err := p.chat(pl).Press(p.people[who], id, label)
	if err != nil {
		panic(err)
	}
	p.press = it
}

func (p *platform) PressAnswered() (string, bool) {
	st := p.s.State(p.press.ID)
	if len(st.Notices) == 0 {
		return "", st.Acked
	}
	return st.Notices[0], st.Acked
}

func (p *platform) Commands() []string {
	var names []string
	cmds, _ := p.s.Commands("")
	for _, c := range cmds {
		names = append(names, c.Name)
	}
	return names
}

func (p *platform) Body(text, bold string) cards.Body {
	esc := strings.ReplaceAll(text, "<", `\<`)
	if bold != "" {
		esc = strings.Replace(esc, bold, "**"+bold+"**", 1)
	}
	return cards.Body{Text: esc, Plain: text, Format: "markdown"}
}

func (p *platform) Refused() (cards.Body, bool) { return cards.Body{}, false }

func (p *platform) Long() cards.Body { return p.Body(strings.Repeat("word ", 400)+"end", "") }

func (p *platform) Break(f channeltest.Fault) {
	fault := map[channeltest.Fault]wire.Fault{
		channeltest.RateLimited: {Status: 429, RetryAfter: channeltest.RetryAfter.Seconds()},
		channeltest.Forbidden:   {Status: 403, Code: 50013, Message: "Missing Permissions"},
		channeltest.ServerError: {Status: 502, Body: "<html>Bad Gateway</html>"},
		channeltest.LostAnswer:  {Drop: wire.DropAfter},
	}[f]
	fault.Times = -1
	for _, m := range []string{"createMessage", "editMessage", "deleteMessage"} {
		fault.Name = m
		p.s.Fail(fault)
	}
}

func (p *platform) Heal()               { p.s.ClearFaults() }
func (p *platform) Cut()                { p.s.Cut() }
func (p *platform) Down(down bool)      { p.s.SetDown(down) }
func (p *platform) Unacknowledged() int { return -1 }
