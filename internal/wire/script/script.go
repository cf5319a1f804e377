// Package script says what a wire-level stand-in for a model provider answers, independent of the dialect.
//
// A server (internal/wire/openai, internal/wire/anthropic) turns a request into a [Request], asks a [Responder] for a
// [Script], and writes it in its dialect with the faults the script asks for. [Default] is a responder usable by hand.
package script

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Responder decides what to answer. It is called from several goroutines at once.
type Responder func(*Request) Script

// Request is a validated request, as far as the dialects have it in common.
type Request struct {
	N         int // counts from 1
	Model     string
	System    string
	Messages  []Message // without the system message
	Tools     []string
	NoTools   bool // tool_choice none
	MaxTokens int
	Header    http.Header
	Body      []byte
}

// Message is one message of a request.
type Message struct {
	Role      string // user, assistant, tool
	Text      string
	Reasoning string // reasoning_content, reasoning or thinking
	Signature string // of thinking
	Images    int
	Calls     []Call
	Results   []Result
}

// Call is a tool call in history.
type Call struct {
	ID, Name, Arguments string
}

// Result is a tool result.
type Result struct {
	CallID, Text string
	IsError      bool
}

// LastUser is the text of the last user message that is not a bare tool result.
func (r *Request) LastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && m.Text != "" {
			return m.Text
		}
	}
	return ""
}

// LastResults are the tool results that end the conversation, in order; none if something else ends it.
func (r *Request) LastResults() []Result {
	var out []Result
	for i := len(r.Messages) - 1; i >= 0 && len(r.Messages[i].Results) > 0; i-- {
		out = append(append([]Result{}, r.Messages[i].Results...), out...)
	}
	return out
}

// Script is one answer and what goes wrong with it. The zero Script is an empty answer that ends well.
type Script struct {
	Parts  []Part
	Finish string // stop, length, tool_calls, content_filter or the dialect's own word; empty: follows from Parts
	Usage  *Usage // nil: counted roughly

	ChunkSize  int           // characters of one delta, 0: a part in one piece
	ChunkDelay time.Duration // before each event
	FirstDelay time.Duration // before the answer's header

	Error       *Error // instead of an answer
	StreamError *Error // after Parts, inside the stream, which then ends
	Header      map[string]string

	NoUsage  bool   // leave the figures out
	NoFinish bool   // leave out the finish reason and the end mark
	NoDone   bool   // leave out the end mark only
	EOL      string // line end, "\n" by default
	Comments bool   // a comment line before each event
	Raw      []byte // the stream itself, verbatim; Parts, Finish and Usage are ignored
	// CutAfter closes the connection after that many bytes of the stream, StallAfter goes silent there until the client
	// leaves. 0 means not at all; -1 means at once, after the header.
	CutAfter   int
	StallAfter int
}

// Part is a piece of the answer: one of text, reasoning, redacted reasoning and a call.
type Part struct {
	Text      string
	Reasoning string
	Signature string // goes with Reasoning, or alone as redacted thinking when Redacted
	Redacted  string
	Call      *Call
	// Wait, when set, holds the part back until the channel is closed. What came before is sent.
	Wait <-chan struct{}
}

// Usage is what the answer claims to have cost.
type Usage struct {
	Input, Cached, CacheWrite, Output int
}

// Error is a refusal.
type Error struct {
	Status     int
	Type       string
	Code       string
	Message    string
	RetryAfter string // header value
	Body       string // instead of the dialect's error object
}

// Text is an answer of text.
func Text(s string) Script { return Script{Parts: []Part{{Text: s}}} }

// Tool is an answer of one tool call; args is marshalled unless it is a string.
func Tool(id, name string, args any) Script {
	return Script{Parts: []Part{{Call: &Call{ID: id, Name: name, Arguments: jsonText(args)}}}}
}

// Fail is a refusal with the dialect's usual type for status.
func Fail(status int, message string) Script {
	return Script{Error: &Error{Status: status, Message: message}}
}

// Then appends the parts of more to s.
func (s Script) Then(more Script) Script {
	s.Parts = append(append([]Part{}, s.Parts...), more.Parts...)
	return s
}

// Queue answers with scripts in order, and with the last one from then on.
func Queue(scripts ...Script) Responder {
	return func(r *Request) Script {
		if len(scripts) == 0 {
			return Script{}
		}
		return scripts[min(r.N, len(scripts))-1]
	}
}

// Calls counts the calls of the answer.
func (s Script) Calls() int {
	n := 0
	for _, p := range s.Parts {
		if p.Call != nil {
			n++
		}
	}
	return n
}

// Cost is s.Usage or a rough count.
func (s Script) Cost(r *Request) Usage {
	if s.Usage != nil {
		return *s.Usage
	}
	u := Usage{Input: 1 + len(r.Body)/4}
	for _, p := range s.Parts {
		u.Output += 1 + (len(p.Text)+len(p.Reasoning))/4
		if p.Call != nil {
			u.Output += (len(p.Call.Name) + len(p.Call.Arguments)) / 4
		}
	}
	return u
}

// Pieces splits text as s.ChunkSize wants it, never inside a character. Empty text is one empty piece.
func (s Script) Pieces(text string) []string {
	if s.ChunkSize <= 0 || text == "" {
		return []string{text}
	}
	var out []string
	n, start := 0, 0
	for i := range text {
		if n == s.ChunkSize {
			out = append(out, text[start:i])
			n, start = 0, i
		}
		n++
	}
	return append(out, text[start:])
}

func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("script: arguments cannot be marshalled: " + err.Error())
	}
	return string(b)
}
