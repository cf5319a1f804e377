package cards

import (
	"strconv"
	"strings"
)

// WebLimit is the length of a body of [Web], in bytes of HTML.
const WebLimit = 200 << 10

// Web renders a safe fragment of HTML for the chat page: headings, paragraphs, lists, tables, code, quotes and links,
// nothing that the model wrote as HTML, no target that runs code, nothing loaded from elsewhere.
func Web() Dialect {
	return &dialect{
		name: "web", format: "html",
		room:   size{units: WebLimit, marks: 1 << 30, bytes: WebLimit, plain: WebLimit},
		render: renderWeb,
	}
}

func renderWeb(b []byte, bs []block) ([]byte, size) {
	w := webWriter{b: b}
	w.blocks(bs, false)
	return w.b, size{units: len(w.b), bytes: len(w.b)}
}

type webWriter struct {
	b      []byte
	inLink bool
}

func (w *webWriter) raw(s string)  { w.b = append(w.b, s...) }
func (w *webWriter) text(s string) { w.b = appendHTML(w.b, s) }

func (w *webWriter) blocks(bs []block, tight bool) {
	for i := range bs {
		if i > 0 {
			w.raw("\n")
		}
		w.block(&bs[i], tight)
	}
}

func (w *webWriter) block(b *block, tight bool) {
	switch b.kind {
	case blockPara:
		if tight {
			w.inlines(b.inls)
			return
		}
		w.raw("<p>")
		w.inlines(b.inls)
		w.raw("</p>")
	case blockHeading:
		h := "h" + strconv.Itoa(b.level) + ">"
		w.raw("<" + h)
		w.inlines(b.inls)
		w.raw("</" + h)
	case blockRule:
		w.raw("<hr>")
	case blockCode:
		w.raw("<pre><code")
		if b.lang != "" {
			w.raw(` class="language-`)
			w.b = appendAttr(w.b, b.lang)
			w.raw(`"`)
		}
		w.raw(">")
		w.text(b.text)
		w.raw("\n</code></pre>")
	case blockQuote:
		w.raw("<blockquote>\n")
		w.blocks(b.kids, false)
		w.raw("\n</blockquote>")
	case blockTable:
		w.table(b.table)
	case blockList:
		w.list(b)
	}
}

func (w *webWriter) list(b *block) {
	name := "ul"
	if b.ordered {
		name = "ol"
	}
	w.raw("<" + name)
	if b.ordered && b.start != 1 {
		w.raw(` start="` + strconv.Itoa(b.start) + `"`)
	}
	w.raw(">")
	for i := range b.items {
		it := &b.items[i]
		switch {
		case it.cont:
			w.raw(`<li class="cont">`)
		case it.task == taskOpen:
			w.raw(`<li class="task">☐ `)
		case it.task == taskDone:
			w.raw(`<li class="task">☑ `)
		default:
			w.raw("<li>")
		}
		w.blocks(it.kids, !b.loose)
		w.raw("</li>")
	}
	w.raw("</" + name + ">")
}

func (w *webWriter) table(t *table) {
	w.raw("<table>")
	for i, row := range t.all() {
		cell := "td"
		switch i {
		case 0:
			cell = "th"
			w.raw("<thead>")
		case 1:
			w.raw("<tbody>")
		}
		w.raw("<tr>")
		for j := range t.align {
			w.raw("<" + cell)
			switch t.align[j] {
			case alignCenter:
				w.raw(` class="center"`)
			case alignRight:
				w.raw(` class="right"`)
			}
			w.raw(">")
			if j < len(row) {
				w.inlines(row[j])
			}
			w.raw("</" + cell + ">")
		}
		w.raw("</tr>")
		if i == 0 {
			w.raw("</thead>")
		}
	}
	if len(t.rows) > 0 {
		w.raw("</tbody>")
	}
	w.raw("</table>")
}

func (w *webWriter) inlines(in []inline) {
	for i := range in {
		n := &in[i]
		switch n.kind {
		case inText:
			w.text(n.text)
		case inBreak:
			w.raw("<br>\n")
		case inCode:
			w.raw("<code>")
			w.text(n.text)
			w.raw("</code>")
		case inStrong:
			w.span("strong", n.kids)
		case inEm:
			w.span("em", n.kids)
		case inDel:
			w.span("del", n.kids)
		case inUnder:
			w.span("u", n.kids)
		case inImage:
			text := n.text
			if !visibleText(text) {
				text = n.href
			}
			w.link(n.href, []inline{textOf(text)})
		case inLink:
			w.link(n.href, n.kids)
		}
	}
}

func (w *webWriter) span(name string, kids []inline) {
	w.raw("<" + name + ">")
	w.inlines(kids)
	w.raw("</" + name + ">")
}

func (w *webWriter) link(href string, kids []inline) {
	if w.inLink || !safeTarget(href, "http://", "https://", "mailto:") {
		w.inlines(kids)
		w.text(targetAfter(plainText(kids), href))
		return
	}
	w.raw(`<a href="`)
	w.b = appendAttr(w.b, strings.TrimSpace(href))
	w.raw(`" target="_blank" rel="noopener noreferrer">`)
	w.inLink = true
	w.inlines(kids)
	w.inLink = false
	w.raw("</a>")
}
