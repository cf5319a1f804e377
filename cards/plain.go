package cards

import (
	"bytes"
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

func renderPlain(b []byte, bs []block) ([]byte, size) {
	p := plainSink{b: b}
	f := flow{sink: &p}
	f.blocks(bs, 0)
	n := unitsOf(p.b)
	return p.b, size{units: n, bytes: len(p.b), plain: n}
}

type plainSink struct {
	b    []byte
	link []int // where the text of open links starts
}

func (p *plainSink) text(s string) { p.b = append(p.b, s...) }
func (p *plainSink) code(s string) { p.b = append(p.b, s...) }

func (p *plainSink) newline(prefix string) {
	p.b = bytes.TrimRight(p.b, " ")
	p.b = append(p.b, '\n')
	p.b = append(p.b, prefix...)
}

func (p *plainSink) open(in *inline) {
	if in.kind == inLink {
		p.link = append(p.link, len(p.b))
	}
}

func (p *plainSink) close(in *inline) {
	if in.kind == inLink {
		start := p.link[len(p.link)-1]
		p.link = p.link[:len(p.link)-1]
		p.text(targetAfter(string(p.b[start:]), in.href))
	}
}

func (p *plainSink) image(in *inline) {
	p.text(in.text)
	p.text(targetAfter(in.text, in.href))
}

func (p *plainSink) pre(_, text, prefix string) {
	for {
		line, rest, more := strings.Cut(text, "\n")
		p.text(line)
		if !more {
			return
		}
		p.b = append(append(p.b, '\n'), prefix...)
		text = rest
	}
}

func (p *plainSink) quote(bool) bool { return false }
