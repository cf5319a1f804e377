package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	readability "codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

const (
	maxHTML    = 4 << 20 // bytes that are converted; the rest of a page is dropped
	maxElems   = 60_000  // elements that readability looks at
	minArticle = 250     // characters; a shorter article is taken for a mistake
)

// Text is a page in readable form.
type Text struct {
	Title    string
	Markdown string
	Cut      bool // the page was longer than what is converted
}

// UTF8 returns body as UTF-8, by its byte order mark, its Content-Type, what HTML says of itself, or a guess.
func UTF8(body []byte, contentType string) string {
	bom := bytes.HasPrefix(body, []byte{0xff, 0xfe}) || bytes.HasPrefix(body, []byte{0xfe, 0xff})
	if !bom && utf8.Valid(body) {
		return strings.TrimPrefix(string(body), "\uFEFF")
	}
	r, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err == nil {
		if b, err := io.ReadAll(io.LimitReader(r, MaxDecoded)); err == nil {
			body = b
		}
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(body), "\uFFFD"), "\uFEFF")
}

// Readable turns HTML into Markdown: the article when the page is one, else all that can be seen of it. Links become
// absolute; scripts, hidden elements and inline pictures go. Broken HTML gives its plain text; Readable never fails.
func Readable(page *Page) Text {
	var t Text
	src := UTF8(page.Body, page.Type)
	if len(src) > maxHTML {
		src, t.Cut = strings.ToValidUTF8(src[:maxHTML], ""), true
	}
	doc, err := html.Parse(strings.NewReader(src))
	if err != nil { // nested too deep
		t.Markdown = plain(src)
		return t
	}
	t.Title = title(doc)
	tidy(doc, baseOf(doc, page.URL))
	if work(doc, 1) > maxWork {
		t.Markdown = plain(src)
		return t
	}
	md, err := convert(doc, page.URL)
	if err != nil {
		md = plain(src)
	}
	t.Markdown = lines(md)
	return t
}

// convert runs the two libraries, which get input from anywhere: their panics are errors.
func convert(doc *html.Node, u *url.URL) (md string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("web: converting: %v", r)
		}
	}()
	node := doc
	if readability.CheckDocument(doc) {
		p := readability.NewParser()
		p.MaxElemsToParse = maxElems
		p.DisableJSONLD = true
		if art, err := p.ParseDocument(doc, u); err == nil && art.Node != nil && textLen(art.Node) >= minArticle {
			node = art.Node
		}
	}
	conv := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(
		table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
	out, err := conv.ConvertNode(node)
	if err == nil && len(out) > MaxDecoded {
		err = errors.New("web: converting: too long")
	}
	return string(out), err
}

// title is the page's title on one line.
func title(doc *html.Node) string {
	var found, og string
	for n := range doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.DataAtom == atom.Title && found == "" && n.Namespace == "":
			var b strings.Builder
			for c := range n.ChildNodes() {
				b.WriteString(c.Data)
			}
			found = strings.Join(strings.Fields(b.String()), " ")
		case n.DataAtom == atom.Meta && attr(n, "property") == "og:title" && og == "":
			og = strings.Join(strings.Fields(attr(n, "content")), " ")
		}
	}
	if found == "" {
		return og
	}
	return found
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// baseOf is what relative links of a page relate to.
func baseOf(doc *html.Node, u *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.DataAtom == atom.Base {
			if b, err := u.Parse(attr(n, "href")); err == nil {
				return b
			}
		}
	}
	return u
}

func textLen(n *html.Node) int {
	total := 0
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			total += utf8.RuneCountInString(strings.TrimSpace(c.Data))
		}
	}
	return total
}

// plain is the text of HTML without its structure.
func plain(src string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(src))
	skip := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return lines(b.String())
		case html.StartTagToken:
			if name, _ := z.TagName(); string(name) == "script" || string(name) == "style" {
				skip = string(name)
			}
			b.WriteByte('\n')
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}
		case html.TextToken:
			if skip == "" {
				b.WriteString(html.UnescapeString(string(z.Raw())))
			}
		}
	}
}

// lines strips blanks at line ends and keeps one empty line of several.
func lines(s string) string {
	var b strings.Builder
	empty := true
	for l := range strings.Lines(s) {
		l = strings.TrimRight(l, " \t\r\n\u00a0")
		if l == "" {
			if !empty {
				b.WriteByte('\n')
			}
			empty = true
			continue
		}
		b.WriteString(l + "\n")
		empty = false
	}
	return strings.TrimRight(b.String(), "\n")
}

// errorTitles are the titles of pages that are errors though their status is success.
var errorTitles = []string{
	"404", "404 error", "404 not found", "404 page not found", "error 404", "error 404 not found", "not found",
	"page not found", "page not found 404", "the page was not found", "this page does not exist", "file not found",
	"403", "403 forbidden", "access denied", "access to this page has been denied", "forbidden", "410 gone",
	"429 too many requests", "too many requests", "500 internal server error", "internal server error",
	"502 bad gateway", "bad gateway", "503 service unavailable", "503 service temporarily unavailable", "service unavailable",
	"504 gateway time out", "504 gateway timeout", "just a moment", "attention required cloudflare", "are you a robot",
	"robot check", "error",
}

// ErrorTitle reports whether a page's title is that of an error page: it equals a known phrase, alone or beside the
// name of the site. A title that only contains one, such as that of an article about such pages, is none.
func ErrorTitle(title, host string) bool {
	known := func(s string) bool {
		s = letters(s, true)
		return slices.Contains(errorTitles, s)
	}
	if known(title) {
		return true
	}
	for _, sep := range []string{" | ", " - ", " – ", " — ", " · ", " :: ", ": "} {
		a, b, ok := strings.Cut(title, sep)
		if !ok || strings.Contains(b, sep) {
			continue
		}
		if known(a) && siteName(b, host) || known(b) && siteName(a, host) {
			return true
		}
	}
	return false
}

// siteName reports whether s is what a site at host calls itself.
func siteName(s, host string) bool {
	s = letters(s, false)
	labels := strings.Split(strings.TrimPrefix(host, "www."), ".")
	if s == "" || len(labels) < 2 {
		return false
	}
	own := letters(labels[len(labels)-2], false)
	return own != "" && (strings.Contains(s, own) || strings.Contains(letters(host, false), s))
}

// letters keeps lower-case letters and digits, with single blanks between words when words is set.
func letters(s string, words bool) string {
	f := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r < 0x80
	})
	if words {
		return strings.Join(f, " ")
	}
	return strings.Join(f, "")
}
