package cards

import "slices"

import "strings"

// split divides bs into parts that each fit the dialect's room. It fills a part with whole blocks; a block that does not
// fit goes to the next part, or is divided: when it is too long for any part, or when it would leave the part mostly
// empty. Every part takes something, so it ends.
func (d *dialect) split(bs []block) [][]block {
	s := splitter{d: d, free: d.room, all: make([]block, 0, len(bs)+8)}
	var rest []block // of a block that was divided
	for len(bs)+len(rest) > 0 {
		from := &bs
		if len(rest) > 0 {
			from = &rest
		}
		b := (*from)[0]
		need := d.measure((*from)[:1])
		if need.within(s.free) {
			s.put(b, need)
			*from = (*from)[1:]
			continue
		}
		whole := need.within(d.room)
		little := 3*s.free.units < d.room.units
		if s.started() && (whole && (little || !divisible(&b)) || 8*s.free.units < d.room.units) {
			s.next()
			continue
		}
		head, tail, ok := d.divide(&b, d.fits(s.free), false)
		if !ok && len(s.all) > s.from {
			s.next()
			continue
		}
		if !ok {
			head, tail, ok = d.divide(&b, d.fits(s.free), true)
		}
		if !ok { // its containers alone take too much: without them
			flat := para(textOf(string(appendBlocks(nil, (*from)[:1]))))
			if b.kind != blockPara && d.measure([]block{flat}).within(d.room) {
				head = []block{flat}
			} else if head, tail, ok = d.divide(&flat, d.fits(s.free), true); !ok {
				head = []block{b}
			}
		}
		if s.all = append(s.all, head...); len(s.all) > s.from {
			s.next()
		}
		*from = (*from)[1:]
		rest = append(tail, rest...)
	}
	if part := s.all[s.from:]; len(part) > 0 {
		s.parts = append(s.parts, part)
	}
	return s.parts
}

// splitter gathers the parts. The part in work is all[from:].
type splitter struct {
	d     *dialect
	all   []block
	from  int
	free  size
	parts [][]block
}

func (s *splitter) put(b block, need size) {
	s.all = append(s.all, b)
	s.free = s.free.minus(need).minus(gapSize)
}

// started reports whether the part in work holds more than headings, which belong to what follows them.
func (s *splitter) started() bool {
	for _, b := range s.all[s.from:] {
		if b.kind != blockHeading {
			return true
		}
	}
	return false
}

// next ends the part in work. Headings at its end go over to the next one.
func (s *splitter) next() {
	part := s.all[s.from:]
	keep := len(part)
	if s.started() {
		for part[keep-1].kind == blockHeading {
			keep--
		}
	}
	s.parts = append(s.parts, part[:keep:keep])
	over := part[keep:]
	s.from, s.free = len(s.all), s.d.room
	for i := range over {
		s.put(over[i], s.d.measure(over[i:i+1]))
	}
}

// gapSize is what may stand between two blocks.
var gapSize = size{units: 2, bytes: 2, plain: 2}

// divisible tells whether b has places where a division does not hurt.
func divisible(b *block) bool {
	switch b.kind {
	case blockList:
		return len(b.items) > 1
	case blockTable:
		return len(b.table.rows) > 1
	case blockQuote:
		return len(b.kids) > 1
	}
	return false
}

// fitter tells whether blocks fit where the head of a division is to go.
type fitter func(bs ...block) bool

func (d *dialect) fits(room size) fitter {
	return func(bs ...block) bool { return d.measure(bs).within(room) }
}

// divide divides b so that the head fits. Without force it does so at good places only: where it cannot, ok is false.
// With force it cuts anywhere; head or tail may then be empty, when they would show nothing.
func (d *dialect) divide(b *block, fits fitter, force bool) (head, tail []block, ok bool) {
	switch b.kind {
	case blockPara, blockHeading:
		return divideText(b, fits, force)
	case blockCode:
		return divideCode(b, fits, force)
	case blockList:
		return d.divideList(b, fits, force)
	case blockTable:
		return d.divideTable(b, fits, force)
	case blockQuote:
		with := func(kids []block) block {
			c := *b
			c.kids = kids
			return c
		}
		h, t, ok := d.divideKids(b.kids, fits, force, with)
		if !ok {
			return nil, nil, false
		}
		return wrapped(h, with), wrapped(t, with), true
	}
	return nil, nil, false
}

// wrapped puts kids into their container, or gives nothing for none.
func wrapped(kids []block, with func([]block) block) []block {
	if len(kids) == 0 {
		return nil
	}
	return []block{with(kids)}
}

// divideKids divides the blocks of a container; with puts some of them into it.
func (d *dialect) divideKids(kids []block, fits fitter, force bool, with func([]block) block) (head, tail []block, ok bool) {
	if len(kids) == 0 {
		return nil, nil, false
	}
	n := longest(len(kids), func(n int) bool { return fits(with(kids[:n])) })
	for n > 0 && n < len(kids) && kids[n-1].kind == blockHeading {
		n--
	}
	if n == len(kids) { // fits whole after all
		n--
	}
	if n > 0 {
		return kids[:n:n], kids[n:], true
	}
	// the first block does not fit: divide it, in its container
	h, t, ok := d.divide(&kids[0], func(bs ...block) bool { return fits(with(bs)) }, force)
	if !ok {
		return nil, nil, false
	}
	return h, append(slices.Clip(t), kids[1:]...), true
}

// longest is the greatest n ≤ limit for which fits(n) holds, fits being monotone.
func longest(limit int, fits func(int) bool) int {
	lo, hi := 0, limit+1
	for step := 1; lo+step < hi; step *= 2 {
		if !fits(lo + step) {
			hi = lo + step
			break
		}
		lo += step
	}
	for lo+1 < hi {
		mid := (lo + hi) / 2
		if fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func (d *dialect) divideList(b *block, fits fitter, force bool) (head, tail []block, ok bool) {
	with := func(items []item) block {
		c := *b
		c.items = items
		return c
	}
	n := longest(len(b.items), func(n int) bool { return fits(with(b.items[:n])) })
	if n == len(b.items) {
		n--
	}
	if n > 0 {
		t := with(b.items[n:])
		t.start = b.start + n
		return []block{with(b.items[:n:n])}, []block{t}, true
	}
	first := b.items[0]
	if !force && len(b.items) > 1 && d.measure([]block{with(b.items[:1])}).within(d.room) {
		return nil, nil, false // the item fits whole in the next part
	}
	h, t, ok := d.divideKids(first.kids, fits, force, func(kids []block) block {
		it := first
		it.kids = kids
		return with([]item{it})
	})
	if !ok {
		return nil, nil, false
	}
	rest := b.items[1:]
	if len(t) > 0 {
		it := first
		it.kids, it.cont, it.task = t, true, noTask
		if len(h) == 0 {
			it.cont, it.task = first.cont, first.task
		}
		rest = append([]item{it}, rest...)
	}
	if len(h) > 0 {
		first.kids = h
		head = []block{with([]item{first})}
	}
	if len(rest) > 0 {
		c := with(rest)
		if len(t) == 0 {
			c.start++
		}
		tail = []block{c}
	}
	return head, tail, true
}

func (d *dialect) divideTable(b *block, fits fitter, force bool) (head, tail []block, ok bool) {
	with := func(rows [][][]inline) block {
		c := *b
		t := *b.table
		t.rows, t.laid = rows, nil
		c.table = &t
		return c
	}
	rows := b.table.rows
	n := longest(len(rows), func(n int) bool { return fits(with(rows[:n])) })
	if n == len(rows) {
		n--
	}
	if n > 0 {
		return []block{with(rows[:n:n])}, []block{with(rows[n:])}, true
	}
	if !force {
		return nil, nil, false
	}
	// even one row is too long: as lines, it can be divided further
	lines := b.table.lines()
	if len(lines) == 0 {
		return nil, nil, true
	}
	return d.divideKids(lines, func(bs ...block) bool { return fits(bs[0].kids...) }, true, func(kids []block) block {
		return block{kind: blockQuote, kids: kids}
	})
}

// appendBlocks appends the text of bs without any form.
func appendBlocks(to []byte, bs []block) []byte {
	for i := range bs {
		b := &bs[i]
		to = append(to, ' ')
		to = append(to, strings.ReplaceAll(b.text, "\n", " ")...)
		to = append(to, strings.ReplaceAll(plainText(flatten(b.inls)), "\n", " ")...)
		to = appendBlocks(to, b.kids)
		for _, it := range b.items {
			to = appendBlocks(to, it.kids)
		}
		if b.table != nil {
			to = appendBlocks(to, b.table.lines())
		}
	}
	return to
}
