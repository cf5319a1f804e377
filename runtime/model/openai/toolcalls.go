package openai

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"deerbot/runtime/model"
)

// callSet puts tool calls together from their pieces. OpenAI numbers the pieces by index and names the call once by id;
// others leave out the index, the id or both, use one index for all calls, or skip numbers.
type callSet struct {
	offered map[string]bool
	open    []*openCall // in order of appearance
	byIndex map[int]*openCall
	byID    map[string]*openCall
	last    *openCall
}

type openCall struct {
	id, name  string
	args      strings.Builder
	extra     json.RawMessage
	announced bool
}

func newCallSet(tools []model.ToolSpec) *callSet {
	s := &callSet{offered: make(map[string]bool, len(tools)), byIndex: map[int]*openCall{}, byID: map[string]*openCall{}}
	for _, t := range tools {
		s.offered[t.Name] = true
	}
	return s
}

// add takes one piece. It returns the call when its name is known for the first time.
func (s *callSet) add(d toolDelta) *model.ToolCall {
	c := s.find(d)
	if d.ID != "" && c.id == "" {
		c.id = d.ID
		s.byID[d.ID] = c
	}
	if name := d.Function.Name; name != "" {
		repeated := name == c.name && (c.args.Len() > 0 || s.offered[name])
		if !repeated {
			c.name += name
		}
	}
	c.args.WriteString(string(d.Function.Arguments))
	if isSet(d.Extra) {
		c.extra = d.Extra
	}
	if c.announced || strings.TrimSpace(c.name) == "" || (!s.offered[c.name] && c.args.Len() == 0) {
		return nil
	}
	return c.announce()
}

// find returns the call that d belongs to and opens one if there is none.
func (s *callSet) find(d toolDelta) *openCall {
	var c *openCall
	switch {
	case d.Index != nil:
		c = s.byIndex[*d.Index]
		if c != nil && d.ID != "" && c.id != "" && d.ID != c.id {
			c = nil // the index is used again for another call
		}
	case d.ID != "":
		if c = s.byID[d.ID]; c == nil && s.last != nil && s.last.id == "" && s.last.args.Len() == 0 && d.Function.Name == "" {
			c = s.last // an id that comes late
		}
	default:
		c = s.last
	}
	if c != nil && d.ID == "" && s.begins(c, d) {
		c = nil
	}
	if c == nil {
		c = &openCall{}
		s.open = append(s.open, c)
	}
	if d.Index != nil {
		s.byIndex[*d.Index] = c
	}
	s.last = c
	return c
}

// begins reports whether d, which has no id, opens a call after c: c is whole and d names a tool anew.
func (s *callSet) begins(c *openCall, d toolDelta) bool {
	name := d.Function.Name
	if name == "" || !s.offered[c.name] && c.args.Len() == 0 {
		return false
	}
	if name == c.name && (c.args.Len() == 0 || d.Function.Arguments == "") {
		return false // the name is repeated with every piece
	}
	if c.args.Len() == 0 {
		return s.offered[name]
	}
	return json.Valid([]byte(c.args.String()))
}

func (c *openCall) announce() *model.ToolCall {
	c.announced = true
	if c.id == "" {
		c.id = newID()
	}
	return &model.ToolCall{ID: c.id, Name: strings.TrimSpace(c.name), Arguments: json.RawMessage("{}")}
}

// finish returns the calls in order. Calls without a name are dropped, ids are made unique.
func (s *callSet) finish() []model.ToolCall {
	var out []model.ToolCall
	used := map[string]bool{}
	for _, c := range s.open {
		name := strings.TrimSpace(c.name)
		if name == "" {
			continue
		}
		if c.id == "" || used[c.id] {
			c.id = newID()
		}
		used[c.id] = true
		args, malformed := model.ParseArguments(c.args.String())
		out = append(out, model.ToolCall{ID: c.id, Name: name, Arguments: args, Malformed: malformed, Extra: c.extra})
	}
	return out
}

func newID() string { return "call_" + strings.ReplaceAll(uuid.NewString(), "-", "") }
