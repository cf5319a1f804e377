package openai

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"deerbot/internal/wire/script"
)

func post(t *testing.T, s *Server, body string, header ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer k")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// body is a request with the given messages and two tools.
func body(messages string) string {
	return `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"t","parameters":{"type":"object"}}}],"messages":[` + messages + `]}`
}

const (
	user   = `{"role":"user","content":"u"}`
	called = `{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"t","arguments":"{}"}}]}`
)

func result(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"r"}` }

func TestStrictness(t *testing.T) {
	call := func(id, name, args string) string {
		return `{"role":"assistant","content":"","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":` + args + `}}]}`
	}
	for name, tc := range map[string]struct {
		body string
		want string // a word of the refusal; empty: accepted
	}{
		"good":              {body(`{"role":"system","content":"s"},` + user + `,` + called + `,` + result("b") + `,` + result("a") + `,` + user), ""},
		"no JSON":           {`{`, "parse"},
		"no model":          {`{"stream":true,"messages":[` + user + `]}`, "model"},
		"no stream":         {`{"model":"m","messages":[` + user + `]}`, "streams"},
		"no messages":       {body(``), "too short"},
		"two systems":       {body(`{"role":"system","content":"s"},{"role":"system","content":"s"},` + user), "beginning"},
		"late system":       {body(user + `,{"role":"system","content":"s"}`), "beginning"},
		"assistant first":   {body(`{"role":"assistant","content":"x"},` + user), "first message"},
		"empty user":        {body(`{"role":"user","content":""}`), "empty"},
		"only system":       {body(`{"role":"system","content":"s"}`), "no user"},
		"unanswered":        {body(user + `,` + called + `,` + result("a")), "did not have response"},
		"answered late":     {body(user + `,` + called + `,` + result("a") + `,` + user + `,` + result("b")), "did not have response"},
		"answered twice":    {body(user + `,` + called + `,` + result("a") + `,` + result("a")), "must be a response"},
		"orphan":            {body(user + `,` + result("a")), "must be a response"},
		"same id twice":     {body(user + `,` + call("a", "t", `"{}"`) + `,` + result("a") + `,` + call("a", "t", `"{}"`) + `,` + result("a")), "Duplicate"},
		"no id":             {body(user + `,` + call("", "t", `"{}"`)), "id"},
		"name":              {body(user + `,` + call("a", "t t", `"{}"`)), "name"},
		"arguments":         {body(user + `,` + call("a", "t", `"{\"a"`)), "valid JSON"},
		"arguments no text": {body(user + `,` + call("a", "t", `{}`)), "expected a string"},
		"role":              {body(`{"role":"wizard","content":"x"}`), "wizard"},
		"calls, no tools":   {strings.Replace(body(user+`,`+call("a", "t", `"{}"`)+`,`+result("a")), `"tools":[{"type":"function","function":{"name":"t","parameters":{"type":"object"}}}],`, "", 1), "tools"},
		"same tool twice":   {`{"model":"m","stream":true,"messages":[` + user + `],"tools":[{"type":"function","function":{"name":"t"}},{"type":"function","function":{"name":"t"}}]}`, "unique"},
		"too many tools":    {`{"model":"m","stream":true,"messages":[` + user + `],"tools":[{}` + strings.Repeat(`,{}`, 128) + `]}`, "128"},
		"max tokens":        {`{"model":"m","stream":true,"max_tokens":0,"messages":[` + user + `]}`, "minimum"},
	} {
		t.Run(name, func(t *testing.T) {
			var s Server
			code, out := post(t, &s, tc.body)
			valid, refused := s.Count()
			if tc.want == "" {
				if code != 200 || valid != 1 || !strings.HasSuffix(out, "data: [DONE]\n\n") {
					t.Errorf("status %d: %s", code, out)
				}
				return
			}
			if code != 400 || refused != 1 || !strings.Contains(out, tc.want) || !strings.Contains(out, `"error"`) {
				t.Errorf("status %d: %s; want a refusal with %q", code, out, tc.want)
			}
		})
	}
}

func TestOptionalStrictness(t *testing.T) {
	old := user + `,{"role":"assistant","content":"x"},` + user
	for name, tc := range map[string]struct {
		strict Strict
		body   string
	}{
		"reasoning":      {Strict{Reasoning: true}, body(old)},
		"no reasoning":   {Strict{NoReasoning: true}, body(strings.Replace(old, `"content":"x"`, `"content":"x","reasoning_content":"r"`, 1))},
		"stream options": {Strict{StreamOptions: true}, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[` + user + `]}`},
		"limit":          {Strict{LimitField: "max_completion_tokens"}, `{"model":"m","stream":true,"max_tokens":5,"messages":[` + user + `]}`},
		"context":        {Strict{ContextTokens: 10}, body(old)},
		"images":         {Strict{NoImages: true}, body(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]}`)},
	} {
		if code, out := post(t, &Server{Strict: tc.strict}, tc.body); code != 400 {
			t.Errorf("%s: status %d: %s", name, code, out)
		}
		if code, out := post(t, &Server{}, tc.body); code != 200 {
			t.Errorf("%s, not strict: status %d: %s", name, code, out)
		}
	}
	if code, _ := post(t, &Server{Key: "other"}, body(user)); code != 401 {
		t.Errorf("wrong key: status %d", code)
	}
	if code, _ := post(t, &Server{}, body(user), "Authorization", ""); code != 401 {
		t.Errorf("no key: status %d", code)
	}
}

// TestOfficialClient: the official SDK, with its own decoder and accumulator, understands the server.
func TestOfficialClient(t *testing.T) {
	hs := httptest.NewServer(&Server{Respond: script.Queue(script.Script{
		Parts: []script.Part{{Text: "Hello 世界"}, {Call: &script.Call{ID: "c", Name: "t", Arguments: `{"a":1}`}}}, ChunkSize: 2, Usage: &script.Usage{Input: 5, Output: 6},
	})})
	defer hs.Close()
	client := openai.NewClient(option.WithBaseURL(hs.URL+"/v1"), option.WithAPIKey("k"))
	stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	msg := acc.Choices[0].Message
	if msg.Content != "Hello 世界" || msg.ToolCalls[0].Function.Arguments != `{"a":1}` || acc.Usage.TotalTokens != 11 || acc.Choices[0].FinishReason != "tool_calls" {
		t.Errorf("message %+v, usage %+v", msg, acc.Usage)
	}
}

func TestModels(t *testing.T) {
	hs := httptest.NewServer(&Server{})
	defer hs.Close()
	res, err := http.Get(hs.URL + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); !strings.Contains(string(b), `"list"`) {
		t.Errorf("%s", b)
	}
}
