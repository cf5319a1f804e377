package cards

// Bounds on a card's lines.
const (
	MaxToolLines = 8   // tool lines on a card
	MaxToolWidth = 120 // characters of one
	maxTitle     = 120
	maxNotices   = 4
	maxNotice    = 200
	maxPlan      = 10
	maxPlanText  = 48
	maxReasons   = 4
	maxSubagents = 8
	maxButtonRow = 3
)

// detail is how much a card's head shows. When it does not fit, the next lower is tried.
type detail struct{ tools, plan, notices, subagents, reasons, title int }

var details = []detail{
	{MaxToolLines, maxPlan, maxNotices, maxSubagents, maxReasons, maxTitle},
	{4, maxPlan, 2, 4, 2, maxTitle},
	{2, 3, 1, 2, 1, 80},
	{1, 0, 1, 0, 1, 60},
	{0, 0, 0, 0, 1, 40},
}

// Card renders c into one body: title, state, plan, tools, the answer and the footer. An answer that is being written
// shows its end, else its beginning, as far as there is room.
func (d *dialect) Card(c Card) Body {
	foot := cardFoot(c)
	room := d.room
	if len(foot) > 0 {
		room = room.minus(d.measure(foot)).minus(gapSize)
	}
	var answer []block
	if c.Answer != "" {
		if c.Open {
			answer = d.parse(Close(lastOf(c.Answer, 3*d.room.units)))
		} else {
			answer = d.parse(c.Answer)
		}
		if !visibleBlocks(answer) {
			answer = nil
		}
	}
	headRoom := room
	if answer != nil {
		headRoom.units = room.units * 6 / 10
		headRoom.plain = room.plain * 6 / 10
	}
	var head []block
	for i, lod := range details {
		head = cardHead(c, lod)
		if len(head) == 0 {
			break
		}
		s := d.measure(head)
		if s.within(headRoom) || i == len(details)-1 {
			if !s.within(room) { // a room too small for anything
				if h, _, ok := d.divide(&head[0], d.fits(room), true); ok {
					head = h
					s = d.measure(head)
				} else {
					head, s = nil, size{}
				}
			}
			if len(head) > 0 {
				room = room.minus(s).minus(gapSize)
			}
			break
		}
	}
	bs := head
	if answer != nil {
		bs = append(bs, d.fit(answer, room, c.Open && !c.Phase.Terminal())...)
	}
	bs = append(bs, foot...)
	if len(bs) == 0 {
		bs = []block{para(textOf(sayWorking.In(c.Lang)))}
	}
	if !d.measure(bs).within(d.room) { // a very small room: what is first
		bs = d.split(bs)[0]
	}
	b := d.body(bs)
	for row := range chunks(c.Buttons, maxButtonRow) {
		b.Buttons = append(b.Buttons, row)
	}
	return b
}

func chunks(bs []Button, n int) func(func([]Button) bool) {
	return func(yield func([]Button) bool) {
		for len(bs) > 0 {
			k := min(n, len(bs))
			if !yield(bs[:k:k]) {
				return
			}
			bs = bs[k:]
		}
	}
}

// fit is as much of bs as there is room for, from its end or its beginning, with "…" where something is left out.
func (d *dialect) fit(bs []block, room size, fromEnd bool) []block {
	dots := para(textOf("…"))
	total := size{}
	sizes := make([]size, len(bs))
	for i := range bs {
		sizes[i] = d.measure(bs[i : i+1])
		total = total.plus(sizes[i]).plus(gapSize)
	}
	if total.within(room) {
		return bs
	}
	room = room.minus(d.measure([]block{dots})).minus(gapSize)
	if !fromEnd {
		n := 0
		for n < len(bs) && sizes[n].plus(gapSize).within(room) {
			room = room.minus(sizes[n]).minus(gapSize)
			n++
		}
		out := bs[:n:n]
		if n < len(bs) {
			if h, _, ok := d.divide(&bs[n], d.fits(room), n == 0); ok {
				out = append(out, h...)
			}
		}
		return append(out, dots)
	}
	n := len(bs)
	for n > 0 && sizes[n-1].plus(gapSize).within(room) {
		n--
		room = room.minus(sizes[n]).minus(gapSize)
	}
	out := []block{dots}
	if n == len(bs) || 2*room.units > d.room.units {
		if n > 0 {
			out = append(out, d.tail(&bs[n-1], room)...)
		}
	}
	return append(out, bs[n:]...)
}

// tail is the end of b that fits in room: what is left when heads are divided off.
func (d *dialect) tail(b *block, room size) []block {
	if room.units < 40 || room.plain < 40 {
		return nil
	}
	rest := []block{*b}
	for {
		if d.measure(rest).within(room) {
			return rest
		}
		step := d.room
		step.units, step.plain = max(room.units/4, 16), max(room.plain/4, 16)
		_, tail, ok := d.divide(&rest[0], d.fits(step), true)
		if !ok {
			tail = nil
		}
		if rest = append(tail, rest[1:]...); len(rest) == 0 {
			return nil
		}
	}
}

func cardFoot(c Card) []block {
	if c.Phase == PhaseQueued {
		return nil
	}
	s := Footer(c)
	if s == "" {
		return nil
	}
	return []block{para(inline{kind: inEm, kids: []inline{textOf(s)}})}
}

// lines collects the lines of a paragraph.
type lines struct{ in []inline }

func (l *lines) add(in ...inline) {
	if len(l.in) > 0 {
		l.in = append(l.in, inline{kind: inBreak})
	}
	l.in = append(l.in, in...)
}

func bold(s string) inline   { return inline{kind: inStrong, kids: []inline{textOf(s)}} }
func italic(s string) inline { return inline{kind: inEm, kids: []inline{textOf(s)}} }

func cardHead(c Card, lod detail) []block {
	var l lines
	if t := oneLine(c.Title, lod.title); t != "" {
		l.add(bold(t))
	}
	switch c.Phase {
	case PhaseQueued:
		if c.Position > 1 {
			l.add(textOf(sayQueued.In(c.Lang, c.Position)))
		} else {
			l.add(textOf(sayQueuedNext.In(c.Lang)))
		}
	case PhaseCapped:
		l.add(bold(sayCapped.In(c.Lang)))
	case PhaseStopped:
		l.add(bold(sayStopped.In(c.Lang)))
	case PhaseFailed:
		l.add(bold(sayFailed.In(c.Lang)))
	}
	for i, r := range c.Reasons {
		if i == lod.reasons {
			break
		}
		l.add(textOf(oneLine(r, maxReason)))
	}
	for i, n := range c.Notices {
		if i >= len(c.Notices)-lod.notices {
			l.add(italic(oneLine(n, maxNotice)))
		}
	}
	planLine(&l, c, lod.plan)
	toolLines(&l, c, lod.tools)
	subagentLines(&l, c, lod.subagents)
	if s := workingSign(c); s != "" {
		l.add(textOf(s))
	}
	if len(l.in) == 0 {
		return nil
	}
	return []block{para(l.in...)}
}

const maxReason = 400

// workingSign says what goes on when nothing else on the card does.
func workingSign(c Card) string {
	switch c.Phase {
	case PhaseThinking:
		if c.Answer == "" {
			return sayThinking.In(c.Lang)
		}
	case PhaseTool:
		if len(c.Tools)+len(c.Subagents) == 0 {
			return sayWorking.In(c.Lang)
		}
	case PhaseWriting:
		if c.Answer == "" {
			return sayWriting.In(c.Lang)
		}
	}
	return ""
}
