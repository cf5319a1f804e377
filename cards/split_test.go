package cards

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// letters are the characters of s that a split must keep: no white space, no markers that a renderer adds.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("•◦▪☐☑>—…", r) || !visibleRune(r) {
			return -1
		}
		return r
	}, s)
}

// wordGen makes words of several scripts, some of them long.
func wordGen() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z]{1,12}`),
		rapid.SampledFrom([]string{"你好", "世界。", "“引用”", "😀", "👨‍👩‍👧", "🇩🇪", "é", "שלום", "مرحبا", "a<b", "&amp;", "R&D", "snake_case", "2*3", "x.", "end!"}),
		rapid.Map(rapid.IntRange(50, 400), func(n int) string { return strings.Repeat("w", n) }),
	)
}

// inlineGen makes Markdown of one paragraph.
func inlineGen() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			w := wordGen().Draw(t, "w")
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				w = "**" + w + "**"
			case 1:
				w = "*" + w + "*"
			case 2:
				w = "`" + w + "`"
			case 3:
				w = "[" + w + "](https://example.org/" + strings.Repeat("p", rapid.IntRange(0, 60).Draw(t, "path")) + ")"
			case 4:
				w = "~~" + w + "~~"
			}
			b.WriteString(w)
			b.WriteString(rapid.SampledFrom([]string{" ", " ", " ", "\n"}).Draw(t, "sep"))
		}
		return b.String()
	})
}

// blockGen makes a block without a table; tables repeat their heads, so they have a test of their own.
func blockGen() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 6).Draw(t, "block") {
		case 0:
			return "# " + strings.ReplaceAll(inlineGen().Draw(t, "h"), "\n", " ")
		case 1:
			var b strings.Builder
			for i := range rapid.IntRange(1, 12).Draw(t, "items") {
				fmt.Fprintf(&b, "%s- %s\n", strings.Repeat("  ", i%3), strings.ReplaceAll(inlineGen().Draw(t, "item"), "\n", " "))
			}
			return b.String()
		case 2:
			var b strings.Builder
			b.WriteString("```go\n")
			for range rapid.IntRange(1, 40).Draw(t, "lines") {
				b.WriteString(rapid.StringMatching(`[ a-z(){}<&]{0,60}`).Draw(t, "line") + "x\n")
			}
			return b.String() + "```"
		case 3:
			return "> " + strings.ReplaceAll(inlineGen().Draw(t, "q"), "\n", "\n> ")
		case 4:
			return "---"
		}
		return inlineGen().Draw(t, "p")
	})
}

// renderWhole is what d shows when it has no limit.
func renderWhole(d *dialect, md string) string {
	bs := d.parse(md)
	return d.render.text(bs)
}

func visibleOf(t interface{ Fatalf(string, ...any) }, d *dialect, text string) string {
	var s string
	var err error
	switch d.name {
	case "telegram":
		s, err = untag(text), nil
	case "web":
		s, err = checkWeb(text)
	default:
		s = text
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

// untag is the text of Telegram HTML of any length.
func untag(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(tagPattern.ReplaceAllString(s, ""))
}

func TestSplitProperties(t *testing.T) {
	for _, d := range []*dialect{
		Telegram().(*dialect), Plain().(*dialect), Web().(*dialect),
		small(Telegram(), 300), small(Web(), 900), PlainOf(200).(*dialect),
	} {
		t.Run(fmt.Sprint(d.name, d.room.units), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				md := strings.Join(rapid.SliceOfN(blockGen(), 1, 8).Draw(t, "blocks"), "\n\n")
				checkSplit(t, d, md)
			})
		})
	}
}

// small is d with less room, so that it splits more.
func small(d Dialect, units int) *dialect {
	c := *d.(*dialect)
	c.room.units, c.room.plain = units, max(units, 300)
	c.room.bytes = 1 << 30
	if c.name == "web" {
		c.room.plain = 1 << 30
	}
	return &c
}

func checkSplit(t interface{ Fatalf(string, ...any) }, d *dialect, md string) {
	whole := letters(visibleOf(t, d, renderWhole(d, md)))
	var got strings.Builder
	bodies := d.Markdown(md)
	for i, b := range bodies {
		if d.name == "telegram" {
			if _, err := checkTelegram(b.Text); err != nil {
				t.Fatalf("part %d: %v\n%s", i, err, b.Text)
			}
		}
		s := visibleOf(t, d, b.Text)
		got.WriteString(letters(s))
		units := UTF16Len(s)
		if d.name == "web" {
			units = len(b.Text)
		}
		if units > d.room.units || UTF16Len(b.Plain) > d.room.plain {
			t.Fatalf("part %d has %d units, %d plain, of %d:\n%s", i, units, UTF16Len(b.Plain), d.room.units, b.Text)
		}
		if !Visible(b) {
			t.Fatalf("part %d shows nothing: %q", i, b.Text)
		}
	}
	if d.name == "plain" && strings.Contains(md, "](") {
		return // a link that is cut says its target in both parts
	}
	if g := got.String(); g != whole {
		t.Fatalf("text changed\n got %s\nwant %s", g, whole)
	}
}

func TestSplitTable(t *testing.T) {
	var md strings.Builder
	md.WriteString("| key | value |\n|---|---|\n")
	for i := range 400 {
		fmt.Fprintf(&md, "| k%03d | value number %d |\n", i, i)
	}
	bodies, visible := telegramTexts(t, md.String())
	if len(bodies) < 2 {
		t.Fatal("not split")
	}
	all := strings.Join(visible, "\n")
	for i := range 400 {
		if strings.Count(all, fmt.Sprintf("k%03d", i)) != 1 {
			t.Errorf("row %d", i)
		}
	}
	for i, s := range visible {
		if !strings.HasPrefix(s, "key") {
			t.Errorf("part %d begins %q", i, s[:20])
		}
	}
}

func TestSplitKeepsHeadingWithText(t *testing.T) {
	md := strings.Repeat("word ", 780) + "\n\n## Heading\n\n" + strings.Repeat("text ", 100)
	bodies, visible := telegramTexts(t, md)
	if len(bodies) != 2 || !strings.HasPrefix(visible[1], "Heading") {
		t.Errorf("%d parts, second begins %.20q", len(bodies), visible[len(visible)-1])
	}
}

func TestSplitListGoesOn(t *testing.T) {
	var md strings.Builder
	for i := range 300 {
		fmt.Fprintf(&md, "%d. item with some words\n", i+1)
	}
	_, visible := telegramTexts(t, md.String())
	all := strings.Join(visible, "\n")
	for i := range 300 {
		if !strings.Contains(all, fmt.Sprintf("%d. item", i+1)) {
			t.Errorf("no item %d", i+1)
		}
	}
}

func TestSplitGraphemes(t *testing.T) {
	family := "👨‍👩‍👧"
	for pad := range 12 {
		_, visible := telegramTexts(t, strings.Repeat("x", pad)+strings.Repeat(family, 800))
		for i, s := range visible {
			if strings.Count(s, family) != strings.Count(s, "👨") || strings.HasPrefix(s, "\u200d") {
				t.Fatalf("pad %d, part %d: a family is cut", pad, i)
			}
		}
	}
}

func TestSplitLongTargets(t *testing.T) {
	url := "https://example.org/" + strings.Repeat("p", 1900)
	for _, d := range []*dialect{Telegram().(*dialect), Plain().(*dialect), small(Telegram(), 300), PlainOf(200).(*dialect)} {
		for _, md := range []string{"[a](" + url + ")", strings.Repeat("[link]("+url+") ", 9), strings.Repeat("![]("+url+")", 9), url, "- **[a](" + url + ")**"} {
			for i, b := range d.Markdown(md) {
				if n := UTF16Len(b.Plain); n > d.room.plain {
					t.Errorf("%s: part %d has %d units of plain text", d.name, i, n)
				}
				if d.name == "telegram" {
					if _, err := checkTelegram(b.Text); err != nil {
						t.Errorf("part %d: %v", i, err)
					}
				}
			}
		}
	}
}

func TestSplitManyEntities(t *testing.T) {
	bodies, _ := telegramTexts(t, strings.Repeat("**b** `c` ", 130))
	if len(bodies) != 3 {
		t.Errorf("%d bodies for 260 entities", len(bodies))
	}
}
