package middleware

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"deerbot/runtime/model"
)

// Texts for calls that have no result.
const (
	noResult        = "no result: this call was interrupted. It may or may not have taken effect: check before doing it again."
	noResultBadArgs = "not carried out: the arguments were not a valid JSON object. If they were long, send less at once, in several calls."
)

// turns is a list of messages with its calls and results taken apart.
type turns struct {
	ms      []model.Message
	calls   [][]openCall    // of each message
	results []result        // of all messages, in order
	used    map[string]bool // call ids
	ids     map[string]bool // ids of tool messages
	moved   map[int]bool    // messages whose parts besides results have found a place
}

// openCall is a call and the result found for it.
type openCall struct {
	model.ToolCall
	found *result
}

type result struct {
	model.ToolResult
	at   int // index of its message
	part int // and of its part there
	turn int // index of the last message with calls before it, -1 when there is none
}

func newTurns(ms []model.Message) *turns {
	t := &turns{ms: ms, calls: make([][]openCall, len(ms)), used: map[string]bool{}, ids: map[string]bool{}, moved: map[int]bool{}}
	turn := -1
	for i, m := range ms {
		for j, p := range m.Parts {
			switch p.Kind {
			case model.PartToolCall:
				t.calls[i] = append(t.calls[i], openCall{ToolCall: *p.Call})
				turn = i
			case model.PartToolResult:
				t.results = append(t.results, result{ToolResult: *p.Result, at: i, part: j, turn: turn})
			}
		}
	}
	return t
}

// pair finds the result of each call: first by id, then, for results without one, by name and place within their turn.
func (t *turns) pair() {
	var anonymous []*result
	for k := range t.results {
		r := &t.results[k]
		switch {
		case r.turn < 0:
		case !usable(r.CallID):
			anonymous = append(anonymous, r)
		default:
			t.pairByID(r)
		}
	}
	for len(anonymous) > 0 {
		n := 1
		for n < len(anonymous) && anonymous[n].turn == anonymous[0].turn {
			n++
		}
		pairAnonymous(t.calls[anonymous[0].turn], anonymous[:n])
		anonymous = anonymous[n:]
	}
}

// pairByID gives r to the nearest call before it that has the same id and no result. When all have one, r is a duplicate.
func (t *turns) pairByID(r *result) {
	for i := r.turn; i >= 0; i-- {
		for k := range t.calls[i] {
			if c := &t.calls[i][k]; c.ID == r.CallID && c.found == nil {
				c.found = r
				return
			}
		}
	}
}

// pairAnonymous gives the results without id of one turn to its open calls: by name where each name has as many results
// as calls, or one call; what is left by place, if it is as many.
func pairAnonymous(calls []openCall, results []*result) {
	open := map[string][]*openCall{}
	var names []string
	for k := range calls {
		if c := &calls[k]; c.found == nil {
			if open[c.Name] == nil {
				names = append(names, c.Name)
			}
			open[c.Name] = append(open[c.Name], c)
		}
	}
	byName := map[string][]*result{}
	var nameless []*result
	for _, r := range results {
		if r.Name == "" {
			nameless = append(nameless, r)
			continue
		}
		name := tidyName(r.Name)
		byName[name] = append(byName[name], r)
	}
	for _, name := range names {
		cs, rs := open[name], byName[name]
		if len(rs) == 0 || len(cs) > 1 && len(cs) != len(rs) {
			continue
		}
		for k, c := range cs {
			c.found = rs[k]
		}
	}
	var left []*openCall
	for k := range calls {
		if calls[k].found == nil {
			left = append(left, &calls[k])
		}
	}
	if len(left) == len(nameless) {
		for k, c := range left {
			c.found = nameless[k]
		}
	}
}

// rebuild makes the list: each message with calls, its ids made unique, and right behind it its answers.
func (t *turns) rebuild() []model.Message {
	out := make([]model.Message, 0, len(t.ms))
	for i, m := range t.ms {
		if m.Role == model.RoleTool {
			continue
		}
		if len(t.calls[i]) == 0 {
			out = append(out, m)
			continue
		}
		out = append(out, t.rename(i), t.answer(i))
	}
	return out
}

// rename gives the calls of message i ids that no earlier call has. An id that is right stays.
func (t *turns) rename(i int) model.Message {
	m := t.ms[i]
	cloned := false
	k := 0
	for j, p := range m.Parts {
		if p.Kind != model.PartToolCall {
			continue
		}
		c := &t.calls[i][k]
		if !usable(c.ID) || t.used[c.ID] {
			if !cloned {
				m.Parts, cloned = slices.Clone(m.Parts), true
			}
			c.ID = t.syntheticID(i, k)
			own := c.ToolCall
			m.Parts[j].Call = &own
		}
		t.used[c.ID] = true
		k++
	}
	return m
}

// syntheticID makes an id from the message's, so that it is the same in every request.
func (t *turns) syntheticID(i, k int) string {
	seed := t.ms[i].ID
	if seed == "" {
		seed = fmt.Sprint(i)
	}
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", seed, k, n))
		if id := "call_" + hex.EncodeToString(sum[:8]); !t.used[id] {
			return id
		}
	}
}

// answer makes the tool message behind message i. The thread's own is used when it is right.
func (t *turns) answer(i int) model.Message {
	if t.right(i) {
		t.ids[t.ms[i+1].ID] = true
		return t.ms[i+1]
	}
	m := model.Message{ID: t.ms[i].ID + "-results", Role: model.RoleTool, RunID: t.ms[i].RunID, At: t.ms[i].At}
	var rest []model.Part
	for _, c := range t.calls[i] {
		res := &model.ToolResult{CallID: c.ID, Name: c.Name, Content: noResult, IsError: true}
		if c.Malformed != "" {
			res.Content = noResultBadArgs
		}
		if f := c.found; f != nil {
			res.Content, res.IsError = f.Content, f.IsError
			if src := t.ms[f.at]; !t.moved[f.at] {
				t.moved[f.at] = true
				rest = append(rest, slices.DeleteFunc(slices.Clone(src.Parts), isResult)...)
				if !t.ids[src.ID] {
					t.ids[src.ID] = true
					m.ID, m.RunID, m.At, m.Origin, m.Hidden = src.ID, src.RunID, src.At, src.Origin, src.Hidden
				}
			}
		}
		m.Parts = append(m.Parts, model.Part{Kind: model.PartToolResult, Result: res})
	}
	m.Parts = append(m.Parts, rest...)
	return m
}

// right reports whether the message behind i answers its calls as it should.
func (t *turns) right(i int) bool {
	calls := t.calls[i]
	if i+1 >= len(t.ms) || t.ms[i+1].Role != model.RoleTool || t.ids[t.ms[i+1].ID] || t.moved[i+1] {
		return false
	}
	parts := t.ms[i+1].Parts
	if len(parts) < len(calls) || slices.ContainsFunc(parts[len(calls):], isResult) {
		return false
	}
	for k, c := range calls {
		p := parts[k]
		if !isResult(p) || c.found == nil || c.found.at != i+1 || c.found.part != k || p.Result.CallID != c.ID || p.Result.Name != c.Name {
			return false
		}
	}
	return true
}

func isResult(p model.Part) bool { return p.Kind == model.PartToolResult }

// usable reports whether a provider's id can be sent back: some characters, all visible. What else a provider wants of
// ids is its adapter's business.
func usable(id string) bool {
	return id != "" && len(id) <= 256 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' })
}
