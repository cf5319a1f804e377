package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// chunk is one event of a stream. Fields of the wrong type are left empty instead of failing the whole answer.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	// Flat errors (vLLM) have these at the top.
	Object  string `json:"object"`
	Message string `json:"message"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        *delta `json:"delta"`
	Message      *delta `json:"message"` // servers that answer a stream request in one piece
	FinishReason string `json:"finish_reason"`
	Usage        *usage `json:"usage"` // Moonshot
}

type delta struct {
	Content          content         `json:"content"`
	Refusal          string          `json:"refusal"`
	ReasoningContent *content        `json:"reasoning_content"`
	Reasoning        *content        `json:"reasoning"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	ToolCalls        []toolDelta     `json:"tool_calls"`
	FunctionCall     *functionDelta  `json:"function_call"` // the old form
}

type toolDelta struct {
	Index    *int            `json:"index"`
	ID       string          `json:"id"`
	Function functionDelta   `json:"function"`
	Extra    json.RawMessage `json:"extra_content"`
}

type functionDelta struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
}

type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	Details          struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached   int64 `json:"cached_tokens"`           // Moonshot
}

// decode reads one event's data.
func decode(data []byte) (chunk, error) {
	var c chunk
	err := json.Unmarshal(data, &c)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // the rest was decoded
		err = nil
	}
	return c, err
}

// failed reports whether c is an error and not a piece of an answer.
func (c *chunk) failed() bool {
	return isSet(c.Error) || c.Object == "error" || (c.Message != "" && len(c.Choices) == 0 && c.Usage == nil)
}

func isSet(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}", `""`, "false":
		return false
	}
	return true
}

// content is text: a string, or a list of parts of which the text counts.
type content string

// UnmarshalJSON accepts a string, null and a list of parts.
func (c *content) UnmarshalJSON(data []byte) error {
	*c = ""
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, (*string)(c))
	}
	var parts []struct {
		Text content `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(string(p.Text))
	}
	*c = content(b.String())
	return nil
}

// arguments is a piece of JSON text, or a whole object from servers that do not wrap it in a string.
type arguments string

// UnmarshalJSON accepts a string, null and an object.
func (a *arguments) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		*a = arguments(data)
		return nil
	}
	*a = ""
	return json.Unmarshal(data, (*string)(a))
}
