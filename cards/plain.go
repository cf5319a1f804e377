package cards

import (
	"strings"
)

// PlainLimit is the length of a body of [Plain], in UTF-16 units.
const PlainLimit = 4000

// Plain renders readable text without any markup, in bodies of [PlainLimit].
func Plain() Dialect { return PlainOf(PlainLimit) }

// PlainOf is Plain with bodies of at most limit UTF-16 units; less than 200 is taken as 200.
func PlainOf(limit int) Dialect {
	limit = max(limit, 200)
	return &dialect{
		name: "plain", format: "plain", lower: true,
		room:   size{units: limit, marks: 1 << 30, bytes: 1 << 30, plain: limit},
		render: renderPlain,
	}
}

func renderPlain(bs []block) (string, size) {
	p := plainSink{}
	f := flow{sink: &p}
	f.blocks(bs, 0)
	s := strings.TrimRight(p.b.String(), " \n")
	n := UTF16Len(s)
	return s, size{units: n, bytes: len(s), plain: n}
}

type plainSink struct {
	b    strings.Builder
	link []int // where the text of open links starts
}

func (p *plainSink) text(s string) { p.b.WriteString(s) }
func (p *plainSink) code(s string) { p.b.WriteString(s) }

func (p *plainSink) newline(prefix string) {
	p.b.WriteByte('\n')
	p.b.WriteString(prefix)
}

func (p *plainSink) open(in *inline) {
	if in.kind == inLink {
		p.link = append(p.link, p.b.Len())
	}
}

func (p *plainSink) close(in *inline) {
	if in.kind == inLink {
		start := p.link[len(p.link)-1]
		p.link = p.link[:len(p.link)-1]
		p.b.WriteString(targetAfter(p.b.String()[start:], in.href))
	}
}

func (p *plainSink) image(in *inline) {
	p.b.WriteString(in.text)
	p.b.WriteString(targetAfter(in.text, in.href))
}

func (p *plainSink) pre(_, text, prefix string) {
	for i := 0; ; i++ {
		line, rest, more := strings.Cut(text, "\n")
		if i > 0 {
			p.newline(prefix)
		}
		p.b.WriteString(line)
		if !more {
			return
		}
		text = rest
	}
}

func (p *plainSink) quote(bool) bool { return false }
