package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/tools"
	"deerbot/store"
)

func TestToolsThenAnswer(t *testing.T) {
	n := 0
	b := newBench(t, []tools.Tool{returns("act", "acted", &n)}, calls("act"), say("done"))
	out := b.drive(t.Context())
	if out.State != store.RunSuccess || n != 1 {
		t.Fatalf("state %s, %d calls", out.State, n)
	}
	want := "step.started usage.updated commit tool.started tool.finished step.finished commit " +
		"step.started message.delta usage.updated message.completed step.finished"
	if diff := cmp.Diff(want, b.sink.kinds()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]store.StopCode{store.StopCompleted}, b.codes()); diff != "" {
		t.Error(diff)
	}
	if b.sink.visible() != "done" || b.Totals.Steps != 2 || b.Totals.ToolCalls != 1 {
		t.Errorf("%q, %+v", b.sink.visible(), b.Totals)
	}
}

// The calls are on disk before a tool acts, and nothing of the results is.
func TestCommitBeforeTools(t *testing.T) {
	var b *bench
	onDisk := -1
	act := tool{tools.Spec{Name: "act"}, func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
		onDisk = len(of[committed](b.sink))
		return tools.Result{Content: "ok"}, nil
	}}
	b = newBench(t, []tools.Tool{act}, calls("act"), say("done"))
	b.drive(t.Context())
	if onDisk != 1 {
		t.Fatalf("%d commits before the tool acted, want 1", onDisk)
	}
	if got := of[committed](b.sink); len(got) != 2 || got[0].Messages != 2 || got[1].Messages != 1 {
		t.Errorf("commits %+v: want user and calls, then results", got)
	}
}

func TestCommitFailureEndsTheRun(t *testing.T) {
	n := 0
	b := newBench(t, []tools.Tool{returns("act", "acted", &n)}, calls("act"))
	b.sink.fail = store.ErrFull
	out := b.drive(t.Context())
	if out.State != store.RunError || n != 0 {
		t.Errorf("state %s, the tool acted %d times", out.State, n)
	}
	b = newBench(t, []tools.Tool{returns("act", "acted", &n)}, calls("act"))
	b.sink.fail = store.ErrFenced
	if out := b.drive(t.Context()); out.State != "" || !errors.Is(out.Err, agent.ErrFenced) || n != 0 {
		t.Errorf("fenced: %+v", out)
	}
}

// Read-only calls run side by side, results stand in the order of the calls.
func TestParallelReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set []tools.Tool
		for i, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
			set = append(set, tool{
				tools.Spec{Name: fmt.Sprint("read", i), ReadOnly: true},
				func(ctx context.Context, env *tools.Env, _ json.RawMessage) (tools.Result, error) {
					select {
					case <-time.After(d):
					case <-ctx.Done():
					}
					env.State("todos")
					return tools.Result{Content: fmt.Sprint("result ", i)}, nil
				},
			})
		}
		b := newBench(t, append(set, returns("write", "written", nil)), calls("read0", "read1", "read2", "write", "read0"), say("done"))
		began := time.Now()
		b.drive(t.Context())
		if d := time.Since(began); d != 6*time.Second {
			t.Errorf("took %s, want 3 s for the three and 3 s for the last", d)
		}
		var got []string
		for _, r := range b.results() {
			got = append(got, r.Content)
		}
		if diff := cmp.Diff([]string{"result 0", "result 1", "result 2", "written", "result 0"}, got); diff != "" {
			t.Error(diff)
		}
		started := of[event.ToolStarted](b.sink)
		if i := slices.IndexFunc(started, func(e event.ToolStarted) bool { return e.Name == "write" }); i != 3 {
			t.Errorf("write began at %d", i)
		}
	})
}

func TestParallelIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := tool{tools.Spec{Name: "read", ReadOnly: true}, func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
			<-time.After(time.Second)
			return tools.Result{Content: "ok"}, nil
		}}
		b := newBench(t, []tools.Tool{read}, calls("read", "read", "read", "read", "read"), say("done"))
		b.Limits.Parallel = 2
		began := time.Now()
		b.drive(t.Context())
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("took %s, want 3 s", d)
		}
	})
}

// C117: a stop while a tool runs leaves a thread that can be gone on with.
func TestC117StopDuringTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stubborn := tool{tools.Spec{Name: "stubborn"}, func(_ context.Context, env *tools.Env, _ json.RawMessage) (tools.Result, error) {
			<-release // ignores its context
			env.Progress("late")
			return tools.Result{Content: "too late", State: map[string]any{"todos": 1}}, nil
		}}
		b := newBench(t, []tools.Tool{stubborn, returns("next", "", nil)}, calls("stubborn", "next"), say("going on"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(agent.ErrUserStop) })
		began := time.Now()
		out := b.drive(ctx)
		if d := time.Since(began) - time.Second; d > 300*time.Millisecond {
			t.Errorf("the end came %s after the stop", d)
		}
		if out.State != store.RunInterrupted || !slices.Equal(b.codes(), []store.StopCode{store.StopUserStop}) {
			t.Errorf("%+v, %v", out, b.codes())
		}
		for _, r := range b.results() {
			if r.Content != agent.ResultCancelled || !r.IsError {
				t.Errorf("result %+v", r)
			}
		}
		if open := agent.OpenCalls(b.Log); len(open) > 0 {
			t.Errorf("open calls %+v", open)
		}
		close(release)
		synctest.Wait()
		if got := of[event.ToolProgress](b.sink); len(got) > 0 {
			t.Errorf("a tool that was left behind still speaks: %+v", got)
		}
		b.Log.Append(model.Text("u2", model.RoleUser, "continue"))
		if out := b.drive(t.Context()); out.State != store.RunSuccess { // the scripted model checks the request
			t.Errorf("the next run: %+v", out)
		}
	})
}

func TestStopDuringModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, answer{deltas: []string{"half of "}, hang: true})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(agent.ErrUserStop) })
		began := time.Now()
		out := b.drive(ctx)
		if out.State != store.RunInterrupted || time.Since(began) != time.Second {
			t.Errorf("%+v after %s", out, time.Since(began))
		}
		if b.sink.visible() != "half of " {
			t.Errorf("visible %q", b.sink.visible())
		}
		if ms := b.Log.Messages(); ms[len(ms)-1].TextOf() != "half of " {
			t.Error("what people saw is not in the thread")
		}
	})
}

// C118: what the process left open when it was killed is answered where it stands, also in the middle of a thread.
func TestC118KilledBetweenCallAndResult(t *testing.T) {
	b := newBench(t, nil, say("fine"))
	b.Log.Append(
		model.Message{ID: "a1", Role: model.RoleAssistant, Parts: []model.Part{
			{Kind: model.PartToolCall, Call: &model.ToolCall{ID: "t1", Name: "act", Arguments: json.RawMessage(`{}`)}},
			{Kind: model.PartToolCall, Call: &model.ToolCall{ID: "t2", Name: "act", Arguments: json.RawMessage(`{}`)}},
		}},
		model.Message{ID: "r1", Role: model.RoleTool, Parts: []model.Part{
			{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: "t1", Name: "act", Content: "one"}},
		}},
		model.Text("u2", model.RoleUser, "and now?"))
	before := len(b.Log.Messages())
	b.drive(t.Context())
	got := b.model.requests()[0].Messages
	res := got[3].Parts
	if len(res) != 2 || res[0].Result.Content != "one" || !res[1].Result.IsError {
		t.Errorf("results %+v", res)
	}
	if n := len(b.Log.Messages()); n != before+1 {
		t.Errorf("the thread grew by %d messages, want the answer only", n-before)
	}
}

func TestSuspendAnswersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool{tools.Spec{Name: "slow"}, func(ctx context.Context, _ *tools.Env, _ json.RawMessage) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, ctx.Err()
		}}
		b := newBench(t, []tools.Tool{slow}, calls("slow"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(agent.ErrSuspend) })
		out := b.drive(ctx)
		if out.State != "" || len(b.results()) != 0 || len(agent.OpenCalls(b.Log)) != 1 {
			t.Errorf("%+v, results %+v", out, b.results())
		}
	})
}

func TestDrainStopsAtAStep(t *testing.T) {
	drain := make(chan struct{})
	act := tool{tools.Spec{Name: "act"}, func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
		close(drain)
		return tools.Result{Content: "ok"}, nil
	}}
	b := newBench(t, []tools.Tool{act}, calls("act"))
	if out := b.loop.Run(t.Context(), b.Run, drain); out.State != "" || !errors.Is(out.Err, agent.ErrSuspend) {
		t.Errorf("%+v", out)
	}
	if b.results()[0].Content != "ok" {
		t.Error("the step was not finished")
	}
}

// A tool that ignores its own time limit does not hold the run.
func TestToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := tool{tools.Spec{Name: "stuck", Timeout: time.Minute}, func(_ context.Context, env *tools.Env, _ json.RawMessage) (tools.Result, error) {
			<-release
			env.State("todos") // the thread has gone on: must not be read
			return tools.Result{}, nil
		}}
		set := tool{tools.Spec{Name: "plan"}, func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
			close(release)
			return tools.Result{Content: "ok", State: map[string]any{"todos": []string{"x"}}}, nil
		}}
		b := newBench(t, []tools.Tool{stuck, set}, calls("stuck"), calls("plan"), say("done"))
		began := time.Now()
		if out := b.drive(t.Context()); out.State != store.RunSuccess {
			t.Errorf("%+v", out)
		}
		if d := time.Since(began); d != time.Minute+200*time.Millisecond {
			t.Errorf("took %s", d)
		}
		if r := b.results()[0]; !r.IsError || !strings.Contains(r.Content, "took too long") {
			t.Errorf("result %+v", r)
		}
	})
}

func TestToolPanic(t *testing.T) {
	boom := tool{tools.Spec{Name: "boom"}, func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
		panic("secret /home/x/y")
	}}
	b := newBench(t, []tools.Tool{boom}, calls("boom"), say("done"))
	if out := b.drive(t.Context()); out.State != store.RunSuccess {
		t.Errorf("%+v", out)
	}
	if r := b.results()[0]; !r.IsError || strings.Contains(r.Content, "/home") || !strings.Contains(r.Content, "internal error") {
		t.Errorf("result %+v", r)
	}
}

// A hallucinated name, and arguments against the schema, are answered with what is right.
func TestArgumentsAreChecked(t *testing.T) {
	n := 0
	act := returns("act", "acted", &n)
	act.spec.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	a := calls("acts", "act", "act")
	a.calls[2].Arguments = json.RawMessage(`{"n":"3"}`)
	b := newBench(t, []tools.Tool{act}, a, say("done"))
	b.drive(t.Context())
	res := b.results()
	if n != 1 || !res[0].IsError || !strings.Contains(res[0].Content, `"act"`) || !strings.Contains(res[1].Content, "n") || res[2].Content != "acted" {
		t.Errorf("%d calls, results %+v", n, res)
	}
}
