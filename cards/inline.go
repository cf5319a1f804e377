package cards

import (
	"iter"
	"sort"
	"strings"
	"unicode/utf8"
)

// inlineParser reads the inlines of one paragraph at a time. It writes a flat list of tokens, pairs emphasis and links
// by marking where they open and close, and builds the tree from the marks; so what comes out is always nested well.
// Every search is bounded or remembered, which keeps it linear.
type inlineParser struct {
	refs   map[string]string
	budget int // bytes that references may still add: a short text could ask for a long target many times

	src      string
	toks     []token
	brackets []bracket
	delims   []int32 // indices of delimiter tokens, ascending
	ticks    map[int][]int32
	ticked   bool
	tags     bool // some token is an HTML tag
	noEnd    bool // no comment ends in what is left

	nodes  []inline // of the tree that is built
	frames []frame
	one    string // text gathered for the tree: one piece
	run    []byte // or several
	arena  []inline

	linkFloor int // brackets below it, but those of images, stand in a link's text no more
}

type tokKind uint8

const (
	tokText tokKind = iota
	tokBreak
	tokCode
	tokDelim // run of *, _ or ~
	tokBracket
	tokImage // image whose description is in text
	tokTag
	tokEdge // line break where a block of HTML begins or ends
	tokNone
)

// mark is one emphasis or link that opens or closes at a token.
type mark struct {
	kind inlineKind
	href string
}

type token struct {
	kind       tokKind
	text       string
	href       string
	opens      []mark // innermost first
	closes     []mark // innermost first
	char       byte
	canOpen    bool
	canClose   bool
	n          int // characters of the run that are not used
	orig       int
	tag        *htmlTag
	prev, next int32 // delimiter list
}

type bracket struct {
	tok   int // index of its token
	pos   int // after the bracket in src
	image bool
	delim int // how many delimiters stood before it
}

// special says which bytes may begin something.
var special = func() (t [256]bool) {
	for _, c := range []byte("\\`*_~[]!<&\n$:") {
		t[c] = true
	}
	t['h'], t['H'], t['w'], t['W'] = true, true, true, true
	return t
}()

// parse reads src, the joined lines of a paragraph. A very long one is read in pieces.
func (p *inlineParser) parse(src string) []inline {
	if len(src) <= maxParagraph {
		return p.parsePiece(src)
	}
	var out []inline
	for piece := range pieces(src) {
		line := strings.TrimSuffix(piece, "\n")
		out = append(out, p.parsePiece(line)...)
		if len(line) < len(piece) && len(out) > 0 {
			out = append(out, inline{kind: inBreak})
		}
	}
	return trimBreaks(out)
}

// pieces cuts s into pieces of at most maxParagraph bytes, after a line, else a word.
func pieces(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s != "" {
			piece := s
			if len(piece) > maxParagraph {
				end := lineEnd(piece, maxParagraph)
				if i := strings.LastIndexByte(piece[:end], ' '); piece[end-1] != '\n' && i > 0 {
					end = i + 1
				}
				piece = piece[:end]
			}
			s = s[len(piece):]
			if !yield(piece) {
				return
			}
		}
	}
}

// maxParagraph bounds, in bytes, what emphasis and links may span.
const maxParagraph = 32 << 10

func (p *inlineParser) parsePiece(src string) []inline {
	if src == "" {
		return nil
	}
	p.src = src
	p.toks, p.brackets, p.delims = p.toks[:0], p.brackets[:0], p.delims[:0]
	p.ticked, p.tags, p.noEnd, p.linkFloor = false, false, false, 0
	p.scan()
	p.pairDelims(0)
	if p.tags {
		p.pairTags()
	}
	return p.tree()
}

func (p *inlineParser) add(t token) { p.toks = append(p.toks, t) }

func (p *inlineParser) text(s string) {
	if s == "" {
		return
	}
	p.add(token{kind: tokText, text: s})
}

func (p *inlineParser) scan() {
	src := p.src
	start := 0 // of text not yet added
	for i := 0; i < len(src); {
		c := src[i]
		if !special[c] {
			i++
			continue
		}
		n := 0 // bytes taken; 0 means that it is only text
		flush := func() {
			if i > start {
				p.text(src[start:i])
			}
		}
		switch c {
		case '\\':
			switch {
			case i+1 < len(src) && src[i+1] == '\n':
				flush()
				p.add(token{kind: tokBreak})
				n = 2
			case i+1 < len(src) && (src[i+1] == '(' || src[i+1] == '[') && mathLen(src[i:]) > 0:
				flush()
				n = mathLen(src[i:])
				p.text(src[i : i+n])
			case i+1 < len(src) && isPunctByte(src[i+1]):
				flush()
				p.text(src[i+1 : i+2])
				n = 2
			}
		case '\n':
			flush()
			p.add(token{kind: tokBreak})
			n = 1
		case '`':
			n = p.codeSpan(i, flush)
		case '$':
			if n = dollarLen(src, i); n > 0 {
				flush()
				p.text(src[i : i+n])
			}
		case '*', '_', '~':
			n = runLen(src, i)
			if c == '~' && n != 2 {
				i += n
				continue
			}
			flush()
			p.delim(i, n)
		case '[':
			if label := footnoteLen(src[i:]); label > 0 {
				flush()
				p.text("[" + src[i+2:i+label-1] + "]")
				n = label
				if i == 0 || src[i-1] == '\n' { // a definition
					if i+n < len(src) && src[i+n] == ':' {
						n++
					}
				}
				break
			}
			flush()
			p.bracket(i, 1, false)
			n = 1
		case '!':
			if i+1 < len(src) && src[i+1] == '[' {
				flush()
				p.bracket(i, 2, true)
				n = 2
			}
		case ']':
			if len(p.brackets) > 0 {
				flush()
				n = p.closeBracket(i)
			}
		case '<':
			n = p.angle(i, flush)
		case '&':
			if k, s := entity(src[i:]); k > 0 {
				flush()
				p.text(s)
				n = k
			}
		case 'h', 'H', 'w', 'W':
			if i > 0 && isAlnum(src[i-1]) {
				break
			}
			if k := bareURL(src[i:]); k > 0 {
				flush()
				u := src[i : i+k]
				href := u
				if c == 'w' || c == 'W' {
					href = "http://" + u
				}
				p.link(u, href)
				n = k
			}
		}
		if n == 0 {
			i++
			continue
		}
		i += n
		start = i
	}
	if start < len(src) {
		p.text(src[start:])
	}
}

// link adds a link whose text is its target.
func (p *inlineParser) link(text, href string) {
	p.add(token{kind: tokText, text: text, opens: []mark{{inLink, href}}})
	p.add(token{kind: tokNone, closes: []mark{{inLink, href}}})
}

func runLen(s string, i int) int {
	n := 1
	for i+n < len(s) && s[i+n] == s[i] {
		n++
	}
	return n
}

// codeSpan takes the code span that begins at i.
func (p *inlineParser) codeSpan(i int, flush func()) int {
	src := p.src
	n := runLen(src, i)
	if !p.ticked {
		p.ticked = true
		if p.ticks == nil {
			p.ticks = map[int][]int32{}
		}
		clear(p.ticks)
		for j := i; j < len(src); {
			k := strings.IndexByte(src[j:], '`')
			if k < 0 {
				break
			}
			j += k
			l := runLen(src, j)
			p.ticks[l] = append(p.ticks[l], int32(j))
			j += l
		}
	}
	ends := p.ticks[n]
	k := sort.Search(len(ends), func(k int) bool { return int(ends[k]) >= i+n })
	flush()
	if k == len(ends) {
		p.text(src[i : i+n])
		return n
	}
	end := int(ends[k])
	body := strings.ReplaceAll(src[i+n:end], "\n", " ")
	if len(body) > 2 && body[0] == ' ' && body[len(body)-1] == ' ' && strings.Trim(body, " ") != "" {
		body = body[1 : len(body)-1]
	}
	p.add(token{kind: tokCode, text: body})
	return end + n - i
}

// delim adds a delimiter run. It differs from CommonMark beside CJK characters only: there, punctuation next to the run
// does not keep it from opening or closing, as no spaces stand between words.
func (p *inlineParser) delim(i, n int) {
	src := p.src
	before, after := ' ', ' '
	if i > 0 {
		before, _ = utf8.DecodeLastRuneInString(src[:i])
	}
	if i+n < len(src) {
		after, _ = utf8.DecodeRuneInString(src[i+n:])
	}
	t := token{kind: tokDelim, text: src[i : i+n], char: src[i], n: n, orig: n}
	t.canOpen, t.canClose = flanking(before, after, src[i])
	p.delims = append(p.delims, int32(len(p.toks)))
	p.add(t)
}

// footnoteLen is the length of "[^label]" at the start of s.
func footnoteLen(s string) int {
	if len(s) < 4 || s[1] != '^' {
		return 0
	}
	for j := 2; j < len(s) && j < 64; j++ {
		switch c := s[j]; {
		case c == ']':
			if j == 2 || j+1 < len(s) && (s[j+1] == '(' || s[j+1] == '[') {
				return 0
			}
			return j + 1
		case c <= ' ' || c == '[' || c == '`':
			return 0
		}
	}
	return 0
}
