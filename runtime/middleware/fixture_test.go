package middleware

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"testing"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/thread"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// fake is a tool that gives a fixed outcome.
type fake struct {
	spec   tools.Spec
	result tools.Result
	err    error
}

func (f fake) Spec() tools.Spec {
	f.spec.Schema = json.RawMessage(`{"type":"object"}`)
	return f.spec
}

func (f fake) Call(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
	return f.result, f.err
}

// direct calls the run's tool.
func direct(ctx context.Context, r *agent.Run, c model.ToolCall) (tools.Result, error) {
	t, _ := r.Tools.Get(c.Name)
	return t.Call(ctx, nil, c.Arguments)
}

// events is a sink that keeps what was emitted.
type events struct {
	mu   sync.Mutex
	list []event.Body
}

func (s *events) Emit(_ int, b event.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, b)
}
func (*events) Usage(store.UsageRow)              {}
func (*events) Artifact(store.Artifact)           {}
func (*events) Commit(context.Context, int) error { return nil }

func run(t *testing.T, ts ...tools.Tool) *agent.Run {
	t.Helper()
	set, err := tools.NewSet(ts...)
	if err != nil {
		t.Fatal(err)
	}
	return &agent.Run{
		ID: "r", Log: thread.New("t"), Tools: set, Sink: &events{}, Model: noModel{}, Now: time.Now, Step: 1,
		Limits: agent.Limits{MaxSteps: 100, OutputBudget: 1000},
	}
}

func retries(r *agent.Run) (out []event.ModelRetry) {
	s := r.Sink.(*events)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.list {
		if e, ok := b.(event.ModelRetry); ok {
			out = append(out, e)
		}
	}
	return out
}

// noModel has a name only.
type noModel struct{}

func (noModel) Info() model.Info { return model.Info{Name: "m", Provider: "openai", Model: "x"} }
func (noModel) Stream(context.Context, *model.Request) iter.Seq2[model.Chunk, error] {
	return nil
}

func answerWith(f model.Finish, text string, calls ...string) *model.Response {
	res := &model.Response{Finish: f, Message: model.Message{Role: model.RoleAssistant}}
	if text != "" {
		res.Message.Parts = append(res.Message.Parts, textPart(text))
	}
	for _, c := range calls {
		res.Message.Parts = append(res.Message.Parts, model.Part{Kind: model.PartToolCall, Call: &model.ToolCall{ID: c, Name: c}})
	}
	return res
}
