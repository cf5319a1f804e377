package openai

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"deerbot/runtime/model"
)

// Names under which reasoning comes and goes.
const (
	fieldReasoningContent = "reasoning_content" // DeepSeek, Qwen, vLLM, ...
	fieldReasoning        = "reasoning"         // newer vLLM, gateways
	fieldDetails          = "reasoning_details" // gateways: a list, kept raw in Signature
	fieldThink            = "think"             // tags inside the text
)

// params is the wire form of req.
func (m *Model) params(req *model.Request) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: m.cfg.Model, Messages: m.messages(req.Messages)}
	limit := req.MaxTokens
	if limit == 0 {
		limit = m.cfg.MaxOutputTokens
	}
	if limit > 0 {
		if (m.cfg.MaxTokensField == "max_tokens") != m.otherLimitField.Load() {
			p.MaxTokens = openai.Int(int64(limit))
		} else {
			p.MaxCompletionTokens = openai.Int(int64(limit))
		}
	}
	if !m.noStreamOptions.Load() {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	for _, t := range req.Tools {
		def, err := encode(struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters,omitempty"`
		}{t.Name, t.Description, t.Schema})
		if err != nil {
			return p, err
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(param.Override[shared.FunctionDefinitionParam](def)))
	}
	if req.NoTools && len(req.Tools) > 0 {
		p.ToolChoice.OfAuto = openai.String("none")
	}
	extra := map[string]any{"stream": true}
	maps.Copy(extra, m.cfg.Extra)
	p.SetExtraFields(extra)
	return p, nil
}

// messages converts history: the system texts become one leading message, pictures of tools follow their results.
func (m *Model) messages(history []model.Message) []openai.ChatCompletionMessageParamUnion {
	out := make([]openai.ChatCompletionMessageParamUnion, 0, len(history)+1)
	var system []string
	for i := range history {
		if history[i].Role == model.RoleSystem {
			if t := history[i].TextOf(); t != "" {
				system = append(system, t)
			}
		}
	}
	if len(system) > 0 {
		out = append(out, openai.SystemMessage(strings.Join(system, "\n\n")))
	}
	field := m.demandedField(history)
	var pictures []openai.ChatCompletionContentPartUnionParam
	flush := func() {
		if len(pictures) > 0 {
			out = append(out, openai.UserMessage(pictures))
			pictures = nil
		}
	}
	for i := range history {
		msg := &history[i]
		if msg.Role != model.RoleTool {
			flush()
		}
		switch msg.Role {
		case model.RoleUser:
			out = append(out, m.user(msg))
		case model.RoleAssistant:
			out = append(out, m.assistant(msg, field))
		case model.RoleTool:
			for _, p := range msg.Parts {
				switch {
				case p.Kind == model.PartToolResult && p.Result != nil:
					out = append(out, openai.ToolMessage(p.Result.Content, p.Result.CallID))
				case p.Kind == model.PartImage && p.Image != nil:
					pictures = append(pictures, m.picture(p.Image))
				}
			}
		}
	}
	flush()
	return out
}

func (m *Model) user(msg *model.Message) openai.ChatCompletionMessageParamUnion {
	var parts []openai.ChatCompletionContentPartUnionParam
	images := false
	for _, p := range msg.Parts {
		switch {
		case p.Kind == model.PartText && p.Text != "":
			parts = append(parts, openai.TextContentPart(p.Text))
		case p.Kind == model.PartImage && p.Image != nil:
			images = images || m.cfg.Vision
			parts = append(parts, m.picture(p.Image))
		}
	}
	if images {
		return openai.UserMessage(parts)
	}
	var text strings.Builder // one string: many servers take no list
	for _, p := range parts {
		text.WriteString(p.OfText.Text)
	}
	return openai.UserMessage(text.String())
}

func (m *Model) picture(img *model.Image) openai.ChatCompletionContentPartUnionParam {
	if !m.cfg.Vision {
		return openai.TextContentPart("[a picture was left out: this model cannot see]")
	}
	url := "data:" + img.MIME + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url})
}

// assistant converts an old answer. Content is always there, if empty: servers with typed decoders refuse a message
// without it. field is the reasoning field that every message must have, if any.
func (m *Model) assistant(msg *model.Message, field string) openai.ChatCompletionMessageParamUnion {
	var a openai.ChatCompletionAssistantMessageParam
	extra := map[string]any{}
	if field != "" {
		extra[field] = ""
	}
	var text, think strings.Builder
	for _, p := range msg.Parts {
		switch p.Kind {
		case model.PartText:
			text.WriteString(p.Text)
		case model.PartReasoning:
			if p.Reasoning != nil && m.replays(msg) {
				replayReasoning(extra, &think, p)
			}
		case model.PartToolCall:
			if p.Call != nil {
				a.ToolCalls = append(a.ToolCalls, m.toolCall(msg, p.Call))
			}
		}
	}
	content := text.String()
	if think.Len() > 0 {
		content = "<think>" + think.String() + "</think>\n\n" + content
	}
	a.Content.OfString = openai.String(content)
	if len(extra) > 0 {
		a.SetExtraFields(extra)
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

func replayReasoning(extra map[string]any, think *strings.Builder, p model.Part) {
	switch p.Reasoning.Field {
	case fieldReasoningContent, fieldReasoning:
		before, _ := extra[p.Reasoning.Field].(string)
		extra[p.Reasoning.Field] = before + p.Text
	case fieldThink:
		think.WriteString(p.Text)
	}
	if p.Reasoning.Signature != "" && json.Valid([]byte(p.Reasoning.Signature)) {
		extra[fieldDetails] = json.RawMessage(p.Reasoning.Signature)
	}
}

func (m *Model) toolCall(msg *model.Message, c *model.ToolCall) openai.ChatCompletionMessageToolCallUnionParam {
	args := string(c.Arguments)
	if args == "" || !json.Valid(c.Arguments) {
		args = "{}"
	}
	f := openai.ChatCompletionMessageFunctionToolCallParam{
		ID:       c.ID,
		Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: args},
	}
	if len(c.Extra) > 0 && json.Valid(c.Extra) && m.same(msg) {
		f.SetExtraFields(map[string]any{"extra_content": c.Extra})
	}
	return openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &f}
}

// same reports whether msg came from this provider and model.
func (m *Model) same(msg *model.Message) bool {
	return msg.Provider == Provider && msg.Model == m.cfg.Model
}

func (m *Model) replays(msg *model.Message) bool {
	return m.cfg.Replay != ReplayNever && m.same(msg)
}

// demandedField is the field that all assistant messages get, empty if need be. A server that sent reasoning and called
// tools wants it on every old answer, also on those another model gave.
func (m *Model) demandedField(history []model.Message) string {
	if m.cfg.Replay == ReplayNever {
		return ""
	}
	for i := range history {
		if history[i].Role != model.RoleAssistant || !m.same(&history[i]) {
			continue
		}
		for _, p := range history[i].Parts {
			if p.Kind == model.PartReasoning && p.Reasoning != nil && p.Reasoning.Field == fieldReasoningContent {
				return fieldReasoningContent
			}
		}
	}
	if m.alwaysReasoning.Load() {
		return fieldReasoningContent
	}
	return ""
}
