package cards

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Places to cut text, best last.
const (
	cutRune = iota
	cutWord
	cutSentence
	cutLine
)

// divideText divides a paragraph or heading. Positions are bytes of its visible text.
func divideText(b *block, fits fitter, force bool) (head, tail []block, ok bool) {
	with := func(in []inline) block {
		c := *b
		c.inls = in
		return c
	}
	text := plainText(b.inls)
	limit := longest(len(text), func(n int) bool { return fits(with(headInlines(b.inls, runeStart(text, n)))) })
	limit = runeStart(text, limit)
	if limit == len(text) && limit > 0 {
		limit = runeStart(text, limit-1)
	}
	at := bestCut(text, limit, solid(b.inls), force)
	if at <= 0 {
		if !force {
			return nil, nil, false
		}
		if _, at = utf8.DecodeRuneInString(text); at >= len(text) || !fits(with(headInlines(b.inls, at))) {
			// not even one character with its link's target: the target becomes text
			if flat := flatten(b.inls); len(b.inls) != 1 || b.inls[0].kind != inText {
				c := with(flat)
				return divideText(&c, fits, force)
			}
			if at >= len(text) {
				return nil, nil, false
			}
		}
	}
	h, t := trimEnd(headInlines(b.inls, at)), trimStart(tailInlines(b.inls, at))
	seenH, seenT := visibleInlines(h), visibleInlines(t)
	if !force && (!seenH || !seenT) {
		return nil, nil, false
	}
	if seenH {
		head = []block{with(h)}
	}
	if seenT {
		c := with(t)
		c.snug = false
		tail = []block{c}
	}
	return head, tail, true
}

// flatten is in as one text without format; links keep their targets.
func flatten(in []inline) []inline {
	var b strings.Builder
	plainInlines(&b, in)
	return []inline{textOf(strings.ReplaceAll(b.String(), "\n", " "))}
}

// runeStart moves n back to the start of a rune of s.
func runeStart(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// span is a stretch of visible text that should stay whole.
type span struct{ from, to int }

// solid lists the code spans, links and images of in.
func solid(in []inline) []span {
	var out []span
	pos := 0
	var walk func([]inline)
	walk = func(in []inline) {
		for i := range in {
			n := &in[i]
			start := pos
			switch n.kind {
			case inBreak:
				pos++
			case inText:
				pos += len(n.text)
			case inCode, inImage:
				pos += len(n.text)
				out = append(out, span{start, pos})
			case inLink:
				pos += len(plainText(n.kids))
				out = append(out, span{start, pos})
			default:
				walk(n.kids)
			}
		}
	}
	walk(in)
	return out
}

// bestCut finds where to cut s at or before limit: at a line or sentence end in the last half, else between words, else
// anywhere a character ends. Without force a cut inside a word is no cut.
func bestCut(s string, limit int, keep []span, force bool) int {
	inside := func(at int) int { // start of the solid span around at, or -1
		i := sort.Search(len(keep), func(i int) bool { return keep[i].to > at })
		if i < len(keep) && keep[i].from < at {
			return keep[i].from
		}
		return -1
	}
	best, kind := 0, -1
	floor := limit / 2
	for at := limit; at > 0; {
		if from := inside(at); from >= 0 {
			at = from
			continue
		}
		k := cutKind(s, at)
		if at < floor && kind >= cutWord {
			break
		}
		if k > kind && k >= cutWord {
			best, kind = at, k
			if k == cutLine {
				break
			}
		}
		_, n := utf8.DecodeLastRuneInString(s[:at])
		at -= n
	}
	if kind >= cutWord {
		return best
	}
	if !force {
		return 0
	}
	at := limit
	if from := inside(at); from > 0 {
		return from
	}
	return graphemeStart(s, at)
}

// cutKind tells what kind of place at is: the cut is before s[at].
func cutKind(s string, at int) int {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at:])
	switch {
	case before == '\n' || after == '\n':
		return cutLine
	case isCJK(before) && strings.ContainsRune("。！？；…", before) && !strings.ContainsRune("”’」』）)", after):
		return cutSentence
	case unicode.IsSpace(after) || unicode.IsSpace(before):
		b := before
		if unicode.IsSpace(before) {
			b, _ = utf8.DecodeLastRuneInString(strings.TrimRight(s[max(0, at-8):at], " "))
		}
		if strings.ContainsRune(".!?。！？", b) {
			return cutSentence
		}
		return cutWord
	case isCJK(before) && isCJK(after) && !joins(after) && !strings.ContainsRune("，。、；：！？）》」』】", after) &&
		!strings.ContainsRune("（《「『【", before):
		return cutWord
	}
	return cutRune
}

// joins tells runes that belong to the character before.
func joins(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) || r == 0x200D || r >= 0xFE00 && r <= 0xFE0F ||
		r >= 0x1F3FB && r <= 0x1F3FF || r >= 0xE0020 && r <= 0xE007F
}

// graphemeStart moves at back to where a character begins: not into an emoji sequence, a flag or before a combining
// mark. It gives up after a while, as a character may be made endless.
func graphemeStart(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	p := at
	for range 16 {
		if p <= 0 {
			return at
		}
		after, _ := utf8.DecodeRuneInString(s[p:])
		before, n := utf8.DecodeLastRuneInString(s[:p])
		if !joins(after) && before != 0x200D && !splitsFlag(s, p) {
			return p
		}
		p -= n
	}
	return at
}

func flagRune(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// splitsFlag reports whether p stands between the two letters of a flag.
func splitsFlag(s string, p int) bool {
	after, _ := utf8.DecodeRuneInString(s[p:])
	if !flagRune(after) {
		return false
	}
	n := 0
	for i := p; i > 0 && n < 64; n++ {
		r, w := utf8.DecodeLastRuneInString(s[:i])
		if !flagRune(r) {
			break
		}
		i -= w
	}
	return n%2 == 1
}

// width is how many bytes of visible text n has.
func (n *inline) width() int {
	switch n.kind {
	case inBreak:
		return 1
	case inText, inCode, inImage:
		return len(n.text)
	}
	w := 0
	for i := range n.kids {
		w += n.kids[i].width()
	}
	return w
}

// headInlines is in up to byte at of its visible text. What is around the place is closed there.
func headInlines(in []inline, at int) []inline {
	for i := range in {
		n := &in[i]
		w := n.width()
		if at >= w {
			at -= w
			continue
		}
		if at == 0 {
			return in[:i:i]
		}
		h := *n
		if len(n.kids) > 0 {
			h.kids = headInlines(n.kids, at)
		} else {
			h.text = n.text[:at]
		}
		return append(in[:i:i], h)
	}
	return in
}

// tailInlines is the rest: what is around the place is opened again.
func tailInlines(in []inline, at int) []inline {
	for i := range in {
		n := &in[i]
		w := n.width()
		if at >= w {
			at -= w
			continue
		}
		if at == 0 {
			return in[i:]
		}
		t := *n
		if len(n.kids) > 0 {
			t.kids = tailInlines(n.kids, at)
		} else {
			t.text = n.text[at:]
		}
		return append([]inline{t}, in[i+1:]...)
	}
	return nil
}

// trimEnd drops white space at the end of in, trimStart at its start.
func trimEnd(in []inline) []inline {
	for len(in) > 0 {
		last := in[len(in)-1]
		switch last.kind {
		case inBreak:
			in = in[:len(in)-1]
			continue
		case inText:
			t := strings.TrimRight(last.text, " \n\t")
			if t == "" {
				in = in[:len(in)-1]
				continue
			}
			if t != last.text {
				last.text = t
				in = append(in[:len(in)-1:len(in)-1], last)
			}
		}
		break
	}
	return in
}

func trimStart(in []inline) []inline {
	for len(in) > 0 {
		first := in[0]
		switch first.kind {
		case inBreak:
			in = in[1:]
			continue
		case inText:
			t := strings.TrimLeft(first.text, " \n\t")
			if t == "" {
				in = in[1:]
				continue
			}
			if t != first.text {
				first.text = t
				in = append([]inline{first}, in[1:]...)
			}
		}
		break
	}
	return in
}

// divideCode divides a code block between lines; a line that is too long, inside it.
func divideCode(b *block, fits fitter, force bool) (head, tail []block, ok bool) {
	with := func(text string) block {
		c := *b
		c.text = text
		return c
	}
	limit := longest(len(b.text), func(n int) bool { return fits(with(b.text[:runeStart(b.text, n)])) })
	limit = runeStart(b.text, limit)
	if limit == len(b.text) && limit > 0 {
		limit = runeStart(b.text, limit-1)
	}
	at, next := strings.LastIndexByte(b.text[:min(limit+1, len(b.text))], '\n'), 0
	switch {
	case at > 0:
		next = at + 1
	case !force:
		return nil, nil, false
	default:
		if at = graphemeStart(b.text, limit); at <= 0 {
			_, at = utf8.DecodeRuneInString(b.text)
		}
		next = at
		if at >= len(b.text) {
			return nil, nil, false
		}
	}
	h, t := with(b.text[:at]), with(b.text[next:])
	seenH, seenT := visibleText(h.text), visibleText(t.text)
	if !force && (!seenH || !seenT) {
		return nil, nil, false
	}
	if seenH {
		head = []block{h}
	}
	if seenT {
		tail = []block{t}
	}
	return head, tail, true
}
