package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"deerbot/runtime/model"
)

var ephemeral = anthropic.NewCacheControlEphemeralParam()

// params is the wire form of req.
func (m *Model) params(req *model.Request) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: m.cfg.Model, MaxTokens: defaultMaxTokens}
	if m.cfg.MaxOutputTokens > 0 {
		p.MaxTokens = int64(m.cfg.MaxOutputTokens)
	}
	if req.MaxTokens > 0 {
		p.MaxTokens = int64(req.MaxTokens)
	}
	c := conversion{m: m, ids: map[string]string{}, used: map[string]bool{}}
	for i := range req.Messages {
		c.add(&req.Messages[i])
	}
	c.close()
	p.System, p.Messages = c.system, c.messages
	for i, t := range req.Tools {
		def := struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Schema      json.RawMessage `json:"input_schema"`
			Cache       any             `json:"cache_control,omitempty"`
		}{t.Name, t.Description, t.Schema, nil}
		if len(def.Schema) == 0 {
			def.Schema = json.RawMessage(`{"type":"object"}`)
		}
		if i == len(req.Tools)-1 && !m.cfg.NoCache {
			def.Cache = json.RawMessage(`{"type":"ephemeral"}`)
		}
		raw, err := json.Marshal(def)
		if err != nil {
			return p, err
		}
		tool := param.Override[anthropic.ToolParam](json.RawMessage(raw))
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	if req.NoTools && len(req.Tools) > 0 {
		none := anthropic.NewToolChoiceNoneParam()
		p.ToolChoice.OfNone = &none
	}
	if !m.cfg.NoCache {
		mark(&p)
	}
	extra := map[string]any{"stream": true}
	maps.Copy(extra, m.cfg.Extra)
	p.SetExtraFields(extra)
	return p, nil
}

// mark sets the cache breakpoints of system and messages: the end of the system text, and the ends of the last two user
// turns. The older of the two is where the previous call wrote its cache, the newer is where the next will read it. The
// last tool is the fourth, and four are allowed.
func mark(p *anthropic.MessageNewParams) {
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = ephemeral
	}
	left := 2
	for i := len(p.Messages) - 1; i >= 0 && left > 0; i-- {
		u := p.Messages[i].OfUser
		if u == nil {
			continue
		}
		left--
		switch last := &u.Content[len(u.Content)-1]; {
		case last.OfText != nil:
			last.OfText.CacheControl = ephemeral
		case last.OfToolResult != nil:
			last.OfToolResult.CacheControl = ephemeral
		case last.OfImage != nil:
			last.OfImage.CacheControl = ephemeral
		}
	}
}

// conversion turns history into alternating turns.
type conversion struct {
	m        *Model
	system   []anthropic.TextBlockParam
	messages []anthropic.MessageParam

	role            model.Role // of the turn being built: user or assistant
	results, blocks []anthropic.ContentBlockParamUnion
	ids             map[string]string // our call ids to ids the API takes
	used            map[string]bool
}

func (c *conversion) add(msg *model.Message) {
	role := model.RoleUser
	switch msg.Role {
	case model.RoleSystem:
		if t := msg.TextOf(); strings.TrimSpace(t) != "" {
			c.system = append(c.system, anthropic.TextBlockParam{Text: t})
		}
		return
	case model.RoleAssistant:
		role = model.RoleAssistant
	}
	var results, blocks []anthropic.ContentBlockParamUnion
	for i := range msg.Parts {
		b, ok := c.block(msg, &msg.Parts[i])
		switch {
		case !ok:
		case b.OfToolResult != nil:
			results = append(results, b)
		default:
			blocks = append(blocks, b)
		}
	}
	if len(results)+len(blocks) == 0 {
		return // nothing this provider may see: an empty turn would be refused
	}
	if role != c.role {
		c.close()
		c.role = role
	}
	c.results = append(c.results, results...)
	c.blocks = append(c.blocks, blocks...)
}

// close ends the turn. The results of tools stand first in it, as the API demands.
func (c *conversion) close() {
	all := append(c.results, c.blocks...)
	c.results, c.blocks = nil, nil
	switch {
	case len(all) == 0:
	case c.role == model.RoleAssistant:
		c.messages = append(c.messages, anthropic.NewAssistantMessage(all...))
	default:
		c.messages = append(c.messages, anthropic.NewUserMessage(all...))
	}
}

func (c *conversion) block(msg *model.Message, p *model.Part) (b anthropic.ContentBlockParamUnion, ok bool) {
	switch {
	case p.Kind == model.PartText && strings.TrimSpace(p.Text) != "":
		b.OfText = &anthropic.TextBlockParam{Text: p.Text}
	case p.Kind == model.PartReasoning && p.Reasoning != nil && c.same(msg):
		switch {
		case p.Reasoning.Redacted != "":
			b.OfRedactedThinking = &anthropic.RedactedThinkingBlockParam{Data: p.Reasoning.Redacted}
		case p.Reasoning.Signature != "":
			b.OfThinking = &anthropic.ThinkingBlockParam{Thinking: p.Text, Signature: p.Reasoning.Signature}
		default:
			return b, false
		}
	case p.Kind == model.PartImage && p.Image != nil:
		if !c.m.cfg.Vision {
			b.OfText = &anthropic.TextBlockParam{Text: "[a picture was left out: this model cannot see]"}
			break
		}
		b = anthropic.NewImageBlockBase64(p.Image.MIME, base64.StdEncoding.EncodeToString(p.Image.Data))
	case p.Kind == model.PartToolCall && p.Call != nil:
		args := p.Call.Arguments
		if len(args) == 0 || !json.Valid(args) {
			args = json.RawMessage("{}")
		}
		b.OfToolUse = &anthropic.ToolUseBlockParam{ID: c.id(p.Call.ID), Name: p.Call.Name, Input: args}
	case p.Kind == model.PartToolResult && p.Result != nil:
		r := &anthropic.ToolResultBlockParam{ToolUseID: c.id(p.Result.CallID)}
		if p.Result.IsError {
			r.IsError = anthropic.Bool(true)
		}
		if strings.TrimSpace(p.Result.Content) != "" {
			r.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: p.Result.Content}}}
		}
		b.OfToolResult = r
	default:
		return b, false
	}
	return b, true
}

func (c *conversion) same(msg *model.Message) bool {
	return msg.Provider == Provider && msg.Model == c.m.cfg.Model
}

// id makes a call id that another provider gave acceptable here: letters, digits, _ and - only.
func (c *conversion) id(id string) string {
	if known, ok := c.ids[id]; ok {
		return known
	}
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
	for n := 2; clean == "" || c.used[clean]; n++ {
		clean = fmt.Sprintf("%s_%d", strings.TrimRight(clean, "_"), n)
	}
	c.ids[id], c.used[clean] = clean, true
	return clean
}
