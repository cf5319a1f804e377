package cards

import (
	"html"
	"slices"
	"strings"
)

// Raw HTML in Markdown is text. Two things make it readable: a known element that is opened and closed in one paragraph
// loses its tags, with formatting and line breaks kept; and tags without an end (<br>, <img>) become what they mean.
// Everything else, such as <your-name> or a lone <b>, is shown as written.

type htmlTag struct {
	name      string
	close     bool
	href, alt string
	bare      bool // nothing but tags stands on its line
}

type element uint8

const (
	elNone   element = iota
	elInline         // no look of its own
	elBlock          // stands on lines of its own
	elCell
	elStrong
	elEm
	elUnder
	elDel
	elCode
	elLink
	elHead
	elItem
	elVoid
)

var elements = func() map[string]element {
	m := map[string]element{}
	for el, names := range map[element]string{
		elInline: "span font small big sub sup mark abbr cite q dfn time label bdi bdo ruby rt rp var",
		elBlock: "p div section article header footer main nav aside center table thead tbody tfoot tr caption ul ol dl dt dd " +
			"details summary figure figcaption blockquote pre html body head form fieldset",
		elCell:   "td th",
		elStrong: "b strong",
		elEm:     "i em",
		elUnder:  "u ins",
		elDel:    "s del strike",
		elCode:   "code kbd samp tt",
		elLink:   "a",
		elHead:   "h1 h2 h3 h4 h5 h6",
		elItem:   "li",
		elVoid:   "br hr img wbr",
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = el
		}
	}
	return m
}()

// angle takes what begins with the "<" at i: an autolink, a comment or a tag.
func (p *inlineParser) angle(i int, flush func()) int {
	s := p.src[i:]
	if n := autolink(s); n > 0 {
		flush()
		u := s[1 : n-1]
		if strings.IndexByte(u, ':') < 0 {
			p.link(u, "mailto:"+u)
		} else {
			p.link(u, u)
		}
		return n
	}
	if strings.HasPrefix(s, "<!--") {
		if p.noEnd {
			return 0
		}
		if k := strings.Index(s[4:], "-->"); k >= 0 {
			flush()
			p.add(token{kind: tokNone})
			return 4 + k + 3
		}
		p.noEnd = true
		return 0
	}
	n, tag := parseTag(s)
	if n == 0 {
		return 0
	}
	flush()
	if tag == nil {
		p.text(s[:n])
		return n
	}
	p.tags = true
	p.add(token{kind: tokTag, text: s[:n], tag: tag})
	return n
}

// autolink is the length of "<scheme:…>" or "<name@host>" at the start of s.
func autolink(s string) int {
	colon, at := false, false
	for j := 1; j < len(s) && j < maxTarget; j++ {
		switch c := s[j]; {
		case c == '>':
			if colon || at && j > 3 && s[1] != '@' && s[j-1] != '@' {
				return j + 1
			}
			return 0
		case c <= ' ' || c == '<':
			return 0
		case colon:
		case c == ':':
			if j < 3 || j > 33 || at {
				return 0
			}
			colon = true
		case c == '@':
			if at {
				return 0
			}
			at = true
		case c == '.' || c == '+' || c == '-':
			if j == 1 {
				return 0
			}
		case isAlnum(c):
			if j == 1 && c <= '9' && !at {
				return 0
			}
		case c == '_':
		default:
			return 0
		}
	}
	return 0
}

// parseTag is the length of the tag at the start of s, and the tag when its element is known.
func parseTag(s string) (int, *htmlTag) {
	i := 1
	tag := htmlTag{}
	if i < len(s) && s[i] == '/' {
		tag.close = true
		i++
	}
	start := i
	for i < len(s) && (isAlnum(s[i]) || s[i] == '-' && i > start) {
		i++
	}
	if i == start || s[start] <= '9' || i-start > 32 {
		return 0, nil
	}
	name := strings.ToLower(s[start:i])
	if i >= len(s) || strings.IndexByte(" \t\n/>", s[i]) < 0 {
		return 0, nil
	}
	attrs := i
	for ; i < len(s) && i < maxTarget; i++ {
		switch c := s[i]; c {
		case '<':
			return 0, nil
		case '"', '\'':
			if s[i-1] != '=' && s[i-1] != ' ' {
				return 0, nil
			}
			k := strings.IndexByte(s[i+1:min(len(s), i+maxTarget)], c)
			if k < 0 {
				return 0, nil
			}
			i += k + 1
		case '>':
			if elements[name] == elNone {
				return i + 1, nil
			}
			tag.name = name
			switch name {
			case "a":
				tag.href = attribute(s[attrs:i], "href")
			case "img":
				tag.href, tag.alt = attribute(s[attrs:i], "src"), attribute(s[attrs:i], "alt")
			}
			return i + 1, &tag
		}
	}
	return 0, nil
}

func attribute(s, name string) string {
	for {
		k := strings.Index(s, name+"=")
		if k < 0 {
			return ""
		}
		before := k == 0 || s[k-1] == ' ' || s[k-1] == '\n' || s[k-1] == '\t'
		s = s[k+len(name)+1:]
		if !before {
			continue
		}
		if s == "" {
			return ""
		}
		if q := s[0]; q == '"' || q == '\'' {
			if e := strings.IndexByte(s[1:], q); e >= 0 {
				return html.UnescapeString(s[1 : 1+e])
			}
			return ""
		}
		if e := strings.IndexAny(s, " \t\n"); e >= 0 {
			s = s[:e]
		}
		return html.UnescapeString(strings.TrimSuffix(s, "/"))
	}
}

// pairTags gives the HTML tags among the tokens their meaning. A pair must not cross emphasis or a link.
func (p *inlineParser) pairTags() {
	p.markBareLines()
	const reach = 16 // open tags looked back
	var stack []int  // tokens of open tags; -1 for emphasis or a link
	for i := range p.toks {
		t := &p.toks[i]
		if t.kind != tokTag {
			for range t.closes {
				for k, last := range slices.Backward(stack) {

					stack = stack[:k]
					if last < 0 {
						break
					}
				}
			}
			for range t.opens {
				stack = append(stack, -1)
			}
			continue
		}
		el := elements[t.tag.name]
		switch {
		case el == elVoid:
			switch t.tag.name {
			case "img":
				alt := t.tag.alt
				if alt == "" {
					alt = "image"
				}
				t.kind, t.text, t.href = tokImage, alt, t.tag.href
			case "wbr":
				t.kind = tokNone
			default:
				t.kind = tokBreak
			}
		case !t.tag.close:
			stack = append(stack, i)
		default:
			for k := len(stack) - 1; k >= 0 && k >= len(stack)-reach && stack[k] >= 0; k-- {
				if open := &p.toks[stack[k]]; open.tag.name == t.tag.name {
					p.pairTag(el, stack[k], i)
					stack = stack[:k]
					break
				}
			}
		}
	}
	for i := range p.toks {
		t := &p.toks[i]
		if t.kind != tokTag {
			continue
		}
		switch el := elements[t.tag.name]; {
		case t.tag.name == "details" || t.tag.bare && (el == elBlock || el == elCell || el == elItem || el == elHead):
			t.kind = tokEdge
		}
	}
}

func (p *inlineParser) pairTag(el element, from, to int) {
	open, end := &p.toks[from], &p.toks[to]
	switch el {
	case elStrong, elEm, elUnder, elDel, elLink:
		m := mark{kind: map[element]inlineKind{elStrong: inStrong, elEm: inEm, elUnder: inUnder, elDel: inDel, elLink: inLink}[el]}
		open.kind, end.kind = tokNone, tokNone
		if m.kind == inLink {
			if m.href = open.tag.href; m.href == "" {
				return
			}
		}
		open.opens, end.closes = append(open.opens, m), append(end.closes, m)
	case elHead:
		open.kind, end.kind = tokEdge, tokEdge
		open.opens, end.closes = append(open.opens, mark{kind: inStrong}), append(end.closes, mark{kind: inStrong})
	case elCode:
		open.kind, end.kind = tokNone, tokNone
		for i := from + 1; i < to; i++ {
			if k := p.toks[i].kind; k != tokText && k != tokNone && k != tokBracket || len(p.toks[i].opens)+len(p.toks[i].closes) > 0 {
				return
			}
		}
		if s := p.flatRange(from+1, to); s != "" {
			for i := from + 1; i < to; i++ {
				p.toks[i] = token{kind: tokNone}
			}
			open.kind, open.text = tokCode, s
		}
	case elBlock:
		open.kind, end.kind = tokEdge, tokEdge
	case elItem:
		open.kind, open.text, end.kind = tokEdge, "", tokEdge
		if from+1 < to && p.toks[from+1].kind == tokText {
			p.toks[from+1].text = "• " + strings.TrimLeft(p.toks[from+1].text, " ")
		}
	case elCell:
		open.kind, end.kind, end.text = tokNone, tokText, "  "
	default:
		open.kind, end.kind = tokNone, tokNone
	}
}

// markBareLines marks the tags of lines that hold nothing but tags.
func (p *inlineParser) markBareLines() {
	for i := 0; i < len(p.toks); {
		j, bare := i, true
		for ; j < len(p.toks) && p.toks[j].kind != tokBreak; j++ {
			if t := &p.toks[j]; t.kind != tokTag && t.kind != tokNone && (t.kind != tokText || visibleText(t.text)) {
				bare = false
			}
		}
		for ; bare && i < j; i++ {
			if p.toks[i].kind == tokTag {
				p.toks[i].tag.bare = true
			}
		}
		i = j + 1
	}
}

// dropReasoning removes what some models write between <think> tags before their answer.
func dropReasoning(s string) string {
	for {
		t := strings.TrimLeft(s, " \t\n")
		name := ""
		for _, n := range [...]string{"<think>", "<thinking>", "<reasoning>"} {
			if hasPrefixFold(t, n) {
				name = n
				break
			}
		}
		if name == "" {
			return s
		}
		end := "</" + name[1:]
		k := indexFold(t, end)
		if k < 0 {
			return ""
		}
		s = t[k+len(end):]
	}
}

func indexFold(s, sub string) int {
	for i := 0; ; {
		k := strings.Index(s[i:], "</")
		if k < 0 {
			return -1
		}
		i += k
		if hasPrefixFold(s[i:], sub) {
			return i
		}
		i += 2
	}
}
