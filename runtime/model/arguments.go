package model

import (
	"bytes"
	"encoding/json"
)

// ParseArguments makes a [ToolCall]'s Arguments of what a model sent. It returns a JSON object, and in malformed what
// was sent when that was no object. Nothing is completed or guessed: text that was cut is malformed. Three spellings of
// an object are understood: no text at all (no arguments), an object inside a JSON string, and an empty object in front
// of the real one, which some servers send as a placeholder.
func ParseArguments(sent string) (args json.RawMessage, malformed string) {
	empty := json.RawMessage("{}")
	b := bytes.TrimSpace([]byte(sent))
	if len(b) == 0 || string(b) == "null" {
		return empty, ""
	}
	if b[0] == '"' {
		var inner string
		if json.Unmarshal(b, &inner) == nil {
			b = bytes.TrimSpace([]byte(inner))
		}
	}
	if rest, ok := bytes.CutPrefix(b, []byte("{}")); ok {
		if rest = bytes.TrimSpace(rest); len(rest) > 0 {
			b = rest
		}
	}
	if len(b) == 0 || b[0] != '{' || !json.Valid(b) {
		return empty, sent
	}
	return b, ""
}
