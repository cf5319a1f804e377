// Package openai is a wire-level stand-in for a chat completions server, for tests, benchmarks and trying things out.
//
// It is as strict as the strictest of the real ones: a history that some provider would refuse is refused here, with a
// real error body. See [Server] for what is checked and package script for how its answers are written; a zero Server
// follows the directives of script.Default.
package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"deerbot/internal/wire/script"
)

// maxBody is the largest request that is read.
const maxBody = 64 << 20

// Server answers POST …/chat/completions and GET …/models. The zero value is ready. Fields are not changed while it
// serves.
//
// Every request must be authorised, stream, name a model, and hold: at most one system message, and that first; a user
// message next; every tool call answered exactly once, directly after, before anything else; no result without a call;
// ids unique; arguments that are JSON objects in strings; tool names of letters, digits, _ and -, at most 64; at most
// 128 tools; tools when there are calls.
type Server struct {
	script.Recorder

	// Respond decides what to answer; script.Default when nil.
	Respond script.Responder
	// Key is demanded as bearer token; when empty any key will do, but there must be one unless NoAuth.
	Key    string
	NoAuth bool
	Strict Strict
}

// Strict are demands that only some providers make.
type Strict struct {
	Reasoning     bool   // old assistant messages must have reasoning_content (DeepSeek, Moonshot)
	NoReasoning   bool   // unknown fields of messages are refused (OpenAI, Mistral)
	StreamOptions bool   // stream_options is refused
	LimitField    string // the only field the output limit may come in
	ContextTokens int    // requests of more than that many tokens (bytes/4) overflow
	NoImages      bool   // pictures are refused
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.Track(r)()
	switch {
	case strings.HasSuffix(r.URL.Path, "/models") && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": "wire", "object": "model"}}})
		return
	case !strings.HasSuffix(r.URL.Path, "/chat/completions"):
		refuse(w, &script.Error{Status: http.StatusNotFound, Message: "Unknown request URL: " + r.Method + " " + r.URL.Path})
		return
	case r.Method != http.MethodPost:
		refuse(w, &script.Error{Status: http.StatusMethodNotAllowed, Message: "Not allowed to " + r.Method + " on this resource"})
		return
	}
	if e := s.authorise(r); e != nil {
		s.Refuse()
		refuse(w, e)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	req, e := s.parse(body)
	if e != nil {
		s.Refuse()
		refuse(w, e)
		return
	}
	req.Header = r.Header.Clone()
	s.Add(req)
	respond := s.Respond
	if respond == nil {
		respond = script.Default
	}
	answer := respond(req)
	if !script.Wait(r, &answer) {
		return
	}
	if answer.Error != nil {
		refuse(w, answer.Error)
		return
	}
	stream(w, r, req, &answer, wantsUsage(body))
}

func (s *Server) authorise(r *http.Request) *script.Error {
	if s.NoAuth {
		return nil
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || key == "" {
		return &script.Error{Status: http.StatusUnauthorized, Type: "invalid_request_error", Message: "You didn't provide an API key."}
	}
	if s.Key != "" && key != s.Key {
		return &script.Error{
			Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key",
			Message: "Incorrect API key provided: " + key + ". You can find your API key at https://platform.openai.com/account/api-keys.",
		}
	}
	return nil
}

// refuse writes an error the way OpenAI does.
func refuse(w http.ResponseWriter, e *script.Error) {
	e.SetHeaders(w.Header())
	if e.Body != "" {
		w.WriteHeader(e.Status)
		_, _ = io.WriteString(w, e.Body)
		return
	}
	writeJSON(w, e.Status, errorBody(e))
}

func errorBody(e *script.Error) map[string]any {
	typ := e.Type
	if typ == "" {
		switch {
		case e.Status == http.StatusTooManyRequests:
			typ = "requests"
		case e.Status >= 500:
			typ = "server_error"
		default:
			typ = "invalid_request_error"
		}
	}
	var code any
	if e.Code != "" {
		code = e.Code
	}
	return map[string]any{"error": map[string]any{"message": e.Message, "type": typ, "param": nil, "code": code}}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func wantsUsage(body []byte) bool {
	var o struct {
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	return json.Unmarshal(body, &o) == nil && o.StreamOptions.IncludeUsage
}

// now is the created field of chunks.
func now() int64 { return time.Now().Unix() }
