package rehearsal

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deerbot/internal/wire/script"
	"deerbot/runtime/model"
	"deerbot/runtime/model/modeltest"
)

func TestConformance(t *testing.T) {
	modeltest.Run(t, modeltest.Harness{New: func(*testing.T, modeltest.Setup) (model.Model, *script.Recorder) {
		return New(Config{ChunkDelay: time.Microsecond}), nil
	}})
}

func tools(names ...string) []model.ToolSpec {
	var out []model.ToolSpec
	for _, n := range names {
		out = append(out, model.ToolSpec{Name: n, Schema: json.RawMessage(`{"type":"object","properties":{"description":{"type":"string"}},"required":["description"]}`)})
	}
	return out
}

// play runs the loop that a runtime would run; answer gives the results of tools.
func play(t *testing.T, said string, offered []model.ToolSpec, answer func(model.ToolCall) model.ToolResult) (calls []model.ToolCall, final string) {
	t.Helper()
	m := New(Config{ChunkDelay: -1})
	req := &model.Request{Messages: []model.Message{model.Text("u1", model.RoleUser, said)}, Tools: offered}
	for range 10 {
		r := modeltest.Collect(t, m.Stream(t.Context(), req))
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		req.Messages = append(req.Messages, r.Response.Message)
		if r.Response.Finish == model.FinishStop {
			return calls, r.Text()
		}
		for _, c := range r.Response.Message.Calls() {
			calls = append(calls, c)
			res := answer(c)
			res.CallID = c.ID
			req.Messages = append(req.Messages, model.Message{Role: model.RoleTool, Parts: []model.Part{{Kind: model.PartToolResult, Result: &res}}})
		}
	}
	t.Fatal("the play does not end")
	return nil, ""
}

func fine(model.ToolCall) model.ToolResult { return model.ToolResult{Content: "ok"} }

func names(calls []model.ToolCall) string {
	var out []string
	for _, c := range calls {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

func TestPlay(t *testing.T) {
	calls, final := play(t, "Compare the three biggest rivers of Europe", tools("ls", "todo", "write_file", "present_files"), fine)
	if got := names(calls); got != "todo write_file present_files" {
		t.Fatalf("calls %s", got)
	}
	var todo struct {
		Description string
		Todos       []struct{ Text, Status string }
	}
	var file struct{ Path, Content string }
	var present struct{ Paths []string }
	for i, v := range []any{&todo, &file, &present} {
		if err := json.Unmarshal(calls[i].Arguments, v); err != nil {
			t.Fatal(err)
		}
	}
	if len(todo.Todos) != 3 || todo.Todos[0].Status != "in_progress" || todo.Description == "" {
		t.Errorf("todo %s", calls[0].Arguments)
	}
	if file.Path != "/mnt/user-data/outputs/rehearsal.md" || !strings.Contains(file.Content, "> Compare the three") || !strings.Contains(file.Content, "rehearsal model") {
		t.Errorf("write_file %s", calls[1].Arguments)
	}
	if len(present.Paths) != 1 || present.Paths[0] != file.Path {
		t.Errorf("present_files %s", calls[2].Arguments)
	}
	for _, want := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "Ollama", file.Path} {
		if !strings.Contains(final, want) {
			t.Errorf("the answer lacks %q:\n%s", want, final)
		}
	}
	if first, _, _ := strings.Cut(final, "\n"); !strings.Contains(first, "no language model is connected") {
		t.Errorf("first line %q", first)
	}
}

func TestPlayWithoutTools(t *testing.T) {
	for _, offered := range [][]model.ToolSpec{nil, tools("grep"), tools("present_files")} {
		calls, final := play(t, "Compare the three biggest rivers of Europe", offered, fine)
		if len(calls) != 0 || !strings.Contains(final, "No tools were called") {
			t.Errorf("calls %s, answer %q", names(calls), final)
		}
	}
}

func TestPlayToolError(t *testing.T) {
	calls, final := play(t, "Compare the three biggest rivers of Europe", tools("todo", "write_file", "present_files"), func(c model.ToolCall) model.ToolResult {
		return model.ToolResult{Content: "disk\nfull", IsError: c.Name == "write_file"}
	})
	if names(calls) != "todo write_file" || !strings.Contains(final, "`write_file` did not work: disk full") {
		t.Errorf("calls %s, answer %q", names(calls), final)
	}
}

func TestChinese(t *testing.T) {
	calls, final := play(t, "请帮我写一个 HTTP server 的教程", tools("write_file"), fine)
	if names(calls) != "write_file" || !strings.Contains(string(calls[0].Arguments), "教程") || !strings.HasPrefix(final, "**这是内置的排练模型") {
		t.Errorf("calls %s, answer %q", names(calls), final)
	}
}

func TestSecondTurnWritesAnotherFile(t *testing.T) {
	old := model.ToolCall{ID: "x", Name: "write_file", Arguments: json.RawMessage("{}")}
	s := next(&model.Request{Tools: tools("write_file"), Messages: []model.Message{
		model.Text("u1", model.RoleUser, "one task for you"),
		{Role: model.RoleAssistant, Provider: Provider, Parts: []model.Part{{Kind: model.PartToolCall, Call: &old}}},
		{Role: model.RoleTool, Parts: []model.Part{{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: "x"}}}},
		model.Text("a", model.RoleAssistant, "done"),
		model.Text("u2", model.RoleUser, "another task for you"),
		{ID: "u3", Role: model.RoleUser, Hidden: true, Parts: []model.Part{{Kind: model.PartText, Text: "reminder"}}},
	}})
	if s.call == nil || !strings.Contains(string(s.call.Arguments), "rehearsal-2.md") || !strings.Contains(string(s.call.Arguments), "another task") {
		t.Errorf("step %+v", s)
	}
}

func TestSmallTalk(t *testing.T) {
	for text, want := range map[string]bool{
		"hi": true, "Hello there!": true, "hey, how are you?": true, "thanks 🙏": true, "why?": true, "": true, "???": true,
		"你好": true, "你好！在吗": true, "谢谢你": true, "真的吗？": true, "👋": true,
		"history of Rome in one page": false, "write me a poem": false, "Hello, please compare these two files and report": false,
		"帮我写一份周报": false, "你好，请比较这两个文件并写一份报告": false, "hire three people": false,
	} {
		if got := smallTalk(text); got != want {
			t.Errorf("smallTalk(%q) = %v", text, got)
		}
	}
	calls, final := play(t, "Hi!", tools("todo", "write_file"), fine)
	if len(calls) != 0 || !strings.Contains(final, "no language model is connected") {
		t.Errorf("calls %s, answer %q", names(calls), final)
	}
}

func TestChunkDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := modeltest.Collect(t, New(Config{}).Stream(t.Context(), modeltest.Ask("hi")))
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if got, want := time.Since(start), time.Duration(len(r.Chunks))*DefaultChunkDelay; got != want {
			t.Errorf("took %v, want %v", got, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		defer cancel()
		if r := modeltest.Collect(t, New(Config{}).Stream(ctx, modeltest.Ask("hi"))); model.ClassOf(r.Err) != model.ClassTimeout || len(r.Chunks) != 2 {
			t.Errorf("error %v after %d chunks", r.Err, len(r.Chunks))
		}
	})
}
