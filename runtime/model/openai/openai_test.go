package openai

import (
	"context"
	"net/http/httptest"
	"testing"

	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
)

// serve starts a wire server and returns a model that talks to it.
func serve(t *testing.T, srv *openai.Server, change func(*Config)) *Model {
	t.Helper()
	hs := httptest.NewServer(srv)
	t.Cleanup(hs.Close)
	cfg := Config{Name: "m", Model: "wire", BaseURL: hs.URL + "/v1", APIKey: "sk-test-0123456789", HTTPClient: hs.Client(), MaxOutputTokens: 1000}
	if change != nil {
		change(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// collect runs a call to its end.
func collect(m *Model, req *model.Request) (chunks []model.Chunk, res *model.Response, err error) {
	for c, e := range m.Stream(context.Background(), req) {
		if e != nil {
			return chunks, nil, e
		}
		if c.Kind == model.ChunkDone {
			res = c.Response
			continue
		}
		chunks = append(chunks, c)
	}
	return chunks, res, nil
}

func ask(text string) *model.Request {
	return &model.Request{Messages: []model.Message{model.Text("u1", model.RoleUser, text)}}
}

func TestPlainText(t *testing.T) {
	srv := &openai.Server{Respond: script.Queue(script.Script{
		Parts: []script.Part{{Text: "Hello, 世界"}}, ChunkSize: 2, Usage: &script.Usage{Input: 9, Cached: 4, Output: 3},
	})}
	chunks, res, err := collect(serve(t, srv, nil), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Message.TextOf(); got != "Hello, 世界" || len(chunks) != 5 {
		t.Errorf("text %q in %d chunks", got, len(chunks))
	}
	if want := (model.Usage{InputTokens: 9, CachedTokens: 4, OutputTokens: 3}); res.Usage != want {
		t.Errorf("usage %+v, want %+v", res.Usage, want)
	}
	if res.Finish != model.FinishStop {
		t.Errorf("finish %q", res.Finish)
	}
}
