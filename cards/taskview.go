package cards

import (
	"time"

	"deerbot/runtime/event"
)

// taskView is a subagent as its events show it. They carry the task's id and never touch the run's own text.
type taskView struct {
	id      string
	state   string
	step    int
	tokens  int64
	started time.Time
	ended   time.Time
}

// maxTasks bounds the subagents that are remembered.
const maxTasks = 64

func (v *RunView) applyTask(e event.Event) {
	var t *taskView
	for i := range v.tasks {
		if v.tasks[i].id == e.Task {
			t = &v.tasks[i]
		}
	}
	if t == nil {
		if len(v.tasks) == maxTasks {
			return
		}
		v.tasks = append(v.tasks, taskView{id: e.Task, state: "running", started: e.At})
		t = &v.tasks[len(v.tasks)-1]
	}
	if t.state != "running" {
		return
	}
	t.step = max(t.step, e.Step)
	switch b := e.Body.(type) {
	case event.UsageUpdated:
		t.tokens = max(t.tokens, b.Totals.Tokens())
	case event.RunFinished:
		t.ended, t.state = e.At, "ok"
		if endPhase(b.State, b.Stop) != PhaseDone {
			t.state = "error"
		}
		t.tokens = max(t.tokens, b.Totals.Tokens())
	}
}

// taskLines are the rows of the subagents. One whose tool call is known takes its name and its end from there.
func (v *RunView) taskLines(now time.Time) []SubagentLine {
	var out []SubagentLine
	for i := range v.tasks {
		t := &v.tasks[i]
		line := SubagentLine{Name: t.id, State: t.state, Step: t.step, Tokens: t.tokens}
		if c := v.tools.find(t.id); c != nil {
			if c.line.Args != "" {
				line.Name = c.line.Args
			}
			if line.State == "running" && c.line.State != "running" {
				line.State, line.Elapsed = c.line.State, c.line.Elapsed
			}
		}
		switch {
		case line.State == "running" && v.phase.Terminal():
			line.State = "unknown"
		case line.State == "running":
			line.Elapsed = max(now.Sub(t.started), 0).Truncate(tick)
		case !t.ended.IsZero():
			line.Elapsed = t.ended.Sub(t.started)
		}
		out = append(out, line)
	}
	return out
}
