package cards

import (
	"bytes"
	"strings"
	"sync"
)

// dialect is a platform's way to show blocks. All of them parse, split and fit in the same way; they differ in how they
// render and in what they have room for.
type dialect struct {
	name   string
	format string
	lower  bool // tables that are too wide to align become lines
	room   size // of one body
	render renderer
}

// renderer appends what bs look like to b, and tells their size.
type renderer func(b []byte, bs []block) ([]byte, size)

// buffers are for renderings of which only the size or a copy is used.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

func (r renderer) size(bs []block) size {
	buf := buffers.Get().(*[]byte)
	b, s := r((*buf)[:0], bs)
	*buf = b
	buffers.Put(buf)
	return s
}

func (r renderer) text(bs []block) string {
	buf := buffers.Get().(*[]byte)
	b, _ := r((*buf)[:0], bs)
	s := string(bytes.TrimRight(b, " \n"))
	*buf = b
	buffers.Put(buf)
	return s
}

func (d *dialect) Name() string { return d.name }

// parse reads md into the blocks that the dialect can show.
func (d *dialect) parse(md string) []block {
	bs := parse(md)
	if d.lower {
		bs = lowerTables(bs)
	}
	return bs
}

// measure is what bs takes, in the dialect and as plain text.
func (d *dialect) measure(bs []block) size {
	s := d.render.size(bs)
	if d.format != "plain" {
		s.plain = renderer(renderPlain).size(bs).units
	}
	return s
}

func (d *dialect) body(bs []block) Body {
	text := d.render.text(bs)
	plain := text
	if d.format != "plain" {
		plain = renderer(renderPlain).text(bs)
	}
	return Body{Text: text, Format: d.format, Plain: plain}
}

// Markdown renders md, split where it is too long for one body.
func (d *dialect) Markdown(md string) []Body {
	bs := d.parse(md)
	if !visibleBlocks(bs) {
		return nil
	}
	var out []Body
	for _, part := range d.split(bs) {
		if !visibleBlocks(part) { // a rule alone
			continue
		}
		out = append(out, d.body(part))
	}
	return out
}

// visibleBlocks reports whether bs hold more than rules; empty blocks are dropped by the parser.
func visibleBlocks(bs []block) bool {
	for i := range bs {
		switch b := &bs[i]; b.kind {
		case blockRule:
		case blockQuote:
			if visibleBlocks(b.kids) {
				return true
			}
		case blockList:
			for j := range b.items {
				if b.items[j].task != noTask || visibleBlocks(b.items[j].kids) {
					return true
				}
			}
		default:
			return true
		}
	}
	return false
}

// Parts counts the bodies that d makes of md.
func Parts(d Dialect, md string) int { return len(d.Markdown(md)) }

// oneLine makes s one line of at most n runes.
func oneLine(s string, n int) string { return cutEnd(line(s), n) }

// line makes s, which may come from anywhere, harmless text in one line: valid, without control characters and without
// the marks that turn the direction of what follows.
func line(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r < ' ', r >= 0x7F && r < 0xA0, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
	if s = strings.Join(strings.Fields(s), " "); !visibleText(s) {
		return ""
	}
	return s
}

// cutEnd shortens s to n runes with an ellipsis at the end.
func cutEnd(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count, cut := 0, 0
	for i := range s {
		if count == n-1 {
			cut = i
		}
		if count == n {
			return strings.TrimRight(s[:cut], " ") + "…"
		}
		count++
	}
	return s
}
