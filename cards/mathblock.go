package cards

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

var kindMath = ast.NewNodeKind("CardsMath")

// mathBlock is display mathematics on lines of its own, between "$$" or "\[" and "\]". It is shown as code, so that no
// character of it is taken for Markdown.
type mathBlock struct {
	ast.BaseBlock
	end string
}

func (n *mathBlock) Kind() ast.NodeKind         { return kindMath }
func (n *mathBlock) IsRaw() bool                { return true }
func (n *mathBlock) Dump(src []byte, level int) { ast.DumpHelper(n, src, level, nil, nil) }

// maxMath is how far the end of display mathematics may be from its start, in bytes.
const maxMath = 8 << 10

type mathParser struct{}

func (mathParser) Trigger() []byte { return []byte{'$', '\\'} }

func (mathParser) Open(_ ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, seg := r.PeekLine()
	end := ""
	switch string(bytes.TrimSpace(line)) {
	case "$$":
		end = "$$"
	case `\[`:
		end = `\]`
	default:
		return nil, parser.NoChildren
	}
	if !mathEnds(r.Source(), seg.Stop, end, pc) {
		return nil, parser.NoChildren
	}
	r.AdvanceToEOL()
	return &mathBlock{end: end}, parser.NoChildren
}

var mathKey = parser.NewContextKey()

// mathEnds looks for end within reach of from, and remembers how far there is none.
func mathEnds(src []byte, from int, end string, pc parser.Context) bool {
	none, _ := pc.Get(mathKey).(map[string]int)
	if none == nil {
		none = map[string]int{}
		pc.Set(mathKey, none)
	}
	to := min(len(src), from+maxMath)
	start := max(from, none[end]-len(end))
	if start < to && bytes.Contains(src[start:to], []byte(end)) {
		return true
	}
	none[end] = max(none[end], to)
	return false
}

func (mathParser) Continue(node ast.Node, r text.Reader, _ parser.Context) parser.State {
	n := node.(*mathBlock)
	line, seg := r.PeekLine()
	trimmed := bytes.TrimSpace(line)
	if string(trimmed) == n.end {
		r.AdvanceToEOL()
		return parser.Close
	}
	if bytes.HasSuffix(trimmed, []byte(n.end)) { // the end stands behind the last line
		seg = seg.TrimRightSpace(r.Source())
		n.Lines().Append(seg.WithStop(seg.Stop - len(n.end)))
		r.AdvanceToEOL()
		return parser.Close
	}
	n.Lines().Append(seg)
	r.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

func (mathParser) Close(ast.Node, text.Reader, parser.Context) {}
func (mathParser) CanInterruptParagraph() bool                 { return true }
func (mathParser) CanAcceptIndentedLine() bool                 { return false }
