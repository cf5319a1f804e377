package cards

import (
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// parse reads GitHub-flavoured Markdown. Goldmark finds the blocks; inlines, tables, references and footnotes are read
// here, because chat text needs other rules there: emphasis beside Chinese text, links before Chinese punctuation, raw
// HTML as text, and time that stays linear whatever the input.
func parse(md string) []block {
	md = clean(md)
	if len(md) <= maxSource {
		return parsePiece(md)
	}
	var out []block
	for md != "" {
		piece := md
		if len(piece) > maxSource {
			piece = piece[:lineEnd(piece, maxSource)]
		}
		md = md[len(piece):]
		out = append(out, parsePiece(piece)...)
	}
	return out
}

// lineEnd is the end of the last line that fits in n bytes of s, or a rune boundary when a line is longer.
func lineEnd(s string, n int) int {
	if i := strings.LastIndexByte(s[:n], '\n'); i > 0 {
		return i + 1
	}
	for n > 1 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// clean makes s valid UTF-8 with "\n" line ends and without control characters or reasoning in tags.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7F {
			s = strings.ReplaceAll(s, "\r\n", "\n")
			s = strings.Map(func(r rune) rune {
				switch {
				case r == '\r':
					return '\n'
				case r < ' ' && r != '\n' && r != '\t' || r == 0x7F:
					return -1
				}
				return r
			}, s)
			break
		}
	}
	return dropReasoning(s)
}

var blockParser = parser.NewParser(parser.WithBlockParsers(
	util.Prioritized(parser.NewSetextHeadingParser(), 100),
	util.Prioritized(parser.NewThematicBreakParser(), 200),
	util.Prioritized(bounded{parser.NewListParser()}, 300),
	util.Prioritized(parser.NewListItemParser(), 400),
	util.Prioritized(parser.NewCodeBlockParser(), 500),
	util.Prioritized(parser.NewATXHeadingParser(), 600),
	util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
	util.Prioritized(mathParser{}, 750),
	util.Prioritized(bounded{parser.NewBlockquoteParser()}, 800),
	util.Prioritized(parser.NewParagraphParser(), 1000),
), parser.WithParagraphTransformers(
	util.Prioritized(stash{}, 100),
))

// stash takes the lines of paragraphs away from goldmark, which would parse their inlines after the blocks. What stays
// is one empty segment that starts at the paragraph's index in the stash.
type stash struct{}

var stashKey = parser.NewContextKey()

func (stash) Transform(n *ast.Paragraph, _ text.Reader, pc parser.Context) {
	if stashed(n.Lines()) {
		return
	}
	lines, _ := pc.Get(stashKey).(*[]text.Segments)
	if lines == nil {
		lines = new([]text.Segments)
		pc.Set(stashKey, lines)
	}
	at := len(*lines)
	*lines = append(*lines, *n.Lines())
	mark := text.NewSegments()
	mark.Append(text.NewSegment(at, at))
	n.SetLines(mark)
}

func stashed(l *text.Segments) bool {
	if l.Len() != 1 {
		return false
	}
	seg := l.At(0)
	return seg.Start == seg.Stop
}

// bounded refuses to open its container when it would nest too deep.
type bounded struct{ parser.BlockParser }

func (b bounded) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if depth++; depth > maxDepth {
			return nil, parser.NoChildren
		}
	}
	return b.BlockParser.Open(parent, r, pc)
}

func parsePiece(md string) []block {
	src := []byte(md)
	pc := parser.NewContext()
	root := blockParser.Parse(text.NewReader(src), parser.WithContext(pc))
	p := &treeParser{src: src}
	if l, ok := pc.Get(stashKey).(*[]text.Segments); ok {
		p.stash = *l
	}
	blocks := p.blocks(root)
	return p.finish(blocks)
}

// treeParser turns goldmark's blocks into ours.
type treeParser struct {
	src   []byte
	stash []text.Segments // lines of paragraphs
	buf   []byte
	refs  map[string]string // link references, by folded label
	in    inlineParser
}

func (p *treeParser) blocks(parent ast.Node) []block {
	var out []block
	if n := parent.ChildCount(); n > 0 {
		out = make([]block, 0, n)
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b := block{snug: !n.HasBlankPreviousLines()}
		switch n := n.(type) {
		case *ast.Heading:
			b.kind, b.level, b.text = blockHeading, n.Level, p.takeReferences(p.lines(n.Lines()))
		case *ast.ThematicBreak:
			b.kind = blockRule
		case *ast.FencedCodeBlock:
			b.kind, b.text = blockCode, p.code(n.Lines())
			if n.Info != nil {
				b.lang = language(string(n.Info.Segment.Value(p.src)))
			}
		case *ast.CodeBlock:
			b.kind, b.text = blockCode, strings.TrimRight(p.code(n.Lines()), "\n")
		case *mathBlock:
			b.kind, b.text, b.lang = blockCode, p.code(n.Lines()), "latex"
		case *ast.Blockquote:
			b.kind, b.kids = blockQuote, p.blocks(n)
		case *ast.List:
			b.kind, b.ordered, b.start, b.loose = blockList, n.IsOrdered(), n.Start, !n.IsTight
			for it := n.FirstChild(); it != nil; it = it.NextSibling() {
				b.items = append(b.items, p.item(it))
			}
		default: // paragraph, text block
			b.kind, b.text = blockPara, p.lines(n.Lines())
			b.text = p.takeReferences(b.text)
			out = p.paragraph(out, b)
			continue
		}
		out = append(out, b)
	}
	return out
}

func (p *treeParser) item(n ast.Node) item {
	it := item{kids: p.blocks(n)}
	if len(it.kids) > 0 && it.kids[0].kind == blockPara {
		first := &it.kids[0]
		if t := first.text; len(t) >= 3 && t[0] == '[' && t[2] == ']' && (len(t) == 3 || t[3] == ' ' || t[3] == '\n') {
			switch t[1] {
			case ' ':
				it.task = taskOpen
			case 'x', 'X':
				it.task = taskDone
			}
			if it.task != noTask {
				first.text = strings.TrimLeft(t[3:], " ")
			}
		}
	}
	return it
}

// lines joins the lines of a paragraph, without the white space around each.
func (p *treeParser) lines(segs *text.Segments) string {
	if stashed(segs) {
		if at := segs.At(0).Start; at < len(p.stash) {
			segs = &p.stash[at]
		}
	}
	b := p.buf[:0]
	for i := range segs.Len() {
		s := segs.At(i)
		line := p.src[s.Start:s.Stop]
		for len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			line = line[1:]
		}
		end := len(line)
		for end > 0 && (line[end-1] == '\n' || line[end-1] == ' ' || line[end-1] == '\t') {
			end--
		}
		if i > 0 {
			b = append(b, '\n')
		}
		b = append(b, line[:end]...)
	}
	p.buf = b
	return string(b)
}

// code joins the lines of a code block as they are.
func (p *treeParser) code(segs *text.Segments) string {
	b := p.buf[:0]
	for i := range segs.Len() {
		s := segs.At(i)
		for range s.Padding {
			b = append(b, ' ')
		}
		b = append(b, p.src[s.Start:s.Stop]...)
	}
	p.buf = b
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	return string(b)
}

// language is the first word of a fence's info string when it can be a language's name.
func language(info string) string {
	info = strings.TrimSpace(info)
	if i := strings.IndexAny(info, " \t,{:"); i >= 0 {
		info = info[:i]
	}
	if info == "" || len(info) > 32 {
		return ""
	}
	for i := 0; i < len(info); i++ {
		if c := info[i]; !isAlnum(c) && strings.IndexByte("_+#.-", c) < 0 {
			return ""
		}
	}
	return info
}

// paragraph appends b, or what stands in it: tables and the text around them.
func (p *treeParser) paragraph(out []block, b block) []block {
	if b.text == "" {
		return out
	}
	if strings.IndexByte(b.text, '|') >= 0 {
		if before, t, ok := p.findTable(b.text); ok {
			if before != "" {
				out = append(out, block{kind: blockPara, snug: b.snug, text: before})
				b.snug = true
			}
			return append(out, block{kind: blockTable, snug: b.snug, table: t})
		}
	}
	if len(b.text) > maxParagraph {
		for piece := range pieces(b.text) {
			out = append(out, block{kind: blockPara, snug: b.snug, text: strings.TrimSpace(piece)})
			b.snug = true
		}
		return out
	}
	return append(out, b)
}

// finish parses the inlines, now that all references are known, and drops what shows nothing.
func (p *treeParser) finish(in []block) []block {
	p.in.refs, p.in.budget = p.refs, len(p.src)+(16<<10)
	return p.finishBlocks(in)
}

func (p *treeParser) finishBlocks(in []block) []block {
	out := in[:0]
	for _, b := range in {
		switch b.kind {
		case blockPara, blockHeading:
			b.inls = p.in.parse(b.text)
			b.text = ""
			if !visibleInlines(b.inls) {
				continue
			}
		case blockQuote:
			if b.kids = p.finishBlocks(b.kids); len(b.kids) == 0 {
				continue
			}
		case blockCode:
			if !visibleText(b.text) {
				continue
			}
		case blockList:
			visible := false
			for i := range b.items {
				it := &b.items[i]
				it.kids = p.finishBlocks(it.kids)
				visible = visible || len(it.kids) > 0 || it.task != noTask
			}
			if !visible {
				continue
			}
		case blockTable:
			if b.table.parseCells(&p.in); !b.table.visible() {
				continue
			}
		}
		out = append(out, b)
	}
	return out
}
