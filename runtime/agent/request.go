package agent

import (
	"fmt"
	"strings"

	"deerbot/runtime/model"
)

// request builds the model call from a copy of the thread.
func (t *turn) request() *model.Request {
	msgs := t.Log.Messages()
	req := &model.Request{Messages: make([]model.Message, 0, len(msgs)+2)}
	if t.System != "" {
		req.Messages = append(req.Messages, model.Text("system", model.RoleSystem, t.System))
	}
	for _, m := range msgs {
		m.Parts = append([]model.Part(nil), m.Parts...)
		req.Messages = append(req.Messages, m)
	}
	if t.Tools != nil {
		for _, s := range t.Tools.Specs() {
			req.Tools = append(req.Tools, model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
		}
	}
	return req
}

// attachNotes puts the queued control text behind the thread, also what hooks have queued for this very call, and shuts
// the tools of a closing call. The tag around it is one that people and pages cannot write: theirs is taken apart. It
// returns how many notes req carries.
func (t *turn) attachNotes(req *model.Request) int {
	t.mu.Lock()
	notes := len(t.notes)
	text := strings.Join(t.notes, "\n\n")
	req.NoTools = req.NoTools || t.closing
	t.mu.Unlock()
	if notes > 0 {
		m := model.Text(fmt.Sprintf("note-%s-%d", t.ID, t.Step), model.RoleUser, "<system-reminder>\n"+text+"\n</system-reminder>")
		m.Hidden, m.Origin = true, "framework"
		req.Messages = append(req.Messages, m)
	}
	return notes
}

func (t *turn) spendNotes(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = t.notes[n:]
}
