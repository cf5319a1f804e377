// Package rehearsal is a scripted stand-in for a language model, for the first start without a key and for tests.
//
// It thinks nothing. It looks at the request as a model would (which tools are offered, what was done since the last
// user message) and takes the next step of a fixed play: make a plan, write a file that quotes the user, present it, and
// close with an answer that says what it is and how to connect a real model. Small talk is answered at once. Everything
// it says is labelled; [model.Info] has Rehearsal set. The same request gives the same answer.
package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"deerbot/runtime/model"
)

// Provider is the name of the stand-in in [model.Info] and in messages.
const Provider = "rehearsal"

// DefaultChunkDelay is the pause between chunks when Config has none.
const DefaultChunkDelay = 15 * time.Millisecond

// chunkRunes is the size of a text chunk.
const chunkRunes = 12

// Config describes the stand-in. The zero value works.
type Config struct {
	Name          string        // configured name, "rehearsal" when empty
	ContextWindow int           // 128,000 when 0
	ChunkDelay    time.Duration // pause before each chunk of text; 0: DefaultChunkDelay, negative: none
}

// Model is the stand-in. It is safe for concurrent use.
type Model struct {
	info  model.Info
	delay time.Duration
}

var _ model.Model = (*Model)(nil)

// New returns a stand-in.
func New(cfg Config) *Model {
	if cfg.Name == "" {
		cfg.Name = "rehearsal"
	}
	if cfg.ContextWindow == 0 {
		cfg.ContextWindow = 128_000
	}
	if cfg.ChunkDelay == 0 {
		cfg.ChunkDelay = DefaultChunkDelay
	}
	return &Model{
		delay: max(0, cfg.ChunkDelay),
		info: model.Info{
			Name: cfg.Name, Provider: Provider, Model: "rehearsal", ContextWindow: cfg.ContextWindow,
			MaxOutputTokens: 4096, Rehearsal: true,
		},
	}
}

// Info describes the stand-in.
func (m *Model) Info() model.Info { return m.info }

// Stream takes the next step of the play; see [model.Model].
func (m *Model) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if ctx.Err() != nil {
			yield(model.Chunk{}, m.canceled(ctx))
			return
		}
		s := next(req)
		msg := model.Message{Role: model.RoleAssistant, Provider: Provider, Model: m.info.Model}
		for _, piece := range pieces(s.text) {
			if !m.pause(ctx) {
				yield(model.Chunk{}, m.canceled(ctx))
				return
			}
			if !yield(model.Chunk{Kind: model.ChunkText, Text: piece}, nil) {
				return
			}
		}
		if s.text != "" {
			msg.Parts = append(msg.Parts, model.Part{Kind: model.PartText, Text: s.text})
		}
		finish := model.FinishStop
		if s.call != nil {
			finish = model.FinishTools
			if !m.pause(ctx) {
				yield(model.Chunk{}, m.canceled(ctx))
				return
			}
			begun := &model.ToolCall{ID: s.call.ID, Name: s.call.Name, Arguments: json.RawMessage("{}")}
			if !yield(model.Chunk{Kind: model.ChunkToolCall, Call: begun}, nil) {
				return
			}
			msg.Parts = append(msg.Parts, model.Part{Kind: model.PartToolCall, Call: s.call})
		}
		yield(model.Chunk{Kind: model.ChunkDone, Response: &model.Response{
			Message: msg, Finish: finish, Usage: model.EstimateUsage(req, msg),
		}}, nil)
	}
}

// pause waits before a chunk and reports whether ctx goes on.
func (m *Model) pause(ctx context.Context) bool {
	if m.delay == 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(m.delay)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (m *Model) canceled(ctx context.Context) *model.Error {
	e := &model.Error{Class: model.ClassCanceled, Provider: Provider, Model: m.info.Model, Message: "cancelled by the caller", Err: context.Canceled}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Class, e.Message, e.Err = model.ClassTimeout, "the caller's deadline has passed", context.DeadlineExceeded
	}
	return e
}

// pieces cuts text into chunks of whole characters.
func pieces(text string) []string {
	var out []string
	n, start := 0, 0
	for i := range text {
		if n == chunkRunes {
			out = append(out, text[start:i])
			n, start = 0, i
		}
		n++
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}
