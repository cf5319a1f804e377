package cards

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

// tree builds the inlines from the tokens and their marks.
func (p *inlineParser) tree() []inline {
	type frame struct {
		in   inline
		skip bool // too deep: its content goes to the parent
	}
	var root []inline
	var stack []frame
	out := &root
	put := func(in inline) {
		if n := len(*out); n > 0 && in.kind == inText && (*out)[n-1].kind == inText {
			(*out)[n-1].text += in.text
			return
		}
		*out = append(*out, in)
	}
	top := func() {
		out = &root
		for i := len(stack) - 1; i >= 0; i-- {
			if !stack[i].skip {
				out = &stack[i].in.kids
				break
			}
		}
	}
	// Long runs of text in small pieces are joined in one go.
	var run []byte
	flush := func() {
		if len(run) > 0 {
			put(textOf(string(run)))
			run = run[:0]
		}
	}
	for i := range p.toks {
		t := &p.toks[i]
		for range t.closes {
			if len(stack) == 0 {
				break
			}
			flush()
			f := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			top()
			if !f.skip && len(f.in.kids) > 0 {
				put(f.in)
			}
		}
		if t.kind == tokDelim {
			run = append(run, t.text[:t.n]...)
		}
		for k := len(t.opens) - 1; k >= 0; k-- {
			flush()
			m := t.opens[k]
			stack = append(stack, frame{inline{kind: m.kind, href: m.href}, len(stack) >= maxDepth})
			top()
		}
		switch t.kind {
		case tokText, tokBracket, tokTag:
			run = append(run, t.text...)
		case tokBreak:
			flush()
			put(inline{kind: inBreak})
		case tokEdge:
			flush()
			if n := len(*out); n > 0 && (*out)[n-1].kind != inBreak {
				put(inline{kind: inBreak})
			}
		case tokCode:
			flush()
			put(inline{kind: inCode, text: t.text})
		case tokImage:
			flush()
			put(inline{kind: inImage, text: t.text, href: t.href})
		}
	}
	flush()
	for len(stack) > 0 {
		f := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		top()
		if !f.skip && len(f.in.kids) > 0 {
			put(f.in)
		}
	}
	return trimBreaks(root)
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
