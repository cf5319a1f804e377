package cards

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SlackLimit is the longest text, with its markup, that Slack still lets be edited: chat.update refuses more than 4,000
// characters, though chat.postMessage takes more.
const (
	SlackLimit = 4000
	slackRoom  = 3900
)

// Slack renders mrkdwn: *bold*, _italic_, ~struck~, code, > quotes and <target|text>. A card with buttons carries Block Kit
// blocks in Data, see [SlackBlocks].
//
// Slack has no way to escape a mark. Where a character of the text would be taken for one it is written as the fallback
// of an impossible date, which clients show as it is; where a mark would stand inside a word, a zero width space makes
// the edge that Slack wants.
func Slack() Dialect {
	return &slackDialect{dialect{
		name: "slack", format: "mrkdwn", lower: true,
		room:   size{units: slackRoom, marks: 1 << 30, bytes: 1 << 30, plain: slackRoom},
		render: renderSlack,
	}}
}

type slackDialect struct{ dialect }

// Card adds blocks when there is something to press: without buttons a text shows more and is never folded.
func (d *slackDialect) Card(c Card) Body {
	b := d.dialect.Card(c)
	if len(b.Buttons) > 0 {
		b.Data = SlackBlocks(b)
	}
	return b
}

func renderSlack(b []byte, bs []block) ([]byte, size) {
	s := slackSink{b: b}
	s.line = len(b)
	f := flow{sink: &s}
	f.blocks(bs, 0)
	s.sync(nil)
	s.endLine()
	if !utf8.Valid(s.b) {
		s.b = bytes.ToValidUTF8(s.b, []byte("\uFFFD"))
	}
	n := unitsOf(s.b)
	return s.b, size{units: n, bytes: len(s.b)}
}

const (
	slackEdgeMark = "\u200b"
	slackHyphen   = "\u00ad"
)

// slackSink closes all marks at the end of a line, because none may cross it, and keeps them away from spaces and words.
type slackSink struct {
	b          []byte
	line       int // where the line in work starts
	want, have []byte
	stack      []bool     // of open inlines: whether each has its mark in want
	after      bool       // the last thing written is the end of a mark
	lits       []slackLit // marks in the text of this line
	label      []byte     // of the link in work
	inLink     bool
	inQuote    bool
}

// slackLit is a character of the text that Slack might take for a mark.
type slackLit struct {
	at   int
	sure bool // whatever else the line holds
}

func (s *slackSink) text(t string) {
	if t == "" {
		return
	}
	if s.inLink {
		s.label = append(s.label, t...)
		return
	}
	body := strings.TrimLeft(t, " ")
	s.spaces(len(t) - len(body))
	if body == "" {
		return
	}
	s.sync(s.want)
	s.edge(body)
	if body[0] == '>' && len(s.lineText()) == 0 {
		s.b = append(s.b, slackHyphen...)
	}
	s.raw(body)
}

func (s *slackSink) spaces(n int) {
	for range n {
		s.b = append(s.b, ' ')
		s.after = false
	}
}

// lineText is what the line in work holds.
func (s *slackSink) lineText() []byte {
	t := s.b[s.line:]
	if s.inQuote {
		t = bytes.TrimPrefix(t, []byte("> "))
	}
	return t
}

// raw writes text, with an eye on what could be a mark.
func (s *slackSink) raw(t string) {
	for i := 0; i < len(t); i++ {
		switch c := t[i]; c {
		case '&':
			s.b = append(s.b, "&amp;"...)
		case '<':
			s.b = append(s.b, "&lt;"...)
		case '>':
			s.b = append(s.b, "&gt;"...)
		case '*', '_', '~', '`':
			inside := bytes.IndexByte(s.have, c) >= 0
			open := slackMayEdge(slackLastRune(s.b[s.line:])) && (i+1 == len(t) || t[i+1] != ' ')
			if c == '`' || inside || open {
				s.lits = append(s.lits, slackLit{at: len(s.b), sure: inside})
			}
			s.b = append(s.b, c)
		default:
			s.b = append(s.b, c)
		}
	}
	s.after = false
}

// slackEdge reports whether a mark may stand beside r.
func slackEdge(r rune) bool {
	if r == 0 || r == ' ' || r == '\u200b' || r == '\u00ad' {
		return true
	}
	return r < 0x80 && strings.ContainsRune(`()[]{}"',.:;!?-/|+=*_~>`, r)
}

// slackMayEdge reports whether Slack might take r for the edge of a word.
func slackMayEdge(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func slackLastRune(b []byte) rune {
	if len(b) == 0 {
		return 0
	}
	r, _ := utf8.DecodeLastRune(b)
	return r
}

// edge makes room between the end of a mark and next.
func (s *slackSink) edge(next string) {
	if !s.after {
		return
	}
	s.after = false
	if r, _ := utf8.DecodeRuneInString(next); !slackEdge(r) || strings.ContainsRune("*_~`", r) {
		s.b = append(s.b, slackEdgeMark...)
	}
}

// endLine defuses what Slack would take for marks in the line in work.
func (s *slackSink) endLine() {
	line := s.b[s.line:]
	if len(s.lits) > 0 {
		var out []byte
		from := 0
		for _, l := range s.lits {
			at := l.at - s.line
			c := line[at]
			need := l.sure || slackCloses(line[at+1:], c) || c == '`' && bytes.Count(line, []byte{c}) > 1
			if !need {
				continue
			}
			out = append(append(out, line[from:at]...), slackLiteral[c]...)
			from = at + 1
		}
		if from > 0 {
			out = append(out, line[from:]...)
			s.b = append(s.b[:s.line], out...)
		}
		s.lits = s.lits[:0]
	}
}

// slackCloses reports whether the mark c may end somewhere in b.
func slackCloses(b []byte, c byte) bool {
	for i := 0; ; i++ {
		k := bytes.IndexByte(b[i:], c)
		if k < 0 {
			return false
		}
		i += k
		if r, _ := utf8.DecodeRune(b[i+1:]); i > 0 && b[i-1] != ' ' && slackMayEdge(r) {
			return true
		}
	}
}

// slackLiteral shows a mark as text: clients show the fallback of a date they cannot format, and do not look into it.
var slackLiteral = map[byte]string{
	'*': "<!date^00000000^{_}|*>", '_': "<!date^00000000^{_}|_>", '~': "<!date^00000000^{_}|~>", '`': "<!date^00000000^{_}|`>",
}

// sync closes and opens marks until those of want are open.
func (s *slackSink) sync(want []byte) {
	n := 0
	for n < len(want) && n < len(s.have) && want[n] == s.have[n] {
		n++
	}
	if len(s.have) > n {
		spaces := 0
		for s.b[len(s.b)-1] == ' ' {
			s.b = s.b[:len(s.b)-1]
			spaces++
		}
		for k := len(s.have) - 1; k >= n; k-- {
			s.b = append(s.b, s.have[k])
		}
		s.have = s.have[:n]
		s.after = true
		s.spaces(spaces)
	}
	for _, m := range want[n:] {
		s.startMark()
		s.b = append(s.b, m)
		s.have = append(s.have, m)
	}
}

// startMark makes the edge before a mark.
func (s *slackSink) startMark() {
	r := slackLastRune(s.b[s.line:])
	mark := len(s.have) > 0 && byte(r) == s.have[len(s.have)-1] && r < 0x80 // a mark just opened
	if !mark && (!slackEdge(r) || s.after || strings.ContainsRune("*_~", r)) {
		s.b = append(s.b, slackEdgeMark...)
	}
	s.after = false
}

func (s *slackSink) newline(prefix string) {
	if s.inLink {
		s.label = append(s.label, ' ')
		return
	}
	s.sync(nil)
	s.b = s.b[:s.line+len(bytes.TrimRight(s.b[s.line:], " "))]
	s.endLine()
	s.b = append(s.b, '\n')
	s.line = len(s.b)
	if s.inQuote {
		s.b = append(s.b, "> "...)
	}
	s.after = false
	s.b = appendHTML(s.b, prefix)
}

func slackMark(k inlineKind) byte {
	switch k {
	case inStrong:
		return '*'
	case inEm:
		return '_'
	case inDel:
		return '~'
	}
	return 0 // there is no underline
}

func slackTarget(href string) bool { return safeTarget(href, "http://", "https://", "mailto:", "tel:") }

func (s *slackSink) open(in *inline) {
	if in.kind == inLink {
		if own := slackTarget(in.href) && !s.inLink; own {
			s.inLink, s.label = true, s.label[:0]
			s.stack = append(s.stack, true)
			return
		}
		s.stack = append(s.stack, false)
		return
	}
	m := slackMark(in.kind)
	own := m != 0 && !s.inLink && bytes.IndexByte(s.want, m) < 0
	s.stack = append(s.stack, own)
	if own {
		s.want = append(s.want, m)
	}
}

func (s *slackSink) close(in *inline) {
	own := s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	if in.kind == inLink {
		if own {
			s.inLink = false
			s.link(in.href, string(s.label))
		} else {
			s.text(targetAfter(plainText(in.kids), in.href))
		}
		return
	}
	if !own {
		return
	}
	s.want = s.want[:len(s.want)-1]
	if len(s.have) > len(s.want) {
		s.sync(s.have[:len(s.want)])
	}
}

// link writes a link; its text cannot hold marks.
func (s *slackSink) link(href, label string) {
	if label = strings.Join(strings.Fields(label), " "); !visibleText(label) {
		label = href
	}
	if target := appendSlackTarget(nil, href); len(target)+len(label) > slackLink {
		s.text(label)
		s.text(targetAfter(label, href))
		return
	}
	s.sync(s.want)
	s.after = false
	s.b = append(s.b, '<')
	s.b = appendSlackTarget(s.b, href)
	if label != href {
		s.b = append(s.b, '|')
		s.b = appendHTML(s.b, label)
	}
	s.b = append(s.b, '>')
}

// slackLink is how long a link may be, in bytes: a link cannot be divided.
const slackLink = 2000

const slackHex = "0123456789ABCDEF"

// appendSlackTarget writes a target so that nothing in it ends the link.
func appendSlackTarget(b []byte, href string) []byte {
	for i := 0; i < len(href); i++ {
		switch c := href[i]; {
		case c == '&':
			b = append(b, "&amp;"...)
		case c <= ' ' || c == '<' || c == '>' || c == '|' || c == '"' || c == '`' || c == 0x7f:
			b = append(b, '%', slackHex[c>>4], slackHex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

func (s *slackSink) code(t string) {
	if s.inLink || !visibleText(t) || strings.IndexByte(t, '`') >= 0 { // a mark inside code cannot be written
		s.text(t)
		return
	}
	body := strings.TrimLeft(t, " ")
	s.spaces(len(t) - len(body))
	t = strings.TrimRight(body, " ")
	s.sync(s.want)
	s.startMark()
	s.b = append(s.b, '`')
	s.b = appendHTML(s.b, t)
	s.b = append(s.b, '`')
	s.after = true
	s.spaces(len(body) - len(t))
}

func (s *slackSink) image(in *inline) {
	text := in.text
	if !visibleText(text) {
		text = in.href
	}
	if s.inLink || !slackTarget(in.href) {
		s.text(text)
		s.text(targetAfter(text, in.href))
		return
	}
	s.link(in.href, text)
}

func (s *slackSink) pre(_, text, prefix string) {
	s.sync(nil)
	if s.inQuote { // a block cannot stand in a quote
		for {
			line, rest, more := strings.Cut(text, "\n")
			s.code(line)
			if !more {
				return
			}
			s.newline(prefix)
			text = rest
		}
	}
	s.b = s.b[:s.line+len(bytes.TrimRight(s.b[s.line:], " "))]
	if len(s.b) > s.line { // after text on the same line
		s.endLine()
		s.b = append(s.b, '\n')
	}
	if strings.Contains(text, slackFence) { // no three in a row are left
		text = strings.ReplaceAll(text, "``", "`"+slackEdgeMark+"`")
	}
	s.b = append(s.b, slackFence+"\n"...)
	s.b = appendHTML(s.b, text)
	s.b = append(s.b, "\n"+slackFence...)
	s.line, s.lits, s.after = len(s.b), s.lits[:0], false
}

const slackFence = "```"

func (s *slackSink) quote(on bool) bool {
	if on && (s.inQuote || len(s.b) > s.line) {
		return false
	}
	s.sync(nil)
	if on {
		s.b = append(s.b, "> "...)
	}
	s.inQuote = on
	return true
}
