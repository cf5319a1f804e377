package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deerbot/internal/wire/anthropic"
	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
	"deerbot/runtime/model/modeltest"
)

// raw answers one call with the given events, whose type is taken from the JSON.
func raw(t *testing.T, events ...string) modeltest.Result {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		var head struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &head)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", head.Type, e)
	}
	m := serve(t, &anthropic.Server{Respond: script.Queue(script.Script{Raw: []byte(b.String())})}, nil)
	return modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("go")))
}

const (
	start   = `{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":70,"cache_creation_input_tokens":25,"output_tokens":1}}}`
	endTurn = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`
	stop    = `{"type":"message_stop"}`
)

func text(s string) []string {
	return []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + s + `"}}`, `{"type":"content_block_stop","index":0}`,
	}
}

func TestUsageIncludesCache(t *testing.T) {
	r := raw(t, append(append([]string{start}, text("hi")...), endTurn, stop)...)
	if want := (model.Usage{InputTokens: 100, CachedTokens: 70, OutputTokens: 9}); r.Err != nil || r.Response.Usage != want {
		t.Errorf("error %v, usage %+v", r.Err, r.Response)
	}
}

func TestStopReasons(t *testing.T) {
	for reason, want := range map[string]model.Finish{
		"end_turn": model.FinishStop, "stop_sequence": model.FinishStop, "tool_use": model.FinishStop, "max_tokens": model.FinishLength,
		"refusal": model.FinishSafety, "pause_turn": model.FinishLength, "model_context_window_exceeded": model.FinishLength, "new_one": model.FinishStop,
	} {
		r := raw(t, append(append([]string{start}, text("x")...), strings.Replace(endTurn, "end_turn", reason, 1), stop)...)
		if r.Err != nil || r.Response.Finish != want {
			t.Errorf("%s: error %v, response %+v", reason, r.Err, r.Response)
		}
	}
}

func TestStopWithoutMessageStop(t *testing.T) {
	for name, events := range map[string][]string{
		"nothing": {}, "text": append([]string{start}, text("x")...), "reason": append(append([]string{start}, text("x")...), endTurn),
	} {
		if r := raw(t, events...); r.Err == nil || model.ClassOf(r.Err) != model.ClassNetwork {
			t.Errorf("%s: error %v, want network", name, r.Err)
		}
	}
}

func TestC147OverloadInsideStream(t *testing.T) {
	r := raw(t, start, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	var e *model.Error
	if !errors.As(r.Err, &e) || e.Class != model.ClassOverload || e.Message != "Overloaded" || e.Code != "overloaded_error" {
		t.Errorf("error %+v", r.Err)
	}
}

func TestThinkingRoundTrip(t *testing.T) {
	srv := &anthropic.Server{Strict: anthropic.Strict{Reasoning: true, Signatures: []string{"s1", "s2"}}, Respond: script.Queue(
		script.Script{Parts: []script.Part{
			{Reasoning: "one", Signature: "s1"},
			{Redacted: "opaque"},
			{Text: "Text."},
			{Reasoning: "two", Signature: "s2"},
			{Call: &script.Call{ID: "c", Name: "read_file", Arguments: `{"p":1}`}},
		}}, script.Text("done"))}
	m := serve(t, srv, nil)
	req := modeltest.Ask("go")
	r := modeltest.Collect(t, m.Stream(t.Context(), req))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	stored, err := json.Marshal(r.Response.Message)
	if err != nil {
		t.Fatal(err)
	}
	var answer model.Message
	if err := json.Unmarshal(stored, &answer); err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, answer, model.Message{Role: model.RoleTool, Parts: []model.Part{{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: "c"}}}})
	if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	var body struct {
		Messages []struct {
			Content []map[string]any `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(srv.Last().Body, &body); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"type": "thinking", "thinking": "one", "signature": "s1"},
		{"type": "redacted_thinking", "data": "opaque"},
		{"type": "text", "text": "Text."},
		{"type": "thinking", "thinking": "two", "signature": "s2"},
		{"type": "tool_use", "id": "c", "name": "read_file", "input": map[string]any{"p": 1.0}},
	}
	if diff := cmp.Diff(want, body.Messages[1].Content); diff != "" {
		t.Errorf("the answer went back changed (-want +got):\n%s", diff)
	}
}

func TestCacheBreakpoints(t *testing.T) {
	srv := &anthropic.Server{Respond: script.Queue(script.Text("ok"))}
	m := serve(t, srv, nil)
	if r := modeltest.Collect(t, m.Stream(t.Context(), &model.Request{Messages: modeltest.History(m.Info()), Tools: modeltest.Tools})); r.Err != nil {
		t.Fatal(r.Err)
	}
	if n := strings.Count(string(srv.Last().Body), `"cache_control"`); n != 4 {
		t.Errorf("%d breakpoints: %s", n, srv.Last().Body)
	}
	m = serve(t, srv, func(c *Config) { c.NoCache = true })
	if r := modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("x"))); r.Err != nil {
		t.Fatal(r.Err)
	}
	if strings.Contains(string(srv.Last().Body), `"cache_control"`) {
		t.Errorf("breakpoints: %s", srv.Last().Body)
	}
}

func TestTurnsAreMerged(t *testing.T) {
	srv := &anthropic.Server{Respond: script.Queue(script.Text("ok"))}
	m := serve(t, srv, func(c *Config) { c.Vision = false })
	if r := modeltest.Collect(t, m.Stream(t.Context(), &model.Request{Messages: modeltest.History(m.Info()), Tools: modeltest.Tools})); r.Err != nil {
		t.Fatal(r.Err)
	}
	var roles []string
	for _, msg := range srv.Last().Messages {
		roles = append(roles, msg.Role)
	}
	if got, want := strings.Join(roles, " "), "user assistant user assistant user assistant user"; got != want {
		t.Errorf("roles %s, want %s", got, want)
	}
	last := srv.Last().Messages[6]
	if !strings.Contains(last.Text, "(a reminder)") || !strings.Contains(last.Text, "left out") || last.Images != 0 {
		t.Errorf("last turn %+v", last)
	}
	if id := srv.Last().Messages[1].Calls[0].ID; id != "functions_read_file_0" {
		t.Errorf("id %q", id)
	}
}

func TestRequestOnTheWire(t *testing.T) {
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "other")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Ambient: 1")
	srv := &anthropic.Server{Key: testKey}
	m := serve(t, srv, func(c *Config) {
		c.BaseURL += "/v1/"
		c.Extra = map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 2048}}
		c.APIKey += "\r\n"
	})
	req := modeltest.Ask("hi")
	req.MaxTokens = 33
	if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := srv.Last()
	if got.MaxTokens != 33 || !strings.Contains(string(got.Body), `"budget_tokens":2048`) || got.System != "You are a test." {
		t.Errorf("body %s", got.Body)
	}
	if h := got.Header; h.Get("X-Api-Key") != testKey || h.Get("Authorization") != "" || h.Get("X-Ambient") != "" || h.Get("X-Stainless-Os") != "" {
		t.Errorf("header %v", h)
	}
	m = serve(t, srv, func(c *Config) {
		c.Headers = map[string]string{"authorization": "Bearer " + testKey, "anthropic-version": "2023-06-01"}
		c.Extra = map[string]any{"temperature": 0}
	})
	if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	if h := srv.Last().Header; h.Get("X-Api-Key") != "" || h.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("header %v", h)
	}
}

func TestC204KeyNeverShows(t *testing.T) {
	if _, err := New(Config{Model: "m", APIKey: "sk\rSECRET"}); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("error %v", err)
	}
	hs := httptest.NewServer(nil)
	dead := strings.Replace(hs.URL, "http://", "http://u:SECRET@", 1) + "?key=SECRET"
	hs.Close()
	m, err := New(Config{Model: "m", APIKey: "SECRETKEY", BaseURL: dead})
	if err != nil {
		t.Fatal(err)
	}
	r := modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("hi")))
	if model.ClassOf(r.Err) != model.ClassNetwork || strings.Contains(fmt.Sprintf("%v %+v", r.Err, r.Err), "SECRET") {
		t.Errorf("error %v", r.Err)
	}
}

func TestInputInOnePiece(t *testing.T) {
	r := raw(t, start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"read_file","input":{"p":1}}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"","input":{}}}`,
		strings.Replace(endTurn, "end_turn", "tool_use", 1), stop)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if calls := r.Response.Message.Calls(); len(calls) != 1 || string(calls[0].Arguments) != `{"p":1}` {
		t.Errorf("calls %+v", calls)
	}
}

func TestUnsendable(t *testing.T) {
	req := modeltest.Ask("hi")
	req.Tools = []model.ToolSpec{{Name: "t", Schema: json.RawMessage(`{"type":`)}}
	r := modeltest.Collect(t, serve(t, &anthropic.Server{}, nil).Stream(t.Context(), req))
	if r.Err == nil || model.ClassOf(r.Err).Retryable() {
		t.Errorf("error %v, want one that is not worth a retry", r.Err)
	}
}
