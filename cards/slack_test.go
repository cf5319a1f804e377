package cards

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	wire "deerbot/internal/wire/slack"
)

// checkSlack reads a body as Slack's clients do, strictly, and returns the visible text.
func checkSlack(b Body) (wire.Shape, error) {
	sh, err := wire.ReadMrkdwn(b.Text)
	if err != nil {
		return sh, err
	}
	if b.Format != "mrkdwn" || b.Plain == "" || !visibleText(sh.Text) {
		return sh, fmt.Errorf("format %q, plain %q, text %q", b.Format, b.Plain, b.Text)
	}
	if n := UTF16Len(b.Text); n > SlackLimit {
		return sh, fmt.Errorf("%d units", n)
	}
	if n := UTF16Len(b.Plain); n > SlackLimit {
		return sh, fmt.Errorf("%d units of plain text", n)
	}
	if len(sh.Notifies) > 0 {
		return sh, fmt.Errorf("somebody is called: %q", sh.Notifies)
	}
	if b.Data != nil {
		if faults := wire.CheckBlocks(b.Data); faults != nil {
			return sh, fmt.Errorf("blocks: %q", faults)
		}
	}
	b.Buttons = [][]Button{{{Label: "Stop", Action: "stop:1"}}}
	raw := SlackBlocks(b)
	if faults := wire.CheckBlocks(raw); faults != nil {
		return sh, fmt.Errorf("as blocks: %q", faults)
	}
	for _, s := range slackTexts(raw) {
		if _, err := wire.ReadMrkdwn(s); err != nil {
			return sh, fmt.Errorf("as blocks: %w", err)
		}
	}
	return sh, nil
}

func slackTexts(raw json.RawMessage) []string {
	var blocks []struct{ Text struct{ Text string } }
	_ = json.Unmarshal(raw, &blocks)
	var out []string
	for _, b := range blocks {
		if b.Text.Text != "" {
			out = append(out, b.Text.Text)
		}
	}
	return out
}

func seenInSlack(t testing.TB, md string) string {
	t.Helper()
	var text strings.Builder
	for i, b := range Slack().Markdown(md) {
		sh, err := checkSlack(b)
		if err != nil {
			t.Errorf("part %d: %v\n%s\n-> %s", i, err, md, b.Text)
		}
		text.WriteString(sh.Text + "\n")
	}
	return text.String()
}

func TestSlackCorpus(t *testing.T) {
	for name, md := range corpus(t) {
		got := seenInSlack(t, md)
		var all strings.Builder
		for _, b := range Telegram().Markdown(md) {
			visible, _ := checkTelegram(b.Text)
			all.WriteString(visible + "\n")
		}
		if w, ok := inOrder(got, words(all.String())); !ok {
			t.Errorf("%s: %q is missing or out of order", name, w)
		}
		golden(t, "corpus/"+name+".slack.golden", show(Slack().Markdown(md)))
	}
}

func TestSlackSpec(t *testing.T) {
	examples, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	for _, ex := range examples {
		got := seenInSlack(t, ex.Markdown)
		if unusualHTML.MatchString(ex.Section) || specDiffers[ex.Example] != "" {
			continue
		}
		if w, ok := inOrder(got, htmlWords(ex.HTML)); !ok {
			t.Errorf("%d (%s): %q is missing or out of order\n%s\n-> %s", ex.Example, ex.Section, w, ex.Markdown, got)
		}
	}
}

func TestSlackHostile(t *testing.T) {
	for name, gen := range hostile {
		n := 1 << 12
		if name == "many references" { // each is a thousand characters of address
			n = 1 << 9
		}
		md := gen(n)
		for i, b := range Slack().Markdown(md) {
			if _, err := checkSlack(b); err != nil {
				t.Errorf("%s, part %d: %v\n%.300s", name, i, err, b.Text)
				break
			}
		}
		b := Slack().Card(Card{Phase: PhaseWriting, Answer: md, Open: true, Buttons: []Button{{Label: "Stop", Action: "s"}}})
		if _, err := checkSlack(b); err != nil {
			t.Errorf("%s, card: %v\n%.300s", name, err, b.Text)
		}
	}
}

func TestSlackForms(t *testing.T) {
	tests := []struct{ name, md, want string }{
		{"emphasis", "a **b** *c* ~~d~~ `e` ***f***", "a *b* _c_ ~d~ `e` _*f*_"},
		{"inside a word", "a**b**c", "a\u200b*b*\u200bc"},
		{"cjk", "这是**粗体**文字", "这是\u200b*粗体*\u200b文字"},
		{"spaces stay outside", "x<b> y </b>z", "x *y* z"},
		{"over lines", "**one\ntwo** three", "*one*\n*two* three"},
		{"heading", "## Title *x*\n\ntext", "*Title _x_*\ntext"},
		{"link", "[a **b**](https://x.y/?a=1&b=<2>|)", "<https://x.y/?a=1&amp;b=%3C2%3E%7C|a b>"},
		{"bad link", "[run](javascript:alert)", "run (javascript:alert)"},
		{"image", "![cat](https://x.y/c.png)", "<https://x.y/c.png|cat>"},
		{"tasks", "- [ ] a\n- [x] b\n- c", "☐ a\n☑ b\n• c"},
		{"nested", "1. a\n   - b\n2. c", "1. a\n   ◦ b\n2. c"},
		{"quote", "> a\n> b", "> a\n> b"},
		{"quote of code", "> ```\n> x < y\n> ```", "> `x &lt; y`"},
		{"code block", "```go\na := `x` // ```\n```", "```\na := `x` // `\u200b``\n```"},
		{"a mark as text", `\*not bold\*`, "<!date^00000000^{_}|*>not bold*"},
		{"a lone mark", "2 * 3 ~5 snake_case", "2 * 3 ~5 snake_case"},
		{"a backtick in code", "`` a`b`c ``", "a<!date^00000000^{_}|`>b<!date^00000000^{_}|`>c"},
		{"no quote", `\> x`, "\u00ad&gt; x"},
	}
	for _, tt := range tests {
		got := Slack().Markdown(tt.md)
		if len(got) != 1 || got[0].Text != tt.want {
			t.Errorf("%s: %q gives %q, want %q", tt.name, tt.md, got, tt.want)
			continue
		}
		if _, err := checkSlack(got[0]); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestC021SlackControlSequences(t *testing.T) {
	const md = "tell <!channel> that 1 < 2 && 3 > 2, cc <@U012ABC> & <https://e.example|x>"
	b := Slack().Markdown(md)
	if len(b) != 1 {
		t.Fatalf("%q", b)
	}
	for _, want := range []string{"&lt;!channel&gt;", "&lt;@U012ABC&gt;", "1 &lt; 2 &amp;&amp; 3 &gt; 2"} {
		if !strings.Contains(b[0].Text, want) {
			t.Errorf("%q is missing in %q", want, b[0].Text)
		}
	}
	for _, md := range []string{
		md, "`<!here>`", "```\n<@U1>\n```", "[<!everyone>](https://x.y)", "> <!subteam^S1>", "![<@U1>](https://x.y/p.png)",
		"| <!channel> |\n|---|\n| <@U2> |", "[x](<https://a.b/<!channel>>)", "# <!here>",
	} {
		for _, b := range Slack().Markdown(md) {
			if sh, err := checkSlack(b); err != nil || len(sh.Notifies) > 0 {
				t.Errorf("%q gives %q: %v %q", md, b.Text, err, sh.Notifies)
			}
		}
	}
}

func TestC023SlackSections(t *testing.T) {
	code := strings.Repeat("rm -rf build && make all # again\n", 3400/33)
	b := Slack().Card(Card{
		Title: "Approve?", Phase: PhaseTool, Answer: "```sh\n" + code + "```",
		Buttons: []Button{{Label: "Approve", Action: "ok:1", Style: "primary"}, {Label: "Deny", Action: "no:1", Style: "danger"}},
	})
	if faults := wire.CheckBlocks(b.Data); faults != nil {
		t.Fatalf("%q", faults)
	}
	parts := slackTexts(b.Data)
	if len(parts) < 2 {
		t.Errorf("%d sections of %d characters", len(parts), len(b.Text))
	}
	lines := 0
	for _, p := range parts {
		sh, err := wire.ReadMrkdwn(p)
		if err != nil {
			t.Error(err)
		}
		if strings.Count(p, "```")%2 != 0 {
			t.Errorf("half a block of code: %q", p)
		}
		lines += strings.Count(sh.Text, "rm -rf")
	}
	if want := strings.Count(b.Text, "rm -rf"); lines != want {
		t.Errorf("%d lines in the blocks, want %d", lines, want)
	}
	b = Slack().Card(Card{Title: "Approved", Phase: PhaseDone, Answer: "done"})
	if b.Data != nil || len(b.Buttons) > 0 {
		t.Errorf("after the decision: %s %v", b.Data, b.Buttons)
	}
}

// What was sent can be edited to anything the dialect makes: no body is over the limit of chat.update.
func TestC025SlackBodiesCanBeEdited(t *testing.T) {
	md := strings.Repeat("Some text & <more> of it, in **bold** and `code`. ", 200)
	bodies := Slack().Markdown(md)
	if len(bodies) < 3 {
		t.Errorf("%d bodies", len(bodies))
	}
	if n := strings.Count(seenInSlack(t, md), "Some text & <more> of it, in bold and code."); n < 190 {
		t.Errorf("%d sentences", n)
	}
}

func FuzzSlack(f *testing.F) {
	for _, md := range corpus(f) {
		f.Add(md)
	}
	f.Add("**a*b_c~d`e**")
	f.Add("a <b>* x *</b> \\*y\\* `` ` `` > z")
	f.Add("> - ```\n>   x")
	f.Fuzz(func(t *testing.T, md string) {
		if len(md) > 1<<14 {
			return
		}
		for _, b := range Slack().Markdown(md) {
			if _, err := checkSlack(b); err != nil {
				t.Errorf("%v\n%q\n-> %q", err, md, b.Text)
			}
		}
		b := Slack().Card(Card{Phase: PhaseWriting, Answer: md, Open: true, Title: md, Buttons: []Button{{Label: md, Action: "a"}}})
		if _, err := checkSlack(b); err != nil {
			t.Errorf("card: %v\n%q\n-> %q", err, md, b.Text)
		}
	})
}
