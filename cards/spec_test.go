package cards

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode"
)

type specExample struct {
	Markdown string `json:"markdown"`
	HTML     string `json:"html"`
	Example  int    `json:"example"`
	Section  string `json:"section"`
}

// spec are the examples of the CommonMark specification that goldmark ships.
var spec = sync.OnceValues(func() ([]specExample, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yuin/goldmark").Output()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "_test", "spec.json"))
	if err != nil {
		return nil, err
	}
	var ex []specExample
	return ex, json.Unmarshal(b, &ex)
})

var (
	tagPattern     = regexp.MustCompile(`(?s)<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|</?[a-zA-Z][^<>]*>`)
	altPattern     = regexp.MustCompile(`<img [^>]*?alt="([^"]*)"[^>]*>`)
	unusualHTML    = regexp.MustCompile(`HTML blocks|Raw HTML`)
	breaksTagNames = regexp.MustCompile(`</?(p|li|ul|ol|blockquote|h[1-6]|pre|br|hr|div|td|th|tr|table)\b[^>]*>`)
)

// words are the words of a text, without what is no letter or digit.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// inOrder returns the first of want that does not come in got after the one before it.
func inOrder(got string, want []string) (string, bool) {
	for _, w := range want {
		i := strings.Index(got, w)
		if i < 0 {
			return w, false
		}
		got = got[i+len(w):]
	}
	return "", true
}

func htmlWords(s string) []string {
	s = altPattern.ReplaceAllString(s, "$1")
	s = strings.ReplaceAll(s, "</a><a", "</a> <a")
	s = breaksTagNames.ReplaceAllString(s, " ")
	return words(html.UnescapeString(tagPattern.ReplaceAllString(s, "")))
}

func TestSpec(t *testing.T) {
	examples, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	if len(examples) < 600 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, ex := range examples {
		for _, d := range dialects {
			var text strings.Builder
			for _, b := range d.Markdown(ex.Markdown) {
				s, err := checkBody(d, b)
				if err != nil {
					t.Errorf("%d %s: %v\n%s\n-> %s", ex.Example, d.Name(), err, ex.Markdown, b.Text)
				}
				text.WriteString(s + "\n")
			}
			if unusualHTML.MatchString(ex.Section) || specDiffers[ex.Example] != "" {
				continue
			}
			want := htmlWords(ex.HTML)
			if w, ok := inOrder(text.String(), want); !ok {
				t.Errorf("%d %s (%s): %q is missing or out of order\n%s\n-> %s\nwant words of %s", ex.Example, d.Name(), ex.Section, w, ex.Markdown, text.String(), ex.HTML)
			}
		}
	}
}

// specDiffers are the examples that read differently here, and why.
var specDiffers = func() map[int]string {
	m := map[int]string{}
	for why, examples := range map[string][]int{
		"raw HTML is text":                     {21, 31, 344, 475, 476, 477, 642, 643},
		"comments are dropped":                 {308, 309},
		"what shows nothing is dropped":        {129, 218, 237, 239, 240, 280, 284, 334, 484, 487},
		"bare URLs are links":                  {602, 608, 611},
		"a reference swallows the underline":   {216},
		"the test unescapes an escaped target": {503},
		"labels fold by simple case":           {540},
		"labels hold no brackets":              {549},
		"an image without a description":       {581},
	} {
		for _, n := range examples {
			m[n] = why
		}
	}
	return m
}()

// TestSpecStructure compares the tree with the specification's own HTML: emphasis, code, links and blocks.
func TestSpecStructure(t *testing.T) {
	examples, err := spec()
	if err != nil {
		t.Fatal(err)
	}
	for _, ex := range examples {
		if unusualHTML.MatchString(ex.Section) {
			continue
		}
		var w specWriter
		w.blocks(parse(ex.Markdown), false)
		got, want := normal(w.String()), normal(ex.HTML)
		why, differs := specDiffers[ex.Example]
		switch {
		case got == want && differs:
			t.Errorf("%d is the same now, but listed as different: %s", ex.Example, why)
		case got != want && !differs:
			t.Errorf("%d (%s)\n%s\n got %s\nwant %s", ex.Example, ex.Section, ex.Markdown, got, want)
		}
	}
}

// specWriter writes a tree as the specification does.
type specWriter struct{ strings.Builder }

func (w *specWriter) blocks(bs []block, tight bool) {
	for i := range bs {
		b := &bs[i]
		w.WriteString(" ")
		switch b.kind {
		case blockPara:
			if !tight {
				w.WriteString("<p>")
			}
			w.inlines(b.inls)
		case blockHeading:
			fmt.Fprintf(w, "<h%d>", b.level)
			w.inlines(b.inls)
			fmt.Fprintf(w, "</h%d>", b.level)
		case blockRule:
			w.WriteString("<hr>")
		case blockCode:
			w.WriteString("<pre><code>" + html.EscapeString(b.text) + "</code></pre>")
		case blockQuote:
			w.WriteString("<blockquote>")
			w.blocks(b.kids, false)
			w.WriteString("</blockquote>")
		case blockList:
			tag := "ul"
			if b.ordered {
				tag = "ol"
			}
			w.WriteString("<" + tag)
			if b.ordered && b.start != 1 {
				fmt.Fprintf(w, ` start="%d"`, b.start)
			}
			w.WriteString(">")
			for _, it := range b.items {
				w.WriteString("<li>")
				w.blocks(it.kids, !b.loose)
				w.WriteString("</li>")
			}
			w.WriteString("</" + tag + ">")
		}
	}
}

func (w *specWriter) inlines(in []inline) {
	tags := map[inlineKind]string{inStrong: "strong", inEm: "em", inDel: "del", inUnder: "u"}
	for _, n := range in {
		switch n.kind {
		case inText:
			w.WriteString(html.EscapeString(n.text))
		case inBreak:
			w.WriteString(" ")
		case inCode:
			w.WriteString("<code>" + html.EscapeString(n.text) + "</code>")
		case inImage:
			w.WriteString("<img " + html.EscapeString(n.href) + " " + html.EscapeString(n.text) + ">")
		case inLink:
			w.WriteString("<a " + html.EscapeString(n.href) + ">")
			w.inlines(n.kids)
			w.WriteString("</a>")
		default:
			w.WriteString("<" + tags[n.kind] + ">")
			w.inlines(n.kids)
			w.WriteString("</" + tags[n.kind] + ">")
		}
	}
}

var (
	linkAttrs = regexp.MustCompile(`<a href="([^"]*)"[^>]*>`)
	imgAttrs  = regexp.MustCompile(`<img src="([^"]*)" alt="([^"]*)"[^>]*>`)
	langAttr  = regexp.MustCompile(` class="language-[^"]*"`)
	space     = regexp.MustCompile(`\s+`)
	blockTag  = regexp.MustCompile(` ?(</?(?:li|ul|ol|ol start="\d+"|blockquote|pre|code|h\d|hr)>) ?`)
)

// normal removes white space and what is written differently on purpose.
func normal(s string) string {
	unpercent := func(u string) string {
		if d, err := url.PathUnescape(html.UnescapeString(u)); err == nil {
			return html.EscapeString(d)
		}
		return u
	}
	s = linkAttrs.ReplaceAllStringFunc(s, func(a string) string {
		return "<a " + unpercent(linkAttrs.FindStringSubmatch(a)[1]) + ">"
	})
	s = imgAttrs.ReplaceAllStringFunc(s, func(a string) string {
		m := imgAttrs.FindStringSubmatch(a)
		return "<img " + unpercent(m[1]) + " " + m[2] + ">"
	})
	s = langAttr.ReplaceAllString(s, "")
	s = strings.NewReplacer("<br />", " ", "<hr />", "<hr>", "<p>", " ", "</p>", " ", "<h1></h1>", "", "<h2></h2>", "", "<h3></h3>", "",
		"<pre><code></code></pre>", "").Replace(s)
	s = space.ReplaceAllString(html.UnescapeString(s), " ")
	s = blockTag.ReplaceAllString(s, "$1")
	s = blockTag.ReplaceAllString(s, "$1")
	return strings.TrimSpace(s)
}
