package cards

import (
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
func (d *dialect) divideText(b *block, room size, force bool) (head, tail []block, ok bool) {
	text := plainText(b.inls)
	if text == "" {
		return nil, nil, false
	}
	with := func(in []inline) block {
		c := *b
		c.inls = in
		return c
	}
	limit := d.longest(len(text), func(n int) bool {
		h, _ := cutInlines(b.inls, runeStart(text, n))
		return d.measure([]block{with(h)}).within(room)
	})
	limit = runeStart(text, limit)
	if limit == len(text) {
		limit = runeStart(text, limit-1)
	}
	at := bestCut(text, limit, solid(b.inls), force)
	if at <= 0 {
		if !force {
			return nil, nil, false
		}
		_, at = utf8.DecodeRuneInString(text)
		if at >= len(text) {
			return nil, nil, false
		}
	}
	h, t := cutInlines(b.inls, at)
	h, t = trimEnd(h), trimStart(t)
	if !visibleInlines(h) || !visibleInlines(t) {
		return nil, nil, false
	}
	hb, tb := with(h), with(t)
	tb.snug = false
	return []block{hb}, []block{tb}, true
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
		for _, k := range keep {
			if k.from < at && at < k.to {
				return k.from
			}
			if k.from >= at {
				break
			}
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

// cutInlines divides in at byte at of its visible text. Containers around the place are on both sides.
func cutInlines(in []inline, at int) (head, tail []inline) {
	for i := range in {
		n := &in[i]
		size := 0
		switch n.kind {
		case inBreak:
			size = 1
		case inText, inCode, inImage:
			size = len(n.text)
		default:
			size = len(plainText(n.kids))
		}
		if at >= size {
			at -= size
			continue
		}
		if at == 0 {
			return in[:i:i], in[i:]
		}
		h, t := *n, *n
		switch n.kind {
		case inText, inCode:
			h.text, t.text = n.text[:at], n.text[at:]
		case inImage:
			h.text, t.text = n.text[:at], n.text[at:]
		default:
			h.kids, t.kids = cutInlines(n.kids, at)
		}
		head = append(in[:i:i], h)
		tail = append([]inline{t}, in[i+1:]...)
		return head, tail
	}
	return in, nil
}

// trimEnd drops white space at the end of in, trimStart at its start.
func trimEnd(in []inline) []inline {
	for len(in) > 0 {
		last := in[len(in)-1]
		switch {
		case last.kind == inBreak:
			in = in[:len(in)-1]
			continue
		case last.kind == inText:
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
		switch {
		case first.kind == inBreak:
			in = in[1:]
			continue
		case first.kind == inText:
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
func (d *dialect) divideCode(b *block, room size, force bool) (head, tail []block, ok bool) {
	with := func(text string) block {
		c := *b
		c.text = text
		return c
	}
	limit := d.longest(len(b.text), func(n int) bool {
		return d.measure([]block{with(b.text[:runeStart(b.text, n)])}).within(room)
	})
	limit = runeStart(b.text, limit)
	if limit == len(b.text) {
		limit = runeStart(b.text, limit-1)
	}
	at := strings.LastIndexByte(b.text[:min(limit+1, len(b.text))], '\n')
	if at > 0 {
		h, t := with(b.text[:at]), with(b.text[at+1:])
		if visibleText(h.text) && visibleText(t.text) {
			return []block{h}, []block{t}, true
		}
	}
	if !force {
		return nil, nil, false
	}
	if limit <= 0 {
		_, limit = utf8.DecodeRuneInString(b.text)
		if limit >= len(b.text) {
			return nil, nil, false
		}
	} else if g := graphemeStart(b.text, limit); g > 0 {
		limit = g
	}
	return []block{with(b.text[:limit])}, []block{with(b.text[limit:])}, true
}
