package middleware

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"deerbot/runtime/model"
)

// unknownTool stands in for a name that is empty.
const unknownTool = "unknown_tool"

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// tidy drops parts that do not belong into their message, and messages without content. Calls are made presentable.
func tidy(ms []model.Message) []model.Message {
	out := make([]model.Message, 0, len(ms))
	for _, m := range ms {
		keep := keeps(m.Role)
		if keep == nil {
			continue
		}
		if slices.ContainsFunc(m.Parts, func(p model.Part) bool { return !keep(p) || changesCall(p) }) {
			parts := make([]model.Part, 0, len(m.Parts))
			for _, p := range m.Parts {
				if keep(p) {
					parts = append(parts, tidyCall(p))
				}
			}
			m.Parts = parts
		}
		if slices.ContainsFunc(m.Parts, func(p model.Part) bool { return p.Kind != model.PartReasoning }) {
			out = append(out, m)
		}
	}
	return out
}

// keeps returns which parts a message of that role may have, nil for a role that may not stand here.
func keeps(role model.Role) func(model.Part) bool {
	content := func(p model.Part) bool {
		return p.Kind == model.PartText && strings.TrimSpace(p.Text) != "" || p.Kind == model.PartImage && p.Image != nil
	}
	switch role {
	case model.RoleSystem, model.RoleUser:
		return content
	case model.RoleAssistant:
		return func(p model.Part) bool {
			return content(p) || p.Kind == model.PartReasoning || p.Kind == model.PartToolCall && p.Call != nil
		}
	case model.RoleTool:
		return func(p model.Part) bool { return content(p) || p.Kind == model.PartToolResult && p.Result != nil }
	}
	return nil
}

func changesCall(p model.Part) bool {
	return p.Kind == model.PartToolCall && (!toolName.MatchString(p.Call.Name) || !isObject(p.Call.Arguments))
}

// tidyCall makes the name of a call a name and its arguments a JSON object.
func tidyCall(p model.Part) model.Part {
	if p.Kind != model.PartToolCall || !changesCall(p) {
		return p
	}
	c := *p.Call
	c.Name = tidyName(c.Name)
	if !isObject(c.Arguments) {
		c.Arguments = json.RawMessage("{}")
	}
	p.Call = &c
	return p
}

func tidyName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, strings.TrimSpace(s))
	if strings.Trim(s, "_") == "" {
		return unknownTool
	}
	return s[:min(len(s), 64)]
}

func isObject(args json.RawMessage) bool {
	b := bytes.TrimSpace(args)
	return len(b) > 0 && b[0] == '{' && json.Valid(b) && utf8.Valid(b)
}
