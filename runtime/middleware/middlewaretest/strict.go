// Package middlewaretest checks requests the way the strictest provider would.
package middlewaretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"deerbot/runtime/model"
)

var nameRE = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Strict returns what is wrong with a request, nil when a strict provider would take it. It shares no code with the
// middleware that repairs requests.
func Strict(req *model.Request) error {
	ms := req.Messages
	if len(ms) > 0 && ms[0].Role == model.RoleSystem {
		ms = ms[1:]
	}
	seen := map[string]bool{}
	for i := 0; i < len(ms); i++ {
		m := ms[i]
		if err := content(m); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
		switch m.Role {
		case model.RoleSystem:
			return fmt.Errorf("message %d: a second system message", i)
		case model.RoleTool:
			return fmt.Errorf("message %d: results without calls right before", i)
		case model.RoleAssistant:
			if i == 0 {
				return fmt.Errorf("the first message is not a user's")
			}
			calls := m.Calls()
			for _, c := range calls {
				if err := call(c, seen); err != nil {
					return fmt.Errorf("message %d: %w", i, err)
				}
			}
			if len(calls) == 0 {
				continue
			}
			if i++; i == len(ms) || ms[i].Role != model.RoleTool {
				return fmt.Errorf("message %d: calls without results right after", i-1)
			}
			if err := answers(ms[i], calls); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		case model.RoleUser:
		default:
			return fmt.Errorf("message %d: role %q", i, m.Role)
		}
	}
	return nil
}

func content(m model.Message) error {
	if len(m.Parts) == 0 {
		return fmt.Errorf("no content")
	}
	useful := false
	for _, p := range m.Parts {
		switch p.Kind {
		case model.PartText:
			if strings.TrimSpace(p.Text) == "" {
				return fmt.Errorf("blank text")
			}
		case model.PartImage:
			if m.Role == model.RoleAssistant && p.Image == nil {
				return fmt.Errorf("empty picture")
			}
		case model.PartToolCall:
			if m.Role != model.RoleAssistant {
				return fmt.Errorf("a call in a message of role %s", m.Role)
			}
		case model.PartToolResult:
			if m.Role != model.RoleTool {
				return fmt.Errorf("a result in a message of role %s", m.Role)
			}
		case model.PartReasoning:
			if m.Role != model.RoleAssistant {
				return fmt.Errorf("reasoning in a message of role %s", m.Role)
			}
			continue
		}
		useful = true
	}
	if !useful {
		return fmt.Errorf("nothing but reasoning")
	}
	return nil
}

func call(c model.ToolCall, seen map[string]bool) error {
	if c.ID == "" || strings.TrimSpace(c.ID) != c.ID {
		return fmt.Errorf("call id %q", c.ID)
	}
	if seen[c.ID] {
		return fmt.Errorf("call id %q is used twice", c.ID)
	}
	seen[c.ID] = true
	if !nameRE.MatchString(c.Name) {
		return fmt.Errorf("call name %q", c.Name)
	}
	var obj map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(c.Arguments)).Decode(&obj); err != nil || obj == nil || !json.Valid(c.Arguments) {
		return fmt.Errorf("arguments %q", c.Arguments)
	}
	return nil
}

func answers(m model.Message, calls []model.ToolCall) error {
	var results []*model.ToolResult
	for _, p := range m.Parts {
		if p.Kind == model.PartToolResult {
			if p.Result == nil {
				return fmt.Errorf("an empty result")
			}
			results = append(results, p.Result)
		}
	}
	if len(results) != len(calls) {
		return fmt.Errorf("%d results for %d calls", len(results), len(calls))
	}
	for i, r := range results {
		if r.CallID != calls[i].ID || r.Name != calls[i].Name {
			return fmt.Errorf("result %d is for %s (%s), the call is %s (%s)", i, r.CallID, r.Name, calls[i].ID, calls[i].Name)
		}
	}
	return nil
}
