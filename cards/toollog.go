package cards

import (
	"slices"
	"time"

	"deerbot/runtime/event"
)

// maxToolsKept bounds the calls that are remembered. Beyond it the oldest are only counted.
const maxToolsKept = 32

// toolLog remembers the latest tool calls.
type toolLog struct {
	calls   []toolCall
	total   int
	running int
}

type toolCall struct {
	id      string
	line    ToolLine
	started time.Time
}

func (l *toolLog) find(id string) *toolCall {
	for i := len(l.calls) - 1; i >= 0 && id != ""; i-- {
		if l.calls[i].id == id {
			return &l.calls[i]
		}
	}
	return nil
}

func (l *toolLog) add(c toolCall) {
	l.total++
	l.calls = append(l.calls, c)
	if len(l.calls) > maxToolsKept {
		if l.calls[0].line.State == "running" {
			l.running--
		}
		l.calls = append(l.calls[:0:0], l.calls[1:]...)
	}
}

func (l *toolLog) start(b event.ToolStarted, at time.Time) {
	if c := l.find(b.CallID); c != nil { // told again after a restart
		if c.line.State != "running" {
			l.running++
		}
		c.line.State, c.started = "running", at
		return
	}
	l.running++
	l.add(toolCall{b.CallID, ToolLine{Name: b.Name, Args: shorten(b.Args, MaxToolWidth), State: "running"}, at})
}

func (l *toolLog) finish(b event.ToolFinished, at time.Time) {
	state := "ok"
	switch {
	case b.Unknown:
		state = "unknown"
	case b.IsError:
		state = "error"
	}
	c := l.find(b.CallID)
	if c == nil { // its start was not seen
		l.add(toolCall{b.CallID, ToolLine{Name: b.Name, State: state, Elapsed: b.Elapsed}, at})
		return
	}
	if c.line.State == "running" {
		l.running--
	}
	c.line.State, c.line.Elapsed = state, b.Elapsed
}

// abandon marks calls that will not be heard of again.
func (l *toolLog) abandon() {
	for i := range l.calls {
		if c := &l.calls[i]; c.line.State == "running" {
			c.line.State, c.line.Elapsed = "unknown", 0
		}
	}
	l.running = 0
}

// lines are the calls to show: the latest, but every running one before those that ended.
func (l *toolLog) lines(now time.Time) (out []ToolLine, hidden int) {
	skip := max(len(l.calls)-MaxToolLines, 0)
	show := l.calls[skip:]
	if skip > 0 && l.running > 0 {
		var early []toolCall
		for _, c := range l.calls[:skip] {
			if c.line.State == "running" {
				early = append(early, c)
			}
		}
		if len(early) > 0 {
			var kept []toolCall
			room := max(MaxToolLines-len(early), 0)
			for _, s := range slices.Backward(show) {
				if s.line.State == "running" || room > 0 {
					kept = append(kept, s)
					if s.line.State != "running" {
						room--
					}
				}
			}
			for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
				kept[i], kept[j] = kept[j], kept[i]
			}
			show = append(early, kept...)
			if len(show) > MaxToolLines {
				show = show[len(show)-MaxToolLines:]
			}
		}
	}
	for _, c := range show {
		line := c.line
		if line.State == "running" {
			line.Elapsed = max(now.Sub(c.started), 0).Truncate(tick)
		}
		out = append(out, line)
	}
	return out, l.total - len(out)
}
