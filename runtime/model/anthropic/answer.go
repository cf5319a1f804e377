package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"deerbot/runtime/model"
)

// event is one event of a stream.
type event struct {
	Type    string `json:"type"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	Index *int `json:"index"`
	Block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		Partial    string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage           `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type usage struct {
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

// block is one content block as it grows.
type block struct {
	kind            string
	id, name        string
	input           json.RawMessage // whole, from servers that do not stream it
	text            strings.Builder // text, thinking or partial JSON
	signature, data string
}

// answer builds a response from events and yields what people may see of it on the way.
type answer struct {
	req     *model.Request
	yield   func(model.Chunk, error) bool
	stopped bool

	blocks  []*block
	byIndex map[int]*block
	usage   usage
	stop    string
}

func (a *answer) add(ev *event) {
	switch ev.Type {
	case "message_start":
		a.count(ev.Message.Usage)
	case "content_block_start":
		a.start(ev)
	case "content_block_delta":
		a.delta(ev)
	case "message_delta":
		if ev.Delta.StopReason != "" {
			a.stop = ev.Delta.StopReason
		}
		a.count(ev.Usage)
	}
}

// count takes figures. They are sums so far; what an event leaves out stays.
func (a *answer) count(u usage) {
	for _, f := range []struct {
		to   *int64
		from int64
	}{{&a.usage.Input, u.Input}, {&a.usage.CacheRead, u.CacheRead}, {&a.usage.CacheWrite, u.CacheWrite}, {&a.usage.Output, u.Output}} {
		if f.from > 0 {
			*f.to = f.from
		}
	}
}

func (a *answer) start(ev *event) {
	from := &ev.Block
	b := &block{kind: from.Type, id: from.ID, name: from.Name, signature: from.Signature, data: from.Data}
	a.blocks = append(a.blocks, b)
	if ev.Index != nil {
		if a.byIndex == nil {
			a.byIndex = map[int]*block{}
		}
		a.byIndex[*ev.Index] = b
	}
	switch b.kind {
	case "text":
		a.text(b, from.Text)
	case "thinking":
		a.thinking(b, from.Thinking)
	case "tool_use":
		if len(from.Input) > 0 && string(from.Input) != "{}" && string(from.Input) != "null" {
			b.input = from.Input
		}
		if b.name == "" {
			return
		}
		if b.id == "" {
			b.id = "toolu_" + strings.ReplaceAll(uuid.NewString(), "-", "")
		}
		a.out(model.Chunk{Kind: model.ChunkToolCall, Call: &model.ToolCall{ID: b.id, Name: b.name, Arguments: json.RawMessage("{}")}})
	}
}

func (a *answer) delta(ev *event) {
	var b *block
	if ev.Index != nil {
		b = a.byIndex[*ev.Index]
	}
	if b == nil && len(a.blocks) > 0 {
		b = a.blocks[len(a.blocks)-1]
	}
	if b == nil {
		return
	}
	switch ev.Delta.Type {
	case "text_delta":
		a.text(b, ev.Delta.Text)
	case "thinking_delta":
		a.thinking(b, ev.Delta.Thinking)
	case "signature_delta":
		b.signature += ev.Delta.Signature
	case "input_json_delta":
		b.text.WriteString(ev.Delta.Partial)
	}
}

func (a *answer) text(b *block, s string) {
	if s != "" {
		b.text.WriteString(s)
		a.out(model.Chunk{Kind: model.ChunkText, Text: s})
	}
}

func (a *answer) thinking(b *block, s string) {
	if s != "" {
		b.text.WriteString(s)
		a.out(model.Chunk{Kind: model.ChunkReasoning, Text: s})
	}
}

func (a *answer) out(c model.Chunk) {
	if !a.stopped && !a.yield(c, nil) {
		a.stopped = true
	}
}

func (a *answer) response(id string) *model.Response {
	msg := model.Message{Role: model.RoleAssistant, Provider: Provider, Model: id}
	calls := 0
	used := map[string]bool{}
	for _, b := range a.blocks {
		switch b.kind {
		case "text":
			if b.text.Len() > 0 {
				msg.Parts = append(msg.Parts, model.Part{Kind: model.PartText, Text: b.text.String()})
			}
		case "thinking":
			msg.Parts = append(msg.Parts, model.Part{
				Kind: model.PartReasoning, Text: b.text.String(), Reasoning: &model.Reasoning{Signature: b.signature},
			})
		case "redacted_thinking":
			msg.Parts = append(msg.Parts, model.Part{Kind: model.PartReasoning, Reasoning: &model.Reasoning{Redacted: b.data}})
		case "tool_use":
			if strings.TrimSpace(b.name) == "" {
				continue
			}
			if b.id == "" || used[b.id] {
				b.id = "toolu_" + strings.ReplaceAll(uuid.NewString(), "-", "")
			}
			used[b.id] = true
			calls++
			msg.Parts = append(msg.Parts, model.Part{Kind: model.PartToolCall, Call: b.call()})
		}
	}
	res := &model.Response{Message: msg, Finish: finishOf(a.stop, calls > 0)}
	if u := a.usage; u == (usage{}) {
		res.Usage = model.EstimateUsage(a.req, msg)
	} else {
		res.Usage = model.Usage{InputTokens: u.Input + u.CacheRead + u.CacheWrite, CachedTokens: u.CacheRead, OutputTokens: u.Output}
	}
	return res
}

func (b *block) call() *model.ToolCall {
	sent := b.text.String()
	if sent == "" && len(b.input) > 0 {
		sent = string(b.input)
	}
	args, malformed := model.ParseArguments(sent)
	return &model.ToolCall{ID: b.id, Name: b.name, Arguments: args, Malformed: malformed}
}

// finishOf maps a stop reason. A paused turn wants to be continued, like one that ran into the limit.
func finishOf(reason string, calls bool) model.Finish {
	switch reason {
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		return model.FinishLength
	case "refusal":
		return model.FinishSafety
	}
	if calls {
		return model.FinishTools
	}
	return model.FinishStop
}
