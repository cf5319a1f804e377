package cards

import (
	"strings"

	"deerbot/cards/phrase"
	"deerbot/store"
)

// notices are the lines about the run itself, the most lasting first.
func (v *RunView) notices(lang phrase.Lang) []string {
	var out []string
	if v.rehearsal {
		out = append(out, sayRehearsal.In(lang))
	}
	if v.resumed > 0 {
		out = append(out, sayResumed.In(lang, v.resumedAt))
	}
	if v.phase.Terminal() {
		return out
	}
	for _, g := range v.guards {
		d := g.Detail
		if d == "" {
			d = g.Guard
		}
		out = append(out, sayGuardNear.In(lang, oneLine(d, maxDetail)))
	}
	if r := v.retry; r != nil {
		p, ok := sayClasses[r.Class]
		if !ok {
			p = sayClassOther
		}
		next := r.Attempt + 1
		if r.Wait >= 1e9 {
			out = append(out, sayRetry.In(lang, p.In(lang), elapsedText(r.Wait, lang), next, max(r.Max, next)))
		} else {
			out = append(out, sayRetryNow.In(lang, p.In(lang), next, max(r.Max, next)))
		}
	}
	return out
}

// reasons says why the run ended, the cause first.
func (v *RunView) reasons(lang phrase.Lang) []string {
	var out []string
	told := false
	for _, s := range v.stops {
		if s.Code == store.StopRecovered && v.phase == PhaseDone {
			continue // the notice says so
		}
		if r := Reason(s, lang); r != "" {
			out = append(out, r)
			told = told || v.failure != "" && strings.Contains(s.Detail, v.failure)
		}
	}
	if v.failure != "" && !told && v.phase != PhaseDone {
		out = append(out, oneLine(v.failure, maxReason))
	}
	if len(out) == 0 {
		switch v.phase {
		case PhaseFailed:
			out = append(out, sayStops[store.StopInternal].In(lang))
		case PhaseStopped:
			out = append(out, sayStops[store.StopInterrupted].In(lang))
		}
	}
	return out
}
