package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// The last allowed call offers no tools and says why; a model that calls one all the same ends there, without open calls.
func TestStepCap(t *testing.T) {
	n := 0
	act := returns("act", "acted", &n)
	b := newBench(t, []tools.Tool{act}, calls("act"), calls("act"), calls("act"), calls("act"), say("closing"))
	b.Limits.MaxSteps = 5
	if out := b.drive(t.Context()); out.State != store.RunSuccess || n != 4 || b.sink.visible() != "closing" {
		t.Fatalf("%+v, %d calls, %q", out, n, b.sink.visible())
	}
	reqs := b.model.requests()
	for i, req := range reqs {
		if req.NoTools != (i == 4) || len(req.Tools) != 1 {
			t.Errorf("request %d: no tools %v", i+1, req.NoTools)
		}
	}
	if got := lastText(reqs[4]); !strings.Contains(got, "last of the 5 steps") || !strings.Contains(got, "1 are left") {
		t.Errorf("told at the last step: %q", got)
	}
	if len(of[event.GuardWarned](b.sink)) != 1 || !slices.Equal(b.codes(), []store.StopCode{store.StopStepCapped}) {
		t.Errorf("%v, %s", b.codes(), b.sink.kinds())
	}

	for limit := 1; limit <= 3; limit++ {
		answers := slices.Repeat([]answer{calls("act")}, limit)
		b = newBench(t, []tools.Tool{act}, answers...)
		b.Limits.MaxSteps = limit
		out := b.drive(t.Context())
		if out.State != store.RunSuccess || len(agent.OpenCalls(b.Log)) > 0 || b.sink.visible() == "" || b.Totals.Steps != limit {
			t.Errorf("limit %d: %+v, %q, %d steps", limit, out, b.sink.visible(), b.Totals.Steps)
		}
	}
}

func spending(a answer, tokens int64) answer {
	a.usage = model.Usage{InputTokens: tokens - 1, OutputTokens: 1}
	return a
}

func TestTokenCap(t *testing.T) {
	n := 0
	act := returns("act", "acted", &n)
	b := newBench(t, []tools.Tool{act}, spending(calls("act"), 50), spending(calls("act"), 35), spending(calls("act"), 20), spending(say("closing"), 60))
	b.Limits.TokenBudget = 100
	if out := b.drive(t.Context()); out.State != store.RunSuccess || n != 2 || b.sink.visible() != "closing" {
		t.Fatalf("%+v, %d calls, %q", out, n, b.sink.visible())
	}
	reqs := b.model.requests()
	if !strings.Contains(lastText(reqs[2]), "85 %") || !strings.Contains(lastText(reqs[3]), "used up") || !reqs[3].NoTools {
		t.Errorf("told %q, %q", lastText(reqs[2]), lastText(reqs[3]))
	}
	if !slices.Equal(b.codes(), []store.StopCode{store.StopTokenCapped}) {
		t.Errorf("%v", b.codes())
	}

	b = newBench(t, []tools.Tool{act}, spending(calls("act"), 50), spending(calls("act"), 70))
	b.Limits.TokenBudget = 100
	if out := b.drive(t.Context()); out.State != store.RunError || !slices.Equal(b.codes(), []store.StopCode{store.StopTokenCapped}) {
		t.Errorf("hard stop: %+v, %v", out, b.codes())
	}

	b = newBench(t, nil, spending(say("done"), 500))
	b.Limits.TokenBudget = 100
	if out := b.drive(t.Context()); out.State != store.RunSuccess || !slices.Equal(b.codes(), []store.StopCode{store.StopCompleted}) {
		t.Errorf("an answer that ends by itself: %+v, %v", out, b.codes())
	}
}

func TestTimeCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool{tools.Spec{Name: "slow"}, func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
			<-time.After(9 * time.Minute)
			return tools.Result{Content: "ok"}, nil
		}}
		b := newBench(t, []tools.Tool{slow}, calls("slow"), calls("slow"), say("closing"))
		b.Limits.Timeout = 10 * time.Minute
		if out := b.drive(t.Context()); out.State != store.RunSuccess || b.sink.visible() != "closing" {
			t.Errorf("%+v, %q", out, b.sink.visible())
		}
		if !slices.Equal(b.codes(), []store.StopCode{store.StopTimeCapped}) || !b.model.requests()[2].NoTools {
			t.Errorf("%v", b.codes())
		}
		if len(of[event.GuardWarned](b.sink)) != 1 {
			t.Error("no warning at 80 %")
		}
	})
}
