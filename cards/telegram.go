package cards

import (
	"bytes"
	"strings"
)

// Telegram's limits. A text has 4096 characters after its entities are parsed; counting UTF-16 units is safe whatever a
// character is. Entities beyond 100 are dropped by the server.
const (
	TelegramLimit = 4096
	telegramRoom  = 4000
	telegramMarks = 100
	telegramBytes = 32 << 10
)

// Telegram renders the HTML of the Bot API: b, i, u, s, code, pre, a and blockquote, nested as the API allows.
func Telegram() Dialect {
	return &dialect{
		name: "telegram", format: "html", lower: true,
		room:   size{units: telegramRoom, marks: telegramMarks, bytes: telegramBytes, plain: TelegramLimit},
		render: renderTelegram,
	}
}

func renderTelegram(b []byte, bs []block) ([]byte, size) {
	t := telegramSink{b: b}
	f := flow{sink: &t}
	f.blocks(bs, 0)
	t.sync(nil)
	return t.b, size{units: t.units, marks: t.marks, bytes: len(t.b)}
}

type telegramTag struct{ name, href string }

// telegramSink opens a tag only when text follows and closes all around code, because Telegram allows no entity around
// code and none in it.
type telegramSink struct {
	b          []byte
	want, have []telegramTag
	stack      []bool // of open inlines: whether each has its tag in want
	units      int
	marks      int
	inQuote    bool
}

func (t *telegramSink) text(s string) {
	if s == "" {
		return
	}
	if strings.TrimSpace(s) != "" {
		t.sync(t.want)
	}
	t.raw(s)
}

// raw writes escaped text.
func (t *telegramSink) raw(s string) {
	t.units += UTF16Len(s)
	t.b = appendHTML(t.b, s)
}

// appendHTML escapes text, appendAttr the value of an attribute.
func appendHTML(b []byte, s string) []byte { return escape(b, s, false) }
func appendAttr(b []byte, s string) []byte { return escape(b, s, true) }

func escape(b []byte, s string, quotes bool) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		esc := ""
		switch s[i] {
		case '&':
			esc = "&amp;"
		case '<':
			esc = "&lt;"
		case '>':
			esc = "&gt;"
		case '"':
			if !quotes {
				continue
			}
			esc = "&quot;"
		default:
			continue
		}
		b = append(b, s[start:i]...)
		b = append(b, esc...)
		start = i + 1
	}
	return append(b, s[start:]...)
}

// sync closes and opens tags until those of want are open.
func (t *telegramSink) sync(want []telegramTag) {
	n := 0
	for n < len(want) && n < len(t.have) && want[n] == t.have[n] {
		n++
	}
	if n == len(want) && n == len(t.have) {
		return
	}
	for k := len(t.have) - 1; k >= n; k-- {
		t.b = append(t.b, "</"...)
		t.b = append(t.b, t.have[k].name...)
		t.b = append(t.b, '>')
	}
	t.have = t.have[:n]
	for _, tag := range want[n:] {
		t.b = append(t.b, '<')
		t.b = append(t.b, tag.name...)
		if tag.name == "a" {
			t.b = append(t.b, ` href="`...)
			t.b = appendAttr(t.b, tag.href)
			t.b = append(t.b, '"')
		}
		t.b = append(t.b, '>')
		t.have = append(t.have, tag)
		t.marks++
	}
}

func (t *telegramSink) newline(prefix string) {
	t.trimSpaces()
	t.units++
	t.b = append(t.b, '\n')
	t.raw(prefix)
}

func telegramTagOf(in *inline) telegramTag {
	switch in.kind {
	case inStrong:
		return telegramTag{name: "b"}
	case inEm:
		return telegramTag{name: "i"}
	case inUnder:
		return telegramTag{name: "u"}
	case inDel:
		return telegramTag{name: "s"}
	}
	return telegramTag{"a", in.href}
}

func telegramLink(href string) bool {
	return safeTarget(href, "http://", "https://", "tg://", "mailto:")
}

func (t *telegramSink) wants(name string) bool {
	for _, w := range t.want {
		if w.name == name {
			return true
		}
	}
	return false
}

func (t *telegramSink) open(in *inline) {
	tag := telegramTagOf(in)
	own := !t.wants(tag.name) && (in.kind != inLink || telegramLink(in.href))
	t.stack = append(t.stack, own)
	if own {
		t.want = append(t.want, tag)
	}
}

func (t *telegramSink) close(in *inline) {
	own := t.stack[len(t.stack)-1]
	t.stack = t.stack[:len(t.stack)-1]
	if !own {
		if in.kind == inLink {
			t.text(targetAfter(plainText(in.kids), in.href))
		}
		return
	}
	t.want = t.want[:len(t.want)-1]
	if len(t.have) > len(t.want) {
		t.sync(t.have[:len(t.want)])
	}
}

func (t *telegramSink) code(s string) {
	if !visibleText(s) || t.wants("a") {
		t.text(s)
		return
	}
	t.sync(nil)
	t.b = append(t.b, "<code>"...)
	t.raw(s)
	t.b = append(t.b, "</code>"...)
	t.marks++
}

func (t *telegramSink) image(in *inline) {
	text := in.text
	if !visibleText(text) {
		text = in.href
	}
	link := inline{kind: inLink, href: in.href, kids: []inline{textOf(text)}}
	t.open(&link)
	t.text(text)
	t.close(&link)
}

// trimSpaces drops the spaces at the end of the line in work.
func (t *telegramSink) trimSpaces() {
	for n := len(t.b); n > 0 && t.b[n-1] == ' '; n-- {
		t.b = t.b[:n-1]
		t.units--
	}
}

// outdent drops the indentation before what has its own frame.
func (t *telegramSink) outdent() {
	b := bytes.TrimRight(t.b, " ")
	if len(b) == 0 || b[len(b)-1] == '\n' {
		t.trimSpaces()
	}
}

func (t *telegramSink) pre(lang, text, _ string) {
	t.sync(nil)
	t.outdent()
	t.marks++
	if lang != "" {
		t.b = append(t.b, `<pre><code class="language-`...)
		t.b = appendAttr(t.b, lang)
		t.b = append(t.b, `">`...)
	} else {
		t.b = append(t.b, "<pre>"...)
	}
	t.raw(text)
	if lang != "" {
		t.b = append(t.b, "</code>"...)
	}
	t.b = append(t.b, "</pre>"...)
}

func (t *telegramSink) quote(on bool) bool {
	if on && t.inQuote {
		return false
	}
	t.inQuote = on
	t.sync(nil)
	if on {
		t.outdent()
		t.marks++
		t.b = append(t.b, "<blockquote>"...)
	} else {
		t.b = append(t.b, "</blockquote>"...)
	}
	return true
}
