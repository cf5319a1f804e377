// Package stream is the live feed of runs: bounded, replayable, closed by exactly one End.
//
// Each run has a log of its latest events. A subscriber pulls from the log at its own pace; it is never queued for, so a
// slow one costs nothing and blocks nobody. When it falls behind the retained window it gets one explicit [event.Gap],
// never silence. Sequences of one owner rise by one; a run that was taken up after a restart continues in a higher range
// (see [Base]), so an old cursor is always behind, never ahead.
package stream

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"deerbot/runtime/event"
)

// Bounds of one run's log and of the bridge.
const (
	MaxEvents = 4096
	MaxBytes  = 4 << 20
	Heartbeat = 15 * time.Second
	Keep      = 60 * time.Second // after End
	maxEnded  = 512              // ended logs kept at most
)

// ErrUnknown says that the bridge has no log of that run: it ended long ago, or before this process began.
var ErrUnknown = errors.New("no live stream of this run")

// Base is the sequence before the first event of a run's owner number epoch (from 1).
func Base(epoch uint64) uint64 {
	if epoch == 0 {
		return 0
	}
	return (epoch - 1) << 32
}

// Memory is the bridge of a single process.
type Memory struct {
	now func() time.Time

	mu    sync.Mutex
	logs  map[string]*runLog
	ended []endedLog // in order of End
}

type endedLog struct {
	run string
	at  time.Time
}

// NewMemory returns an empty bridge. now is the clock for retention.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, logs: map[string]*runLog{}}
}

type runLog struct {
	mu      sync.Mutex
	base    uint64 // sequence before the first event
	next    uint64 // sequence of the next event
	events  []event.Event
	sizes   []int
	bytes   int
	ended   bool
	changed chan struct{} // closed and replaced when something was published; nil while nobody waits
}

// Open makes the log of a run whose first event has sequence base+1. Opening an existing log is a no-op.
func (m *Memory) Open(run string, base uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prune()
	if m.logs[run] == nil {
		m.logs[run] = &runLog{base: base, next: base + 1}
	}
}

// prune drops logs that ended long ago. m.mu is held.
func (m *Memory) prune() {
	limit := m.now().Add(-Keep)
	n := 0
	for n < len(m.ended) && (m.ended[n].at.Before(limit) || len(m.ended)-n > maxEnded) {
		delete(m.logs, m.ended[n].run)
		n++
	}
	m.ended = m.ended[n:]
}

// Publish appends e to its run's log and sets e.Seq. Publishing to a run that is not open or has ended does nothing.
func (m *Memory) Publish(e event.Event) {
	m.mu.Lock()
	l := m.logs[e.Run]
	m.mu.Unlock()
	if l == nil || !l.publish(e) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, endedLog{run: e.Run, at: m.now()})
	m.prune()
}

// publish appends e and reports whether it ended the log.
func (l *runLog) publish(e event.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	_, l.ended = e.Body.(event.End)
	e.Seq = l.next
	l.next++
	size := sizeOf(e.Body)
	l.events, l.sizes, l.bytes = append(l.events, e), append(l.sizes, size), l.bytes+size
	drop := 0
	for len(l.events)-drop > MaxEvents || (l.bytes > MaxBytes && len(l.events)-drop > 1) {
		l.bytes -= l.sizes[drop]
		drop++
	}
	if drop > 0 {
		clear(l.events[:drop])
		l.events, l.sizes = l.events[drop:], l.sizes[drop:]
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return l.ended
}

// Subscribe yields the events of a run with Seq > after, then follows until End, which is the last one and comes also to a
// cursor that is past it. A cursor that this log never gave is taken for the log's beginning. A heartbeat comes when
// nothing else came for [Heartbeat]. The error is ErrUnknown or ctx's.
func (m *Memory) Subscribe(ctx context.Context, run string, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		m.mu.Lock()
		m.prune()
		l := m.logs[run]
		m.mu.Unlock()
		if l == nil {
			yield(event.Event{}, ErrUnknown)
			return
		}
		var timer *time.Timer
		for {
			batch, gap, wait := l.after(after)
			if gap != nil {
				if !yield(event.Event{Run: run, Seq: gap.To, At: m.now(), Body: *gap}, nil) {
					return
				}
				after = gap.To
			}
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
				if _, end := e.Body.(event.End); end {
					return
				}
			}
			if wait == nil {
				continue
			}
			if timer == nil {
				timer = time.NewTimer(Heartbeat)
				defer timer.Stop()
			} else {
				timer.Reset(Heartbeat)
			}
			select {
			case <-wait:
			case <-timer.C:
				if !yield(event.Event{Run: run, Seq: after, At: m.now(), Body: event.Heartbeat{}}, nil) {
					return
				}
			case <-ctx.Done():
				yield(event.Event{}, ctx.Err())
				return
			}
		}
	}
}

// after returns the retained events past the cursor, a gap when some of them are gone, and, when there is nothing, the
// channel that is closed at the next publication.
func (l *runLog) after(cursor uint64) ([]event.Event, *event.Gap, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.next - uint64(len(l.events))
	if l.ended && cursor+1 >= l.next {
		return l.events[len(l.events)-1:], nil, nil // the reader knows all; it still waits for the end
	}
	if cursor >= l.next {
		cursor = l.base
	}
	var gap *event.Gap
	dropped := first > l.base+1
	if (dropped && cursor+1 < first) || (cursor > 0 && cursor < l.base) {
		gap = &event.Gap{From: cursor + 1, To: first - 1}
	}
	from := 0
	if cursor >= first {
		from = int(cursor - first + 1)
	}
	if from < len(l.events) {
		return append([]event.Event(nil), l.events[from:]...), gap, nil
	}
	if gap != nil {
		return nil, gap, nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return nil, nil, l.changed
}

// Len is the number of logs held, for metrics.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.logs)
}

// sizeOf estimates an event's memory from its free text.
func sizeOf(b event.Body) int {
	const fixed = 160
	switch b := b.(type) {
	case event.MessageDelta:
		return fixed + len(b.Text)
	case event.MessageReasoning:
		return fixed + len(b.Text)
	case event.MessageCompleted:
		return fixed + len(b.Text)
	case event.ToolFinished:
		return fixed + len(b.Result)
	case event.ToolStarted:
		return fixed + len(b.Args)
	case event.TodoUpdated:
		n := fixed
		for _, t := range b.Todos {
			n += 32 + len(t.Text)
		}
		return n
	}
	return fixed
}
