package cards

import "slices"

// bottoms remembers below which delimiter no opener was found, by what the search was for; so no stretch is searched
// twice in vain.
type bottoms [3 * 2 * 3]int32

func bottomKey(t *token) int {
	k := 0
	switch t.char {
	case '_':
		k = 1
	case '~':
		k = 2
	}
	k *= 2
	if t.canOpen {
		k++
	}
	return k*3 + t.orig%3
}

// pairDelims pairs the emphasis among the delimiters from the from-th on and forgets these.
func (p *inlineParser) pairDelims(from int) {
	ds := p.delims[from:]
	p.delims = p.delims[:from]
	if len(ds) < 2 {
		return
	}
	for k, d := range ds {
		p.toks[d].prev, p.toks[d].next = int32(k-1), int32(k+1)
	}
	var low bottoms
	for i := range low {
		low[i] = -1
	}
	for c := int32(0); int(c) < len(ds); {
		closer := &p.toks[ds[c]]
		if !closer.canClose || closer.n == 0 {
			c = closer.next
			continue
		}
		key := bottomKey(closer)
		o := closer.prev
		for ; o > low[key]; o = p.toks[ds[o]].prev {
			opener := &p.toks[ds[o]]
			if opener.char == closer.char && opener.canOpen && opener.n > 0 && pairs(opener, closer) {
				break
			}
		}
		if o <= low[key] {
			low[key] = closer.prev
			next := closer.next
			if !closer.canOpen {
				p.unlink(ds, c)
			}
			c = next
			continue
		}
		opener := &p.toks[ds[o]]
		use, kind := 1, inEm
		switch {
		case closer.char == '~':
			use, kind = 2, inDel
		case opener.n >= 2 && closer.n >= 2:
			use, kind = 2, inStrong
		}
		opener.n -= use
		closer.n -= use
		opener.opens = append(opener.opens, mark{kind: kind})
		closer.closes = append(closer.closes, mark{kind: kind})
		// what stands between can pair no more
		closer.prev = o
		opener.next = c
		if opener.n == 0 {
			p.unlink(ds, o)
		}
		if closer.n == 0 {
			next := closer.next
			p.unlink(ds, c)
			c = next
		}
	}
}

func (p *inlineParser) unlink(ds []int32, k int32) {
	t := &p.toks[ds[k]]
	if t.prev >= 0 {
		p.toks[ds[t.prev]].next = t.next
	}
	if int(t.next) < len(ds) {
		p.toks[ds[t.next]].prev = t.prev
	}
}

// pairs applies the rule of three: a run that can both open and close pairs only when the lengths do not sum to a
// multiple of three, unless both are.
func pairs(o, c *token) bool {
	if c.char == '~' {
		return o.n == c.n
	}
	if o.canClose || c.canOpen {
		return (o.orig+c.orig)%3 != 0 || o.orig%3 == 0 && c.orig%3 == 0
	}
	return true
}

// frame is an emphasis or link that is open while the tree is built.
type frame struct {
	in   inline
	from int  // its first child among the nodes
	skip bool // too deep: its content goes to the parent
}

// tree builds the inlines from the tokens and their marks. Children are gathered on one stack and moved to an arena
// when their parent closes.
func (p *inlineParser) tree() []inline {
	p.nodes, p.frames = p.nodes[:0], p.frames[:0]
	for i := range p.toks {
		t := &p.toks[i]
		for range t.closes {
			p.closeFrame()
		}
		if t.kind == tokDelim && t.n > 0 {
			p.putText(t.text[:t.n])
		}
		for _, v := range slices.Backward(t.opens) {
			p.flushText()
			m := v
			p.frames = append(p.frames, frame{inline{kind: m.kind, href: m.href}, len(p.nodes), len(p.frames) >= maxDepth})
		}
		switch t.kind {
		case tokText, tokBracket, tokTag:
			p.putText(t.text)
		case tokBreak:
			p.put(inline{kind: inBreak})
		case tokEdge:
			p.flushText()
			if n := len(p.nodes); n > p.base() && p.nodes[n-1].kind != inBreak {
				p.put(inline{kind: inBreak})
			}
		case tokCode:
			p.put(inline{kind: inCode, text: t.text})
		case tokImage:
			p.put(inline{kind: inImage, text: t.text, href: t.href})
		}
	}
	for len(p.frames) > 0 {
		p.closeFrame()
	}
	p.flushText()
	return p.keep(trimBreaks(p.nodes))
}

// base is where the children of the innermost frame start.
func (p *inlineParser) base() int {
	for _, v := range slices.Backward(p.frames) {
		if !v.skip {
			return v.from
		}
	}
	return 0
}

func (p *inlineParser) closeFrame() {
	if len(p.frames) == 0 {
		return
	}
	p.flushText()
	f := p.frames[len(p.frames)-1]
	p.frames = p.frames[:len(p.frames)-1]
	if f.skip || len(p.nodes) == f.from {
		return
	}
	f.in.kids = p.keep(p.nodes[f.from:])
	p.nodes = append(p.nodes[:f.from], f.in)
}

func (p *inlineParser) put(in inline) {
	p.flushText()
	p.nodes = append(p.nodes, in)
}

// putText gathers text; pieces that follow each other become one inline.
func (p *inlineParser) putText(s string) {
	switch {
	case s == "":
	case p.one == "" && len(p.run) == 0:
		p.one = s
	default:
		if len(p.run) == 0 {
			p.run = append(p.run, p.one...)
		}
		p.run = append(p.run, s...)
	}
}

func (p *inlineParser) flushText() {
	switch {
	case len(p.run) > 0:
		p.nodes = append(p.nodes, textOf(string(p.run)))
		p.run = p.run[:0]
	case p.one != "":
		p.nodes = append(p.nodes, textOf(p.one))
	}
	p.one = ""
}

// keep copies inlines to the arena.
func (p *inlineParser) keep(in []inline) []inline {
	n := len(in)
	if n == 0 {
		return nil
	}
	if len(p.arena) < n {
		p.arena = make([]inline, max(n, 128))
	}
	out := p.arena[:n:n]
	p.arena = p.arena[n:]
	copy(out, in)
	return out
}

// trimBreaks drops line breaks at both ends.
func trimBreaks(in []inline) []inline {
	for len(in) > 0 && in[0].kind == inBreak {
		in = in[1:]
	}
	for len(in) > 0 && in[len(in)-1].kind == inBreak {
		in = in[:len(in)-1]
	}
	return in
}
