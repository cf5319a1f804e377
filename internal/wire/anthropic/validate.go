package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"deerbot/internal/wire/script"
)

var (
	namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	idPattern   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

type request struct {
	Model      string          `json:"model"`
	MaxTokens  *int            `json:"max_tokens"`
	Stream     bool            `json:"stream"`
	System     json.RawMessage `json:"system"`
	Messages   []message       `json:"messages"`
	Tools      []tool          `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	Temperature json.RawMessage `json:"temperature"`
	TopP        json.RawMessage `json:"top_p"`
	TopK        json.RawMessage `json:"top_k"`
}

type tool struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"input_schema"`
	Cache  json.RawMessage `json:"cache_control"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	Cache json.RawMessage `json:"cache_control"`
}

func bad(format string, args ...any) *script.Error {
	return &script.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...)}
}

// parse validates body.
func (s *Server) parse(body []byte, version string) (*script.Request, *script.Error) {
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, bad("The request body is not valid JSON: %v", err)
	}
	if s.Strict.ContextTokens > 0 && len(body)/4 > s.Strict.ContextTokens {
		return nil, bad("prompt is too long: %d tokens > %d maximum", len(body)/4, s.Strict.ContextTokens)
	}
	switch {
	case in.Model == "":
		return nil, bad("model: Field required")
	case in.MaxTokens == nil:
		return nil, bad("max_tokens: Field required")
	case *in.MaxTokens < 1:
		return nil, bad("max_tokens: Input should be greater than or equal to 1")
	case !in.Stream:
		return nil, bad("this server only streams")
	case len(in.Messages) == 0:
		return nil, bad("messages: at least one message is required")
	case version >= "2026-10-21" && len(in.Temperature)+len(in.TopP)+len(in.TopK) > 0:
		return nil, bad("temperature, top_p and top_k: Extra inputs are not permitted")
	case in.ToolChoice.Type != "" && len(in.Tools) == 0:
		return nil, bad("tool_choice may only be specified while providing tools")
	}
	v := &validation{s: s, out: &script.Request{
		Model: in.Model, MaxTokens: *in.MaxTokens, Body: body, NoTools: in.ToolChoice.Type == "none",
	}, ids: map[string]bool{}}
	if e := v.tools(in.Tools); e != nil {
		return nil, e
	}
	if len(in.System) > 0 {
		blocks, e := v.blocks(in.System, "system")
		if e != nil {
			return nil, e
		}
		for _, b := range blocks {
			v.out.System += b.Text
		}
	}
	for i, m := range in.Messages {
		if e := v.message(i, m); e != nil {
			return nil, e
		}
	}
	switch {
	case len(v.pending) > 0:
		return nil, bad("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", len(in.Messages)-1, strings.Join(v.pending, ", "))
	case in.Messages[len(in.Messages)-1].Role == "assistant":
		return nil, bad("This model does not support assistant message prefill. The conversation must end with a user message.")
	case v.breakpoints > 4:
		return nil, bad("A maximum of 4 blocks with cache_control may be provided. Found %d.", v.breakpoints)
	}
	return v.out, nil
}

type validation struct {
	s           *Server
	out         *script.Request
	ids         map[string]bool
	pending     []string // tool_use ids of the previous message
	breakpoints int
}

func (v *validation) tools(list []tool) *script.Error {
	for i, t := range list {
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case !namePattern.MatchString(t.Name):
			return bad("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case slices.Contains(v.out.Tools, t.Name):
			return bad("tools: Tool names must be unique.")
		case json.Unmarshal(t.Schema, &schema) != nil || schema.Type != "object":
			return bad("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		v.count(t.Cache)
		v.out.Tools = append(v.out.Tools, t.Name)
	}
	return nil
}

func (v *validation) count(cache json.RawMessage) {
	if len(cache) > 0 && string(cache) != "null" {
		v.breakpoints++
	}
}

func (v *validation) blocks(raw json.RawMessage, where string) ([]block, *script.Error) {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		_ = json.Unmarshal(raw, &text)
		return []block{{Type: "text", Text: text}}, nil
	}
	var list []block
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, bad("%s: Input should be a valid list", where)
	}
	for i, b := range list {
		v.count(b.Cache)
		if b.Type == "text" && b.Text == "" {
			return nil, bad("%s.%d: text content blocks must be non-empty", where, i)
		}
		if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
			return nil, bad("%s.%d: text content blocks must contain non-whitespace text", where, i)
		}
	}
	return list, nil
}

// message validates one message. Neighbours of one role are allowed, as on the real server, but calls and results must
// still stand in neighbouring messages.
func (v *validation) message(i int, m message) *script.Error {
	where := fmt.Sprintf("messages.%d", i)
	blocks, e := v.blocks(m.Content, where+".content")
	switch {
	case e != nil:
		return e
	case len(blocks) == 0:
		return bad("%s: all messages must have non-empty content", where)
	case i == 0 && m.Role != "user":
		return bad("messages: first message must use the \"user\" role")
	}
	msg := script.Message{Role: m.Role}
	switch m.Role {
	case "user":
		e = v.user(where, blocks, &msg)
	case "assistant":
		e = v.assistant(where, blocks, &msg)
	default:
		e = bad("%s.role: Input should be 'user' or 'assistant'", where)
	}
	v.out.Messages = append(v.out.Messages, msg)
	return e
}

func (v *validation) user(where string, blocks []block, msg *script.Message) *script.Error {
	other := false
	for k, b := range blocks {
		switch b.Type {
		case "text":
			msg.Text += b.Text
			other = true
		case "image":
			if b.Source.Type != "base64" || !strings.HasPrefix(b.Source.MediaType, "image/") || b.Source.Data == "" {
				return bad("%s.content.%d.image.source: Could not process image", where, k)
			}
			msg.Images++
			other = true
		case "tool_result":
			at := slices.Index(v.pending, b.ToolUseID)
			if at < 0 {
				return bad("%s.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", where, k, b.ToolUseID)
			}
			if other {
				return bad("%s.content.%d: `tool_result` blocks must come first in the message", where, k)
			}
			v.pending = slices.Delete(slices.Clone(v.pending), at, at+1)
			var text strings.Builder
			if len(b.Content) > 0 {
				inner, e := v.blocks(b.Content, fmt.Sprintf("%s.content.%d.content", where, k))
				if e != nil {
					return e
				}
				for _, c := range inner {
					text.WriteString(c.Text)
				}
			}
			msg.Results = append(msg.Results, script.Result{CallID: b.ToolUseID, Text: text.String(), IsError: b.IsError})
		default:
			return bad("%s.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags", where, k, b.Type)
		}
	}
	if len(v.pending) > 0 {
		return bad("%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", where, strings.Join(v.pending, ", "))
	}
	return nil
}

func (v *validation) assistant(where string, blocks []block, msg *script.Message) *script.Error {
	if len(v.pending) > 0 {
		return bad("%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s.", where, strings.Join(v.pending, ", "))
	}
	for k, b := range blocks {
		at := fmt.Sprintf("%s.content.%d", where, k)
		switch b.Type {
		case "text":
			msg.Text += b.Text
		case "thinking":
			if b.Thinking == nil || b.Signature == "" {
				return bad("%s.thinking.signature: Field required", at)
			}
			if v.s.Strict.Signatures != nil && !slices.Contains(v.s.Strict.Signatures, b.Signature) {
				return bad("%s: Invalid `signature` in `thinking` block", at)
			}
			msg.Reasoning += *b.Thinking
			msg.Signature = b.Signature
		case "redacted_thinking":
			if b.Data == "" {
				return bad("%s.redacted_thinking.data: Field required", at)
			}
		case "tool_use":
			var object map[string]any
			switch {
			case !idPattern.MatchString(b.ID):
				return bad("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
			case v.ids[b.ID]:
				return bad("messages: `tool_use` ids must be unique")
			case !namePattern.MatchString(b.Name):
				return bad("%s.tool_use.name: String should have at least 1 character", at)
			case json.Unmarshal(b.Input, &object) != nil || object == nil:
				return bad("%s.tool_use.input: Input should be a valid dictionary", at)
			case len(v.out.Tools) == 0:
				return bad("Requests which include `tool_use` or `tool_result` blocks must define tools")
			}
			v.ids[b.ID] = true
			v.pending = append(v.pending, b.ID)
			msg.Calls = append(msg.Calls, script.Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		default:
			return bad("%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, b.Type)
		}
	}
	if first := blocks[0].Type; v.s.Strict.Reasoning && len(msg.Calls) > 0 && first != "thinking" && first != "redacted_thinking" {
		return bad("%s.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.", where, first)
	}
	return nil
}
