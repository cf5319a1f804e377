package anthropic

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"deerbot/internal/wire/script"
)

func post(t *testing.T, s *Server, body string, header ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body))
	r.Header.Set("X-Api-Key", "k")
	r.Header.Set("Anthropic-Version", "2026-10-21")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func body(messages string) string {
	return `{"model":"m","stream":true,"max_tokens":9,"tools":[{"name":"t","input_schema":{"type":"object"}}],"messages":[` + messages + `]}`
}

func assistant(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
func person(blocks string) string    { return `{"role":"user","content":[` + blocks + `]}` }

const user = `{"role":"user","content":"u"}`

func use(id, name, input string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":` + input + `}`
}

func result(id string) string {
	return `{"type":"tool_result","tool_use_id":"` + id + `","content":"r"}`
}

const words = `{"type":"text","text":"x"}`

func TestStrictness(t *testing.T) {
	cached := `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
	for name, tc := range map[string]struct{ body, want string }{
		"good":             {body(user + `,` + assistant(words+`,`+use("a", "t", "{}")+`,`+use("b", "t", "{}")) + `,` + person(result("b")+`,`+result("a")+`,`+words)), ""},
		"no JSON":          {`{`, "JSON"},
		"no model":         {`{"stream":true,"max_tokens":1,"messages":[` + user + `]}`, "model"},
		"no max_tokens":    {`{"model":"m","stream":true,"messages":[` + user + `]}`, "max_tokens"},
		"no messages":      {body(``), "at least one"},
		"assistant first":  {body(assistant(words) + `,` + user), "first message"},
		"assistant last":   {body(user + `,` + assistant(words)), "prefill"},
		"empty text":       {body(person(`{"type":"text","text":""}`)), "non-empty"},
		"blank text":       {body(person(`{"type":"text","text":" "}`)), "non-whitespace"},
		"no content":       {body(person(``)), "non-empty content"},
		"unanswered":       {body(user + `,` + assistant(use("a", "t", "{}")) + `,` + user), "immediately after"},
		"open at the end":  {body(user + `,` + assistant(use("a", "t", "{}"))), "immediately after"},
		"answered twice":   {body(user + `,` + assistant(use("a", "t", "{}")) + `,` + person(result("a")+`,`+result("a"))), "unexpected"},
		"result not first": {body(user + `,` + assistant(use("a", "t", "{}")) + `,` + person(words+`,`+result("a"))), "come first"},
		"orphan":           {body(person(result("a"))), "unexpected"},
		"same id":          {body(user + `,` + assistant(use("a", "t", "{}")+`,`+use("a", "t", "{}"))), "unique"},
		"bad id":           {body(user + `,` + assistant(use("a:0", "t", "{}"))), "pattern"},
		"no name":          {body(user + `,` + assistant(use("a", "", "{}"))), "name"},
		"input":            {body(user + `,` + assistant(use("a", "t", "[]"))), "dictionary"},
		"no signature":     {body(user + `,` + assistant(`{"type":"thinking","thinking":"x"}`) + `,` + user), "signature"},
		"five breakpoints": {body(person(cached + strings.Repeat(`,`+cached, 4))), "maximum of 4"},
		"temperature":      {strings.Replace(body(user), `"max_tokens"`, `"temperature":0,"max_tokens"`, 1), "temperature"},
		"role":             {body(`{"role":"system","content":"x"}`), "first message"},
		"unknown block":    {body(person(`{"type":"video"}`)), "does not match"},
		"bad image":        {body(person(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}`)), "process image"},
		"choice, no tools": {`{"model":"m","stream":true,"max_tokens":1,"tool_choice":{"type":"none"},"messages":[` + user + `]}`, "tool_choice"},
		"same tool twice":  {`{"model":"m","stream":true,"max_tokens":1,"tools":[{"name":"t","input_schema":{"type":"object"}},{"name":"t","input_schema":{"type":"object"}}],"messages":[` + user + `]}`, "unique"},
		"schema":           {`{"model":"m","stream":true,"max_tokens":1,"tools":[{"name":"t","input_schema":{}}],"messages":[` + user + `]}`, "object"},
	} {
		t.Run(name, func(t *testing.T) {
			var s Server
			code, out := post(t, &s, tc.body)
			if tc.want == "" {
				if code != 200 || !strings.Contains(out, "event: message_stop") {
					t.Errorf("status %d: %s", code, out)
				}
				return
			}
			if code != 400 || !strings.Contains(out, tc.want) || !strings.Contains(out, `"type":"error"`) {
				t.Errorf("status %d: %s; want a refusal with %q", code, out, tc.want)
			}
		})
	}
	thinkless := body(user + `,` + assistant(use("a", "t", "{}")) + `,` + person(result("a")))
	if code, _ := post(t, &Server{Strict: Strict{Reasoning: true}}, thinkless); code != 400 {
		t.Errorf("a turn without thinking: status %d", code)
	}
	if code, _ := post(t, &Server{Key: "other"}, body(user)); code != 401 {
		t.Errorf("wrong key: status %d", code)
	}
	if code, _ := post(t, &Server{}, body(user), "Anthropic-Version", ""); code != 400 {
		t.Errorf("no version: status %d", code)
	}
}

// TestOfficialClient: the official SDK, with its own decoder and accumulator, understands the server.
func TestOfficialClient(t *testing.T) {
	hs := httptest.NewServer(&Server{Respond: script.Queue(script.Script{ChunkSize: 2, Usage: &script.Usage{Input: 5, Output: 6}, Parts: []script.Part{
		{Reasoning: "hm", Signature: "s"}, {Text: "Hello 世界"}, {Call: &script.Call{ID: "c", Name: "t", Arguments: `{"a":1}`}},
	}})})
	defer hs.Close()
	client := anthropic.NewClient(option.WithoutEnvironmentDefaults(), option.WithBaseURL(hs.URL), option.WithAPIKey("k"), option.WithHTTPClient(hs.Client()))
	stream := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
		Model: "m", MaxTokens: 9, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	})
	var msg anthropic.Message
	for stream.Next() {
		if err := msg.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(msg.Content) != 3 || msg.Content[0].Signature != "s" || msg.Content[1].Text != "Hello 世界" || string(msg.Content[2].Input) != `{"a":1}` ||
		msg.StopReason != "tool_use" || msg.Usage.OutputTokens != 6 {
		t.Errorf("message %+v", msg)
	}
}
