package cards

import (
	"strings"
	"time"

	"deerbot/cards/phrase"
	"deerbot/runtime/event"
	"deerbot/store"
)

// RunView is the picture of a run, folded from its events. The zero value is an empty picture. It may be fed the live
// stream, the journal, or the journal and then the stream; what comes after the end changes nothing.
//
// A RunView is not safe for concurrent use, and a copy must not be fed.
type RunView struct {
	Title string // shown until the run has its own

	phase    Phase
	position int
	started  time.Time
	ended    time.Time
	step     int
	totals   store.Totals

	resumed   int
	resumedAt int // step
	rehearsal bool
	retry     *event.ModelRetry
	guards    []event.GuardWarned
	stops     []store.StopReason
	failure   string

	plan  []PlanItem
	tools toolLog
	tasks []taskView

	texts []messageText // completed messages with something to see
	live  []byte        // deltas of the message that is being written
	open  bool
}

type messageText struct {
	id, text string
	final    bool
}

// Apply takes one event into the picture.
func (v *RunView) Apply(e event.Event) {
	if v.phase.Terminal() {
		v.applyLate(e)
		return
	}
	if e.Task != "" {
		v.applyTask(e)
		return
	}
	if e.Step > v.step {
		v.step = e.Step
	}
	switch b := e.Body.(type) {
	case event.RunQueued:
		if v.started.IsZero() {
			v.phase, v.position = PhaseQueued, b.Position
		}
	case event.RunStarted:
		if v.started.IsZero() {
			v.started = e.At
		}
		v.phase = PhaseThinking
		v.rehearsal = b.Rehearsal
		v.retry = nil
		v.live, v.open = nil, false
		if b.Resumed > 0 {
			v.resumed, v.resumedAt = b.Resumed, max(v.step, 1)
			v.tools.abandon()
		}
	case event.StepStarted:
		v.start(e)
		v.phase = PhaseThinking
		v.live, v.open = nil, false
		if v.resumed > 0 && v.resumedAt < e.Step && len(v.texts) == 0 && v.tools.total == 0 {
			v.resumedAt = e.Step
		}
	case event.StepFinished:
		v.retry = nil
		if b.ToolCalls == 0 {
			v.open = false
		}
	case event.MessageDelta:
		v.start(e)
		v.retry = nil
		v.live = append(v.live, b.Text...)
		v.open = true
		v.phase = PhaseWriting
	case event.MessageReasoning:
		v.start(e)
		v.retry = nil
	case event.MessageReset:
		v.live, v.open = nil, false
		v.phase = PhaseThinking
	case event.MessageCompleted:
		v.start(e)
		v.retry = nil
		v.complete(b)
	case event.ToolStarted:
		v.start(e)
		v.phase = PhaseTool
		v.tools.start(b, e.At)
	case event.ToolFinished:
		v.tools.finish(b, e.At)
		if v.tools.running == 0 {
			v.phase = PhaseThinking
		}
	case event.TodoUpdated:
		v.plan = v.plan[:0:0]
		for _, t := range b.Todos {
			v.plan = append(v.plan, PlanItem{Text: t.Text, Status: t.Status})
		}
	case event.UsageUpdated:
		v.usage(b.Totals)
	case event.GuardWarned:
		v.warn(b)
	case event.GuardStopped:
		v.stop(b.Reason)
	case event.ModelRetry:
		v.retry = &b
	case event.TitleUpdated:
		v.Title = b.Title
	case event.RunFinished:
		v.finish(e.At, b)
	case event.End:
		v.finish(e.At, event.RunFinished{State: b.State, Stop: v.stops, Totals: v.totals, Error: v.failure})
	}
}

// applyLate lets only the run's own last word add to an ended picture: End may come without it, and it after a stop.
func (v *RunView) applyLate(e event.Event) {
	if e.Task != "" {
		return
	}
	switch b := e.Body.(type) {
	case event.TitleUpdated:
		v.Title = b.Title
	case event.RunFinished:
		if v.failure == "" {
			v.failure = b.Error
		}
		if len(v.stops) == 0 {
			v.stops = b.Stop
		}
		v.usage(b.Totals)
	}
}

// start dates the run when its beginning was not seen.
func (v *RunView) start(e event.Event) {
	if v.started.IsZero() {
		v.started = e.At
	}
}

// usage replaces the sums: they are cumulative. A smaller one is out of date.
func (v *RunView) usage(t store.Totals) {
	if t.Tokens() >= v.totals.Tokens() && t.Steps >= v.totals.Steps {
		v.totals = t
	}
}

func (v *RunView) warn(w event.GuardWarned) {
	for i := range v.guards {
		if v.guards[i].Guard == w.Guard {
			v.guards[i] = w
			return
		}
	}
	v.guards = append(v.guards, w)
}

func (v *RunView) stop(r store.StopReason) {
	for _, s := range v.stops {
		if s.Code == r.Code {
			return
		}
	}
	v.stops = append(v.stops, r)
}

func (v *RunView) complete(m event.MessageCompleted) {
	v.live, v.open = nil, false
	if v.phase == PhaseWriting {
		v.phase = PhaseThinking
	}
	text := clean(m.Text)
	if !visibleText(text) {
		return
	}
	for i := range v.texts {
		if m.MessageID != "" && v.texts[i].id == m.MessageID {
			v.texts[i].text, v.texts[i].final = text, m.Final
			return
		}
	}
	v.texts = append(v.texts, messageText{m.MessageID, text, m.Final})
}

func (v *RunView) finish(at time.Time, b event.RunFinished) {
	v.ended = at
	v.usage(b.Totals)
	if len(b.Stop) > 0 {
		v.stops = b.Stop
	}
	v.failure = b.Error
	v.retry = nil
	v.tools.abandon()
	v.phase = endPhase(b.State, v.stops)
	v.open = false
}

// endPhase tells how a run ended. A run that a guard ended is no plain success.
func endPhase(state store.RunState, stops []store.StopReason) Phase {
	for _, s := range stops {
		switch s.Code {
		case store.StopCompleted, store.StopRecovered, "":
		case store.StopUserStop, store.StopInterrupted:
			if state != store.RunError {
				return PhaseStopped
			}
		case store.StopProviderError, store.StopInternal:
			return PhaseFailed
		default:
			return PhaseCapped
		}
	}
	switch state {
	case store.RunError:
		return PhaseFailed
	case store.RunInterrupted:
		return PhaseStopped
	}
	return PhaseDone
}

// Phase is what the run is doing.
func (v *RunView) Phase() Phase { return v.phase }

// Texts are the texts of the run's messages so far, oldest first; the last may still be growing.
func (v *RunView) Texts() []string {
	out := make([]string, 0, len(v.texts)+1)
	for _, t := range v.texts {
		out = append(out, t.text)
	}
	if live := clean(string(v.live)); visibleText(live) {
		out = append(out, live)
	}
	return out
}

// FinalAnswer is the Markdown to send when the run has ended: every text block once, in order, those from before tool
// calls too, with what was written when a run was cut short. It is empty when there is nothing to see.
func (v *RunView) FinalAnswer() string {
	var out []string
	seen := map[string]bool{}
	for _, t := range v.Texts() {
		t = strings.Trim(t, "\n")
		if key := strings.TrimSpace(t); !seen[key] {
			seen[key] = true
			out = append(out, t)
		}
	}
	return strings.Join(out, "\n\n")
}

// answer is what a card shows: the message that is being written, else the latest one.
func (v *RunView) answer() (text string, open bool) {
	if live := clean(string(v.live)); visibleText(live) {
		return live, v.open
	}
	if n := len(v.texts); n > 0 {
		return v.texts[n-1].text, false
	}
	return "", false
}

// tick is how often the elapsed time of a running card moves by itself.
const tick = 5 * time.Second

// Card is the picture at now. While the run goes on, times move in steps of five seconds only, so that cards drawn in
// between are equal; at the end they are exact.
func (v RunView) Card(now time.Time, lang phrase.Lang) Card {
	c := Card{
		Lang: lang, Title: v.Title, Phase: v.phase, Position: v.position,
		Plan: v.plan,
		Totals: Totals{
			Steps: max(v.totals.Steps, 0), Tokens: v.totals.Tokens(), CostUSD: v.totals.CostUSD, Estimated: v.totals.Estimated,
		},
	}
	if c.Phase == "" {
		c.Phase = PhaseThinking
	}
	c.Elapsed = v.elapsed(now)
	c.Tools, c.Hidden = v.tools.lines(now)
	c.Subagents = v.taskLines(now)
	c.Answer, c.Open = v.answer()
	c.Notices = v.notices(lang)
	if c.Phase.Terminal() {
		c.Reasons = v.reasons(lang)
	}
	return c
}

func (v *RunView) elapsed(now time.Time) time.Duration {
	switch {
	case v.started.IsZero():
		return 0
	case !v.ended.IsZero():
		return max(v.ended.Sub(v.started), 0)
	}
	return max(now.Sub(v.started), 0).Truncate(tick)
}
