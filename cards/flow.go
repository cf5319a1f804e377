package cards

import (
	"strconv"
	"strings"
)

// size is what a rendering takes of a platform's limits.
type size struct {
	units int // visible UTF-16 units, or bytes where the platform counts markup
	marks int // pieces of format
	bytes int // of the text with its markup
	plain int // UTF-16 units of the plain form
}

func (a size) plus(b size) size {
	return size{a.units + b.units, a.marks + b.marks, a.bytes + b.bytes, a.plain + b.plain}
}

func (a size) minus(b size) size {
	return size{a.units - b.units, a.marks - b.marks, a.bytes - b.bytes, a.plain - b.plain}
}

func (a size) within(b size) bool {
	return a.units <= b.units && a.marks <= b.marks && a.bytes <= b.bytes && a.plain <= b.plain
}

// sink takes the stream of a flow and writes a dialect that works on lines of text.
type sink interface {
	text(s string) // no line breaks
	newline(prefix string)
	open(in *inline)
	close(in *inline)
	code(s string)
	image(in *inline)
	pre(lang, text, prefix string) // begins and ends on lines of its own
	quote(on bool) bool            // whether the dialect has quotes here; else they get a prefix
}

// flow walks blocks and sends them to a sink as lines: markers, indentation and blank lines are the same in all
// dialects that work on text.
type flow struct {
	sink
	prefix string
}

func (f *flow) blocks(bs []block, list int) {
	for i := range bs {
		if i > 0 {
			f.gap(&bs[i-1], &bs[i])
		}
		f.block(&bs[i], list)
	}
}

func (f *flow) gap(a, b *block) {
	if a.kind != blockHeading && (!b.snug || b.kind == blockPara || b.kind == blockHeading) {
		f.newline(strings.TrimRight(f.prefix, " "))
	}
	f.newline(f.prefix)
}

func (f *flow) block(b *block, list int) {
	switch b.kind {
	case blockPara:
		f.inlines(b.inls)
	case blockHeading:
		bold := inline{kind: inStrong}
		f.open(&bold)
		f.inlines(b.inls)
		f.close(&bold)
	case blockRule:
		f.text(rule)
	case blockCode:
		f.pre(b.lang, b.text, f.prefix)
	case blockTable:
		f.table(b.table)
	case blockQuote:
		saved := f.prefix
		if f.quote(true) {
			f.prefix = ""
			f.blocks(b.kids, 0)
			f.prefix = saved
			f.quote(false)
			return
		}
		f.prefix += "> "
		f.text("> ")
		f.blocks(b.kids, list)
		f.prefix = saved
	case blockList:
		f.list(b, list)
	}
}

const rule = "——————————"

func (f *flow) table(t *table) {
	text, ok := t.aligned()
	if !ok { // lowerTables was not asked: never empty-handed
		f.blocks(t.lines(), 0)
		return
	}
	f.pre("", text, f.prefix)
}

var bullets = [...]string{"• ", "◦ ", "▪ "}

func (f *flow) list(b *block, depth int) {
	saved := f.prefix
	for i := range b.items {
		it := &b.items[i]
		if i > 0 {
			if b.loose {
				f.newline(strings.TrimRight(f.prefix, " "))
			}
			f.newline(f.prefix)
		}
		marker := bullets[min(depth, len(bullets)-1)]
		if b.ordered {
			marker = strconv.Itoa(b.start+i) + ". "
		}
		switch it.task {
		case taskOpen:
			marker = "☐ "
		case taskDone:
			marker = "☑ "
		}
		if it.cont {
			marker = indent
		}
		f.text(marker)
		f.prefix = saved + indent
		if len(it.kids) > 0 {
			switch it.kids[0].kind {
			case blockPara, blockHeading, blockList: // on the marker's line
			default:
				f.newline(f.prefix)
			}
		}
		f.blocks(it.kids, depth+1)
		f.prefix = saved
	}
}

// indent is what a list adds on the left.
const indent = "   "

func (f *flow) inlines(in []inline) {
	for i := range in {
		switch n := &in[i]; n.kind {
		case inText:
			f.text(n.text)
		case inBreak:
			f.newline(f.prefix)
		case inCode:
			f.code(n.text)
		case inImage:
			f.image(n)
		default:
			f.open(n)
			f.inlines(n.kids)
			f.close(n)
		}
	}
}
