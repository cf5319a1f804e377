package modeltest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
)

var wireTests = map[string]func(*testing.T, Harness){
	"ToolCall":           testToolCall,
	"ParallelCalls":      testParallelCalls,
	"MalformedArguments": testMalformed,
	"ReasoningRoundTrip": testReasoning,
	"Usage":              testUsage,
	"UsageMissing":       testUsageMissing,
	"FinishReasons":      testFinish,
	"C130LineEnds":       testLineEnds,
	"C131LongEvent":      testLongEvent,
	"C132Stall":          testStall,
	"SlowReaderNoStall":  testSlowReader,
	"C132Cut":            testCut,
	"Timeout":            testTimeout,
	"Refusals":           testRefusals,
	"C147OverloadInside": testOverloadInside,
	"C148FailAfterText":  testFailAfterText,
	"C204KeyNeverShows":  testKeyNeverShows,
}

func contains(s, sub string) bool { return strings.Contains(s, sub) }

// one runs a single scripted call.
func one(t *testing.T, h Harness, s script.Script) Result {
	t.Helper()
	m, _ := h.New(t, Setup{Respond: script.Queue(s)})
	return Collect(t, m.Stream(t.Context(), Ask("go")))
}

func testToolCall(t *testing.T, h Harness) {
	s := script.Text("I write. ").Then(script.Tool("c1", "write_file", map[string]any{"path": "a", "content": "é\n\"x\""}))
	s.ChunkSize = 3
	r := one(t, h, s)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	calls := r.Response.Message.Calls()
	if len(calls) != 1 || calls[0].ID != "c1" || calls[0].Name != "write_file" || calls[0].Malformed != "" ||
		string(model.Canonical(calls[0].Arguments)) != `{"content":"é\n\"x\"","path":"a"}` {
		t.Errorf("calls %+v", calls)
	}
	announced := 0
	for _, c := range r.Chunks {
		if c.Kind == model.ChunkToolCall && c.Call.Name == "write_file" && c.Call.ID == "c1" {
			announced++
		}
	}
	if announced != 1 || r.Text() != "I write. " {
		t.Errorf("announced %d times, text %q", announced, r.Text())
	}
}

func testParallelCalls(t *testing.T, h Harness) {
	s := script.Tool("c1", "read_file", `{"path":"a"}`).Then(script.Tool("c2", "read_file", "")).Then(script.Tool("c3", "write_file", `{"path":"b"}`))
	s.ChunkSize = 4
	r := one(t, h, s)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var got []string
	for _, c := range r.Response.Message.Calls() {
		got = append(got, c.ID+" "+c.Name+" "+string(c.Arguments)+c.Malformed)
	}
	if want := `c1 read_file {"path":"a"}|c2 read_file {}|c3 write_file {"path":"b"}`; strings.Join(got, "|") != want {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func testMalformed(t *testing.T, h Harness) {
	for _, sent := range []string{`{"path":"/srv","recursive":tr`, `["a"]`, `not json`} {
		r := one(t, h, script.Script{Parts: []script.Part{{Call: &script.Call{ID: "c", Name: "read_file", Arguments: sent}}}})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if c := r.Response.Message.Calls()[0]; string(c.Arguments) != "{}" || c.Malformed != sent {
			t.Errorf("sent %q: arguments %s, malformed %q", sent, c.Arguments, c.Malformed)
		}
	}
}

func testReasoning(t *testing.T, h Harness) {
	const thought = "First I think.\nThen  I think again. 想"
	m, rec := h.New(t, Setup{StrictReasoning: true, Respond: script.Queue(
		script.Script{ChunkSize: 5, Parts: []script.Part{{Reasoning: thought, Signature: "c2ln"}, {Text: "Now."}, {Call: &script.Call{ID: "c", Name: "read_file", Arguments: "{}"}}}},
		script.Text("done"),
	)})
	req := Ask("go")
	r := Collect(t, m.Stream(t.Context(), req))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if r.Reasoning() != thought || r.Text() != "Now." {
		t.Errorf("reasoning %q, text %q", r.Reasoning(), r.Text())
	}
	answer := r.Response.Message
	answer.ID = "a"
	results := model.Message{ID: "t", Role: model.RoleTool, Parts: []model.Part{{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: "c", Content: "x"}}}}
	next := &model.Request{Messages: append(req.Messages, answer, results), Tools: Tools}
	if r := Collect(t, m.Stream(t.Context(), next)); r.Err != nil {
		t.Fatalf("the answer was not accepted in history: %v", r.Err)
	}
	if got := rec.Last().Messages[1]; got.Reasoning != thought {
		t.Errorf("the server got back %q, want %q", got.Reasoning, thought)
	}
	answer.Model = "another"
	next.Messages[2] = answer
	lenient, rec := h.New(t, Setup{Respond: script.Queue(script.Text("done"))})
	if r := Collect(t, lenient.Stream(t.Context(), next)); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := rec.Last().Messages[1]; got.Reasoning != "" {
		t.Errorf("reasoning of another model was sent: %q", got.Reasoning)
	}
}

func testUsage(t *testing.T, h Harness) {
	s := script.Text("hi")
	s.Usage = &script.Usage{Input: 1200, Cached: 1000, Output: 7}
	r := one(t, h, s)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if want := (model.Usage{InputTokens: 1200, CachedTokens: 1000, OutputTokens: 7}); r.Response.Usage != want {
		t.Errorf("usage %+v, want %+v", r.Response.Usage, want)
	}
}

func testUsageMissing(t *testing.T, h Harness) {
	s := script.Text(strings.Repeat("word ", 40))
	s.NoUsage = true
	r := one(t, h, s)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if u := r.Response.Usage; !u.Estimated || u.InputTokens < 10 || u.OutputTokens < 20 || u.OutputTokens > 100 {
		t.Errorf("usage %+v, want an estimate", u)
	}
}

func testFinish(t *testing.T, h Harness) {
	call := script.Tool("c", "read_file", `{"path":"x`)
	for _, tc := range []struct {
		name   string
		s      script.Script
		finish string
		want   model.Finish
	}{
		{"stop", script.Text("x"), "stop", model.FinishStop},
		{"tools", call, "tool_calls", model.FinishTools},
		{"stop with calls", call, "stop", model.FinishTools},
		{"tools without calls", script.Text("x"), "tool_calls", model.FinishStop},
		{"C134 length inside arguments", call, "length", model.FinishLength},
		{"length", script.Text("x"), "length", model.FinishLength},
		{"C136 filter", script.Text("The answer is"), "content_filter", model.FinishSafety},
		{"C136 filter with call", call, "content_filter", model.FinishSafety},
		{"unknown", script.Text("x"), "whatever", model.FinishStop},
	} {
		tc.s.Finish = tc.finish
		r := one(t, h, tc.s)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if r.Response.Finish != tc.want {
			t.Errorf("%s: finish %q, want %q", tc.name, r.Response.Finish, tc.want)
		}
		for _, c := range r.Response.Message.Calls() {
			if c.Malformed == "" || string(c.Arguments) != "{}" {
				t.Errorf("%s: a cut call is not marked: %+v", tc.name, c)
			}
		}
	}
}

func testLineEnds(t *testing.T, h Harness) {
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		r := one(t, h, script.Script{Parts: []script.Part{{Text: "ab"}}, ChunkSize: 1, EOL: eol, Comments: true})
		if r.Err != nil || r.Text() != "ab" {
			t.Errorf("line end %q: text %q, error %v", eol, r.Text(), r.Err)
		}
	}
}

func testLongEvent(t *testing.T, h Harness) {
	long := strings.Repeat("0123456789abcdef", 3<<16)
	r := one(t, h, script.Text(long))
	if r.Err != nil || r.Text() != long {
		t.Errorf("3 MiB in one event: error %v, %d bytes", r.Err, len(r.Text()))
	}
	r = one(t, h, script.Text(strings.Repeat(long, 6)))
	if r.Err == nil || model.ClassOf(r.Err) != model.ClassProtocol || !contains(r.Err.Error(), "too large") {
		t.Errorf("18 MiB in one event: %v, want a protocol error that says why", r.Err)
	}
}

func testStall(t *testing.T, h Harness) {
	never := make(chan struct{})
	m, rec := h.New(t, Setup{Stall: 30 * time.Millisecond, Respond: script.Queue(script.Script{Parts: []script.Part{{Text: "one "}, {Text: "two", Wait: never}}})})
	r := Collect(t, m.Stream(t.Context(), Ask("go")))
	if model.ClassOf(r.Err) != model.ClassStall || r.Text() != "one " {
		t.Errorf("error %v after %q, want a stall after one", r.Err, r.Text())
	}
	rec.Wait()
	m, _ = h.New(t, Setup{Stall: 30 * time.Millisecond, Respond: script.Queue(script.Script{FirstDelay: time.Hour})})
	if r := Collect(t, m.Stream(t.Context(), Ask("go"))); model.ClassOf(r.Err) != model.ClassStall {
		t.Errorf("no header: error %v, want a stall", r.Err)
	}
}

// testSlowReader holds the consumer longer than the stall time-out: only silence of the provider counts.
func testSlowReader(t *testing.T, h Harness) {
	ready := make(chan struct{})
	m, _ := h.New(t, Setup{Stall: 50 * time.Millisecond, Respond: script.Queue(script.Script{Parts: []script.Part{{Text: "a"}, {Text: "b", Wait: ready}}})})
	r := Collect(t, func(yield func(model.Chunk, error) bool) {
		for c, err := range m.Stream(t.Context(), Ask("go")) {
			if c.Text == "a" {
				<-time.After(150 * time.Millisecond)
				close(ready)
			}
			if !yield(c, err) {
				return
			}
		}
	})
	if r.Err != nil || r.Text() != "ab" {
		t.Errorf("text %q, error %v", r.Text(), r.Err)
	}
}

func testCut(t *testing.T, h Harness) {
	const text = "The whole answer, and nothing but the whole answer."
	for _, abrupt := range []bool{true, false} {
		completed := 0
		for n := 1; n < 4000; n += 61 {
			s := script.Script{Parts: []script.Part{{Text: text}}, ChunkSize: 10, CutAfter: n}
			if !abrupt {
				s = script.Script{Parts: s.Parts, ChunkSize: 10, NoFinish: true}
			}
			r := one(t, h, s)
			switch {
			case r.Err == nil && (r.Text() != text || r.Response.Finish != model.FinishStop):
				t.Errorf("cut after %d bytes: done with %q", n, r.Text())
			case r.Err == nil:
				completed++
			case !model.ClassOf(r.Err).Retryable():
				t.Errorf("cut after %d bytes: error %v is not retryable", n, r.Err)
			}
			if !abrupt {
				break
			}
		}
		if abrupt != (completed > 0) {
			t.Errorf("abrupt %v: %d calls completed", abrupt, completed)
		}
	}
	// an answer of one tool call must not be complete either
	r := one(t, h, script.Script{Parts: script.Tool("c", "read_file", `{"path":"x"}`).Parts, NoFinish: true})
	if r.Err == nil {
		t.Error("a call without finish reason and end mark was taken as complete")
	}
}

func testTimeout(t *testing.T, h Harness) {
	never := make(chan struct{})
	m, _ := h.New(t, Setup{Timeout: 40 * time.Millisecond, Respond: script.Queue(script.Script{Parts: []script.Part{{Text: "one "}, {Text: "two", Wait: never}}})})
	if r := Collect(t, m.Stream(t.Context(), Ask("go"))); model.ClassOf(r.Err) != model.ClassTimeout {
		t.Errorf("error %v, want timeout", r.Err)
	}
}

func testRefusals(t *testing.T, h Harness) {
	for _, tc := range []struct {
		status  int
		message string
		body    string
		retry   string
		want    model.Class
		after   time.Duration
	}{
		{429, "Slow down", "", "7", model.ClassRate, 7 * time.Second},
		{429, "Too many tokens, please wait before trying again.", "", "", model.ClassRate, 0},
		{401, "invalid key", "", "", model.ClassAuth, 0},
		{402, "no money", "", "", model.ClassQuota, 0},
		{403, "not allowed", "", "", model.ClassAuth, 0},
		{404, "no such model", "", "", model.ClassBadRequest, 0},
		{400, "messages: something is wrong", "", "", model.ClassBadRequest, 0},
		{400, "prompt is too long: 210000 tokens > 200000 maximum", "", "", model.ClassOverflow, 0},
		{400, "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", "", "", model.ClassOverflow, 0},
		{413, "Request too large", "", "", model.ClassOverflow, 0},
		{500, "oops", "", "", model.ClassOverload, 0},
		{529, "Overloaded", "", "3", model.ClassOverload, 3 * time.Second},
		{502, "", "<html><head><title>502</title></head><body>Bad gateway</body></html>", "", model.ClassOverload, 0},
		{503, "", "{\"broken", "", model.ClassOverload, 0},
	} {
		s := script.Script{Error: &script.Error{Status: tc.status, Message: tc.message, Body: tc.body, RetryAfter: tc.retry}}
		r := one(t, h, s)
		var e *model.Error
		if !errors.As(r.Err, &e) {
			t.Errorf("%d %s: %v", tc.status, tc.message, r.Err)
			continue
		}
		if e.Class != tc.want || e.Status != tc.status || e.RetryAfter != tc.after || contains(e.Error(), "<") {
			t.Errorf("%d %q: class %s, status %d, retry after %v: %v; want %s, %v", tc.status, tc.message, e.Class, e.Status, e.RetryAfter, e, tc.want, tc.after)
		}
	}
}

func testOverloadInside(t *testing.T, h Harness) {
	r := one(t, h, script.Script{StreamError: &script.Error{Type: "overloaded_error", Message: "Overloaded"}})
	if model.ClassOf(r.Err) != model.ClassOverload || len(r.Chunks) > 0 || contains(fmt.Sprint(r.Err), "{") {
		t.Errorf("error %v after %d chunks, want overload after none, without JSON", r.Err, len(r.Chunks))
	}
}

func testFailAfterText(t *testing.T, h Harness) {
	s := script.Text("The answer is 4").Then(script.Tool("c", "read_file", "{}"))
	s.StreamError = &script.Error{Type: "overloaded_error", Message: "Overloaded"}
	r := one(t, h, s)
	if model.ClassOf(r.Err) != model.ClassOverload || r.Response != nil || r.Text() != "The answer is 4" {
		t.Errorf("error %v, response %v, text %q", r.Err, r.Response, r.Text())
	}
}

func testKeyNeverShows(t *testing.T, h Harness) {
	for _, s := range []script.Script{
		{Error: &script.Error{Status: 401, Message: "Incorrect API key provided: " + h.Key}},
		{Error: &script.Error{Status: 500, Body: "Authorization: Bearer " + h.Key + " url https://u:pw@example.com/x?key=" + h.Key}},
		{StreamError: &script.Error{Message: "bad key " + h.Key}},
	} {
		r := one(t, h, s)
		var e *model.Error
		if !errors.As(r.Err, &e) {
			t.Fatalf("no error: %v", r.Err)
		}
		for err := error(e); err != nil; err = errors.Unwrap(err) {
			if all := fmt.Sprintf("%v %+v %#v", err, err, err); contains(all, h.Key) || contains(all, "u:pw") || contains(all, "?key") {
				t.Errorf("the key shows: %s", all)
			}
		}
	}
}
