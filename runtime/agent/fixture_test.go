package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/middleware"
	"deerbot/runtime/middleware/middlewaretest"
	"deerbot/runtime/model"
	"deerbot/runtime/thread"
	"deerbot/runtime/tools"
	"deerbot/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what the scripted model does at one attempt.
type answer struct {
	deltas []string // streamed, and the answer's text
	calls  []model.ToolCall
	finish model.Finish // default: tool_calls with calls, else stop
	usage  model.Usage
	err    error // after the deltas, instead of an answer
	hang   bool  // after the deltas, until the context ends
}

// scripted is a model that answers by a script and checks every request as a strict provider does.
type scripted struct {
	t       *testing.T
	mu      sync.Mutex
	answers []answer
	reqs    []*model.Request
}

func (m *scripted) Info() model.Info {
	return model.Info{Name: "m", Provider: "openai", Model: "x", ContextWindow: 1000}
}

func (m *scripted) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		m.mu.Lock()
		m.reqs = append(m.reqs, req)
		if err := middlewaretest.Strict(req); err != nil {
			m.t.Errorf("request %d: a strict provider refuses: %v", len(m.reqs), err)
		}
		if len(m.answers) == 0 {
			m.mu.Unlock()
			m.t.Errorf("request %d is one too many", len(m.reqs))
			yield(model.Chunk{}, m.fault(model.ClassBadRequest))
			return
		}
		a := m.answers[0]
		m.answers = m.answers[1:]
		m.mu.Unlock()
		for _, d := range a.deltas {
			if !yield(model.Chunk{Kind: model.ChunkText, Text: d}, nil) {
				return
			}
		}
		if a.hang {
			<-ctx.Done()
			yield(model.Chunk{}, m.fault(model.ClassCanceled))
			return
		}
		if a.err != nil {
			yield(model.Chunk{}, a.err)
			return
		}
		yield(model.Chunk{Kind: model.ChunkDone, Response: a.response()}, nil)
	}
}

func (m *scripted) fault(c model.Class) error {
	return &model.Error{Class: c, Provider: "openai", Model: "x", Message: "provider words"}
}

func (m *scripted) requests() []*model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reqs
}

func (a answer) response() *model.Response {
	res := &model.Response{Message: model.Message{Role: model.RoleAssistant}, Finish: a.finish, Usage: a.usage}
	if text := strings.Join(a.deltas, ""); text != "" {
		res.Message.Parts = append(res.Message.Parts, model.Part{Kind: model.PartText, Text: text})
	}
	for _, c := range a.calls {
		if c.Arguments == nil {
			c.Arguments = json.RawMessage(`{}`)
		}
		res.Message.Parts = append(res.Message.Parts, model.Part{Kind: model.PartToolCall, Call: &c})
	}
	if a.finish == "" {
		res.Finish = model.FinishStop
		if len(a.calls) > 0 {
			res.Finish = model.FinishTools
		}
	}
	return res
}

func say(text string) answer { return answer{deltas: []string{text}} }

func calls(names ...string) answer {
	var a answer
	for i, n := range names {
		a.calls = append(a.calls, model.ToolCall{ID: fmt.Sprintf("%s_%d", n, i), Name: n})
	}
	return a
}

// sink records what happens. Commits are marks in the same list.
type sink struct {
	mu     sync.Mutex
	log    *thread.Log
	events []event.Body
	usage  []store.UsageRow
	stored []*store.Checkpoint
	fail   error
}

// committed is the mark of a commit and of the messages that became durable by it.
type committed struct{ Messages int }

func (committed) Kind() string { return "commit" }

func (s *sink) Emit(_ int, b event.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, b)
}

func (s *sink) Usage(row store.UsageRow) { s.usage = append(s.usage, row) }

func (s *sink) Artifact(store.Artifact) {}

func (s *sink) Commit(_ context.Context, step int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	cp, err := s.log.Checkpoint(fmt.Sprint("cp", len(s.stored)), "run", step, time.Time{})
	if err != nil || cp == nil {
		return err
	}
	s.log.Committed(cp)
	s.stored = append(s.stored, cp)
	s.events = append(s.events, committed{len(cp.Messages)})
	return nil
}

// of returns the events of one type.
func of[T event.Body](s *sink) (out []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.events {
		if e, ok := b.(T); ok {
			out = append(out, e)
		}
	}
	return out
}

func (s *sink) kinds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, b := range s.events {
		out = append(out, b.Kind())
	}
	return strings.Join(out, " ")
}

// visible is what a reader of the stream shows in the end: deltas, with resets obeyed, replaced by completed messages.
func (s *sink) visible() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var done, live string
	for _, b := range s.events {
		switch e := b.(type) {
		case event.MessageDelta:
			live += e.Text
		case event.MessageReset:
			live = ""
		case event.MessageCompleted:
			done, live = done+e.Text, ""
		}
	}
	return done + live
}

// bench is a run ready to be driven.
type bench struct {
	*agent.Run
	model *scripted
	sink  *sink
	loop  *agent.Loop
	ids   int
}

func newBench(t *testing.T, set []tools.Tool, answers ...answer) *bench {
	t.Helper()
	ts, err := tools.NewSet(set...)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	chain, err := agent.NewChain(log, middleware.Default(middleware.Config{})...)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{model: &scripted{t: t, answers: answers}, loop: &agent.Loop{Chain: chain, Log: log}}
	l := thread.New("thread")
	b.sink = &sink{log: l}
	var mu sync.Mutex
	b.Run = &agent.Run{
		ID: "run", ThreadID: "thread", Log: l, Model: b.model, Tools: ts, System: "rules", Sink: b.sink, Now: time.Now,
		NewID: func() string {
			mu.Lock()
			defer mu.Unlock()
			b.ids++
			return fmt.Sprintf("id%03d", b.ids)
		},
	}
	b.Log.Append(model.Text("u1", model.RoleUser, "do it"))
	return b
}

func (b *bench) drive(ctx context.Context) agent.Outcome { return b.loop.Run(ctx, b.Run, nil) }

func (b *bench) codes() (out []store.StopCode) {
	for _, r := range b.Reasons() {
		out = append(out, r.Code)
	}
	return out
}

// results returns the tool results of the thread, in order.
func (b *bench) results() (out []model.ToolResult) {
	for _, m := range b.Log.Messages() {
		for _, p := range m.Parts {
			if p.Result != nil {
				out = append(out, *p.Result)
			}
		}
	}
	return out
}

// tool is a tool made of a function.
type tool struct {
	spec tools.Spec
	call func(ctx context.Context, env *tools.Env, args json.RawMessage) (tools.Result, error)
}

func (t tool) Spec() tools.Spec {
	if t.spec.Schema == nil {
		t.spec.Schema = json.RawMessage(`{"type":"object"}`)
	}
	return t.spec
}

func (t tool) Call(ctx context.Context, env *tools.Env, args json.RawMessage) (tools.Result, error) {
	return t.call(ctx, env, args)
}

// returns makes a tool that gives a fixed text and counts its calls.
func returns(name, text string, n *int) tool {
	return tool{tools.Spec{Name: name}, func(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
		if n != nil {
			*n++
		}
		return tools.Result{Content: text}, nil
	}}
}
