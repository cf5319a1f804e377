package rehearsal

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"deerbot/runtime/model"
)

// Tools of the play, in order.
const (
	toolTodo    = "todo"
	toolWrite   = "write_file"
	toolPresent = "present_files"
)

// step is what the stand-in does in one call.
type step struct {
	text string
	call *model.ToolCall
}

// scene is what the stand-in sees of a request.
type scene struct {
	said    string            // the last thing a person said
	chinese bool              // mostly
	user    string            // id of that message
	turn    int               // how many files were written for earlier messages
	done    map[string]bool   // tools called since then
	failed  map[string]string // their errors
	offered map[string]model.ToolSpec
}

// next decides the step for req.
func next(req *model.Request) step {
	s := look(req)
	t := &english
	if s.chinese {
		t = &chinese
	}
	if smallTalk(s.said) {
		return step{text: t.greeting + "\n\n" + t.connect}
	}
	file := "/mnt/user-data/outputs/rehearsal.md"
	if s.turn > 0 {
		file = fmt.Sprintf("/mnt/user-data/outputs/rehearsal-%d.md", s.turn+1)
	}
	if s.can(toolTodo) {
		opening := ""
		if len(s.done) == 0 {
			opening = t.opening
		}
		return step{text: opening, call: s.call(toolTodo, map[string]any{"todos": []map[string]string{
			{"text": t.plan[0], "status": "in_progress"},
			{"text": t.plan[1], "status": "pending"},
			{"text": t.plan[2], "status": "pending"},
		}})}
	}
	if s.can(toolWrite) {
		opening := t.writing
		if len(s.done) == 0 {
			opening = t.opening
		}
		return step{text: opening, call: s.call(toolWrite, map[string]any{"path": file, "content": t.report(s.said)})}
	}
	written := s.done[toolWrite] && s.failed[toolWrite] == ""
	if written && s.can(toolPresent) {
		return step{call: s.call(toolPresent, map[string]any{"paths": []string{file}})}
	}
	return step{text: t.closing(s, file, written)}
}

func look(req *model.Request) *scene {
	s := &scene{done: map[string]bool{}, failed: map[string]string{}, offered: map[string]model.ToolSpec{}}
	if !req.NoTools {
		for _, t := range req.Tools {
			s.offered[t.Name] = t
		}
	}
	last := -1
	for i, m := range req.Messages {
		if m.Role == model.RoleUser && !m.Hidden && strings.TrimSpace(m.TextOf()) != "" {
			last = i
		}
	}
	if last < 0 { // only framework text
		for i, m := range req.Messages {
			if m.Role == model.RoleUser {
				last = i
			}
		}
	}
	if last < 0 {
		return s
	}
	s.said, s.user = strings.TrimSpace(req.Messages[last].TextOf()), req.Messages[last].ID
	s.chinese = mostlyChinese(s.said)
	for i, m := range req.Messages {
		for _, c := range m.Calls() {
			if i > last {
				s.done[c.Name] = true
			} else if c.Name == toolWrite && m.Provider == Provider {
				s.turn++
			}
		}
		for _, p := range m.Parts {
			if i > last && p.Kind == model.PartToolResult && p.Result != nil && p.Result.IsError {
				s.failed[s.nameOf(req, p.Result)] = p.Result.Content
			}
		}
	}
	return s
}

// nameOf is the tool a result belongs to.
func (s *scene) nameOf(req *model.Request, r *model.ToolResult) string {
	for _, m := range req.Messages {
		for _, c := range m.Calls() {
			if c.ID == r.CallID {
				return c.Name
			}
		}
	}
	return r.Name
}

// can reports whether tool is offered and was not called since the last user message.
func (s *scene) can(tool string) bool {
	_, ok := s.offered[tool]
	return ok && !s.done[tool]
}

// call makes a call. Its id follows from the message it answers, so that it is unique in a thread and always the same.
// Text arguments that the schema demands and the play does not know are filled in.
func (s *scene) call(tool string, args map[string]any) *model.ToolCall {
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(s.offered[tool].Schema, &schema) == nil {
		for _, name := range schema.Required {
			if _, ok := args[name]; !ok && schema.Properties[name].Type == "string" {
				args[name] = "rehearsal"
			}
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic("rehearsal: arguments cannot be encoded: " + err.Error())
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.user + "\x00" + s.said + "\x00" + tool))
	return &model.ToolCall{ID: fmt.Sprintf("rehearsal_%016x", h.Sum64()), Name: tool, Arguments: raw}
}

// failures lists the tools that failed, sorted.
func (s *scene) failures() []string {
	var out []string
	for name := range s.failed {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
