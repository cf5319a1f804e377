package anthropic

import (
	"net/http/httptest"
	"testing"

	"deerbot/internal/wire/anthropic"
	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
	"deerbot/runtime/model/modeltest"
)

const testKey = "sk-ant-test-SECRET-0123456789"

// serve starts srv and returns a model that talks to it.
func serve(t testing.TB, srv *anthropic.Server, change func(*Config)) *Model {
	t.Helper()
	hs := httptest.NewServer(srv)
	t.Cleanup(func() { hs.Client().CloseIdleConnections(); hs.Close() })
	cfg := Config{Name: "m", Model: "wire", BaseURL: hs.URL, APIKey: testKey, HTTPClient: hs.Client(), Vision: true}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestConformance(t *testing.T) {
	modeltest.Run(t, modeltest.Harness{Wire: true, Key: testKey, New: func(t *testing.T, s modeltest.Setup) (model.Model, *script.Recorder) {
		srv := &anthropic.Server{Respond: s.Respond, Key: testKey, Strict: anthropic.Strict{Reasoning: s.StrictReasoning}}
		m := serve(t, srv, func(c *Config) { c.Timeout, c.StallTimeout = s.Timeout, s.Stall })
		return m, &srv.Recorder
	}})
}
