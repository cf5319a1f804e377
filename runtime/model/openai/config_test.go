package openai

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
	"deerbot/runtime/model/modeltest"
)

func TestC204KeyIsCheckedAndHidden(t *testing.T) {
	srv := &openai.Server{Key: "sk-test-SECRET"}
	m := serve(t, srv, func(c *Config) { c.APIKey = "sk-test-SECRET\r\n" })
	if r := modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("hi"))); r.Err != nil {
		t.Errorf("a key with a CR is not trimmed: %v", r.Err)
	}
	for _, cfg := range []Config{
		{Model: "m", APIKey: "sk-test\rSECRET"},
		{Model: "m", BaseURL: "ftp://user:SECRET@host"},
		{Model: "m", BaseURL: "http://ho st/?key=SECRET"},
		{Model: "m", Headers: map[string]string{"X-Key": "a\nSECRET"}},
	} {
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("error %v, want one that does not show the secret", err)
		}
	}
	// a dead server: net/http's own error holds the URL
	hs := httptest.NewServer(srv)
	dead := strings.Replace(hs.URL, "http://", "http://user:SECRET@", 1) + "/v1?key=SECRET"
	hs.Close()
	m, err := New(Config{Model: "m", BaseURL: dead, APIKey: "sk-SECRET"})
	if err != nil {
		t.Fatal(err)
	}
	r := modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("hi")))
	if model.ClassOf(r.Err) != model.ClassNetwork || strings.Contains(r.Err.Error(), "SECRET") || strings.Contains(r.Err.Error(), "http://") {
		t.Errorf("error %v", r.Err)
	}
}

func TestConfigErrorsNameAllFields(t *testing.T) {
	_, err := New(Config{BaseURL: "nowhere", APIKey: "a b", Extra: map[string]any{"messages": 1}, MaxTokensField: "x", Replay: "x"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"model:", "base url:", "api key:", "extra:", "max tokens field:", "replay:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func TestRequestOnTheWire(t *testing.T) {
	srv := &openai.Server{}
	m := serve(t, srv, func(c *Config) {
		c.BaseURL += "?api-version=7"
		c.Headers = map[string]string{"x-extra": "yes"}
		c.Extra = map[string]any{"temperature": 0.5, "chat_template_kwargs": map[string]any{"enable_thinking": false}}
		c.MaxOutputTokens = 77
		c.Vision = false
	})
	req := modeltest.Ask("<b>hi</b>")
	req.Messages = append(req.Messages, model.Message{Role: model.RoleUser, Parts: []model.Part{{Kind: model.PartImage, Image: &model.Image{MIME: "image/png", Data: []byte("x")}}}})
	if r := modeltest.Collect(t, m.Stream(t.Context(), req)); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := srv.Last()
	var body struct {
		Temperature float64         `json:"temperature"`
		Kwargs      json.RawMessage `json:"chat_template_kwargs"`
		MaxTokens   int             `json:"max_tokens"`
		Options     json.RawMessage `json:"stream_options"`
		ToolChoice  json.RawMessage `json:"tool_choice"`
	}
	if err := json.Unmarshal(got.Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.Temperature != 0.5 || string(body.Kwargs) != `{"enable_thinking":false}` || body.MaxTokens != 77 || string(body.Options) != `{"include_usage":true}` || body.ToolChoice != nil {
		t.Errorf("body %s", got.Body)
	}
	if got.Header.Get("X-Extra") != "yes" || got.Header.Get("User-Agent") != "deerbot" || got.Header.Get("X-Stainless-Os") != "" || got.Header.Get("Authorization") != "Bearer "+testKey {
		t.Errorf("header %v", got.Header)
	}
	if len(got.Tools) != 2 || got.Messages[1].Images != 0 || !strings.Contains(got.Messages[1].Text, "left out") {
		t.Errorf("request %+v", got)
	}
}

func TestEnvironmentIsIgnored(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/")
	t.Setenv("OPENAI_API_KEY", "sk-other")
	t.Setenv("OPENAI_ORG_ID", "org")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Ambient: 1")
	srv := &openai.Server{Key: testKey}
	if r := modeltest.Collect(t, serve(t, srv, nil).Stream(t.Context(), modeltest.Ask("hi"))); r.Err != nil {
		t.Fatal(r.Err)
	}
	if h := srv.Last().Header; h.Get("Openai-Organization") != "" || h.Get("X-Ambient") != "" {
		t.Errorf("header %v", h)
	}
}

func TestLearnsFromRefusals(t *testing.T) {
	srv := &openai.Server{Strict: openai.Strict{StreamOptions: true, LimitField: "max_completion_tokens"}, Respond: script.Queue(script.Text("ok"))}
	m := serve(t, srv, func(c *Config) { c.MaxOutputTokens = 9 })
	for range 2 {
		r := modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("hi")))
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if !r.Response.Usage.Estimated {
			t.Error("usage is not estimated")
		}
	}
	if valid, refused := srv.Count(); valid != 2 || refused != 2 || srv.Last().MaxTokens != 9 {
		t.Errorf("%d valid, %d refused, limit %d", valid, refused, srv.Last().MaxTokens)
	}
}

func TestNotAnEventStream(t *testing.T) {
	for name, tc := range map[string]struct {
		s    script.Script
		want model.Class
	}{
		"html":          {script.Script{Raw: []byte("<html>login</html>"), Header: map[string]string{"Content-Type": "text/html"}}, model.ClassProtocol},
		"error in 200":  {script.Script{Raw: []byte(`{"error":{"code":"insufficient_quota","message":"x"}}`), Header: map[string]string{"Content-Type": "application/json"}}, model.ClassQuota},
		"no type known": {script.Script{Raw: []byte("data: " + finish("stop") + "\n\n"), Header: map[string]string{"Content-Type": "text/plain"}}, ""},
	} {
		m := serve(t, &openai.Server{Respond: script.Queue(tc.s)}, nil)
		r := modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("hi")))
		if tc.want == "" && r.Err == nil {
			continue
		}
		if r.Err == nil || model.ClassOf(r.Err) != tc.want {
			t.Errorf("%s: %v, want %s", name, r.Err, tc.want)
		}
	}
}

// TestLearnsNothingFromOverflow: some servers name both limit fields when the context is full.
func TestLearnsNothingFromOverflow(t *testing.T) {
	srv := &openai.Server{Respond: script.Queue(
		script.Fail(400, "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 8192 tokens and your request has 4000 input tokens."),
		script.Fail(400, "max_tokens or max_completion_tokens must be at most 4096"),
		script.Text("ok"))}
	m := serve(t, srv, func(c *Config) { c.MaxOutputTokens = 5000 })
	for _, want := range []model.Class{model.ClassOverflow, model.ClassBadRequest} {
		if r := modeltest.Collect(t, m.Stream(t.Context(), modeltest.Ask("hi"))); r.Err == nil || model.ClassOf(r.Err) != want {
			t.Errorf("error %v, want %s", r.Err, want)
		}
	}
	if m.otherLimitField.Load() {
		t.Error("the limit field was changed")
	}
}

func TestUnsendable(t *testing.T) {
	req := modeltest.Ask("hi")
	req.Tools = []model.ToolSpec{{Name: "t", Schema: json.RawMessage(`{"type":`)}}
	r := modeltest.Collect(t, serve(t, &openai.Server{}, nil).Stream(t.Context(), req))
	if r.Err == nil || model.ClassOf(r.Err).Retryable() {
		t.Errorf("error %v, want one that is not worth a retry", r.Err)
	}
}
