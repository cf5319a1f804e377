// Package anthropic is a wire-level stand-in for a messages server, for tests, benchmarks and trying things out.
//
// It is as strict as the real one about history and refuses with the real error bodies. See [Server] for what is
// checked and package script for how its answers are written; a zero Server follows the directives of script.Default.
package anthropic

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"deerbot/internal/wire/script"
)

const maxBody = 32 << 20

// Server answers POST …/v1/messages. The zero value is ready. Fields are not changed while it serves.
//
// Every request must be authorised, name a version and a model, stream, and hold: max_tokens; messages that begin with
// a user's and do not end with an assistant's; no empty texts; every tool_use answered once in the next message, before
// any other block; no result without its tool_use; ids unique and of letters, digits, _ and -; inputs that are objects;
// at most four cache breakpoints; thinking with its signature; unique tool names; tools when there are calls; and no
// sampling parameters with API version 2026-10-21.
type Server struct {
	script.Recorder

	// Respond decides what to answer; script.Default when nil.
	Respond script.Responder
	// Key is demanded; when empty any key will do, but there must be one.
	Key    string
	Strict Strict
}

// Strict are demands that depend on the request's settings on the real server.
type Strict struct {
	// Reasoning demands that an assistant turn with tool calls begins with thinking.
	Reasoning bool
	// Signatures, when set, are the only ones accepted.
	Signatures    []string
	ContextTokens int // requests of more than that many tokens (bytes/4) overflow
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.Track(r)()
	if !strings.HasSuffix(r.URL.Path, "/v1/messages") || r.Method != http.MethodPost {
		refuse(w, &script.Error{Status: http.StatusNotFound, Message: "Not found"})
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
	req, e := s.parse(body, r.Header.Get("Anthropic-Version"))
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
	stream(w, r, req, &answer)
}

func (s *Server) authorise(r *http.Request) *script.Error {
	key := r.Header.Get("X-Api-Key")
	if key == "" {
		key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	switch {
	case key == "":
		return &script.Error{Status: http.StatusUnauthorized, Message: "x-api-key header is required"}
	case s.Key != "" && key != s.Key:
		return &script.Error{Status: http.StatusUnauthorized, Message: "invalid x-api-key"}
	case r.Header.Get("Anthropic-Version") == "":
		return bad("anthropic-version: header is required")
	}
	return nil
}

func refuse(w http.ResponseWriter, e *script.Error) {
	e.SetHeaders(w.Header())
	w.Header().Set("Request-Id", "req_wire")
	w.WriteHeader(e.Status)
	if e.Body != "" {
		_, _ = io.WriteString(w, e.Body)
		return
	}
	_ = json.NewEncoder(w).Encode(errorBody(e))
}

func errorBody(e *script.Error) map[string]any {
	typ := e.Type
	if typ == "" {
		typ = map[int]string{
			0: "api_error", 400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
			403: "permission_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error",
			500: "api_error", 504: "timeout_error", 529: "overloaded_error",
		}[e.Status]
	}
	if typ == "" {
		typ = "invalid_request_error"
	}
	return map[string]any{"type": "error", "error": map[string]any{"type": typ, "message": e.Message}, "request_id": "req_wire"}
}

// stream writes the answer s.
func stream(w http.ResponseWriter, r *http.Request, req *script.Request, s *script.Script) {
	out := script.NewWriter(w, r, s)
	defer out.Close()
	if s.Raw != nil {
		out.Raw(s.Raw)
		return
	}
	cost := s.Cost(req)
	usage := `{"input_tokens":` + strconv.Itoa(max(0, cost.Input-cost.Cached-cost.CacheWrite)) +
		`,"cache_creation_input_tokens":` + strconv.Itoa(cost.CacheWrite) +
		`,"cache_read_input_tokens":` + strconv.Itoa(cost.Cached) + `,"output_tokens":`
	first, last := usage+`1}`, usage+strconv.Itoa(cost.Output)+`}`
	if s.NoUsage {
		first, last = `{}`, `{}`
	}
	send := func(typ, rest string) { out.Event(typ, []byte(`{"type":"`+typ+`"`+rest+`}`)) }
	send("message_start", `,"message":{"id":"msg_`+strconv.Itoa(req.N)+`","type":"message","role":"assistant","model":`+quote(req.Model)+
		`,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`+first+`}`)
	send("ping", "")
	index, calls := 0, 0
	block := func(start string, deltas ...string) {
		at := `,"index":` + strconv.Itoa(index)
		send("content_block_start", at+`,"content_block":`+start)
		for _, d := range deltas {
			send("content_block_delta", at+`,"delta":`+d)
		}
		send("content_block_stop", at)
		index++
	}
	for _, p := range s.Parts {
		out.Await(p.Wait)
		switch {
		case p.Call != nil:
			calls++
			block(`{"type":"tool_use","id":`+quote(p.Call.ID)+`,"name":`+quote(p.Call.Name)+`,"input":{}}`,
				deltas(s, `{"type":"input_json_delta","partial_json":`, p.Call.Arguments)...)
		case p.Redacted != "":
			block(`{"type":"redacted_thinking","data":` + quote(p.Redacted) + `}`)
		case p.Reasoning != "" || p.Signature != "":
			d := deltas(s, `{"type":"thinking_delta","thinking":`, p.Reasoning)
			if p.Signature != "" {
				d = append(d, `{"type":"signature_delta","signature":`+quote(p.Signature)+`}`)
			}
			block(`{"type":"thinking","thinking":"","signature":""}`, d...)
		}
		if p.Text != "" {
			block(`{"type":"text","text":""}`, deltas(s, `{"type":"text_delta","text":`, p.Text)...)
		}
	}
	if s.StreamError != nil {
		b, _ := json.Marshal(errorBody(s.StreamError))
		out.Event("error", b)
		return
	}
	if s.NoFinish {
		return
	}
	send("message_delta", `,"delta":{"stop_reason":`+quote(stopReason(s, calls))+`,"stop_sequence":null},"usage":`+last)
	if !s.NoDone {
		send("message_stop", "")
	}
}

func deltas(s *script.Script, head, text string) []string {
	var out []string
	for _, piece := range s.Pieces(text) {
		out = append(out, head+quote(piece)+`}`)
	}
	return out
}

// stopReason is the dialect's word for the script's.
func stopReason(s *script.Script, calls int) string {
	switch s.Finish {
	case "":
		if calls > 0 {
			return "tool_use"
		}
		return "end_turn"
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return s.Finish
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
