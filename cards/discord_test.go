package cards

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// checkDiscord reads s as Discord's clients do, strictly, and returns what is shown. It shares nothing with the renderer.
func checkDiscord(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("not UTF-8")
	}
	if n := UTF16Len(s); n > 2000 {
		return "", fmt.Errorf("%d units", n)
	}
	c := discordReader{s: s, open: map[string]bool{}}
	for c.i < len(c.s) {
		if err := c.line(); err != nil {
			return "", fmt.Errorf("byte %d: %w", c.i, err)
		}
	}
	out := strings.ReplaceAll(c.out.String(), "\u200b", "")
	if strings.TrimSpace(out) == "" {
		return "", fmt.Errorf("nothing visible")
	}
	return out, nil
}

type discordReader struct {
	s      string
	i      int
	open   map[string]bool
	out    strings.Builder
	links  int
	quoted bool
}

var (
	discordNotify = regexp.MustCompile(`(?i)@everyone|@here|<[@#]`)
	discordLang   = regexp.MustCompile(`(?i)^[a-z0-9_+\-.#]+$`)
	discordURL    = regexp.MustCompile(`^https?://[^\s<>()\[\]]+$`)
	discordHead   = regexp.MustCompile(`^#{1,3} `)
	discordItem   = regexp.MustCompile(`^ *(-|\d+\.) `)
)

func (c *discordReader) line() error {
	c.quoted = strings.HasPrefix(c.s[c.i:], "> ")
	if c.quoted {
		c.i += 2
	}
	rest := c.s[c.i:]
	if m := discordHead.FindString(rest); m != "" {
		c.i += len(m)
	} else if m := discordItem.FindString(rest); m != "" {
		c.out.WriteString(m)
		c.i += len(m)
	}
	for c.i < len(c.s) {
		if c.s[c.i] == '\n' {
			c.i++
			c.out.WriteByte('\n')
			break
		}
		if err := c.next(); err != nil {
			return err
		}
	}
	for m, on := range c.open {
		if on {
			return fmt.Errorf("%s is open at the end of a line", m)
		}
	}
	return nil
}

func (c *discordReader) next() error {
	s := c.s[c.i:]
	switch s[0] {
	case '\\':
		if len(s) < 2 || unicode.IsLetter(rune(s[1])) || unicode.IsDigit(rune(s[1])) || s[1] <= ' ' {
			return fmt.Errorf("backslash before %q", s[1:])
		}
		_, n := utf8.DecodeRuneInString(s[1:])
		if discordNotify.MatchString(s[1:min(len(s), 12)]) && strings.HasPrefix(s[1:], "<") && !strings.HasPrefix(s[1:], "<\u200b") {
			return fmt.Errorf("mention in %.20q", s)
		}
		c.out.WriteString(s[1 : 1+n])
		c.i += 1 + n
	case '`':
		return c.code(s)
	case '[':
		return c.link(s)
	case '<':
		end := strings.IndexByte(s, '>')
		if end < 0 || !discordURL.MatchString(s[1:end]) {
			return fmt.Errorf("bare < in %.30q", s)
		}
		c.out.WriteString(s[1:end])
		c.i += end + 1
	case ']', '|', '_', '*', '~':
		return c.mark(s)
	case '@':
		if m := discordNotify.FindStringIndex(s); m != nil && m[0] == 0 {
			return fmt.Errorf("mention in %.20q", s)
		}
		c.out.WriteByte('@')
		c.i++
	default:
		if strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") {
			return fmt.Errorf("a link of its own making: %.30q", s)
		}
		_, n := utf8.DecodeRuneInString(s)
		c.out.WriteString(s[:n])
		c.i += n
	}
	return nil
}

func (c *discordReader) mark(s string) error {
	n := len(s) - len(strings.TrimLeft(s, s[:1]))
	var marks []string
	switch run := s[:n]; run {
	case "*", "**", "__", "~~":
		marks = []string{run}
	case "***":
		marks = []string{"*", "**"}
	default:
		return fmt.Errorf("bare %q", run)
	}
	for _, m := range marks {
		before, _ := utf8.DecodeLastRuneInString(c.s[:c.i])
		after, _ := utf8.DecodeRuneInString(s[n:])
		if c.open[m] && unicode.IsSpace(before) || !c.open[m] && (unicode.IsSpace(after) || len(s) == n) {
			return fmt.Errorf("%s beside white space", m)
		}
		c.open[m] = !c.open[m]
	}
	c.i += n
	return nil
}

func (c *discordReader) code(s string) error {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	if n >= 3 {
		end := strings.Index(s[3:], "```")
		if end < 0 {
			return fmt.Errorf("fence without an end")
		}
		inner := s[3 : 3+end]
		lines := strings.Split(inner, "\n")
		if len(lines) < 3 || lines[0] != "" && !discordLang.MatchString(lines[0]) {
			return fmt.Errorf("fence begins %q", lines[0])
		}
		for i, l := range lines[1:] {
			if c.quoted {
				ok := false
				if l, ok = strings.CutPrefix(l, "> "); !ok {
					return fmt.Errorf("line %d of a quoted fence is outside the quote", i)
				}
			}
			c.out.WriteString(l + "\n")
		}
		if strings.TrimSpace(strings.TrimPrefix(lines[len(lines)-1], "> ")) != "" {
			return fmt.Errorf("fence ends in %q", lines[len(lines)-1])
		}
		c.i += 3 + end + 3
		return nil
	}
	tick := s[:n]
	end := -1
	for i := n; i < len(s) && s[i] != '\n'; i++ {
		if s[i] == '`' {
			k := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
			if k == n {
				end = i
				break
			}
			i += k - 1
		}
	}
	if end < 0 {
		return fmt.Errorf("%s is not closed", tick)
	}
	c.out.WriteString(s[n:end])
	c.i += end + n
	return nil
}

func (c *discordReader) link(s string) error {
	if c.links > 0 {
		return fmt.Errorf("link in a link")
	}
	end := strings.Index(s, "](")
	stop := -1
	if end > 0 {
		stop = strings.IndexByte(s[end:], ')')
	}
	if end <= 0 || stop < 0 || strings.Contains(s[:end], "\n") {
		return fmt.Errorf("bare [ in %.40q", s)
	}
	target := s[end+2 : end+stop]
	if !discordURL.MatchString(target) {
		return fmt.Errorf("target %q", target)
	}
	inner := discordReader{s: s[1:end], open: map[string]bool{}, links: 1}
	for inner.i < len(inner.s) {
		if err := inner.next(); err != nil {
			return fmt.Errorf("in a link's text: %w", err)
		}
	}
	text := strings.ReplaceAll(inner.out.String(), "\u200b", "")
	if strings.TrimSpace(text) == "" || strings.Contains(text, "://") {
		return fmt.Errorf("link's text %q", text)
	}
	c.out.WriteString(text + " (" + target + ")")
	c.i += end + stop + 1
	return nil
}

func discordVisible(t testing.TB, bodies []Body) string {
	t.Helper()
	var all strings.Builder
	for i, b := range bodies {
		if b.Format != "markdown" {
			t.Errorf("part %d has format %q", i, b.Format)
		}
		if n := UTF16Len(b.Plain); n > 2000 || b.Plain == "" {
			t.Errorf("part %d: plain text of %d units", i, n)
		}
		s, err := checkDiscord(b.Text)
		if err != nil {
			t.Errorf("part %d: %v\n%s", i, err, b.Text)
		}
		all.WriteString(s + "\n")
	}
	return all.String()
}

func TestDiscordCorpus(t *testing.T) {
	for name, md := range corpus(t) {
		bodies := Discord().Markdown(md)
		shown := discordVisible(t, bodies)
		var plain strings.Builder
		for _, b := range PlainOf(1 << 20).Markdown(md) {
			plain.WriteString(b.Text + "\n")
		}
		if w, ok := inOrder(shown, words(plain.String())); !ok {
			t.Errorf("%s: %q is missing or out of order", name, w)
		}
		golden(t, "corpus/"+name+".discord.golden", show(bodies))
	}
}

func TestDiscordSpec(t *testing.T) {
	examples, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	for _, ex := range examples {
		shown := discordVisible(t, Discord().Markdown(ex.Markdown))
		if t.Failed() {
			t.Fatalf("example %d: %q", ex.Example, ex.Markdown)
		}
		if unusualHTML.MatchString(ex.Section) || specDiffers[ex.Example] != "" {
			continue
		}
		if w, ok := inOrder(shown, htmlWords(ex.HTML)); !ok {
			t.Errorf("%d (%s): %q is missing or out of order\n%s\n-> %s", ex.Example, ex.Section, w, ex.Markdown, shown)
		}
	}
}

func TestDiscordHostile(t *testing.T) {
	for name, gen := range hostile {
		d := Discord()
		md := gen(1 << 12)
		if name == "many references" { // each makes a message of its own; the plain form of the rest is measured for each
			md = gen(1 << 10)
		}
		start := cpuTime()
		discordVisible(t, d.Markdown(md))
		discordVisible(t, []Body{d.Card(Card{Phase: PhaseWriting, Answer: md, Open: true})})
		if took := cpuTime() - start; took > 2*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		if t.Failed() {
			t.Log(name)
		}
	}
}

func TestDiscordSplitKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := strings.Join(rapid.SliceOfN(blockGen(), 1, 12).Draw(t, "blocks"), "\n\n")
		d := Discord()
		var shown strings.Builder
		for i, b := range d.Markdown(md) {
			s, err := checkDiscord(b.Text)
			if err != nil {
				t.Fatalf("part %d: %v\n%s", i, err, b.Text)
			}
			shown.WriteString(s + "\n")
		}
		var plain strings.Builder
		for _, b := range PlainOf(1 << 20).Markdown(md) {
			plain.WriteString(b.Text + "\n")
		}
		// Words cut in two parts are joined again: only letters are compared.
		if a, b := letters(lettersOnly(shown.String())), letters(lettersOnly(plain.String())); a != b {
			t.Fatalf("got  %q\nwant %q", a, b)
		}
	})
}

// lettersOnly drops all but letters; digits are list numbers too.
func lettersOnly(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, s)
}

func TestC009DiscordFenceOnLineOne(t *testing.T) {
	md := "```go\n" + strings.Repeat("x := f(i)\n", 420) + "```"
	bodies := Discord().Markdown(md)
	if len(bodies) < 2 || len(bodies) > 4 {
		t.Fatalf("%d parts", len(bodies))
	}
	n := 0
	for _, b := range bodies {
		if !strings.HasPrefix(b.Text, "```go\n") || !strings.HasSuffix(b.Text, "\n```") || UTF16Len(b.Text) > 2000 {
			t.Errorf("part of %d units: %.20q … %q", UTF16Len(b.Text), b.Text, b.Text[len(b.Text)-20:])
		}
		n += strings.Count(b.Text, "x := f(i)")
	}
	if n != 420 {
		t.Errorf("%d lines, want 420", n)
	}
}

func TestC026DiscordLimit(t *testing.T) {
	bodies := Discord().Markdown(strings.Repeat("z", 2001))
	if len(bodies) != 2 || len(bodies[0].Text) > 2000 || len(bodies[0].Text)+len(bodies[1].Text) != 2001 {
		t.Fatalf("%d bodies", len(bodies))
	}
}

func TestC095DiscordNobodyIsPinged(t *testing.T) {
	const s = "Attention @everyone and @here <@&123456789012345678> <@1> <#2> @Everyone"
	bodies := Discord().Markdown(s)
	if got := strings.TrimSpace(discordVisible(t, bodies)); got != s {
		t.Errorf("shown %q", got)
	}
	if strings.Contains(strings.ToLower(bodies[0].Text), "@everyone") || strings.Contains(bodies[0].Text, "<@") {
		t.Errorf("text %q", bodies[0].Text)
	}
}

func TestDiscordShape(t *testing.T) {
	tests := []struct{ md, want string }{
		{"plain text", "plain text"},
		{"snake_case and 2*3 and ~~gone~~ `code`", `snake\_case and 2\*3 and ~~gone~~ ` + "`code`"},
		{"# One\n## Two\n### Three\n#### Four", "# One\n## Two\n### Three\n**Four**"},
		{"- a\n  - b\n- [x] done\n- [ ] open", "- a\n  - b\n- ☑ done\n- ☐ open"},
		{"3. c\n4. d", "3. c\n4. d"},
		{"2024\\. A year", `2024\. A year`},
		{"\\# no heading", `\# no heading`},
		{"\\- no item\n\\> no quote", "\\- no item\n\\> no quote"},
		{"> quote\n> **bold**", "> quote\n> **bold**"},
		{"[docs](https://a.example/x_(y))", "[docs](https://a.example/x_%28y%29)"},
		{"https://a.example/x_y", "<https://a.example/x_y>"},
		{"[run](javascript:alert)", "run (javascript:alert)"},
		{"![chart](https://a.example/c.png)", "[chart](https://a.example/c.png)"},
		{"**a***b*", "**a**\u200b*b*"},
		{"***both***", "***both***"},
		{"<@1> `<@1>`", "\\<\u200b@1> `<@1>`"},
		{"``a`b``", "``a`b``"},
		{"||spoiler||", `\|\|spoiler\|\|`},
	}
	for _, tt := range tests {
		bodies := Discord().Markdown(tt.md)
		if len(bodies) != 1 || bodies[0].Text != tt.want {
			t.Errorf("%q -> %q, want %q", tt.md, bodies, tt.want)
		}
	}
}

func FuzzDiscord(f *testing.F) {
	for _, md := range corpus(f) {
		f.Add(md)
	}
	for _, gen := range hostile {
		f.Add(gen(300))
	}
	f.Fuzz(func(t *testing.T, md string) {
		if len(md) > 1<<14 {
			return
		}
		d := Discord()
		for i, b := range d.Markdown(md) {
			if _, err := checkDiscord(b.Text); err != nil {
				t.Fatalf("part %d: %v\n%q", i, err, b.Text)
			}
			if UTF16Len(b.Plain) > 2000 {
				t.Fatalf("plain text of %d units", UTF16Len(b.Plain))
			}
		}
		b := d.Card(Card{Phase: PhaseWriting, Answer: md, Open: true, Title: md})
		if _, err := checkDiscord(b.Text); err != nil {
			t.Fatalf("card: %v\n%q", err, b.Text)
		}
	})
}
