package middleware

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deerbot/runtime/agent"
	"deerbot/runtime/middleware/middlewaretest"
	"deerbot/runtime/model"
)

// history draws the messages of a thread that went through everything that happens to threads.
func history() *rapid.Generator[[]model.Message] {
	return rapid.Custom(func(t *rapid.T) []model.Message {
		h := &drawn{t: t}
		for range rapid.IntRange(0, 8).Draw(t, "events") {
			h.event()
		}
		if rapid.IntRange(0, 9).Draw(t, "shuffle") == 0 {
			h.ms = rapid.Permutation(h.ms).Draw(t, "order")
		}
		if len(h.ms) > 0 && rapid.IntRange(0, 4).Draw(t, "compacted") == 0 {
			h.ms = h.ms[rapid.IntRange(0, len(h.ms)-1).Draw(t, "from"):]
		}
		return h.ms
	})
}

type drawn struct {
	t  *rapid.T
	ms []model.Message
	n  int
}

func (h *drawn) id() string {
	h.n++
	return fmt.Sprintf("m%d", h.n)
}

func (h *drawn) add(role model.Role, parts ...model.Part) *model.Message {
	h.ms = append(h.ms, model.Message{ID: h.id(), Role: role, Parts: parts, Provider: "openai", Model: "x"})
	return &h.ms[len(h.ms)-1]
}

func textPart(s string) model.Part { return model.Part{Kind: model.PartText, Text: s} }

func (h *drawn) event() {
	t := h.t
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	case 0, 1:
		h.add(model.RoleUser, textPart("do something"))
	case 2:
		h.add(model.RoleUser, textPart("<note>")).Hidden = true
	case 3:
		h.add(model.RoleAssistant, textPart(rapid.SampledFrom([]string{"done", "", " \n"}).Draw(t, "text")))
	case 4:
		h.add(model.RoleAssistant)
	case 5:
		h.add(model.RoleAssistant, model.Part{Kind: model.PartReasoning, Text: "hm", Reasoning: &model.Reasoning{Signature: "s"}})
	case 6:
		h.add(model.RoleSystem, textPart("be good"))
	case 7: // an orphan
		h.add(model.RoleTool, resultPart("gone", "ls", "x"))
	case 8:
		h.add(rapid.SampledFrom([]model.Role{"", "developer", model.RoleUser}).Draw(t, "role"), textPart(" "))
	default:
		h.calls()
	}
}

func resultPart(id, name, content string) model.Part {
	return model.Part{Kind: model.PartToolResult, Result: &model.ToolResult{CallID: id, Name: name, Content: content}}
}

// calls adds an assistant message with calls, and what a run, a cancel or a crash made of their results.
func (h *drawn) calls() {
	t := h.t
	var parts []model.Part
	if rapid.Bool().Draw(t, "reasons") {
		parts = append(parts, model.Part{Kind: model.PartReasoning, Text: "so", Reasoning: &model.Reasoning{Field: "reasoning_content"}})
	}
	var results []model.Part
	for range rapid.IntRange(1, 4).Draw(t, "calls") {
		id := rapid.SampledFrom([]string{fmt.Sprintf("c%d", h.n*10+len(parts)), "call_0", "call_1", "", " ", "x\ny"}).Draw(t, "id")
		name := rapid.SampledFrom([]string{"ls", "read_file", "", "no such tool", "工具"}).Draw(t, "name")
		args := rapid.SampledFrom([]string{`{}`, `{"path":"/a"}`, `{"q": "unter`, `[1]`, `null`, ``, `{"a":NaN}`, "{\"a\":\"\xff\"}"}).Draw(t, "args")
		c := &model.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args), Extra: json.RawMessage(`{"sig":1}`)}
		if rapid.IntRange(0, 5).Draw(t, "malformed") == 0 {
			c.Malformed, c.Arguments = args, json.RawMessage(`{}`)
		}
		parts = append(parts, model.Part{Kind: model.PartToolCall, Call: c})
		switch rapid.IntRange(0, 7).Draw(t, "result") {
		case 0: // none: a crash
		case 1:
			results = append(results, resultPart(id, name, "one"), resultPart(id, name, "two"))
		case 2:
			results = append(results, resultPart(id, "", "nameless"))
		default:
			results = append(results, resultPart(id, name, "ok"))
		}
	}
	if rapid.Bool().Draw(t, "says") {
		parts = append(parts, textPart(rapid.SampledFrom([]string{"wait", " "}).Draw(t, "text")))
	}
	h.add(model.RoleAssistant, parts...)
	if rapid.IntRange(0, 3).Draw(t, "order") == 0 {
		results = rapid.Permutation(results).Draw(t, "results")
	}
	for len(results) > 0 {
		if rapid.IntRange(0, 4).Draw(t, "between") == 0 {
			h.event()
		}
		n := rapid.IntRange(1, len(results)).Draw(t, "together")
		m := h.add(model.RoleTool, results[:n]...)
		if rapid.IntRange(0, 5).Draw(t, "picture") == 0 {
			m.Parts = append(m.Parts, model.Part{Kind: model.PartImage, Image: &model.Image{MIME: "image/png", Data: []byte{1}}})
		}
		results = results[n:]
	}
}

// clone copies messages to the ground.
func clone(ms []model.Message) []model.Message {
	raw, err := json.Marshal(ms)
	if err != nil {
		// Arguments may be no JSON: copy by hand.
		out := make([]model.Message, len(ms))
		for i, m := range ms {
			m.Parts = append([]model.Part(nil), m.Parts...)
			for j, p := range m.Parts {
				if p.Call != nil {
					c := *p.Call
					m.Parts[j].Call = &c
				}
				if p.Result != nil {
					r := *p.Result
					m.Parts[j].Result = &r
				}
			}
			out[i] = m
		}
		return out
	}
	var out []model.Message
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

func chain(t interface{ Fatal(...any) }) *agent.Chain {
	c, err := agent.NewChain(slog.New(slog.DiscardHandler), Default(Config{})...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func shape(t *rapid.T, c *agent.Chain, ms []model.Message) *model.Request {
	r := &agent.Run{ID: "r", Limits: agent.Limits{MaxSteps: 100}, Step: 1, Now: func() time.Time { return time.Unix(0, 0) }}
	req := &model.Request{Messages: append([]model.Message(nil), ms...)}
	for i := range req.Messages {
		req.Messages[i].Parts = append([]model.Part(nil), req.Messages[i].Parts...)
	}
	if err := c.BeforeModel(context.Background(), r, req); err != nil {
		t.Fatal(err)
	}
	return req
}

func TestEveryRequestIsValid(t *testing.T) {
	c := chain(t)
	rapid.Check(t, func(t *rapid.T) {
		ms := append([]model.Message{model.Text("system", model.RoleSystem, "rules")}, history().Draw(t, "thread")...)
		before := clone(ms)
		req := shape(t, c, ms)
		if err := middlewaretest.Strict(req); err != nil {
			t.Fatalf("a strict provider refuses: %v", err)
		}
		if diff := cmp.Diff(before, clone(ms)); diff != "" {
			t.Fatalf("the thread was changed:\n%s", diff)
		}
		again := shape(t, c, req.Messages)
		if diff := cmp.Diff(req.Messages, again.Messages); diff != "" {
			t.Fatalf("a second repair changes something:\n%s", diff)
		}
		if diff := cmp.Diff(req.Messages, shape(t, c, ms).Messages); diff != "" {
			t.Fatalf("the same thread gives another request:\n%s", diff)
		}
		keepsProviderParts(t, ms, req.Messages)
	})
}

// keepsProviderParts checks that reasoning and extras of every message that is left are those it had.
func keepsProviderParts(t *rapid.T, before, after []model.Message) {
	byID := map[string]model.Message{}
	for _, m := range before {
		byID[m.ID] = m
	}
	for _, m := range after {
		old, ok := byID[m.ID]
		if !ok || m.Role != model.RoleAssistant {
			continue
		}
		if diff := cmp.Diff(providerParts(old), providerParts(m)); diff != "" {
			t.Fatalf("message %s lost what its provider wants back:\n%s", m.ID, diff)
		}
		if old.Provider != m.Provider || old.Model != m.Model {
			t.Fatalf("message %s: another provider", m.ID)
		}
	}
}

func providerParts(m model.Message) (out []any) {
	for _, p := range m.Parts {
		switch {
		case p.Kind == model.PartReasoning:
			out = append(out, p.Text, p.Reasoning)
		case p.Call != nil:
			out = append(out, string(p.Call.Extra))
		}
	}
	return out
}

// A thread as the loop writes it, none of it cut, must go out untouched: prompt caches depend on it.
func TestGoodThreadIsLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := []model.Message{model.Text("u", model.RoleUser, "go")}
		for i := range rapid.IntRange(0, 6).Draw(t, "steps") {
			var calls, results []model.Part
			for k := range rapid.IntRange(1, 3).Draw(t, "calls") {
				id := fmt.Sprintf("c%d_%d", i, k)
				calls = append(calls, model.Part{Kind: model.PartToolCall, Call: &model.ToolCall{ID: id, Name: "ls", Arguments: json.RawMessage(`{}`)}})
				results = append(results, resultPart(id, "ls", "ok"))
			}
			ms = append(ms, model.Message{ID: fmt.Sprint("a", i), Role: model.RoleAssistant, Parts: calls},
				model.Message{ID: fmt.Sprint("t", i), Role: model.RoleTool, Parts: results})
		}
		if diff := cmp.Diff(ms, repair(ms)); diff != "" {
			t.Fatal(diff)
		}
	})
}
