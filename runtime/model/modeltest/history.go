package modeltest

import (
	"encoding/json"
	"testing"

	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
)

// History is a conversation with everything that is allowed and awkward: several system messages, parallel calls and
// results in one message and in several, an empty result, calls without arguments and with malformed ones, ids and
// reasoning of other providers, neighbours of one role, blank text, and pictures.
func History(info model.Info) []model.Message {
	call := func(id, name, args, malformed string) model.Part {
		return model.Part{Kind: model.PartToolCall, Call: &model.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args), Malformed: malformed}}
	}
	result := func(id, name, content string, isError bool) model.Part {
		return model.Part{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: id, Name: name, Content: content, IsError: isError}}
	}
	text := func(s string) model.Part { return model.Part{Kind: model.PartText, Text: s} }
	reasoning := func(s string, r model.Reasoning) model.Part {
		return model.Part{Kind: model.PartReasoning, Text: s, Reasoning: &r}
	}
	return []model.Message{
		model.Text("s1", model.RoleSystem, "You are a test."),
		model.Text("s2", model.RoleSystem, "Be strict. <tag> & \"quotes\"   "),
		model.Text("u1", model.RoleUser, "请读取两个文件 📄"),
		{ID: "a1", Role: model.RoleAssistant, Provider: "elsewhere", Model: "other", Parts: []model.Part{
			reasoning("Kimi numbers its calls", model.Reasoning{Field: "reasoning_content", Signature: "foreign"}),
			text("Reading."),
			call("functions.read_file:0", "read_file", `{"path":"a"}`, ""),
			call("functions.read_file:1", "read_file", `{}`, `{"path":"b`),
		}},
		{ID: "t1", Role: model.RoleTool, Parts: []model.Part{
			result("functions.read_file:1", "read_file", "the arguments were not JSON", true),
			result("functions.read_file:0", "read_file", "", false),
		}},
		{ID: "a2", Role: model.RoleAssistant, Provider: info.Provider, Model: info.Model, Parts: []model.Part{
			call("c1", "read_file", `{"path":"c"}`, ""), call("c2", "write_file", `{"path":"d","content":"é\n"}`, ""),
		}},
		{ID: "t2", Role: model.RoleTool, Parts: []model.Part{result("c1", "read_file", "C", false)}},
		{ID: "t3", Role: model.RoleTool, Parts: []model.Part{result("c2", "write_file", "written", false)}},
		{ID: "a3", Role: model.RoleAssistant, Provider: "elsewhere", Model: "other", Parts: []model.Part{
			reasoning("", model.Reasoning{Redacted: "opaque"}), text("Both are read."),
		}},
		model.Text("s3", model.RoleSystem, "A note from the framework."),
		{ID: "u2", Role: model.RoleUser, Hidden: true, Parts: []model.Part{text("(a reminder)")}},
		{ID: "u3", Role: model.RoleUser, Parts: []model.Part{
			text("And now this picture:"),
			{Kind: model.PartImage, Image: &model.Image{MIME: "image/png", Data: []byte("\x89PNG")}},
			text("  "),
		}},
	}
}

func testStrictHistory(t *testing.T, h Harness) {
	m, rec := h.New(t, Setup{Respond: script.Queue(script.Text("fine"))})
	r := Collect(t, m.Stream(t.Context(), &model.Request{Messages: History(m.Info()), Tools: Tools}))
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if rec == nil {
		return
	}
	last := rec.Last()
	var calls, results int
	for _, msg := range last.Messages {
		calls += len(msg.Calls)
		results += len(msg.Results)
		if msg.Reasoning != "" {
			t.Errorf("reasoning of another provider was sent: %q", msg.Reasoning)
		}
	}
	if calls != 4 || results != 4 {
		t.Errorf("%d calls and %d results reached the server, want 4 and 4", calls, results)
	}
	for _, want := range []string{"You are a test.", "Be strict.", "A note from the framework."} {
		if !contains(last.System, want) {
			t.Errorf("system %q lacks %q", last.System, want)
		}
	}
}
