// Package model is the runtime's view of a language model: messages, requests, a stream of chunks, and classified errors.
//
// An adapter implements [Model], two methods. It alone may import a provider's SDK; no SDK type leaves it. Retries are
// not an adapter's business (the SDK's own are switched off): the error-handling middleware retries, because only it
// knows what was already shown. An adapter yields chunks while they come and, last, exactly one [Done] chunk that carries
// the complete response; a stream that ends otherwise ends with an error, so a cut stream can never look complete.
//
// runtime/model/modeltest runs one suite over every adapter.
package model

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"
)

// Model is one configured language model.
type Model interface {
	// Info describes the model. It does not change.
	Info() Info
	// Stream sends req and yields the answer's chunks. The consumer stops the call by breaking out of the loop or by
	// cancelling ctx. After a non-nil error, which is always an *[Error], nothing more is yielded.
	// req is not changed and may be used again.
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// Info describes a model.
type Info struct {
	Name            string // configured name, unique
	Provider        string // openai, anthropic, rehearsal
	Model           string // the provider's id
	ContextWindow   int    // tokens
	MaxOutputTokens int
	Vision          bool
	Price           Price
	Rehearsal       bool // a scripted stand-in, to be labelled wherever it shows
}

// Price is in USD per million tokens.
type Price struct {
	Input, CachedInput, Output float64
}

// Cost is the price of u in USD.
func (p Price) Cost(u Usage) float64 {
	fresh := u.InputTokens - u.CachedTokens
	return (float64(fresh)*p.Input + float64(u.CachedTokens)*p.CachedInput + float64(u.OutputTokens)*p.Output) / 1e6
}

// Role is who speaks.
type Role string

// Roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // parts are tool results
)

// Message is one entry of a conversation, in memory and in checkpoints.
type Message struct {
	ID     string `json:"id"` // unique in a thread
	Role   Role   `json:"role"`
	Parts  []Part `json:"parts"`
	Hidden bool   `json:"hidden,omitempty"` // never shown to people (framework text)
	Origin string `json:"origin,omitempty"` // provenance of user and tool text: user, quote, framework, tool:<name>, recovery
	// Provider and Model of an assistant message: provider-specific parts go back only to the same provider.
	Provider string    `json:"provider,omitempty"`
	Model    string    `json:"model,omitempty"`
	RunID    string    `json:"run_id,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// PartKind tells which field of a Part counts.
type PartKind string

// Kinds of parts.
const (
	PartText       PartKind = "text"
	PartReasoning  PartKind = "reasoning"
	PartImage      PartKind = "image"
	PartToolCall   PartKind = "tool_call"
	PartToolResult PartKind = "tool_result"
)

// Part is one piece of a message.
type Part struct {
	Kind      PartKind    `json:"kind"`
	Text      string      `json:"text,omitempty"` // text and reasoning
	Reasoning *Reasoning  `json:"reasoning,omitempty"`
	Image     *Image      `json:"image,omitempty"`
	Call      *ToolCall   `json:"call,omitempty"`
	Result    *ToolResult `json:"result,omitempty"`
}

// Reasoning holds what a provider wants back verbatim beside the reasoning text.
type Reasoning struct {
	Signature string `json:"signature,omitempty"` // Anthropic thinking signature
	Redacted  string `json:"redacted,omitempty"`  // Anthropic redacted_thinking data
	Field     string `json:"field,omitempty"`     // OpenAI dialect: the field it came in (reasoning_content, reasoning)
}

// Image is an inline picture.
type Image struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"` // raw bytes, base64 in JSON
}

// ToolCall is the model's wish to call a tool. Arguments is always a JSON object; when the model sent something else,
// Arguments is {} and Malformed holds what it sent.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Malformed string          `json:"malformed,omitempty"`
	// Extra is what the provider wants back verbatim with the call (OpenAI dialect: extra_content, Gemini's thought
	// signature). It goes back only to the same provider and model.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// ToolResult answers one call.
type ToolResult struct {
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	Content string `json:"content"`
	IsError bool   `json:"is_error,omitempty"`
}

// TextOf joins the text parts of m.
func (m Message) TextOf() string {
	var out strings.Builder
	for _, p := range m.Parts {
		if p.Kind == PartText {
			out.WriteString(p.Text)
		}
	}
	return out.String()
}

// Calls returns the tool calls of m in order.
func (m Message) Calls() []ToolCall {
	var out []ToolCall
	for _, p := range m.Parts {
		if p.Kind == PartToolCall && p.Call != nil {
			out = append(out, *p.Call)
		}
	}
	return out
}

// Text makes a message of one text part.
func Text(id string, role Role, text string) Message {
	return Message{ID: id, Role: role, Parts: []Part{{Kind: PartText, Text: text}}}
}

// ToolSpec tells the model about a tool.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema, type object
}

// Request is one model call.
type Request struct {
	Messages  []Message
	Tools     []ToolSpec
	MaxTokens int  // 0: Info.MaxOutputTokens
	NoTools   bool // send the tools (calls in history need them) but let the model call none
}

// ChunkKind tells which fields of a Chunk count.
type ChunkKind string

// Kinds of chunks.
const (
	ChunkText      ChunkKind = "text"      // Text is a delta meant for people
	ChunkReasoning ChunkKind = "reasoning" // Text is a delta of reasoning
	ChunkToolCall  ChunkKind = "tool_call" // Call names a call that has begun (arguments still incomplete)
	ChunkDone      ChunkKind = "done"      // Response is complete
)

// Chunk is one piece of a streamed answer.
type Chunk struct {
	Kind     ChunkKind
	Text     string
	Call     *ToolCall
	Response *Response
}

// Finish says why the model stopped.
type Finish string

// Finish reasons.
const (
	FinishStop   Finish = "stop"
	FinishTools  Finish = "tool_calls"
	FinishLength Finish = "length"
	FinishSafety Finish = "safety" // content filter, refusal
)

// Response is a complete answer. Message has role assistant and no ID.
type Response struct {
	Message Message
	Finish  Finish
	Usage   Usage
}

// Usage counts tokens of one call.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"` // all input, cached included
	CachedTokens int64 `json:"cached_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Estimated    bool  `json:"estimated,omitempty"` // the provider sent none
}
