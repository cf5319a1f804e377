package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"deerbot/internal/crash"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/thread"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// Texts that stand in for the result of a call that has none.
const (
	// ResultCancelled answers calls that a person's stop cut off or kept from starting.
	ResultCancelled = "cancelled by user"
	// ResultUnknown answers calls that were under way when the process stopped.
	ResultUnknown = "outcome unknown: the process stopped while this ran. It may or may not have taken effect: check before doing it again."
)

// OpenCalls returns the calls of the log's last assistant message that have no result yet.
func OpenCalls(l *thread.Log) []model.ToolCall {
	msgs := l.Messages()
	answered := map[string]bool{}
	for _, msg := range slices.Backward(msgs) {
		switch msg.Role {
		case model.RoleTool:
			for _, p := range msg.Parts {
				if p.Result != nil {
					answered[p.Result.CallID] = true
				}
			}
		case model.RoleAssistant:
			var open []model.ToolCall
			for _, c := range msg.Calls() {
				if !answered[c.ID] {
					open = append(open, c)
				}
			}
			return open
		default:
			return nil
		}
	}
	return nil
}

// ResultMessage makes the message that answers calls, all with the same text.
func ResultMessage(id string, calls []model.ToolCall, text string, at time.Time) model.Message {
	m := model.Message{ID: id, Role: model.RoleTool, At: at}
	for _, c := range calls {
		m.Parts = append(m.Parts, model.Part{Kind: model.PartToolResult, Result: &model.ToolResult{
			CallID: c.ID, Name: c.Name, Content: text, IsError: true,
		}})
	}
	return m
}

// nameCalls gives each call of m an id that no other call of the thread has, and a name: some providers count from zero
// in every answer or send none, and everything that follows a call follows its id.
func (t *turn) nameCalls(m *model.Message) {
	if len(m.Calls()) == 0 {
		return
	}
	if t.callIDs == nil {
		t.callIDs = map[string]bool{}
		for _, old := range t.Log.Messages() {
			for _, c := range old.Calls() {
				t.callIDs[c.ID] = true
			}
		}
	}
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if p.Kind != model.PartToolCall || p.Call == nil {
			continue
		}
		c := *p.Call
		if strings.TrimSpace(c.Name) == "" {
			c.Name = "unknown_tool"
		}
		if strings.TrimSpace(c.ID) == "" || t.callIDs[c.ID] {
			c.ID = "call_" + strings.ReplaceAll(t.NewID(), "-", "")
		}
		t.callIDs[c.ID] = true
		m.Parts[i].Call = &c
	}
}

// answerAll answers every call with the same error and runs none.
func (t *turn) answerAll(calls []model.ToolCall, text string) {
	m := ResultMessage(t.NewID(), calls, text, t.Now())
	m.RunID = t.ID
	t.Log.Append(m)
	for _, c := range calls {
		t.Emit(event.ToolFinished{CallID: c.ID, Name: c.Name, IsError: true, Result: head(text, 500)})
	}
}

// runCalls runs the calls of one message and appends one message that answers all of them, in call order. Neighbouring
// read-only calls run side by side; any other runs alone.
func (t *turn) runCalls(ctx context.Context, calls []model.ToolCall) {
	results := make([]*callResult, len(calls))
	for i := 0; i < len(calls); {
		n := i + 1
		if t.readOnly(calls[i]) {
			for n < len(calls) && t.readOnly(calls[n]) {
				n++
			}
		}
		t.batch(ctx, calls[i:n], results[i:n])
		i = n
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrSuspend) || errors.Is(cause, ErrFenced) {
		// What was not finished is not answered: the next owner must learn that its outcome is unknown.
		return
	}
	m := model.Message{ID: t.NewID(), Role: model.RoleTool, RunID: t.ID, At: t.Now()}
	for i, c := range calls {
		res := results[i]
		if res == nil {
			res = &callResult{text: cancelText(ctx), isError: true}
		}
		m.Parts = append(m.Parts, model.Part{Kind: model.PartToolResult, Result: &model.ToolResult{
			CallID: c.ID, Name: c.Name, Content: res.text, IsError: res.isError,
		}})
		t.take(c, res)
	}
	t.Totals.ToolCalls += len(calls)
	t.Log.Append(m)
}

// cancelText answers a call that the end of ctx cut off or kept from starting.
func cancelText(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrTimeCapped):
		return "cancelled: the time for this task was over"
	case errors.Is(cause, ErrInterrupted):
		return "cancelled: a newer message took the place of this task"
	}
	return ResultCancelled
}

func (t *turn) readOnly(c model.ToolCall) bool {
	tool, ok := t.lookup(c.Name)
	return ok && tool.Spec().ReadOnly
}

func (t *turn) lookup(name string) (tools.Tool, bool) {
	if t.Tools == nil {
		return nil, false
	}
	return t.Tools.Get(name)
}

type callResult struct {
	text    string
	isError bool
	result  tools.Result
	elapsed time.Duration
}

// batch runs calls side by side, at most Limits.Parallel at once. A call that a cancelled context kept from starting
// leaves its result nil.
func (t *turn) batch(ctx context.Context, calls []model.ToolCall, results []*callResult) {
	sem := make(chan struct{}, t.Limits.Parallel)
	var wg sync.WaitGroup
	for i, c := range calls {
		select {
		case sem <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-sem }()
			results[i] = t.one(ctx, c)
		})
	}
	wg.Wait()
}

// one runs a call through the chain. It returns at the latest CancelGrace after the context ended.
func (t *turn) one(ctx context.Context, c model.ToolCall) *callResult {
	began := t.Now()
	t.Emit(event.ToolStarted{CallID: c.ID, Name: c.Name, Args: t.line(c)})
	res, err := t.guarded(ctx, c)
	out := &callResult{text: res.Content, result: res}
	if err != nil {
		out.text, out.isError = err.Error(), true
		if ctx.Err() != nil {
			out.text = cancelText(ctx)
		}
	}
	out.elapsed = t.Now().Sub(began)
	if !errors.Is(context.Cause(ctx), ErrSuspend) {
		t.Emit(event.ToolFinished{
			CallID: c.ID, Name: c.Name, IsError: out.isError, Result: head(out.text, 500), Elapsed: out.elapsed,
		})
	}
	return out
}

func (t *turn) guarded(ctx context.Context, c model.ToolCall) (res tools.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.loop.Log.Error("tool panicked", "run", t.ID, "tool", c.Name, "panic", fmt.Sprint(p))
			err = fmt.Errorf("%s failed with an internal error", c.Name)
		}
	}()
	res, err = t.tool(ctx, t.Run, c)
	crash.Point(crash.ToolRunning)
	return res, err
}

// callTool is the innermost tool function.
func (t *turn) callTool(ctx context.Context, r *Run, c model.ToolCall) (tools.Result, error) {
	if c.Malformed != "" {
		return tools.Result{}, fmt.Errorf("the arguments were not a JSON object: %s. Send the call again with valid JSON", head(c.Malformed, 200))
	}
	if t.Tools == nil {
		return tools.Result{}, errors.New("there are no tools")
	}
	args, err := t.Tools.Check(c.Name, c.Arguments)
	if err != nil {
		return tools.Result{}, err
	}
	tool, _ := t.lookup(c.Name)
	timeout := tool.Spec().Timeout
	if timeout <= 0 {
		timeout = r.Limits.ToolTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	// A tool may ignore its context. Then it is left behind after CancelGrace: what it still says is not heard, and it can
	// no longer read the thread, which goes on without it.
	var mu sync.Mutex
	gone := false
	env := &tools.Env{
		RunID: r.ID, ThreadID: r.ThreadID, UserID: r.UserID, Files: r.Files, Now: r.Now,
		State: func(key string) json.RawMessage {
			mu.Lock()
			defer mu.Unlock()
			if gone {
				return nil
			}
			return r.StateJSON(key)
		},
		Progress: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			if !gone {
				t.Emit(event.ToolProgress{CallID: c.ID, Text: head(text, 120)})
			}
		},
	}
	type answer struct {
		res tools.Result
		err error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				t.loop.Log.Error("tool panicked", "run", t.ID, "tool", c.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				a = answer{err: &HookError{Hook: "tool", Panic: p}}
			}
			done <- a
		}()
		a.res, a.err = tool.Call(ctx, env, args)
	}()
	select {
	case a := <-done:
		return a.res, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(t.Limits.CancelGrace)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.res, a.err
	case <-timer.C:
		t.loop.Log.Warn("a tool does not return though its time is over", "run", t.ID, "tool", c.Name)
		mu.Lock()
		gone = true
		mu.Unlock()
		return tools.Result{}, ctx.Err()
	}
}

// take applies what a finished call brought besides its text. It runs on the loop's goroutine.
func (t *turn) take(c model.ToolCall, res *callResult) {
	if res.isError {
		return
	}
	for k, v := range res.result.State {
		if err := t.Log.Set(k, v); err != nil {
			t.loop.Log.Error("tool state", "run", t.ID, "tool", c.Name, "err", err)
		}
	}
	if res.result.Todos != nil {
		t.Emit(event.TodoUpdated{Todos: res.result.Todos})
	}
	for _, a := range res.result.Artifacts {
		a.ID, a.ThreadID, a.RunID, a.CreatedAt = t.NewID(), t.ThreadID, t.ID, t.Now()
		t.present(a)
	}
}

func (t *turn) present(a store.Artifact) {
	t.Sink.Artifact(a)
	t.Emit(event.ArtifactPresented{Artifact: a})
}

func (t *turn) line(c model.ToolCall) string {
	if tool, ok := t.lookup(c.Name); ok && c.Malformed == "" {
		if f := tool.Spec().Line; f != nil {
			return head(f(c.Arguments), 120)
		}
	}
	return ""
}

// head cuts s to at most n runes.
func head(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
