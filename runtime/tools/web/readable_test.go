package web

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func pageOf(t *testing.T, body, contentType string) *Page {
	t.Helper()
	u, err := url.Parse("https://ok.example/dir/page?x=1")
	if err != nil {
		t.Fatal(err)
	}
	return &Page{URL: u, Status: 200, Type: contentType, Body: []byte(body)}
}

func TestReadable(t *testing.T) {
	para := "<p>" + strings.Repeat("A sentence of the article, with commas, and enough words. ", 12) + "</p>"
	src := `<html><head><title> The
	Title </title><script>var evil = "script text"</script><style>p{}</style></head><body>
	<nav><a href="/home">Home</a> <a href="/about">About</a></nav>
	<article><h1>The Title</h1>` + para + `<h2>Part</h2>` + para + `
	<p>See <a href="other.html">the other page</a> and <a href="javascript:alert(1)">this</a>, with commas, too, and more words here.</p>
	<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
	<img src="data:image/png;base64,AAAA" alt="inline"><p hidden>hidden words</p><p style="display: none">unseen words</p><!-- comment words -->
	<pre><code class="language-go">x := 1</code></pre></article>
	<footer>Footer</footer></body></html>`
	got := Readable(pageOf(t, src, "text/html"))
	if got.Title != "The Title" {
		t.Errorf("title %q", got.Title)
	}
	for _, want := range []string{"A sentence of the article", "## Part", "[the other page](https://ok.example/dir/other.html)", "x := 1", "| 1 | 2 |"} {
		if !strings.Contains(got.Markdown, want) {
			t.Errorf("%q is missing in:\n%s", want, got.Markdown)
		}
	}
	for _, bad := range []string{"script text", "hidden words", "unseen words", "comment words", "base64", "javascript:", "\n\n\n"} {
		if strings.Contains(got.Markdown, bad) {
			t.Errorf("%q is in:\n%s", bad, got.Markdown)
		}
	}
}

func TestReadableIndexPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`<title>Index</title><base href="https://base.example/"><ul>`)
	for range 30 {
		b.WriteString(`<li><a href="item">Item</a></li>`)
	}
	got := Readable(pageOf(t, b.String(), "text/html"))
	if n := strings.Count(got.Markdown, "(https://base.example/item)"); n != 30 {
		t.Errorf("%d links of 30 stayed:\n%.300s", n, got.Markdown)
	}
}

func TestReadableBroken(t *testing.T) {
	deep := strings.Repeat("<div>", 3000) + "deep text" + strings.Repeat("</div>", 3000)
	if got := Readable(pageOf(t, deep, "")); !strings.Contains(got.Markdown, "deep text") {
		t.Errorf("deep nesting: %.200q", got.Markdown)
	}
	long := strings.Repeat("<p>"+strings.Repeat("日本語 words ", 100)+"</p>", maxHTML/1000)
	got := Readable(pageOf(t, long, "text/html"))
	if !got.Cut || !utf8.ValidString(got.Markdown) || !strings.Contains(got.Markdown, "日本語 words") {
		t.Errorf("long page: cut %v, %.200q", got.Cut, got.Markdown)
	}
	for _, s := range []string{"", "<", "<title>", "</p></p>", "\x00\xff\xfe"} {
		Readable(pageOf(t, s, "text/html"))
	}
}

func TestUTF8(t *testing.T) {
	tests := []struct{ name, body, kind, want string }{
		{"utf-8", "日本", "text/plain", "日本"},
		{"bom", "\xef\xbb\xbfx", "text/plain", "x"},
		{"utf-8 though declared otherwise", "日本", "text/plain; charset=iso-8859-1", "日本"},
		{"latin", "caf\xe9", "text/plain; charset=iso-8859-1", "café"},
		{"gbk", "\xc4\xe3\xba\xc3", "text/html; charset=gbk", "你好"},
		{"shift jis in meta", "<meta charset=shift_jis>\x93\xfa\x96\x7b", "text/html", "<meta charset=shift_jis>日本"},
		{"utf-16", "\xff\xfea\x00b\x00", "text/plain", "ab"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := UTF8([]byte(tt.body), tt.kind); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestErrorTitle(t *testing.T) {
	for title, want := range map[string]bool{
		"404": true, "404 Not Found": true, "Page not found": true, "Error 404 (Not Found)!!": true, "404 - Page Not Found": true,
		"Page not found · GitHub Pages": true, "Page not found | Ok Example": false, "Just a moment...": true,
		"Attention Required! | Cloudflare": true, "Access Denied": true,
		"How to design a 404 page": false, "Page not found: how we write error pages": false, "Not Found - a novel": false,
		"GitHub: Page not found": true, "HTTP 404 - Wikipedia": false, "": false, "Errors": false,
	} {
		if got := ErrorTitle(title, "pages.github.io"); got != want {
			t.Errorf("%q: got %v", title, got)
		}
	}
}

// TestReadableBombs holds small pages that unfold when each level and each cell is written out.
func TestReadableBombs(t *testing.T) {
	br := strings.Repeat("x<br>", 1000)
	for name, src := range map[string]string{
		"quotations": strings.Repeat("<blockquote>", 400) + br,
		"lists":      strings.Repeat("<ul><li>", 200) + br,
		"emphasis":   strings.Repeat("<b><i>", 200) + br,
		"code":       strings.Repeat("<code><kbd>", 200) + br,
		"colspan":    "<table>" + strings.Repeat("<tr><td colspan=1000000 rowspan=1000000>x</td></tr>", 1000) + "</table>",
		"wide cell":  "<table>" + strings.Repeat("<tr><td>x</td></tr>", 9_000) + "<tr><td>" + strings.Repeat("y", 100_000) + "</td></tr></table>",
		"ragged":     "<table>" + strings.Repeat("<tr><td>x</td></tr>", 5_000) + "<tr>" + strings.Repeat("<td>y</td>", 5_000) + "</tr></table>",
		"tables":     strings.Repeat("<table><tr><td>", 100) + br,
	} {
		t.Run(name, func(t *testing.T) {
			got := Readable(pageOf(t, "<title>t</title>"+src, "text/html"))
			if len(got.Markdown) > 30*len(src) {
				t.Errorf("%d bytes became %d", len(src), len(got.Markdown))
			}
			if !strings.Contains(got.Markdown, "x") {
				t.Errorf("the text is gone: %.200q", got.Markdown)
			}
		})
	}
}

func TestReadableDeepAndLong(t *testing.T) {
	src := "<title>t</title>" + strings.Repeat("<div>", 400) + strings.Repeat("some words<br>", 200_000)
	if got := Readable(pageOf(t, src, "text/html")); !strings.Contains(got.Markdown, "some words") || got.Title != "t" {
		t.Errorf("got %.100q", got.Markdown)
	}
}
