package cards

import (
	"html"
	"strings"
	"unicode/utf8"
)

func (p *inlineParser) bracket(i, n int, image bool) {
	p.brackets = append(p.brackets, bracket{tok: len(p.toks), pos: i + n, image: image, delim: len(p.delims)})
	p.add(token{kind: tokBracket, text: p.src[i : i+n]})
}

// closeBracket looks what the bracket that closes at i makes, and returns how many bytes it takes.
func (p *inlineParser) closeBracket(i int) int {
	b := p.brackets[len(p.brackets)-1]
	p.brackets = p.brackets[:len(p.brackets)-1]
	inLinkText := !b.image && len(p.brackets) < p.linkFloor
	p.linkFloor = min(p.linkFloor, len(p.brackets))
	if inLinkText { // a link inside it won
		p.text("]")
		return 1
	}
	n, href, ok := p.target(i, b)
	if !ok {
		p.text("]")
		return 1
	}
	if b.image {
		p.pairDelims(b.delim)
		alt := p.flat(b.tok + 1)
		if !visibleText(alt) {
			alt = href
		}
		p.toks = p.toks[:b.tok]
		p.add(token{kind: tokImage, text: alt, href: href})
		return n
	}
	p.pairDelims(b.delim)
	open := &p.toks[b.tok]
	open.text = ""
	open.opens = append(open.opens, mark{inLink, href})
	if len(p.toks) == b.tok+1 { // no text
		p.text(href)
	}
	p.add(token{kind: tokNone, closes: []mark{{inLink, href}}})
	p.linkFloor = len(p.brackets) // no links in links
	return n
}

// flat is the visible text of the tokens from the from-th on.
func (p *inlineParser) flat(from int) string {
	return p.flatRange(from, len(p.toks))
}

func (p *inlineParser) flatRange(from, to int) string {
	if to == from+1 && p.toks[from].kind == tokText {
		return p.toks[from].text
	}
	var b []byte
	for i := from; i < to; i++ {
		switch t := &p.toks[i]; t.kind {
		case tokDelim:
			b = append(b, t.text[:t.n]...)
		case tokBreak:
			b = append(b, ' ')
		case tokNone:
		default:
			b = append(b, t.text...)
		}
	}
	return string(b)
}

// target reads what follows the bracket that closes at i: "(target)", "[label]", "[]" or nothing. It returns the bytes
// from i on.
func (p *inlineParser) target(i int, b bracket) (n int, href string, ok bool) {
	rest := p.src[i+1:]
	if rest != "" && rest[0] == '(' {
		if k, href, ok := inlineTarget(rest); ok {
			return 1 + k, href, true
		}
	}
	if len(p.refs) == 0 {
		return 0, "", false
	}
	if rest != "" && rest[0] == '[' {
		if k := strings.IndexAny(rest[1:min(len(rest), maxLabel)], "[]"); k >= 0 && rest[1+k] == ']' {
			label := rest[1 : 1+k]
			if k == 0 {
				label = p.src[b.pos:i]
			}
			href, ok := p.lookup(label)
			return 1 + k + 2, href, ok
		}
	}
	href, ok = p.lookup(p.src[b.pos:i])
	return 1, href, ok
}

// maxLabel bounds the label of a reference, in bytes.
const maxLabel = 300

func (p *inlineParser) lookup(label string) (string, bool) {
	if len(label) > maxLabel || strings.IndexByte(label, '[') >= 0 {
		return "", false
	}
	href, ok := p.refs[foldLabel(label)]
	if !ok || len(href) > p.budget {
		return "", false
	}
	p.budget -= len(href)
	return href, true
}

func foldLabel(s string) string {
	return strings.ToLower(strings.ToUpper(strings.Join(strings.Fields(s), " ")))
}

// inlineTarget reads "(target "title")".
func inlineTarget(s string) (n int, href string, ok bool) {
	i := skipSpace(s, 1)
	href, i, ok = destination(s, i)
	if !ok {
		return 0, "", false
	}
	if j := skipSpace(s, i); j > i && j < len(s) && s[j] != ')' {
		if i, ok = title(s, j); !ok {
			return 0, "", false
		}
	}
	i = skipSpace(s, i)
	if i >= len(s) || s[i] != ')' {
		return 0, "", false
	}
	return i + 1, href, true
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n') {
		i++
	}
	return i
}

// destination reads a link's target at i.
func destination(s string, i int) (href string, end int, ok bool) {
	if i < len(s) && s[i] == '<' {
		for j := i + 1; j < len(s) && j < i+maxTarget; j++ {
			switch s[j] {
			case '\\':
				j++
			case '\n', '<':
				return "", 0, false
			case '>':
				return unescape(s[i+1 : j]), j + 1, true
			}
		}
		return "", 0, false
	}
	depth := 0
	j := i
loop:
	for ; j < len(s); j++ {
		if j-i > maxTarget {
			return "", 0, false
		}
		switch c := s[j]; {
		case c == '\\' && j+1 < len(s) && isPunctByte(s[j+1]):
			j++
		case c == '(':
			if depth++; depth > maxDepth {
				return "", 0, false
			}
		case c == ')':
			if depth == 0 {
				break loop
			}
			depth--
		case c <= ' ' || c == 0x7F:
			break loop
		}
	}
	if depth != 0 {
		return "", 0, false
	}
	return unescape(s[i:j]), j, true
}

// title passes over a link's title at i.
func title(s string, i int) (end int, ok bool) {
	last := s[i]
	switch last {
	case '"', '\'':
	case '(':
		last = ')'
	default:
		return 0, false
	}
	for j := i + 1; j < len(s) && j < i+maxTarget; j++ {
		switch c := s[j]; {
		case c == '\\':
			j++
		case c == last:
			return j + 1, true
		case c == '(' && last == ')':
			return 0, false
		}
	}
	return 0, false
}

// unescape resolves backslash escapes and entities.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') >= 0 {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] == '\\' && i+1 < len(s) && isPunctByte(s[i+1]) {
				i++
			}
			b.WriteByte(s[i])
		}
		s = b.String()
	}
	if strings.IndexByte(s, '&') >= 0 && strings.IndexByte(s, ';') >= 0 {
		var b strings.Builder
		for i := 0; i < len(s); {
			if s[i] == '&' {
				if n, d := entity(s[i:]); n > 0 {
					b.WriteString(d)
					i += n
					continue
				}
			}
			b.WriteByte(s[i])
			i++
		}
		s = b.String()
	}
	return s
}

// takeReferences takes the link reference definitions off the start of a paragraph.
func (p *treeParser) takeReferences(s string) string {
	for len(s) > 3 && s[0] == '[' && s[1] != '^' {
		end := -1
	label:
		for j := 1; j < len(s) && j < maxLabel; j++ {
			switch s[j] {
			case '\\':
				j++
			case '[':
				break label
			case ']':
				end = j
				break label
			}
		}
		if end < 0 || end+1 >= len(s) || s[end+1] != ':' || strings.TrimSpace(s[1:end]) == "" {
			break
		}
		i := skipSpace(s, end+2)
		href, j, ok := destination(s, i)
		if !ok || j == i {
			break
		}
		rest := j
		if !atLineEnd(s, rest) {
			k := skipSpace(s, j)
			if k == j || k >= len(s) {
				break
			}
			if rest, ok = title(s, k); !ok || !atLineEnd(s, rest) {
				break
			}
		} else if k := skipSpace(s, j); k < len(s) && k > j {
			if t, ok := title(s, k); ok && atLineEnd(s, t) {
				rest = t
			}
		}
		if p.refs == nil {
			p.refs = map[string]string{}
		}
		if label := foldLabel(s[1:end]); len(p.refs) < 4096 {
			if _, dup := p.refs[label]; !dup {
				p.refs[label] = href
			}
		}
		s = strings.TrimLeft(s[rest:], " \t\n")
	}
	return s
}

func atLineEnd(s string, i int) bool {
	for ; i < len(s); i++ {
		if s[i] == '\n' {
			return true
		}
		if s[i] != ' ' && s[i] != '\t' {
			return false
		}
	}
	return true
}

// bareURL is the length of a URL without brackets at the start of s. It ends before white space, quotes and CJK
// punctuation, and before a CJK word that follows a Latin one.
func bareURL(s string) int {
	i := 0
	switch {
	case hasPrefixFold(s, "https://"):
		i = 8
	case hasPrefixFold(s, "http://"):
		i = 7
	case hasPrefixFold(s, "www."):
		i = 4
	default:
		return 0
	}
	host := i
	if i >= len(s) || !isAlnum(s[i]) && s[i] < utf8.RuneSelf && s[i] != '[' {
		return 0
	}
	inHost := true
	open := 0
	var prev rune
scan:
	for i < len(s) && i < maxTarget {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
			if isPunct(r) || !visibleRune(r) {
				break
			}
			if isCJK(r) && (inHost || !isCJK(prev) && !strings.ContainsRune("/=-_%.#?&+", prev)) {
				break
			}
		}
		switch r {
		case '<', '>', '"', '`', '|', '\\', '^', '{', '}':
			break scan
		case '*':
			if i+1 < len(s) && s[i+1] == '*' {
				break scan
			}
		case '[', ']':
			if !inHost || i != host && r == '[' {
				break scan
			}
		case '/', '?', '#':
			inHost = false
		case '(':
			open++
		case ')':
			if open == 0 {
				break scan
			}
			open--
		}
		if r <= ' ' || r == 0x7F {
			break
		}
		prev = r
		i += n
	}
	for i > host {
		switch s[i-1] {
		case '.', ',', ':', ';', '!', '?', '\'', '*', '_', '~', '&', ']':
			i--
			continue
		case '(':
			i--
			continue
		}
		break
	}
	if i <= host || s[:4] == "www." && strings.IndexByte(s[4:i], '.') < 0 {
		return 0
	}
	return i
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// safeTarget tells whether a link to href may be offered for a press.
func safeTarget(href string, schemes ...string) bool {
	s := strings.ToLower(strings.TrimSpace(html.UnescapeString(href)))
	for _, scheme := range schemes {
		if len(s) > len(scheme) && strings.HasPrefix(s, scheme) {
			return true
		}
	}
	return false
}
