package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"deerbot/internal/crash"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/store"
)

// Causes with which the worker ends a run's context. They decide what the loop leaves behind.
var (
	// ErrUserStop: a person stopped the run. Open calls are answered "cancelled", partial text stays.
	ErrUserStop = errors.New("stopped by a person")
	// ErrInterrupted: another run displaced this one. As ErrUserStop.
	ErrInterrupted = errors.New("interrupted by a newer message")
	// ErrTimeCapped: the run's wall clock is over and it did not close by itself.
	ErrTimeCapped = errors.New("run timeout")
	// ErrSuspend: the process ends. Nothing is answered for the tools; the run goes on after the restart.
	ErrSuspend = errors.New("the process is stopping")
	// ErrFenced: the run has another owner. Nothing may be written any more.
	ErrFenced = errors.New("the run has another owner")
)

// Loop runs agents. One Loop serves all runs of a process.
type Loop struct {
	Chain *Chain
	Log   *slog.Logger
}

// Run drives r to its end and returns how it ended. It returns State "" when the run was suspended or fenced: the run is
// then not over. drain, when closed, makes it suspend at the next step boundary; it may be nil.
func (l *Loop) Run(ctx context.Context, r *Run, drain <-chan struct{}) Outcome {
	r.Limits = r.Limits.withDefaults()
	t := &turn{loop: l, Run: r, drain: drain}
	t.model = l.Chain.WrapModel(t.stream)
	t.tool = l.Chain.WrapTool(t.callTool)
	var out Outcome
	if err := l.Chain.BeforeRun(ctx, r); err != nil {
		out = t.fail(ctx, "before run", err)
	} else {
		out = t.steps(ctx)
	}
	if out.State != "" {
		l.Chain.AfterRun(context.WithoutCancel(ctx), r, &out)
	}
	return out
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits
	if l.MaxSteps <= 0 {
		l.MaxSteps = d.MaxSteps
	}
	if l.Parallel <= 0 {
		l.Parallel = d.Parallel
	}
	if l.OutputBudget <= 0 {
		l.OutputBudget = d.OutputBudget
	}
	if l.ToolTimeout <= 0 {
		l.ToolTimeout = d.ToolTimeout
	}
	if l.CancelGrace <= 0 {
		l.CancelGrace = d.CancelGrace
	}
	return l
}

// turn is one Run call's working state.
type turn struct {
	*Run
	loop    *Loop
	drain   <-chan struct{}
	model   ModelFunc
	tool    ToolFunc
	partial strings.Builder // text streamed by the attempt under way
	shown   bool            // a delta of the attempt was published
	first   time.Time       // first chunk of the attempt
	callIDs map[string]bool // of all calls in the thread, made when the first call comes
}

func (t *turn) steps(ctx context.Context) Outcome {
	for {
		if ctx.Err() != nil {
			return t.cut(ctx)
		}
		select {
		case <-t.drain:
			return Outcome{Err: ErrSuspend}
		default:
		}
		done, out := t.step(ctx)
		if done {
			return out
		}
	}
}

// step makes one model call and the tool calls it asks for. It reports whether the run is over.
func (t *turn) step(ctx context.Context) (bool, Outcome) {
	t.Step++
	req := t.request()
	if err := t.loop.Chain.BeforeModel(ctx, t.Run, req); err != nil {
		return true, t.fail(ctx, "before model", err)
	}
	notes := t.attachNotes(req)
	t.Emit(event.StepStarted{})
	began := t.Now()
	resp, err := t.model(ctx, t.Run, req)
	if err != nil {
		if ctx.Err() != nil {
			if cause := context.Cause(ctx); !errors.Is(cause, ErrSuspend) && !errors.Is(cause, ErrFenced) {
				t.keepPartial() // a run that goes on asks again, and must not find half an answer
			}
			return true, t.cut(ctx)
		}
		if _, ok := errors.AsType[*HookError](err); ok {
			t.keepPartial()
			return true, t.fail(ctx, "model", err)
		}
		t.Reason(store.StopProviderError, "model", modelDetail(err))
		t.keepPartial()
		return true, Outcome{State: store.RunError, Err: err}
	}
	t.spendNotes(notes)
	t.book(resp, began)
	decision, note := t.judge(ctx, resp)

	msg := resp.Message
	msg.ID, msg.Role, msg.RunID, msg.At = t.NewID(), model.RoleAssistant, t.ID, t.Now()
	info := t.Model.Info()
	msg.Provider, msg.Model = info.Provider, info.Model
	t.nameCalls(&msg)
	calls := msg.Calls()
	if t.Closing() && (decision == AskAgain || decision == CloseRun || decision < StripCalls && len(calls) > 0) {
		// This was the closing answer, there is no other. The guard's note was meant for the model.
		decision, note = StripCalls, "The work had to end here before a closing answer was written."
	}

	switch {
	case decision == CloseRun:
		msg = withoutCalls(msg)
		if strings.TrimSpace(msg.TextOf()) != "" {
			t.complete(msg, false)
		}
		t.Close(note)
		t.finishStep(resp, 0, began)
		return false, Outcome{}
	case decision == AskAgain:
		if t.partial.Len() > 0 {
			t.Emit(event.MessageReset{})
		}
		t.Note(note)
		t.finishStep(resp, 0, began)
		return false, Outcome{}
	case decision >= StripCalls || len(calls) == 0:
		msg = withoutCalls(msg)
		if strings.TrimSpace(msg.TextOf()) == "" && note != "" {
			msg.Parts = append(msg.Parts, model.Part{Kind: model.PartText, Text: note})
		}
		return true, t.final(msg, resp, decision, began)
	}

	t.complete(msg, false)
	if decision == RejectCalls {
		t.answerAll(calls, note)
	} else {
		if err := t.Sink.Commit(ctx, t.Step); err != nil {
			return true, t.commitFailed(ctx, err)
		}
		crash.Point(crash.StepCommitted)
		t.runCalls(ctx, calls)
		crash.Point(crash.ToolsDone)
		if errors.Is(context.Cause(ctx), ErrSuspend) || errors.Is(context.Cause(ctx), ErrFenced) {
			return true, t.cut(ctx)
		}
	}
	t.finishStep(resp, len(calls), began)
	if ctx.Err() != nil {
		return true, t.cut(ctx)
	}
	if err := t.Sink.Commit(ctx, t.Step); err != nil {
		return true, t.commitFailed(ctx, err)
	}
	return false, Outcome{}
}

// stream is the innermost model function: one attempt.
func (t *turn) stream(ctx context.Context, r *Run, req *model.Request) (*model.Response, error) {
	if t.shown {
		t.Emit(event.MessageReset{})
	}
	t.partial.Reset()
	t.shown, t.first = false, time.Time{}
	for c, err := range r.Model.Stream(ctx, req) {
		if err != nil {
			return nil, err
		}
		if t.first.IsZero() {
			t.first = t.Now()
		}
		switch c.Kind {
		case model.ChunkText:
			t.shown = true
			t.partial.WriteString(c.Text)
			t.Emit(event.MessageDelta{Text: c.Text})
		case model.ChunkReasoning:
			t.Emit(event.MessageReasoning{Text: c.Text})
		case model.ChunkDone:
			t.shown = false
			return c.Response, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, &model.Error{Class: model.ClassCanceled, Provider: r.Model.Info().Provider, Model: r.Model.Info().Model, Err: err}
	}
	return nil, &model.Error{
		Class: model.ClassProtocol, Provider: r.Model.Info().Provider, Model: r.Model.Info().Model,
		Message: "the stream ended without an answer",
	}
}

// book counts the call and writes its usage row.
func (t *turn) book(resp *model.Response, began time.Time) {
	info, u := t.Model.Info(), resp.Usage
	row := store.UsageRow{
		ID: t.NewID(), RunID: t.ID, ThreadID: t.ThreadID, Step: t.Step, Provider: info.Provider, Model: info.Model,
		UserID: t.UserID, Conversation: t.Place, InputTokens: u.InputTokens, CachedTokens: u.CachedTokens,
		OutputTokens: u.OutputTokens, CostUSD: info.Price.Cost(u), Estimated: u.Estimated,
		Latency: t.Now().Sub(began), At: t.Now(),
	}
	if !t.first.IsZero() {
		row.FirstToken = t.first.Sub(began)
	}
	t.Totals.Steps++
	t.Totals.InputTokens += u.InputTokens
	t.Totals.CachedTokens += u.CachedTokens
	t.Totals.OutputTokens += u.OutputTokens
	t.Totals.CostUSD += row.CostUSD
	t.Totals.Estimated = t.Totals.Estimated || u.Estimated
	t.Sink.Usage(row)
	t.Emit(event.UsageUpdated{Totals: t.Totals})
}

// judge asks the guards and returns the strongest action with its note. All reasons are recorded.
func (t *turn) judge(ctx context.Context, resp *model.Response) (Action, string) {
	strongest, note := Continue, ""
	for _, d := range t.loop.Chain.AfterModel(ctx, t.Run, resp) {
		if d.Reason != nil {
			t.Reason(d.Reason.Code, d.Reason.Source, d.Reason.Detail)
		}
		if d.Action > strongest {
			strongest, note = d.Action, d.Note
		}
	}
	return strongest, note
}

func (t *turn) complete(msg model.Message, final bool) {
	t.Log.Append(msg)
	if text := msg.TextOf(); text != "" || final {
		t.Emit(event.MessageCompleted{MessageID: msg.ID, Text: text, Final: final})
	}
}

// final ends the run with msg as its answer. The worker writes it with the terminal transaction.
func (t *turn) final(msg model.Message, resp *model.Response, d Action, began time.Time) Outcome {
	if len(msg.Parts) > 0 {
		t.complete(msg, true)
	}
	t.finishStep(resp, 0, began)
	if d == EndRun {
		return Outcome{State: store.RunError, Err: errors.New("ended by a guard")}
	}
	if !slices.ContainsFunc(t.Reasons(), func(r store.StopReason) bool { return r.Code != store.StopRecovered }) {
		t.Reason(store.StopCompleted, "agent", "")
	}
	return Outcome{State: store.RunSuccess}
}

func (t *turn) finishStep(resp *model.Response, calls int, began time.Time) {
	t.Emit(event.StepFinished{Finish: string(resp.Finish), ToolCalls: calls, Latency: t.Now().Sub(began)})
}

// keepPartial keeps what people saw of an answer that was cut off.
func (t *turn) keepPartial() {
	text := t.partial.String()
	if !t.shown || strings.TrimSpace(text) == "" {
		return
	}
	msg := model.Text(t.NewID(), model.RoleAssistant, text)
	msg.RunID, msg.At = t.ID, t.Now()
	info := t.Model.Info()
	msg.Provider, msg.Model = info.Provider, info.Model
	t.Log.Append(msg)
	t.Emit(event.MessageCompleted{MessageID: msg.ID, Text: text})
}

// cut ends the run because its context ended; the cause says how.
func (t *turn) cut(ctx context.Context) Outcome {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrSuspend), errors.Is(cause, ErrFenced):
		return Outcome{Err: cause}
	case errors.Is(cause, ErrUserStop):
		t.Reason(store.StopUserStop, "user", "")
	case errors.Is(cause, ErrTimeCapped):
		t.Reason(store.StopTimeCapped, "run", "")
		return Outcome{State: store.RunError, Err: cause}
	default:
		t.Reason(store.StopInterrupted, "run", "")
	}
	return Outcome{State: store.RunInterrupted, Err: cause}
}

func (t *turn) fail(ctx context.Context, where string, err error) Outcome {
	if ctx.Err() != nil {
		return t.cut(ctx)
	}
	t.loop.Log.Error("run failed", "run", t.ID, "step", t.Step, "where", where, "err", err)
	t.Reason(store.StopInternal, where, "")
	return Outcome{State: store.RunError, Err: fmt.Errorf("%s: %w", where, err)}
}

func (t *turn) commitFailed(ctx context.Context, err error) Outcome {
	if errors.Is(err, store.ErrFenced) {
		return Outcome{Err: ErrFenced}
	}
	if errors.Is(err, store.ErrFull) {
		t.Reason(store.StopInternal, "store", "the disk is full")
		return Outcome{State: store.RunError, Err: err}
	}
	return t.fail(ctx, "commit", err)
}

// modelDetail is what people may read about a failed model call: class and the provider's words, which are cleaned.
func modelDetail(err error) string {
	var me *model.Error
	if !errors.As(err, &me) {
		return string(model.ClassNetwork)
	}
	if me.Message == "" {
		return string(me.Class)
	}
	return fmt.Sprintf("%s: %s", me.Class, me.Message)
}

func withoutCalls(m model.Message) model.Message {
	parts := m.Parts
	m.Parts = nil
	for _, p := range parts {
		if p.Kind != model.PartToolCall {
			m.Parts = append(m.Parts, p)
		}
	}
	return m
}
