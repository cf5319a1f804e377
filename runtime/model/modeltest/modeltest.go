// Package modeltest is the conformance suite of model adapters. [Run] checks what [model.Model] promises; the tests of
// faults on the wire run for harnesses that have one.
package modeltest

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
)

// Harness makes the models under test.
type Harness struct {
	// New returns a model set up as s says, and the recorder of the wire server behind it. The server and the
	// connections end with t.
	New func(t *testing.T, s Setup) (model.Model, *script.Recorder)
	// Wire tells that answers can be scripted. Without it Setup.Respond has no effect and the recorder is nil.
	Wire bool
	// Key is the API key that New uses. It must never show.
	Key string
}

// Setup is what a test wants of a model.
type Setup struct {
	Respond script.Responder
	Timeout time.Duration
	Stall   time.Duration
	// StrictReasoning makes the server refuse a history without its reasoning.
	StrictReasoning bool
}

// Result is everything a call yielded.
type Result struct {
	Chunks   []model.Chunk
	Response *model.Response
	Err      error
}

// Text joins the text chunks of r.
func (r Result) Text() string { return r.join(model.ChunkText) }

// Reasoning joins the reasoning chunks of r.
func (r Result) Reasoning() string { return r.join(model.ChunkReasoning) }

func (r Result) join(kind model.ChunkKind) string {
	var b strings.Builder
	for _, c := range r.Chunks {
		if c.Kind == kind {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

// Collect runs a call to its end and checks the laws of every stream: nothing after an error or after the done chunk,
// one of the two always, errors are *model.Error, and what was streamed is what the response holds.
func Collect(t testing.TB, seq iter.Seq2[model.Chunk, error]) Result {
	t.Helper()
	var r Result
	for c, err := range seq {
		if r.Err != nil || r.Response != nil {
			t.Errorf("yielded %v, %v after the end", c.Kind, err)
		}
		if err != nil {
			r.Err = err
			continue
		}
		if c.Kind == model.ChunkDone {
			r.Response = c.Response
		} else {
			r.Chunks = append(r.Chunks, c)
		}
	}
	switch {
	case r.Err != nil:
		if _, ok := errors.AsType[*model.Error](r.Err); !ok {
			t.Errorf("error %v is a %T, want *model.Error", r.Err, r.Err)
		}
	case r.Response == nil:
		t.Error("the stream ended with neither an error nor a done chunk")
	default:
		checkResponse(t, r)
	}
	return r
}

func checkResponse(t testing.TB, r Result) {
	t.Helper()
	m := r.Response.Message
	if m.Role != model.RoleAssistant || m.ID != "" {
		t.Errorf("response message has role %q and id %q, want assistant and none", m.Role, m.ID)
	}
	if got, want := r.Text(), m.TextOf(); got != want {
		t.Errorf("streamed text %q, response text %q", got, want)
	}
	ids := map[string]bool{}
	for _, c := range m.Calls() {
		if c.ID == "" || ids[c.ID] || c.Name == "" {
			t.Errorf("call %+v: wants a unique id and a name", c)
		}
		ids[c.ID] = true
		if got := string(model.Canonical(c.Arguments)); !strings.HasPrefix(got, "{") {
			t.Errorf("arguments of %s are %q, want an object", c.Name, got)
		}
	}
	for _, c := range r.Chunks {
		if c.Kind == model.ChunkToolCall && !ids[c.Call.ID] {
			t.Errorf("call %s (%s) was announced and is not in the response", c.Call.ID, c.Call.Name)
		}
	}
	if (r.Response.Finish == model.FinishTools) != (len(ids) > 0) && r.Response.Finish != model.FinishLength && r.Response.Finish != model.FinishSafety {
		t.Errorf("finish %q with %d calls", r.Response.Finish, len(ids))
	}
	if u := r.Response.Usage; u.InputTokens <= 0 || u.CachedTokens > u.InputTokens {
		t.Errorf("usage %+v", u)
	}
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"Info":              testInfo,
		"Text":              testText,
		"RequestNotMutated": testRequestNotMutated,
		"Repeatable":        testRepeatable,
		"BreakEndsCall":     testBreak,
		"ContextEndsCall":   testContext,
		"ContextDoneBefore": testContextBefore,
		"StrictHistory":     testStrictHistory,
		"NoTools":           testNoTools,
	} {
		t.Run(name, func(t *testing.T) { leaks(t); test(t, h) })
	}
	if !h.Wire {
		return
	}
	for name, test := range wireTests {
		t.Run(name, func(t *testing.T) { leaks(t); test(t, h) })
	}
}

// leaks makes t fail when goroutines outlive it. It must come before what t cleans up.
func leaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// Tools are the tools the suite offers.
var Tools = []model.ToolSpec{
	{Name: "write_file", Description: "Write a file.", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`)},
	{Name: "read_file", Description: "Read a file.", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
}

// Ask is a request of one user message.
func Ask(text string) *model.Request {
	return &model.Request{Messages: []model.Message{
		model.Text("s", model.RoleSystem, "You are a test."),
		model.Text("u", model.RoleUser, text),
	}, Tools: Tools}
}

func testInfo(t *testing.T, h Harness) {
	m, _ := h.New(t, Setup{})
	a, b := m.Info(), m.Info()
	if a != b || a.Name == "" || a.Provider == "" || a.Model == "" {
		t.Errorf("info %+v then %+v: wants to be complete and constant", a, b)
	}
}

func testText(t *testing.T, h Harness) {
	m, _ := h.New(t, Setup{Respond: script.Queue(script.Script{Parts: []script.Part{{Text: "Hello, 世界! 👋"}}, ChunkSize: 1})})
	r := Collect(t, m.Stream(t.Context(), Ask("hello")))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if h.Wire && r.Text() != "Hello, 世界! 👋" {
		t.Errorf("text %q", r.Text())
	}
	if r.Response.Finish != model.FinishStop || r.Text() == "" {
		t.Errorf("finish %q, text %q", r.Response.Finish, r.Text())
	}
	if msg := r.Response.Message; msg.Provider != m.Info().Provider || msg.Model != m.Info().Model {
		t.Errorf("the message came from %s/%s, want %s/%s", msg.Provider, msg.Model, m.Info().Provider, m.Info().Model)
	}
}

func testRequestNotMutated(t *testing.T, h Harness) {
	m, _ := h.New(t, Setup{})
	req, same := &model.Request{Messages: History(m.Info()), Tools: Tools}, &model.Request{Messages: History(m.Info()), Tools: Tools}
	if r := Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	if diff := cmp.Diff(same, req); diff != "" {
		t.Errorf("the request changed (-want +got):\n%s", diff)
	}
}

func testRepeatable(t *testing.T, h Harness) {
	m, _ := h.New(t, Setup{})
	req := Ask("say the same again")
	first := Collect(t, m.Stream(t.Context(), req))
	second := Collect(t, m.Stream(t.Context(), req))
	if first.Err != nil || second.Err != nil {
		t.Fatal(first.Err, second.Err)
	}
	if diff := cmp.Diff(first.Text(), second.Text()); diff != "" {
		t.Errorf("a second call differs (-first +second):\n%s", diff)
	}
}

func testBreak(t *testing.T, h Harness) {
	never := make(chan struct{})
	m, rec := h.New(t, Setup{Respond: script.Queue(script.Script{Parts: []script.Part{{Text: "one "}, {Text: "two", Wait: never}}})})
	n := 0
	for c, err := range m.Stream(t.Context(), Ask("please count to two for me")) {
		if err != nil || c.Kind != model.ChunkText {
			t.Fatalf("first chunk %v, error %v", c.Kind, err)
		}
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d chunks", n)
	}
	if rec != nil {
		rec.Wait() // the server sees the client leave
	}
}

func testContext(t *testing.T, h Harness) {
	never := make(chan struct{})
	m, rec := h.New(t, Setup{Respond: script.Queue(script.Script{Parts: []script.Part{{Text: "one "}, {Text: "two", Wait: never}}})})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := Collect(t, func(yield func(model.Chunk, error) bool) {
		for c, err := range m.Stream(ctx, Ask("please count to two for me")) {
			cancel()
			if !yield(c, err) {
				return
			}
		}
	})
	if got := model.ClassOf(r.Err); r.Err == nil || got != model.ClassCanceled {
		t.Errorf("error %v (%s), want canceled", r.Err, got)
	}
	if !errors.Is(r.Err, context.Canceled) {
		t.Errorf("error %v does not wrap context.Canceled", r.Err)
	}
	if rec != nil {
		rec.Wait()
	}
}

func testContextBefore(t *testing.T, h Harness) {
	m, _ := h.New(t, Setup{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Collect(t, m.Stream(ctx, Ask("too late for anything"))); model.ClassOf(r.Err) != model.ClassCanceled || len(r.Chunks) > 0 {
		t.Errorf("error %v after %d chunks, want canceled after none", r.Err, len(r.Chunks))
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if r := Collect(t, m.Stream(ctx, Ask("too late for anything"))); model.ClassOf(r.Err) != model.ClassTimeout {
		t.Errorf("error %v, want timeout", r.Err)
	}
}

func testNoTools(t *testing.T, h Harness) {
	m, rec := h.New(t, Setup{})
	req := Ask("please work on this without any tools now")
	req.NoTools = true
	r := Collect(t, m.Stream(t.Context(), req))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if n := len(r.Response.Message.Calls()); n > 0 {
		t.Errorf("%d calls", n)
	}
	if rec != nil && !rec.Last().NoTools {
		t.Error("the server was not told")
	}
}
