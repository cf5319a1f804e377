package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"deerbot/internal/wire/script"
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

type request struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Stream              bool            `json:"stream"`
	StreamOptions       json.RawMessage `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
}

type message struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	ReasoningContent *string         `json:"reasoning_content"`
	Reasoning        *string         `json:"reasoning"`
	ToolCalls        []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func bad(format string, args ...any) *script.Error {
	return &script.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...)}
}

// parse validates body.
func (s *Server) parse(body []byte) (*script.Request, *script.Error) {
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, bad("We could not parse the JSON body of your request. (%v)", err)
	}
	if s.Strict.ContextTokens > 0 && len(body)/4 > s.Strict.ContextTokens {
		e := bad("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", s.Strict.ContextTokens, len(body)/4)
		e.Code = "context_length_exceeded"
		return nil, e
	}
	out := &script.Request{Model: in.Model, Body: body, NoTools: string(in.ToolChoice) == `"none"`}
	switch {
	case in.Model == "":
		return nil, bad("you must provide a model parameter")
	case !in.Stream:
		return nil, bad("this server only streams")
	case s.Strict.StreamOptions && len(in.StreamOptions) > 0:
		return nil, bad("Unrecognized request argument supplied: stream_options")
	case len(in.Messages) == 0:
		return nil, bad("[] is too short - 'messages'")
	case len(in.Tools) > 128:
		return nil, bad("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(in.Tools))
	case len(in.Tools) == 0 && len(in.ToolChoice) > 0:
		return nil, bad("'tool_choice' is only allowed when 'tools' are specified.")
	}
	if e := s.limits(&in, out); e != nil {
		return nil, e
	}
	if e := tools(in.Tools, out); e != nil {
		return nil, e
	}
	return out, s.history(in.Messages, out)
}

func (s *Server) limits(in *request, out *script.Request) *script.Error {
	for field, v := range map[string]*int{"max_tokens": in.MaxTokens, "max_completion_tokens": in.MaxCompletionTokens} {
		if v == nil {
			continue
		}
		if s.Strict.LimitField != "" && field != s.Strict.LimitField {
			e := bad("Unsupported parameter: '%s' is not supported with this model. Use '%s' instead.", field, s.Strict.LimitField)
			e.Code = "unsupported_parameter"
			return e
		}
		if *v < 1 {
			return bad("Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.", field, *v)
		}
		out.MaxTokens = *v
	}
	return nil
}

func tools(list []tool, out *script.Request) *script.Error {
	seen := map[string]bool{}
	for i, t := range list {
		name := t.Function.Name
		if t.Type != "function" {
			return bad("Invalid value: '%s'. Supported values are: 'function' and 'custom'. (tools[%d].type)", t.Type, i)
		}
		if !namePattern.MatchString(name) {
			return bad("Invalid 'tools[%d].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
		}
		if seen[name] {
			return bad("tools: Tool names must be unique. (%s)", name)
		}
		seen[name] = true
		if len(t.Function.Parameters) > 0 {
			var schema struct {
				Type string `json:"type"`
			}
			if json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object" {
				return bad("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", name, schema.Type)
			}
		}
		out.Tools = append(out.Tools, name)
	}
	return nil
}

// history validates the messages and copies them to out.
func (s *Server) history(list []message, out *script.Request) *script.Error {
	var pending []string // ids of calls that still want an answer, in order
	ids := map[string]bool{}
	begun := false
	for i, m := range list {
		text, images, e := content(m.Content, i)
		if e != nil {
			return e
		}
		if images > 0 && s.Strict.NoImages {
			return bad("Invalid content: this model does not support image input. (messages[%d])", i)
		}
		if m.Role != "tool" && len(pending) > 0 {
			return bad("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(pending, ", "))
		}
		msg := script.Message{Role: m.Role, Text: text, Images: images}
		switch m.Role {
		case "system", "developer":
			if i != 0 {
				return bad("System message must be at the beginning. (messages[%d])", i)
			}
			out.System = text
			continue
		case "user":
			if text == "" && images == 0 {
				return bad("Invalid 'messages[%d].content': must not be empty.", i)
			}
		case "assistant":
			if !begun {
				return bad("The first message after the system message must be a user message, but got role 'assistant'.")
			}
			var err *script.Error
			if pending, err = s.assistant(i, &m, &msg, ids, out); err != nil {
				return err
			}
		case "tool":
			at := -1
			for k, id := range pending {
				if id == m.ToolCallID {
					at = k
				}
			}
			if at < 0 {
				return bad("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (messages[%d], tool_call_id '%s')", i, m.ToolCallID)
			}
			pending = append(pending[:at:at], pending[at+1:]...)
			msg.Text = ""
			msg.Results = []script.Result{{CallID: m.ToolCallID, Text: text}}
		default:
			return bad("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'. (messages[%d].role)", m.Role, i)
		}
		begun = true
		out.Messages = append(out.Messages, msg)
	}
	if len(pending) > 0 {
		return bad("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(pending, ", "))
	}
	if !begun {
		return bad("messages: there is no user message")
	}
	return nil
}

func (s *Server) assistant(i int, m *message, msg *script.Message, ids map[string]bool, out *script.Request) ([]string, *script.Error) {
	switch {
	case m.ReasoningContent != nil:
		msg.Reasoning = *m.ReasoningContent
	case m.Reasoning != nil:
		msg.Reasoning = *m.Reasoning
	}
	if s.Strict.Reasoning && m.ReasoningContent == nil {
		return nil, bad("The `reasoning_content` in the thinking mode must be passed back to the API.")
	}
	if s.Strict.NoReasoning && (m.ReasoningContent != nil || m.Reasoning != nil) {
		return nil, bad("Additional properties are not allowed ('reasoning_content' was unexpected) - 'messages.%d'", i)
	}
	if len(m.Content) == 0 && len(m.ToolCalls) == 0 {
		return nil, bad("Invalid value for 'content': expected a string, got null. (messages[%d])", i)
	}
	var pending []string
	for k, c := range m.ToolCalls {
		where := fmt.Sprintf("messages[%d].tool_calls[%d]", i, k)
		var args string
		switch {
		case c.ID == "":
			return nil, bad("Missing required parameter: '%s.id'.", where)
		case ids[c.ID]:
			return nil, bad("Duplicate value for 'tool_call_id' of '%s' (%s)", c.ID, where)
		case c.Type != "function":
			return nil, bad("Missing required parameter: '%s.type'.", where)
		case !namePattern.MatchString(c.Function.Name):
			return nil, bad("Invalid '%s.function.name': empty string or does not match pattern.", where)
		case json.Unmarshal(c.Function.Arguments, &args) != nil:
			return nil, bad("Invalid type for '%s.function.arguments': expected a string.", where)
		}
		var object map[string]any
		if json.Unmarshal([]byte(args), &object) != nil || object == nil {
			return nil, bad("Invalid '%s.function.arguments': not a valid JSON object.", where)
		}
		if len(out.Tools) == 0 {
			return nil, bad("'tools' must be given when messages hold tool calls (%s)", where)
		}
		ids[c.ID] = true
		pending = append(pending, c.ID)
		msg.Calls = append(msg.Calls, script.Call{ID: c.ID, Name: c.Function.Name, Arguments: args})
	}
	return pending, nil
}

// content reads a message's content: null, a string or a list of parts.
func content(raw json.RawMessage, i int) (text string, images int, e *script.Error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", 0, nil
	}
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", 0, bad("Invalid 'messages[%d].content'.", i)
		}
		return text, 0, nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", 0, bad("Invalid type for 'messages[%d].content': expected one of a string or array of objects.", i)
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			text += p.Text
		case "image_url":
			if !strings.HasPrefix(p.ImageURL.URL, "data:image/") && !strings.HasPrefix(p.ImageURL.URL, "https://") {
				return "", 0, bad("Invalid image URL. (messages[%d])", i)
			}
			images++
		default:
			return "", 0, bad("Invalid value: '%s'. (messages[%d].content)", p.Type, i)
		}
	}
	return text, images, nil
}
