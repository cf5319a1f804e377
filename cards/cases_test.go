package cards

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"deerbot/cards/phrase"
	"deerbot/runtime/event"
	"deerbot/store"
)

// These are inputs that broke other bots, each named after its report.

// telegramTexts renders md for Telegram, checks each body strictly and returns the visible texts.
func telegramTexts(t *testing.T, md string) (bodies []Body, visible []string) {
	t.Helper()
	d := Telegram()
	for _, b := range d.Markdown(md) {
		s, err := checkBody(d, b)
		if err != nil {
			t.Fatalf("%v\n%s", err, b.Text)
		}
		bodies, visible = append(bodies, b), append(visible, s)
	}
	return bodies, visible
}

func one(t *testing.T, md string) (Body, string) {
	t.Helper()
	bodies, visible := telegramTexts(t, md)
	if len(bodies) != 1 {
		t.Fatalf("%d bodies", len(bodies))
	}
	return bodies[0], visible[0]
}

func TestC001UnderscoreInProse(t *testing.T) {
	const s = "The output dir is build_out and it is fine."
	b, visible := one(t, s)
	if visible != s || b.Text != s || b.Plain != s || b.AsPlain().Text != s {
		t.Errorf("got %q, plain %q", visible, b.Plain)
	}
}

func TestC002Parentheses(t *testing.T) {
	b, visible := one(t, "Call f(x) (see [docs](https://wiki.example/Foo_(bar))) before v1.2!")
	if visible != "Call f(x) (see docs) before v1.2!" {
		t.Errorf("visible %q", visible)
	}
	if !strings.Contains(b.Text, `<a href="https://wiki.example/Foo_(bar)">docs</a>`) {
		t.Errorf("text %q", b.Text)
	}
}

func TestC003Image(t *testing.T) {
	b, visible := one(t, "Load graph: ![cpu.load](http://img.example/a_b.png) - all good.")
	if visible != "Load graph: cpu.load - all good." || !strings.Contains(b.Text, `href="http://img.example/a_b.png"`) {
		t.Errorf("text %q", b.Text)
	}
	if b.Plain != "Load graph: cpu.load (http://img.example/a_b.png) - all good." {
		t.Errorf("plain %q", b.Plain)
	}
}

func TestC004Rule(t *testing.T) {
	b, visible := one(t, "Part **one**\n\n---\n\n[Part](https://e.org) two")
	if !strings.Contains(b.Text, "<b>one</b>") || !strings.Contains(b.Text, ">Part</a>") || strings.Contains(visible, "---") {
		t.Errorf("text %q", b.Text)
	}
}

func TestC006OrderedList(t *testing.T) {
	_, visible := one(t, "1. alpha\n2. beta\n   - nested + plus\n3. gamma = 3")
	for _, want := range []string{"1. alpha", "2. beta", "nested + plus", "3. gamma = 3"} {
		if !strings.Contains(visible, want) {
			t.Errorf("no %q in %q", want, visible)
		}
	}
}

var preBodies = regexp.MustCompile(`(?s)<pre>(?:<code class="language-(\w+)">)?(.*?)(?:</code>)?</pre>`)

// code joins the bodies of the code blocks, and tells their languages.
func code(bodies []Body) (text string, langs []string) {
	var parts []string
	for _, b := range bodies {
		for _, m := range preBodies.FindAllStringSubmatch(b.Text, -1) {
			parts = append(parts, m[2])
			langs = append(langs, m[1])
		}
	}
	return strings.Join(parts, "\n"), langs
}

func TestC007FenceCut(t *testing.T) {
	for _, lines := range []int{60, 600} {
		body := strings.TrimSuffix(strings.Repeat("print(1)  # line N\n", lines), "\n")
		bodies, _ := telegramTexts(t, strings.Repeat("x", 3900)+"\n\n```python\n"+body+"\n```\ntail text")
		text, langs := code(bodies)
		if text != body {
			t.Errorf("%d lines became %d", lines, strings.Count(text, "\n")+1)
		}
		for _, l := range langs {
			if l != "python" {
				t.Errorf("language %q", l)
			}
		}
		if !strings.HasSuffix(bodies[len(bodies)-1].Text, "tail text") {
			t.Error("the tail is gone")
		}
	}
}

func TestC009FenceOnFirstLine(t *testing.T) {
	body := strings.TrimSuffix(strings.Repeat("x := f(i)\n", 420), "\n")
	md := "```go\n" + body + "\n```"
	bodies, _ := telegramTexts(t, md)
	if text, _ := code(bodies); text != body {
		t.Error("the code changed")
	}
	d := PlainOf(2000)
	var got []string
	for _, b := range d.Markdown(md) {
		if UTF16Len(b.Text) > 2000 {
			t.Errorf("%d units", UTF16Len(b.Text))
		}
		got = append(got, b.Text)
	}
	if strings.Join(got, "\n") != body {
		t.Error("the plain code changed")
	}
}

func TestC010HugeLine(t *testing.T) {
	start := time.Now()
	bodies, _ := telegramTexts(t, "```\n"+strings.Repeat("A", 20000)+"\n```")
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	text, _ := code(bodies)
	if n := strings.Count(text, "A"); n != 20000 {
		t.Errorf("%d of 20000", n)
	}
}

func TestC012InlineCodeAtTheCut(t *testing.T) {
	for n := 3960; n < 4090; n++ {
		bodies, visible := telegramTexts(t, strings.Repeat("y", n)+" there is a test for `TestAlphaBravoCharlie` which stays green.")
		whole := 0
		for _, b := range bodies {
			whole += strings.Count(b.Text, "<code>TestAlphaBravoCharlie</code>")
		}
		if whole != 1 {
			t.Fatalf("%d: the identifier is whole %d times", n, whole)
		}
		if squeeze(strings.Join(visible, "")) != strings.Repeat("y", n)+"thereisatestforTestAlphaBravoCharliewhichstaysgreen." {
			t.Fatalf("%d: something is lost", n)
		}
	}
}

// squeeze removes white space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

func TestC013UTF16(t *testing.T) {
	bodies, visible := telegramTexts(t, strings.Repeat("\U0001F600", 3000))
	if len(bodies) != 2 || strings.Count(strings.Join(visible, ""), "\U0001F600") != 3000 {
		t.Errorf("%d bodies", len(bodies))
	}
}

func TestC015Table(t *testing.T) {
	b, visible := one(t, "| 期限 | 总利息 <b> |\n|------|--------:|\n| 30 年 | 91 万 |\n| `100` 年 | 394 & more |")
	if strings.Contains(visible, "|") || strings.Contains(visible, "--") {
		t.Errorf("delimiters in %q", visible)
	}
	if !strings.HasPrefix(b.Text, "<pre>") || !strings.HasSuffix(b.Text, "</pre>") || strings.Count(b.Text, "<") != 2 {
		t.Errorf("text %q", b.Text)
	}
	if !strings.Contains(visible, "总利息 <b>") || !strings.Contains(visible, "394 & more") {
		t.Errorf("visible %q", visible)
	}
	want := displayWidth(strings.Split(visible, "\n")[0])
	for line := range strings.SplitSeq(visible, "\n") { // the last column is aligned right
		if w := displayWidth(line); w != want {
			t.Errorf("width %d, want %d: %q", w, want, line)
		}
	}
}

func TestC016HTML(t *testing.T) {
	_, visible := one(t, "<h4>Report</h4><p>if a < b && c > d</p><table><tr><td>1</td></tr></table><br>done")
	for _, want := range []string{"Report", "if a < b && c > d", "1", "done"} {
		if !strings.Contains(visible, want) {
			t.Errorf("no %q in %q", want, visible)
		}
	}
	if strings.Contains(visible, "<table>") || strings.Contains(visible, "<br>") {
		t.Errorf("visible %q", visible)
	}
}

func TestC017Overlap(t *testing.T) {
	_, visible := one(t, "**bold *both** italic* and ***all*** and **unclosed")
	if !strings.HasSuffix(visible, "and **unclosed") || !strings.Contains(visible, "and all and") {
		t.Errorf("visible %q", visible)
	}
}

func TestC035CutInATag(t *testing.T) {
	_, visible := telegramTexts(t, strings.Repeat("A", 4089)+"<b>ab</b>")
	if got := strings.Join(visible, ""); got != strings.Repeat("A", 4089)+"ab" {
		t.Errorf("%d characters", len(got))
	}
}

func TestC037C043EqualViewsEqualBytes(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	var v RunView
	v.Apply(event.Event{At: at, Body: event.RunStarted{}})
	v.Apply(event.Event{At: at, Step: 1, Body: event.StepStarted{}})
	v.Apply(event.Event{At: at, Step: 1, Body: event.ToolStarted{CallID: "c", Name: "bash", Args: "make"}})
	v.Apply(event.Event{At: at, Step: 1, Body: event.MessageDelta{Text: strings.Repeat("word ", 4000)}})
	for _, d := range dialects {
		changes, last := 0, ""
		for ms := 0; ms < 20_000; ms += 400 {
			b := d.Card(v.Card(at.Add(time.Duration(ms)*time.Millisecond), phrase.EN))
			if b.Text != last {
				changes, last = changes+1, b.Text
			}
		}
		if changes > 4 {
			t.Errorf("%s: %d different cards in 20 s without an event", d.Name(), changes)
		}
	}
	// a final equal to what the chat shows gives equal bytes
	if a, b := Telegram().Markdown("Hello"), Telegram().Markdown("Hello"); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("equal texts, different bodies")
	}
}

func TestC047NoSentenceTwice(t *testing.T) {
	var md strings.Builder
	for i := range 220 {
		fmt.Fprintf(&md, "This is sentence number %d of the answer. ", i)
		if i%7 == 6 {
			md.WriteString("\n\n")
		}
	}
	bodies, visible := telegramTexts(t, md.String())
	if len(bodies) < 2 || len(bodies) > 4 {
		t.Errorf("%d bodies", len(bodies))
	}
	all := strings.Join(visible, "\n")
	for i := range 220 {
		if n := strings.Count(all, fmt.Sprintf("number %d of", i)); n != 1 {
			t.Errorf("sentence %d comes %d times", i, n)
		}
	}
}

func TestC048EachBlockOnce(t *testing.T) {
	var v RunView
	at := time.Unix(1_700_000_000, 0)
	blocks := []string{"First I look around.", "Now the second part.", "Third, the check.", "And the result."}
	for i, s := range blocks {
		step := i + 1
		v.Apply(event.Event{At: at, Step: step, Body: event.StepStarted{}})
		v.Apply(event.Event{At: at, Step: step, Body: event.MessageDelta{Text: s}})
		v.Apply(event.Event{At: at, Step: step, Body: event.MessageCompleted{MessageID: fmt.Sprint(step), Text: s, Final: i == len(blocks)-1}})
		if i < len(blocks)-1 {
			v.Apply(event.Event{At: at, Step: step, Body: event.ToolStarted{CallID: fmt.Sprint(step), Name: "bash"}})
			v.Apply(event.Event{At: at, Step: step, Body: event.ToolFinished{CallID: fmt.Sprint(step), Name: "bash"}})
		}
	}
	v.Apply(event.Event{At: at, Body: event.RunFinished{State: store.RunSuccess, Stop: []store.StopReason{{Code: store.StopCompleted}}}})
	v.Apply(event.Event{At: at, Body: event.End{State: store.RunSuccess}})
	if got := v.Texts(); len(got) != len(blocks) {
		t.Errorf("texts %q", got)
	}
	final := v.FinalAnswer()
	for _, s := range blocks {
		if strings.Count(final, s) != 1 {
			t.Errorf("%q comes %d times in %q", s, strings.Count(final, s), final)
		}
	}
}

func TestC050Reasoning(t *testing.T) {
	const stream = "<think>secret plan</think>Answer 42"
	for _, d := range dialects {
		bodies := d.Markdown(stream)
		if len(bodies) != 1 || bodies[0].Plain != "Answer 42" {
			t.Fatalf("%s: %q", d.Name(), bodies)
		}
		for i := range len(stream) + 1 {
			b := d.Card(Card{Phase: PhaseWriting, Answer: stream[:i], Open: true})
			if strings.Contains(b.Text, "thi") || strings.Contains(b.Text, "secret") || strings.Contains(b.Plain, "lt;") || strings.Contains(b.Plain, "<") {
				t.Errorf("%s: %q shows %q", d.Name(), stream[:i], b.Text)
			}
		}
	}
}

func TestC051WhiteSpaceOnly(t *testing.T) {
	for _, d := range dialects {
		for _, md := range []string{"", " \n\t", "\u200b", "\n\n\n", "&nbsp;", "\u3000"} {
			if b := d.Markdown(md); len(b) != 0 {
				t.Errorf("%s: %q gives %q", d.Name(), md, b)
			}
		}
	}
}

func TestC052NothingToSee(t *testing.T) {
	for _, d := range dialects {
		for _, md := range []string{"<br>", "\n<br/>\n", "** **", "```\n```", "<p></p>", "---", ">", "- ", "[]()", "<!-- x -->", "#", "| |\n|-|\n| |"} {
			if b := d.Markdown(md); len(b) != 0 {
				t.Errorf("%s: %q gives %q", d.Name(), md, b)
			}
		}
	}
	for s, want := range map[string]bool{"<b></b>": false, "<p> </p>": false, "&nbsp;": false, "<b>x</b>": true, "": false} {
		if Visible(Body{Text: s, Format: "html"}) != want {
			t.Errorf("Visible(%q) is %v", s, !want)
		}
	}
}
