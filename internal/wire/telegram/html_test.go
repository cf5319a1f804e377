package telegram

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseHTML(t *testing.T) {
	tests := []struct {
		in, text string
		ents     []Entity
	}{
		{"plain", "plain", nil},
		{"a &lt;b&gt; &amp;amp; &quot;c&quot; &nbsp; & &#128075;&#x41;", `a <b> &amp; "c" &nbsp; & 👋A`, nil},
		{"1 > 0", "1 > 0", nil},
		{"👋<b>bold <i>both</i></b>", "👋bold both", []Entity{{Type: "bold", Offset: 2, Length: 9}, {Type: "italic", Offset: 7, Length: 4}}},
		{"<B>x</b><b></b>", "x", []Entity{{Type: "bold", Length: 1}}},
		{`<a href="https://e.org/?a=1&amp;b=2">link</a>`, "link", []Entity{{Type: "text_link", Length: 4, URL: "https://e.org/?a=1&b=2"}}},
		{`<pre><code class="language-go">x := 1</code></pre>`, "x := 1", []Entity{{Type: "pre", Length: 6, Language: "go"}}},
		{`<code class="language-go">x</code>`, "x", []Entity{{Type: "code", Length: 1}}},
		{"<blockquote expandable>q</blockquote>", "q", []Entity{{Type: "expandable_blockquote", Length: 1}}},
		{`<span class="tg-spoiler">s</span>`, "s", []Entity{{Type: "spoiler", Length: 1}}},
	}
	for _, tt := range tests {
		text, ents, err := parseHTML(tt.in)
		if err != nil || text != tt.text {
			t.Errorf("%s: %q, %v", tt.in, text, err)
		}
		if diff := cmp.Diff(tt.ents, ents); diff != "" {
			t.Errorf("%s: %s", tt.in, diff)
		}
	}
}

// The texts are those of td/telegram/MessageEntity.cpp.
func TestParseHTMLRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"a <b>half":             `Can't find end tag corresponding to start tag "b"`,
		"x < y":                 `Unsupported start tag "" at byte offset 2`,
		"x <y":                  "Unclosed start tag at byte offset 2",
		"if a <b && c> d":       `Can't find end tag corresponding to start tag "b"`,
		"<h1>x</h1>":            `Unsupported start tag "h1" at byte offset 0`,
		"é<br>":                 `Unsupported start tag "br" at byte offset 2`,
		"x</b>":                 "Unexpected end tag at byte offset 1",
		"<b><i>x</b></i>":       `Unmatched end tag at byte offset 7, expected "</i>", found "</b>"`,
		"<b>x</b":               "Unclosed end tag at byte offset 4",
		"<a href=\"x":           "Unclosed start tag at byte offset 0",
		`<span class="x">y</a>`: `Tag "span" must have class "tg-spoiler" at byte offset 0`,
		"user <mail@e.org>":     `Unsupported start tag "mail@e.org" at byte offset 5`,
	} {
		if _, _, err := parseHTML(in); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

func FuzzParseHTML(f *testing.F) {
	f.Add(`<b>x</b> <a href="y">z</a> &lt; &#99;`)
	f.Add(`<pre><code class='language-go'>x</code></pre><`)
	f.Fuzz(func(t *testing.T, s string) {
		text, ents, err := parseHTML(s)
		if err != nil || !utf8.ValidString(s) {
			return
		}
		text, ents = trim(text, ents)
		for _, e := range ents {
			if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > utf16Len(text) {
				t.Errorf("%q: entity %+v in a text of %d", s, e, utf16Len(text))
			}
		}
	})
}
