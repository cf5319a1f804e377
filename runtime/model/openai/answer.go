package openai

import (
	"encoding/json"
	"strings"

	"deerbot/runtime/model"
)

// answer builds a response from chunks and yields what people may see of it on the way.
type answer struct {
	req     *model.Request
	yield   func(model.Chunk, error) bool
	stopped bool // the consumer wants no more

	think     splitter
	text      strings.Builder
	thought   strings.Builder // from tags
	reasoning strings.Builder // from a field
	field     string          // the field, set even when all it held was empty: an empty string is a value too
	details   []json.RawMessage
	refused   bool
	calls     *callSet
	finish    string
	usage     *usage
	choice    int // the choice we follow, -1 before the first
}

func newAnswer(req *model.Request, yield func(model.Chunk, error) bool) *answer {
	return &answer{req: req, yield: yield, calls: newCallSet(req.Tools), choice: -1}
}

// add takes one chunk.
func (a *answer) add(ch *chunk) {
	if ch.Usage != nil && (ch.Usage.PromptTokens > 0 || ch.Usage.CompletionTokens > 0) {
		a.usage = ch.Usage // sums so far: the last one counts
	}
	for i := range ch.Choices {
		c := &ch.Choices[i]
		if a.choice < 0 {
			a.choice = c.Index
		}
		if c.Index != a.choice {
			continue
		}
		if c.Usage != nil && c.Usage.PromptTokens > 0 {
			a.usage = c.Usage
		}
		d := c.Delta
		if d == nil {
			d = c.Message
		}
		if d != nil {
			a.delta(d)
		}
		if c.FinishReason != "" {
			a.finish = c.FinishReason
		}
		if a.stopped {
			return
		}
	}
}

func (a *answer) delta(d *delta) {
	a.reason(fieldReasoningContent, d.ReasoningContent)
	a.reason(fieldReasoning, d.Reasoning)
	if isSet(d.ReasoningDetails) {
		var list []json.RawMessage
		if json.Unmarshal(d.ReasoningDetails, &list) == nil {
			a.details = append(a.details, list...)
		}
	}
	if d.Content != "" {
		a.think.feed(string(d.Content), a.sayText, a.sayThought)
	}
	if d.Refusal != "" {
		a.refused = true
		a.sayText(d.Refusal)
	}
	if d.FunctionCall != nil {
		a.call(toolDelta{Function: *d.FunctionCall})
	}
	for _, t := range d.ToolCalls {
		a.call(t)
	}
}

// reason takes a piece of a reasoning field. Servers that send one text under two names are heard once.
func (a *answer) reason(field string, piece *content) {
	if piece == nil || (a.field != "" && a.field != field) {
		return
	}
	if *piece == "" && field != fieldReasoningContent {
		return
	}
	a.field = field
	if *piece != "" {
		a.reasoning.WriteString(string(*piece))
		a.out(model.Chunk{Kind: model.ChunkReasoning, Text: string(*piece)})
	}
}

func (a *answer) sayText(s string) {
	a.text.WriteString(s)
	a.out(model.Chunk{Kind: model.ChunkText, Text: s})
}

func (a *answer) sayThought(s string) {
	a.thought.WriteString(s)
	a.out(model.Chunk{Kind: model.ChunkReasoning, Text: s})
}

func (a *answer) call(d toolDelta) {
	if begun := a.calls.add(d); begun != nil {
		a.out(model.Chunk{Kind: model.ChunkToolCall, Call: begun})
	}
}

func (a *answer) out(c model.Chunk) {
	if !a.stopped && !a.yield(c, nil) {
		a.stopped = true
	}
}

// empty reports whether nothing at all came.
func (a *answer) empty() bool {
	return a.finish == "" && a.text.Len() == 0 && a.thought.Len() == 0 && a.reasoning.Len() == 0 && len(a.calls.open) == 0
}

// close gives out what was held back. It is called once, before response.
func (a *answer) close() {
	a.think.flush(a.sayText, a.sayThought)
}

func (a *answer) response(provider, id string) *model.Response {
	msg := model.Message{Role: model.RoleAssistant, Provider: provider, Model: id}
	if a.field != "" || len(a.details) > 0 {
		r := &model.Reasoning{Field: a.field}
		if len(a.details) > 0 {
			if raw, err := json.Marshal(a.details); err == nil {
				r.Signature = string(raw)
			}
		}
		msg.Parts = append(msg.Parts, model.Part{Kind: model.PartReasoning, Text: a.reasoning.String(), Reasoning: r})
	}
	if a.thought.Len() > 0 {
		msg.Parts = append(msg.Parts, model.Part{
			Kind: model.PartReasoning, Text: a.thought.String(), Reasoning: &model.Reasoning{Field: fieldThink},
		})
	}
	if a.text.Len() > 0 {
		msg.Parts = append(msg.Parts, model.Part{Kind: model.PartText, Text: a.text.String()})
	}
	calls := a.calls.finish()
	for i := range calls {
		msg.Parts = append(msg.Parts, model.Part{Kind: model.PartToolCall, Call: &calls[i]})
	}
	res := &model.Response{Message: msg, Finish: finishOf(a.finish, len(calls) > 0)}
	if a.refused {
		res.Finish = model.FinishSafety
	}
	if a.usage == nil {
		res.Usage = model.EstimateUsage(a.req, msg)
	} else {
		u := a.usage
		res.Usage = model.Usage{
			InputTokens:  u.PromptTokens,
			CachedTokens: min(max(u.Details.Cached, u.CacheHit, u.Cached), u.PromptTokens),
			OutputTokens: u.CompletionTokens,
		}
	}
	return res
}

// finishOf maps a finish reason. Stop with calls and calls without any are common mistakes of servers and repaired.
func finishOf(reason string, calls bool) model.Finish {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return model.FinishLength
	case "content_filter", "safety", "sensitive", "refusal", "recitation", "prohibited_content", "blocklist", "spii":
		return model.FinishSafety
	}
	if calls {
		return model.FinishTools
	}
	return model.FinishStop
}
