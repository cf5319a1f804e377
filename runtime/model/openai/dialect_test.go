package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
	"deerbot/runtime/model/modeltest"
)

// raw answers one call with the given events, each a JSON text or a bare word.
func raw(t *testing.T, events ...string) modeltest.Result {
	t.Helper()
	return rawBytes(t, "data: "+strings.Join(events, "\n\ndata: ")+"\n\n")
}

func rawBytes(t *testing.T, stream string) modeltest.Result {
	t.Helper()
	m := serve(t, &openai.Server{Respond: script.Queue(script.Script{Raw: []byte(stream)})}, nil)
	return modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("go")))
}

// piece is an event with one delta.
func piece(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

// calls is the calls of a good answer in short.
func calls(t *testing.T, r modeltest.Result) string {
	t.Helper()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var out []string
	for _, c := range r.Response.Message.Calls() {
		s := c.ID + " " + c.Name + " " + string(c.Arguments)
		if c.Malformed != "" {
			s += " malformed " + c.Malformed
		}
		out = append(out, s)
	}
	return strings.Join(out, "|")
}

func TestC122IndexReused(t *testing.T) {
	r := raw(t, piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"{\"p\":1}"}}]}`),
		piece(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"read_file","arguments":"{\"p\":"}}]}`),
		piece(`{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}`), finish("tool_calls"), "[DONE]")
	if got, want := calls(t, r), `a read_file {"p":1}|b read_file {"p":2}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestC123IndexMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		deltas []string
		want   string
	}{
		"ids": {[]string{
			`{"tool_calls":[{"id":"a","function":{"name":"read_file","arguments":""}}]}`,
			`{"tool_calls":[{"function":{"arguments":"{\"p\":"}}]}`, `{"tool_calls":[{"function":{"arguments":"1}"}}]}`,
			`{"tool_calls":[{"id":"b","function":{"name":"write_file","arguments":"{}"}}]}`,
		}, `a read_file {"p":1}|b write_file {}`},
		"ids repeated": {[]string{
			`{"tool_calls":[{"id":"a","function":{"name":"read_file","arguments":""}},{"id":"b","function":{"name":"write_file"}}]}`,
			`{"tool_calls":[{"id":"a","function":{"arguments":"{\"p\":1}"}}]}`, `{"tool_calls":[{"id":"b","function":{"arguments":"{\"p\":2}"}}]}`,
		}, `a read_file {"p":1}|b write_file {"p":2}`},
		"mixed": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"{\"p\":"}}]}`,
			`{"tool_calls":[{"function":{"arguments":"1}"}}]}`,
			`{"tool_calls":[{"id":"b","function":{"name":"write_file","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}`,
		}, ""}, // the last piece belongs to nobody: no panic is asked for
		"index as text": {[]string{
			`{"tool_calls":[{"index":"0","id":"a","function":{"name":"read_file","arguments":"{}"}}]}`,
		}, `a read_file {}`},
	} {
		t.Run(name, func(t *testing.T) {
			var events []string
			for _, d := range tc.deltas {
				events = append(events, piece(d))
			}
			got := calls(t, raw(t, append(events, finish("stop"), "[DONE]")...))
			if tc.want != "" && got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestIDsMissing(t *testing.T) {
	r := raw(t, piece(`{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"{\"p\":1}"}},{"index":0,"function":{"name":"read_file","arguments":"{\"p\":2}"}}]}`),
		piece(`{"tool_calls":[{"function":{"name":"write_file","arguments":{"p":3}}}]}`), finish("tool_calls"))
	var args []string
	for _, c := range r.Response.Message.Calls() {
		args = append(args, c.Name+string(c.Arguments))
	}
	if got, want := strings.Join(args, " "), `read_file{"p":1} read_file{"p":2} write_file{"p":3}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestC125IndexGap(t *testing.T) {
	r := raw(t, piece(`{"tool_calls":[{"index":2,"id":"c","function":{"name":"write_file","arguments":"{}"}}]}`),
		piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"{}"}}]}`),
		piece(`{"tool_calls":[{"index":7,"function":{"arguments":""}}]}`), finish("tool_calls"), "[DONE]")
	if got, want := calls(t, r), `c write_file {}|a read_file {}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNameFragments(t *testing.T) {
	r := raw(t, piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read"}}]}`), piece(`{"tool_calls":[{"index":0,"function":{"name":"_file"}}]}`),
		piece(`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`), finish("tool_calls"))
	if got := calls(t, r); got != "a read_file {}" || r.Chunks[0].Call.Name != "read_file" {
		t.Errorf("got %s", got)
	}
	r = raw(t, piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"{"}}]}`),
		piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"}"}}]}`), finish("tool_calls"))
	if got := calls(t, r); got != "a read_file {}" {
		t.Errorf("repeated name: got %s", got)
	}
}

func TestC126ChoicesEmptyOrAbsent(t *testing.T) {
	r := raw(t, `{"choices":[],"prompt_filter_results":[{}]}`, `{"choices":[{"index":0,"delta":{"content":"hi"}}]}`,
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `{"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `[DONE]`)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if want := (model.Usage{InputTokens: 9, OutputTokens: 1}); r.Text() != "hi" || r.Response.Usage != want {
		t.Errorf("text %q, usage %+v", r.Text(), r.Response.Usage)
	}
}

func TestOddChunks(t *testing.T) {
	for name, tc := range map[string]struct {
		events []string
		want   string
	}{
		"null everywhere":   {[]string{`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":null,"function_call":null,"reasoning_content":null},"finish_reason":null}],"usage":null,"error":null}`, piece(`{"content":"hi"}`), finish("stop")}, "hi"},
		"list of parts":     {[]string{piece(`{"content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}`), finish("stop")}, "hi"},
		"wrong types":       {[]string{`{"id":5,"choices":[{"index":0,"delta":{"content":"hi","tool_calls":{}},"finish_reason":0}]}`, finish("stop")}, "hi"},
		"message":           {[]string{`{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`}, "hi"},
		"second choice":     {[]string{piece(`{"content":"hi"}`), `{"choices":[{"index":1,"delta":{"content":"no"}}]}`, finish("stop")}, "hi"},
		"no finish, [DONE]": {[]string{piece(`{"content":"hi"}`), "[DONE]"}, "hi"},
	} {
		t.Run(name, func(t *testing.T) {
			r := raw(t, tc.events...)
			if r.Err != nil || r.Text() != tc.want {
				t.Errorf("text %q, error %v", r.Text(), r.Err)
			}
		})
	}
}

func TestC129Comment(t *testing.T) {
	r := rawBytes(t, ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\ndata: [DONE]\n\n")
	if r.Err != nil || r.Text() != "ok" {
		t.Errorf("text %q, error %v", r.Text(), r.Err)
	}
}

func TestC130Terminators(t *testing.T) {
	lf := "\xef\xbb\xbfdata:" + piece(`{"content":"a"}`) + "\n\ndata: " + piece(`{"content":"b"}`) + "\n\ndata: " + finish("stop")
	for _, eol := range []string{"\n", "\r\n", "\r"} {
		if r := rawBytes(t, strings.ReplaceAll(lf, "\n", eol)); r.Err != nil || r.Text() != "ab" {
			t.Errorf("%q: text %q, error %v", eol, r.Text(), r.Err)
		}
	}
}

func TestErrorsInsideStream(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		want   model.Class
	}{
		"C147 object":      {`data: {"error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n", model.ClassOverload},
		"C147 typed":       {"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", model.ClassOverload},
		"string":           {"data: {\"error\":\"model runner crashed\"}\n\n", model.ClassOverload},
		"flat":             {"data: {\"object\":\"error\",\"message\":\"context length exceeded\",\"type\":\"BadRequestError\",\"code\":400}\n\n", model.ClassOverflow},
		"rate":             {"data: {\"error\":{\"code\":429,\"message\":\"Rate limit reached\"}}\n\n", model.ClassRate},
		"bare JSON line":   {"{\"error\":{\"message\":\"server is busy\"}}\n\n", model.ClassOverload},
		"finish error":     {"data: " + finish("error") + "\n\n", model.ClassOverload},
		"half an event":    {"data: " + piece(`{"content":"x"}`) + "\n\ndata: {\"choices\":[{\"del", model.ClassNetwork},
		"not JSON":         {"data: hello\n\ndata: [DONE]\n\n", model.ClassProtocol},
		"empty":            {"data: [DONE]\n\n", model.ClassProtocol},
		"nothing":          {"\n", model.ClassNetwork},
		"C132 no end mark": {"data: " + piece(`{"content":"x"}`) + "\n\n", model.ClassNetwork},
	} {
		t.Run(name, func(t *testing.T) {
			r := rawBytes(t, tc.stream)
			if r.Err == nil || model.ClassOf(r.Err) != tc.want {
				t.Errorf("error %v, want %s", r.Err, tc.want)
			}
			if strings.Contains(fmt.Sprint(r.Err), "{") {
				t.Errorf("the error shows JSON: %v", r.Err)
			}
		})
	}
}

func TestC127ReasoningContent(t *testing.T) {
	srv := &openai.Server{Strict: openai.Strict{Reasoning: true}, Respond: script.Queue(
		script.Script{Parts: []script.Part{{Reasoning: "R"}, {Call: &script.Call{ID: "c", Name: "read_file", Arguments: "{}"}}}},
		script.Text("done"))}
	m := serve(t, srv, nil)
	req := modeltest.Ask("go")
	r := modeltest.Collect(t, m.Stream(t.Context(), req))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	// through a checkpoint
	raw, err := json.Marshal(r.Response.Message)
	if err != nil {
		t.Fatal(err)
	}
	var answer model.Message
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	foreign := model.Message{ID: "b", Role: model.RoleAssistant, Provider: "elsewhere", Parts: []model.Part{{Kind: model.PartText, Text: "x"}}}
	req.Messages = append(req.Messages, foreign, model.Text("u2", model.RoleUser, "more"), answer,
		model.Message{Role: model.RoleTool, Parts: []model.Part{{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: "c"}}}})
	if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	var got []string
	for _, msg := range srv.Last().Messages {
		if msg.Role == "assistant" {
			got = append(got, msg.Reasoning)
		}
	}
	if diff := cmp.Diff([]string{"", "R"}, got); diff != "" {
		t.Errorf("reasoning (-want +got):\n%s", diff)
	}
	never := serve(t, &openai.Server{Strict: openai.Strict{NoReasoning: true}}, func(c *Config) { c.Replay = ReplayNever })
	if r := modeltest.Collect(t, never.Stream(t.Context(), req)); r.Err != nil {
		t.Errorf("replay never: %v", r.Err)
	}
}

// TestC127Demanded: after a compaction no message with reasoning is left, and the server still wants the field.
func TestC127Demanded(t *testing.T) {
	srv := &openai.Server{Strict: openai.Strict{Reasoning: true}, Respond: script.Queue(script.Text("done"))}
	m := serve(t, srv, nil)
	req := &model.Request{Messages: []model.Message{
		model.Text("u", model.RoleUser, "a"), model.Text("b", model.RoleAssistant, "c"), model.Text("d", model.RoleUser, "e"),
	}}
	for range 2 {
		if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if valid, refused := srv.Count(); valid != 2 || refused != 1 {
		t.Errorf("%d valid and %d refused requests, want one lesson for all", valid, refused)
	}
}

func TestReasoningFields(t *testing.T) {
	for name, tc := range map[string]struct {
		events []string
		field  string
		text   string
		sent   string
	}{
		"reasoning":        {[]string{piece(`{"reasoning":"R1"}`), piece(`{"reasoning":"R2"}`)}, "reasoning", "R1R2", `"reasoning":"R1R2"`},
		"twice":            {[]string{piece(`{"reasoning":"R","reasoning_content":"R"}`)}, "reasoning_content", "R", `"reasoning_content":"R"`},
		"empty is a value": {[]string{piece(`{"reasoning_content":""}`)}, "reasoning_content", "", `"reasoning_content":""`},
		"details":          {[]string{piece(`{"reasoning":"R","reasoning_details":[{"type":"reasoning.encrypted","data":"E"}]}`)}, "reasoning", "R", `"reasoning_details":[{"type":"reasoning.encrypted","data":"E"}]`},
		"tags":             {[]string{piece(`{"content":"<thi"}`), piece(`{"content":"nk>T</think>"}`)}, "think", "T", `"content":"<think>T</think>\n\nanswer"`},
	} {
		t.Run(name, func(t *testing.T) {
			srv := &openai.Server{Respond: script.Queue(
				script.Script{Raw: []byte("data: " + strings.Join(append(tc.events, piece(`{"content":"answer"}`), finish("stop")), "\n\ndata: ") + "\n\n")},
				script.Text("done"))}
			m := serve(t, srv, nil)
			req := modeltest.Ask("go")
			r := modeltest.Collect(t, m.Stream(t.Context(), req))
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			p := r.Response.Message.Parts[0]
			if p.Kind != model.PartReasoning || p.Text != tc.text || p.Reasoning.Field != tc.field || r.Text() != "answer" {
				t.Errorf("part %+v %+v, text %q", p, p.Reasoning, r.Text())
			}
			req.Messages = append(req.Messages, r.Response.Message, model.Text("u2", model.RoleUser, "more"))
			if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
				t.Fatal(r.Err)
			}
			if body := string(srv.Last().Body); !strings.Contains(body, tc.sent) {
				t.Errorf("the request lacks %s:\n%s", tc.sent, body)
			}
		})
	}
}

func TestC134CutInsideArguments(t *testing.T) {
	r := raw(t, piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"{\"path\":\"/srv/data\",\"recursive\":tr"}}]}`), finish("length"), "[DONE]")
	if got, want := calls(t, r), `a read_file {} malformed {"path":"/srv/data","recursive":tr`; got != want || r.Response.Finish != model.FinishLength {
		t.Errorf("finish %s, got %s, want %s", r.Response.Finish, got, want)
	}
	r = raw(t, piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"{\"path\":\"/srv\"}"}}]}`), finish("length"), "[DONE]")
	if r.Response.Finish != model.FinishLength {
		t.Errorf("finish %s: a call that only looks whole is taken as whole", r.Response.Finish)
	}
}

func TestC136ContentFilter(t *testing.T) {
	r := raw(t, piece(`{"content":"The answer is"}`), piece(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"{"}}]}`), finish("content_filter"), "[DONE]")
	if r.Err != nil || r.Response.Finish != model.FinishSafety || r.Text() != "The answer is" {
		t.Errorf("error %v, text %q", r.Err, r.Text())
	}
	if r = raw(t, piece(`{"refusal":"I cannot."}`), finish("stop")); r.Err != nil || r.Response.Finish != model.FinishSafety || r.Text() != "I cannot." {
		t.Errorf("refusal: error %v, text %q", r.Err, r.Text())
	}
}

func TestC137InvalidArgumentsInHistory(t *testing.T) {
	srv := &openai.Server{Respond: script.Queue(script.Text("done"))}
	m := serve(t, srv, nil)
	req := modeltest.Ask("go")
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Kind: model.PartToolCall, Call: &model.ToolCall{ID: "c", Name: "read_file", Arguments: json.RawMessage(`{"q": "unterminated`)}}}},
		model.Message{Role: model.RoleTool, Parts: []model.Part{{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: "c", Content: "not JSON", IsError: true}}}})
	if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := srv.Last().Messages[1].Calls[0].Arguments; got != "{}" {
		t.Errorf("arguments %q", got)
	}
}

func TestC155ImageRefused(t *testing.T) {
	for _, msg := range []string{"Invalid PNG image.", "Could not process image", "this model does not support image input", "图片格式不支持"} {
		m := serve(t, &openai.Server{Respond: script.Queue(script.Fail(400, msg))}, nil)
		r := modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("go")))
		var e *model.Error
		if !errors.As(r.Err, &e) || !e.Image || e.Class != model.ClassBadRequest {
			t.Errorf("%s: %+v", msg, e)
		}
	}
}

func TestExtraContentOfCalls(t *testing.T) {
	srv := &openai.Server{Respond: script.Queue(
		script.Script{Raw: []byte("data: " + piece(`{"tool_calls":[{"index":0,"id":"a","extra_content":{"google":{"thought_signature":"S"}},"function":{"name":"read_file","arguments":"{}"}}]}`) + "\n\ndata: [DONE]\n\n")},
		script.Text("done"))}
	m := serve(t, srv, nil)
	req := modeltest.Ask("go")
	r := modeltest.Collect(t, m.Stream(t.Context(), req))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	req.Messages = append(req.Messages, r.Response.Message,
		model.Message{Role: model.RoleTool, Parts: []model.Part{{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: "a"}}}})
	if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	if body := string(srv.Last().Body); !strings.Contains(body, `"thought_signature":"S"`) {
		t.Errorf("the signature was lost: %s", body)
	}
}
