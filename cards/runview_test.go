package cards

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"deerbot/cards/phrase"
	"deerbot/runtime/event"
	"deerbot/store"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var runStart = time.Unix(1_700_000_000, 0)

// feed applies bodies one second apart; an int sets the step of what follows, a string the task.
func feed(v *RunView, in ...any) time.Time {
	at, step, task := runStart, 0, ""
	for _, x := range in {
		switch x := x.(type) {
		case int:
			step = x
		case string:
			task = x
		case time.Duration:
			at = at.Add(x)
		case event.Body:
			v.Apply(event.Event{Run: "r", At: at, Step: step, Task: task, Body: x})
			at = at.Add(time.Second)
		}
	}
	return at
}

func TestRunViewLife(t *testing.T) {
	var v RunView
	v.Title = "first words"
	feed(&v, event.RunQueued{Position: 2})
	if c := v.Card(runStart, phrase.EN); c.Phase != PhaseQueued || c.Position != 2 || c.Elapsed != 0 {
		t.Errorf("queued: %+v", c)
	}
	v = RunView{Title: "first words"}
	now := feed(&v,
		event.RunStarted{Model: "m"}, 1, event.StepStarted{}, event.MessageReasoning{Text: "hidden"},
		event.MessageDelta{Text: "I will "}, event.MessageDelta{Text: "look."})
	c := v.Card(now, phrase.EN)
	if c.Phase != PhaseWriting || c.Answer != "I will look." || !c.Open || c.Title != "first words" {
		t.Errorf("writing: %+v", c)
	}
	now = feed(&v, 1, event.MessageCompleted{MessageID: "m1", Text: "I will look."}, event.TitleUpdated{Title: "A title"},
		event.ToolStarted{CallID: "c1", Name: "bash", Args: "ls"})
	c = v.Card(runStart.Add(9*time.Second), phrase.EN)
	if c.Phase != PhaseTool || len(c.Tools) != 1 || c.Tools[0].State != "running" || c.Answer != "I will look." || c.Open || c.Title != "A title" {
		t.Errorf("tool: %+v", c)
	}
	if c.Elapsed != 5*time.Second {
		t.Errorf("elapsed %v", c.Elapsed)
	}
	feed(&v, 1, event.ToolFinished{CallID: "c1", Name: "bash", Elapsed: 1500 * time.Millisecond},
		event.UsageUpdated{Totals: store.Totals{Steps: 1, InputTokens: 100, OutputTokens: 20, CostUSD: 0.1}}, event.StepFinished{ToolCalls: 1},
		2, event.StepStarted{}, event.MessageDelta{Text: "The ans"})
	c = v.Card(now, phrase.EN)
	if c.Answer != "The ans" || c.Totals.Tokens != 120 || c.Tools[0].State != "ok" {
		t.Errorf("second step: %+v", c)
	}
	feed(&v, 12*time.Second, 2, event.MessageCompleted{MessageID: "m2", Text: "The answer.", Final: true},
		event.RunFinished{State: store.RunSuccess, Stop: []store.StopReason{{Code: store.StopCompleted}}, Totals: store.Totals{Steps: 2, InputTokens: 300}},
		event.End{State: store.RunSuccess})
	c = v.Card(now.Add(time.Hour), phrase.EN)
	if c.Phase != PhaseDone || c.Answer != "The answer." || c.Open || len(c.Reasons) != 0 || c.Totals.Tokens != 300 || c.Elapsed != 13*time.Second {
		t.Errorf("done: %+v", c)
	}
	if got := v.FinalAnswer(); got != "I will look.\n\nThe answer." {
		t.Errorf("final %q", got)
	}
}

func TestRunViewUsageReplaces(t *testing.T) {
	var v RunView
	feed(&v, event.RunStarted{},
		event.UsageUpdated{Totals: store.Totals{Steps: 1, InputTokens: 100}},
		event.UsageUpdated{Totals: store.Totals{Steps: 2, InputTokens: 250}},
		event.UsageUpdated{Totals: store.Totals{Steps: 2, InputTokens: 250}},
		event.UsageUpdated{Totals: store.Totals{Steps: 1, InputTokens: 100}}) // late
	if c := v.Card(runStart, phrase.EN); c.Totals.Tokens != 250 || c.Totals.Steps != 2 {
		t.Errorf("totals %+v", c.Totals)
	}
}

func TestRunViewEndIsSticky(t *testing.T) {
	for _, state := range []store.RunState{store.RunSuccess, store.RunError, store.RunInterrupted} {
		var v RunView
		now := feed(&v, event.RunStarted{}, 1, event.StepStarted{}, event.MessageDelta{Text: "part"}, event.RunFinished{State: state, Totals: store.Totals{InputTokens: 5}})
		before := v.Card(now, phrase.EN)
		feed(&v, 2, event.StepStarted{}, event.MessageDelta{Text: "late"}, event.ToolStarted{CallID: "x", Name: "late"}, event.MessageReset{},
			event.MessageCompleted{Text: "late"}, event.RunStarted{}, event.RunQueued{Position: 1}, event.ModelRetry{Attempt: 1},
			event.GuardWarned{Guard: "late"}, event.TodoUpdated{Todos: []event.Todo{{Text: "late"}}}, event.End{State: state})
		if diff := cmp.Diff(before, v.Card(now.Add(time.Hour), phrase.EN)); diff != "" {
			t.Errorf("%s: late events changed the picture: %s", state, diff)
		}
		if v.FinalAnswer() != "part" {
			t.Errorf("%s: final %q", state, v.FinalAnswer())
		}
	}
}

func TestRunViewReset(t *testing.T) {
	var v RunView
	now := feed(&v, event.RunStarted{}, 1, event.StepStarted{}, event.MessageCompleted{MessageID: "a", Text: "kept"},
		2, event.StepStarted{}, event.MessageDelta{Text: "half of a wrong"}, event.ModelRetry{Attempt: 1, Max: 5, Wait: 8 * time.Second, Class: "overload"}, event.MessageReset{})
	c := v.Card(now, phrase.EN)
	if c.Answer != "kept" || len(c.Notices) != 1 || !strings.Contains(c.Notices[0], "overloaded; trying again in 8s (attempt 2 of 5)") {
		t.Errorf("%+v", c)
	}
	now = feed(&v, 2, event.MessageDelta{Text: "right"})
	if c := v.Card(now, phrase.EN); c.Answer != "right" || len(c.Notices) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestRunViewResumed(t *testing.T) {
	var v RunView
	now := feed(&v, event.RunStarted{}, 3, event.StepStarted{}, event.MessageDelta{Text: "lost"}, event.ToolStarted{CallID: "c", Name: "bash"},
		10*time.Second, event.RunStarted{Resumed: 1, Rehearsal: true}, event.ToolFinished{CallID: "c", Name: "bash", Unknown: true})
	c := v.Card(now, phrase.EN)
	if c.Answer != "" || len(c.Tools) != 1 || c.Tools[0].State != "unknown" || c.Elapsed != 15*time.Second {
		t.Errorf("%+v", c)
	}
	if len(c.Notices) != 2 || !strings.HasPrefix(c.Notices[0], "Rehearsal") || c.Notices[1] != "Picked up after a restart, step 3" {
		t.Errorf("notices %q", c.Notices)
	}
}

func TestRunViewTools(t *testing.T) {
	var v RunView
	in := []any{event.RunStarted{}, 1, event.ToolStarted{CallID: "long", Name: "slow", Args: "/a/" + strings.Repeat("b/", 200) + "c"}}
	for i := range 50 {
		id := fmt.Sprint(i)
		in = append(in, event.ToolStarted{CallID: id, Name: "tool" + id}, event.ToolFinished{CallID: id, Name: "tool" + id, IsError: i == 49})
	}
	in = append(in, event.ToolFinished{CallID: "unseen", Name: "unseen"})
	now := feed(&v, in...)
	c := v.Card(now, phrase.EN)
	if len(c.Tools) > MaxToolLines || len(c.Tools)+c.Hidden != 52 {
		t.Errorf("%d lines, %d hidden", len(c.Tools), c.Hidden)
	}
	last := c.Tools[len(c.Tools)-1]
	if last.Name != "unseen" || c.Tools[len(c.Tools)-2].State != "error" {
		t.Errorf("lines %+v", c.Tools)
	}
	// a call that runs on stays in sight
	v = RunView{}
	now = feed(&v, append([]any{event.RunStarted{}, event.ToolStarted{CallID: "long", Name: "slow"}}, in[3:23]...)...)
	if c := v.Card(now, phrase.EN); c.Tools[0].Name != "slow" || c.Tools[0].State != "running" || len(c.Tools) != MaxToolLines {
		t.Errorf("lines %+v", c.Tools)
	}
}

func TestRunViewEnds(t *testing.T) {
	stops := func(codes ...store.StopCode) (out []store.StopReason) {
		for _, c := range codes {
			out = append(out, store.StopReason{Code: c})
		}
		return out
	}
	for _, c := range []struct {
		state   store.RunState
		stop    []store.StopReason
		err     string
		want    Phase
		reasons int
	}{
		{store.RunSuccess, stops(store.StopCompleted), "", PhaseDone, 0},
		{store.RunSuccess, nil, "", PhaseDone, 0},
		{store.RunSuccess, stops(store.StopCompleted, store.StopRecovered), "", PhaseDone, 0},
		{store.RunSuccess, stops(store.StopTokenCapped), "", PhaseCapped, 1},
		{store.RunSuccess, stops(store.StopCompleted, store.StopLengthCapped), "", PhaseCapped, 1},
		{store.RunInterrupted, stops(store.StopUserStop), "", PhaseStopped, 1},
		{store.RunInterrupted, nil, "", PhaseStopped, 1},
		{store.RunError, stops(store.StopProviderError), "the provider said no", PhaseFailed, 2},
		{store.RunError, nil, "it broke", PhaseFailed, 1},
		{store.RunError, nil, "", PhaseFailed, 1},
		{store.RunError, stops(store.StopTimeCapped, store.StopToolDenied), "", PhaseCapped, 2},
	} {
		var v RunView
		now := feed(&v, event.RunStarted{}, event.RunFinished{State: c.state, Stop: c.stop, Error: c.err})
		card := v.Card(now, phrase.EN)
		if card.Phase != c.want || len(card.Reasons) != c.reasons {
			t.Errorf("%s %v: %s, reasons %q", c.state, c.stop, card.Phase, card.Reasons)
		}
	}
	// End alone is an end too, and the guard that stopped the run is its reason.
	var v RunView
	now := feed(&v, event.RunStarted{}, event.GuardStopped{Reason: store.StopReason{Code: store.StopLoopCapped}}, event.End{State: store.RunSuccess})
	if c := v.Card(now, phrase.ZH); c.Phase != PhaseCapped || len(c.Reasons) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestRunViewGuards(t *testing.T) {
	var v RunView
	now := feed(&v, event.RunStarted{}, event.GuardWarned{Guard: "tokens", Detail: "80% of 1M tokens"}, event.GuardWarned{Guard: "tokens", Detail: "90% of 1M tokens"}, event.GuardWarned{Guard: "loop"})
	if c := v.Card(now, phrase.EN); len(c.Notices) != 2 || !strings.Contains(c.Notices[0], "90%") {
		t.Errorf("%q", c.Notices)
	}
}

func TestRunViewSubagents(t *testing.T) {
	var v RunView
	now := feed(&v, event.RunStarted{}, 1, event.MessageDelta{Text: "mine"}, event.ToolStarted{CallID: "t1", Name: "task", Args: "runtimes survey"},
		"t1", 7, event.MessageDelta{Text: "theirs"}, event.ToolStarted{CallID: "x", Name: "theirs"}, event.UsageUpdated{Totals: store.Totals{InputTokens: 900}},
		"t2", 1, event.StepStarted{}, event.RunFinished{State: store.RunSuccess})
	c := v.Card(now, phrase.EN)
	if c.Answer != "mine" || len(c.Tools) != 1 || c.Totals.Tokens != 0 || c.Phase != PhaseTool {
		t.Errorf("%+v", c)
	}
	want := []SubagentLine{{"runtimes survey", "running", 7, 900, 5 * time.Second}, {"t2", "ok", 1, 0, time.Second}}
	if diff := cmp.Diff(want, c.Subagents); diff != "" {
		t.Error(diff)
	}
}

// TestRunViewAnyOrder feeds events in any order: no panic, figures never shrink, an end stays.
func TestRunViewAnyOrder(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) event.Event {
		text := rapid.SampledFrom([]string{"", "a", "**b", "```", "\n", "<thi", "| a |"}).Draw(t, "text")
		id := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "id")
		n := rapid.IntRange(0, 5).Draw(t, "n")
		bodies := []event.Body{
			event.RunQueued{Position: n},
			event.RunStarted{Resumed: n},
			event.RunSteered{},
			event.StepStarted{},
			event.StepFinished{ToolCalls: n},
			event.MessageDelta{Text: text},
			event.MessageReasoning{Text: text},
			event.MessageReset{},
			event.MessageCompleted{MessageID: id, Text: text, Final: n > 3},
			event.ToolStarted{CallID: id, Name: "t", Args: text},
			event.ToolProgress{CallID: id},
			event.ToolFinished{CallID: id, Unknown: n == 1},
			event.TodoUpdated{Todos: []event.Todo{{Text: text}}},
			event.UsageUpdated{Totals: store.Totals{Steps: n, InputTokens: int64(n)}},
			event.GuardWarned{Guard: id},
			event.GuardStopped{},
			event.ModelRetry{Attempt: n},
			event.TitleUpdated{Title: text},
			event.Gap{},
			event.Heartbeat{},
			event.RunFinished{State: store.RunSuccess},
			event.End{State: store.RunError},
		}
		return event.Event{At: runStart.Add(time.Duration(n) * time.Second), Step: n, Task: rapid.SampledFrom([]string{"", "", "", "k"}).Draw(t, "task"), Body: rapid.SampledFrom(bodies).Draw(t, "body")}
	})
	rapid.Check(t, func(t *rapid.T) {
		var v RunView
		var tokens int64
		var end Phase
		for range rapid.IntRange(0, 40).Draw(t, "len") {
			v.Apply(gen.Draw(t, "e"))
			c := v.Card(runStart.Add(time.Minute), phrase.EN)
			if c.Totals.Tokens < tokens {
				t.Fatal("tokens shrank")
			}
			tokens = c.Totals.Tokens
			if end != "" && c.Phase != end {
				t.Fatalf("%s after %s", c.Phase, end)
			}
			if c.Phase.Terminal() {
				end = c.Phase
			}
			if len(c.Tools) > MaxToolLines || c.Hidden < 0 || c.Elapsed < 0 {
				t.Fatalf("%+v", c)
			}
			for _, d := range dialects {
				if _, err := checkBody(d, d.Card(c)); err != nil {
					t.Fatalf("%v", err)
				}
			}
		}
	})
}
