package e2e

import (
	"strings"
	"testing"
	"time"

	"deerbot/internal/crash"
	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
)

// The daemon is killed at every labelled point while a conversation runs. After the restart the message was answered
// once, the card became the answer, and what the model was asked was legal.
func TestCrashPoints(t *testing.T) {
	for _, c := range []struct {
		label string
		// slow makes the turn long enough for a live card; tool makes it act.
		slow, tool, long bool
		// more sends a second message while the first is worked on: its arrival acknowledges the first.
		more bool
		// copies is how many messages with the answer may be there: where a send's outcome cannot be known, a second
		// copy that says so is allowed.
		copies int
	}{
		{label: crash.InboxCommitted, copies: 1},
		{label: crash.InboxAcked, slow: true, more: true, copies: 1},
		{label: crash.RunAdmitted, copies: 1},
		{label: crash.ModelStreaming + ":5", slow: true, copies: 1},
		{label: crash.PlaceholderAfter, slow: true, copies: 1},
		{label: crash.PlaceholderKnown, slow: true, copies: 1},
		{label: crash.StepCommitted, tool: true, copies: 1},
		{label: crash.ToolRunning, tool: true, copies: 1},
		{label: crash.ToolsDone, tool: true, copies: 1},
		{label: crash.FinishBefore, copies: 1},
		{label: crash.FinishAfter, copies: 1},
		{label: crash.OutboxIntent, copies: 1},
		{label: crash.EditBefore, copies: 1},
		{label: crash.EditAfter, copies: 2},
		{label: crash.EditBefore, slow: true, copies: 1},
		{label: crash.EditAfter, slow: true, copies: 1},
		{label: crash.PartSent, long: true, copies: 1},
		{label: crash.OutboxCompleted, copies: 1},
	} {
		name := c.label
		if c.slow {
			name += "/card"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			filler := ""
			if c.long {
				filler = strings.Repeat("Some paragraph of words that fill the message.\n\n", 200)
			}
			w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
				if c.tool && len(r.LastResults()) == 0 {
					return script.Tool("call-1", "write_file", map[string]any{"path": "/mnt/user-data/workspace/" + lastWords(r) + ".txt", "content": "x"})
				}
				s := script.Text(filler + "the answer to " + lastWords(r) + " is forty-two")
				if c.slow {
					s.ChunkSize, s.ChunkDelay = 1, 70*time.Millisecond
				}
				return s
			})
			w.tgOpts = "answer: edit" // on a machine that is busy a turn may last longer than answer_new_after
			w.start("DEERBOT_CRASH=" + c.label)
			ann := w.tg.Person("Ann", "ann")
			dm := w.tg.DM(ann)
			said := dm.Say(ann, "alpha")
			asked := []string{"alpha"}
			if c.more {
				if err := w.tg.WaitFor(w.ctx(), func() bool { return len(dm.Actions()) > 0 }); err != nil {
					t.Fatal(err)
				}
				dm.Say(ann, "beta")
				asked = append(asked, "beta")
			}
			w.died()
			w.start()
			for _, words := range asked {
				w.answer(dm, said.ID, "the answer to "+words+" is forty-two")
			}
			// One more message makes sure that the deliveries before it are over.
			w.answer(dm, dm.Say(ann, "omega").ID, "the answer to omega is forty-two")
			for _, words := range asked {
				if n := count(dm, "the answer to "+words+" is forty-two"); n > c.copies {
					t.Errorf("%d answers to %s: %s\n%s", n, words, show(dm), w.p.log)
				}
			}
			if c.slow && c.label != crash.PlaceholderAfter {
				for _, m := range dm.BotMessages() {
					if strings.Contains(m.Text, "forty-two") {
						continue
					}
					t.Errorf("a placeholder was left: %q", m.Text)
				}
			}
			if c.tool {
				results := 0
				for _, m := range w.llm.Requests()[len(w.llm.Requests())-1].Messages {
					results += len(m.Results)
				}
				if results == 0 {
					t.Error("the call has no result in history")
				}
			}
			resumed := c.tool || strings.HasPrefix(c.label, "model.") || strings.HasPrefix(c.label, "placeholder.") || c.more || strings.HasPrefix(c.label, "run.") || strings.HasPrefix(c.label, "finish.before")
			if resumed && !strings.Contains(show(dm), "restart") {
				t.Errorf("the run does not say that it was resumed: %s", show(dm))
			}
			if _, refused := w.llm.Count(); refused != 0 {
				t.Errorf("%d illegal requests", refused)
			}
			w.stop()
		})
	}
}
