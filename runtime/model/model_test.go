package model

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEstimate(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "a": 1, "abcd": 1, "hello, world": 3, "你好世界": 4, "こんにちは": 5, "안녕": 2, "héllo": 2, "Привет": 3, "👋": 1, strings.Repeat("word ", 100): 125,
	} {
		if got := Estimate(text); got != want {
			t.Errorf("Estimate(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestEstimateMessages(t *testing.T) {
	msgs := []Message{
		Text("", RoleUser, strings.Repeat("x", 400)),
		{Role: RoleAssistant, Parts: []Part{
			{Kind: PartReasoning, Text: strings.Repeat("y", 40)},
			{Kind: PartToolCall, Call: &ToolCall{Name: "name", Arguments: json.RawMessage(strings.Repeat("z", 40))}},
			{Kind: PartToolCall},
			{Kind: PartImage},
		}},
		{Role: RoleTool, Parts: []Part{{Kind: PartToolResult, Result: &ToolResult{Content: strings.Repeat("r", 80)}}}},
	}
	if got, want := EstimateMessages(msgs), int64(4+100+4+10+8+1+10+1100+4+8+20); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	req := &Request{Messages: msgs[:1], Tools: []ToolSpec{{Name: "abcd", Description: "abcd", Schema: json.RawMessage("{\"a\"")}}}
	if got, want := EstimateRequest(req), int64(104+8+3); got != want {
		t.Errorf("request: got %d, want %d", got, want)
	}
	if u := EstimateUsage(req, msgs[0]); u.InputTokens != 115 || u.OutputTokens != 100 || !u.Estimated {
		t.Errorf("usage %+v", u)
	}
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"b": 1, "a": {"d":[1, 2.50, 12345678901234567890],"c":"<é>"}}`: `{"a":{"c":"<é>","d":[1,2.50,12345678901234567890]},"b":1}`,
		` {} `: `{}`, `nonsense`: `nonsense`, `{} {}`: `{} {}`, ``: ``, `{"a":`: `{"a":`,
	} {
		if got := string(Canonical(json.RawMessage(in))); got != want {
			t.Errorf("Canonical(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestParseArguments(t *testing.T) {
	for in, want := range map[string][2]string{
		``: {`{}`, ``}, ` `: {`{}`, ``}, `null`: {`{}`, ``}, `{"a":1}`: {`{"a":1}`, ``}, " {\"a\":1}\n": {`{"a":1}`, ``},
		`{"a":`: {`{}`, `{"a":`}, `[1]`: {`{}`, `[1]`}, `"x"`: {`{}`, `"x"`}, `"{\"a\":1}"`: {`{"a":1}`, ``},
		`{}{"a":1}`: {`{"a":1}`, ``}, `{"p":1}{"p":2}`: {`{}`, `{"p":1}{"p":2}`}, `{}{`: {`{}`, `{}{`}, `{}`: {`{}`, ``}, `""`: {`{}`, `""`},
	} {
		args, malformed := ParseArguments(in)
		if string(args) != want[0] || malformed != want[1] {
			t.Errorf("ParseArguments(%s) = %s, %q; want %s, %q", in, args, malformed, want[0], want[1])
		}
	}
}

func FuzzParseArguments(f *testing.F) {
	f.Add(`{"a":1}`)
	f.Add(`"{}"`)
	f.Fuzz(func(t *testing.T, s string) {
		args, malformed := ParseArguments(s)
		var object map[string]any
		if json.Unmarshal(args, &object) != nil || object == nil {
			t.Errorf("%q: %s is no object", s, args)
		}
		if malformed != "" && (malformed != s || string(args) != "{}") {
			t.Errorf("%q: malformed %q with %s", s, malformed, args)
		}
	})
}
