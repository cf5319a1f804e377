package openai

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
	"deerbot/runtime/model/modeltest"
)

// canned is a transport that answers at once with the same stream, so that only the adapter and the SDK are measured.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(c))),
	}, nil
}

func bench(b *testing.B, m *Model, req *model.Request) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		done := false
		for c, err := range m.Stream(context.Background(), req) {
			if err != nil {
				b.Fatal(err)
			}
			done = c.Kind == model.ChunkDone
		}
		if !done {
			b.Fatal("not done")
		}
	}
}

// long is a request of about 200 messages and 400 kB.
func long() *model.Request {
	req := modeltest.Ask("go")
	for range 100 {
		req.Messages = append(req.Messages, model.Text("", model.RoleAssistant, strings.Repeat("An answer with \"quotes\".\n", 80)),
			model.Text("", model.RoleUser, strings.Repeat("More words in between. ", 80)))
	}
	return req
}

func BenchmarkAdapter(b *testing.B) {
	short := "data: " + strings.Join([]string{
		piece(`{"role":"assistant","content":""}`), piece(`{"content":"Hello"}`), finish("stop"),
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, "[DONE]",
	}, "\n\ndata: ") + "\n\n"
	chatty := strings.Repeat("data: "+piece(`{"content":"word "}`)+"\n\n", 200) + short
	for name, tc := range map[string]struct {
		stream string
		req    *model.Request
	}{"short": {short, modeltest.Ask("hi")}, "200chunks": {chatty, modeltest.Ask("hi")}, "400kB": {short, long()}} {
		b.Run(name, func(b *testing.B) {
			m, err := New(Config{Model: "m", APIKey: testKey, HTTPClient: &http.Client{Transport: canned(tc.stream)}})
			if err != nil {
				b.Fatal(err)
			}
			bench(b, m, tc.req)
		})
	}
}

// BenchmarkWire is a whole call over loopback, the server's work included.
func BenchmarkWire(b *testing.B) {
	srv := &openai.Server{Respond: script.Queue(script.Text("Hello"))}
	srv.Keep = -1
	bench(b, serve(b, srv, nil), modeltest.Ask("hi"))
}
