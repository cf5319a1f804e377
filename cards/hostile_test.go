package cards

import (
	"strings"
	"testing"
	"time"
)

// hostile are shapes of input that make careless parsers slow; each gives about n bytes.
var hostile = map[string]func(n int) string{
	"emphasis":       fill("*a_ "),
	"stars":          fill("*"),
	"openers":        fill("**a *a "),
	"closers":        fill("a* "),
	"brackets":       fill("["),
	"targets":        fill("[a]("),
	"angle targets":  fill("[a](<b"),
	"references":     fill("[a]["),
	"images":         fill("![[]()"),
	"open images":    func(n int) string { return strings.Repeat("![", n/4) + strings.Repeat("[a](b)", n/12) },
	"nested links":   func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"nested targets": func(n int) string { return strings.Repeat("[", n/8) + strings.Repeat("](b)", n/5) },
	"titles":         fill(`[a](b "x [a](b 'x [a](b (`),
	"backticks": func(n int) string {
		var b strings.Builder
		for i := 1; b.Len() < n; i++ {
			b.WriteString(strings.Repeat("`", i) + "a")
		}
		return b.String()
	},
	"backtick pairs": fill("`a``b"),
	"quotes":         fill("> "),
	"quote lines":    fill(strings.Repeat("> ", 100) + "a\n"),
	"list markers":   fill("- "),
	"numbers":        fill("1. "),
	"nested lists": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(" ", i*2) + "- a\n")
		}
		return b.String()
	},
	"mixed nesting":   fill("> - 1. > - "),
	"tags":            fill("<a "),
	"open tags":       fill("<b>"),
	"tag pairs":       func(n int) string { return strings.Repeat("<b>", n/8) + strings.Repeat("</i>", n/8) },
	"nested tags":     func(n int) string { return strings.Repeat("<b>", n/8) + "x" + strings.Repeat("</b>", n/8) },
	"attributes":      fill(`<a b="c`),
	"comments":        fill("a <!-- "),
	"processing":      fill("a <? "),
	"urls":            fill("https://a.b"),
	"url words":       fill("https://a "),
	"www":             fill("www."),
	"autolinks":       fill("<http://"),
	"tildes":          fill("~~a "),
	"wide table":      func(n int) string { return "|a|\n|-|\n" + strings.Repeat("|", n) },
	"many columns":    func(n int) string { return fill("|a")(n/8) + "|\n" + fill("|-")(n/8) + "|\n" + fill("|\n")(n) },
	"rows":            func(n int) string { return "|a|b|\n|-|-|\n" + fill("|c|d|\n")(n) },
	"delimiter rows":  fill("|-|\n"),
	"definitions":     fill("[a]: b\n"),
	"many references": func(n int) string { return "[a]: " + strings.Repeat("b", 1000) + "\n\n" + fill("[a] ")(n) },
	"footnotes":       fill("[^a]: x[^a]\n"),
	"lines":           fill("a\n"),
	"paragraphs":      fill("a\n\n"),
	"entities":        fill("&"),
	"entity names":    fill("&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	"backslashes":     fill("\\"),
	"math":            fill("$a "),
	"math brackets":   fill(`\(a `),
	"math lines":      fill("$$\n"),
	"math fences":     fill("\\[\n"),
	"fences":          fill("```\na\n"),
	"open fence":      func(n int) string { return "```\n" + fill("a\n")(n) },
	"spaces":          func(n int) string { return strings.Repeat(" ", n) + "a" },
	"hashes":          fill("#"),
	"underlines":      fill("a\n-\n"),
	"combining":       func(n int) string { return "a" + strings.Repeat("\u0301", n/2) },
	"flags":           fill("\U0001F1E9\U0001F1EA"),
	"joiners":         fill("\U0001F468\u200D"),
	"amp":             fill("<>&\""),
	"one word":        fill("x"),
	"words":           fill("word "),
	"breaks":          fill("<br>"),
	"controls":        fill("\x00\x01\r"),
	"think":           fill("<think>"),
	"think ends":      func(n int) string { return "<think>" + fill("</x")(n) },
	"half links":      fill("[text](http "),
}

func fill(s string) func(int) string {
	return func(n int) string { return strings.Repeat(s, n/len(s)+1) }
}

// TestHostile bounds the processor time of half a megabyte, of any shape.
func TestHostile(t *testing.T) {
	n := 1 << 19
	if testing.Short() || raceEnabled {
		n = 1 << 17
	}
	for name, gen := range hostile {
		md := gen(n)
		start := cpuTime()
		bs := parse(md)
		took := cpuTime() - start
		if took > 1500*time.Millisecond {
			t.Errorf("%s: %d bytes took %v to parse", name, len(md), took)
		}
		if took > 300*time.Millisecond {
			t.Logf("%s: %v", name, took)
		}
		if d := depth(bs); d > 3*maxDepth+4 {
			t.Errorf("%s: depth %d", name, d)
		}
		start = cpuTime()
		Close(md[:len(md)/8])
		lastOf(md, 12000)
		if took := cpuTime() - start; took > time.Second {
			t.Errorf("%s: closing took %v", name, took)
		}
	}
}

// TestHostileRender renders the same shapes, smaller, to the end.
func TestHostileRender(t *testing.T) {
	for name, gen := range hostile {
		md := gen(1 << 15)
		for _, d := range dialects {
			start := cpuTime()
			for i, b := range d.Markdown(md) {
				if s, err := checkBody(d, b); err != nil {
					t.Errorf("%s, %s part %d: %v\n%.300s", name, d.Name(), i, err, s)
					break
				}
			}
			d.Card(Card{Phase: PhaseWriting, Answer: md, Open: true})
			if took := cpuTime() - start; took > 2*time.Second {
				t.Errorf("%s: %s took %v", name, d.Name(), took)
			} else if took > 200*time.Millisecond {
				t.Logf("%s: %s %v", name, d.Name(), took)
			}
		}
	}
}

func depth(bs []block) int {
	d := 0
	for i := range bs {
		k := depth(bs[i].kids)
		for _, it := range bs[i].items {
			k = max(k, depth(it.kids))
		}
		d = max(d, k+1, inlineDepth(bs[i].inls)+1)
	}
	return d
}

func inlineDepth(in []inline) int {
	d := 0
	for i := range in {
		d = max(d, inlineDepth(in[i].kids)+1)
	}
	return d
}
