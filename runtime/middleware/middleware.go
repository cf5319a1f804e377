// Package middleware holds what stands between the agent loop and the model and tools: repairs of the request, retries,
// error texts, budgets, and the judgement of answers. One file each.
//
// # Rules
//
//   - A middleware keeps no map of runs. What it must remember of a run lies in the run, see [agent.PerRun]; what it must
//     remember across runs (the circuit breaker) is keyed by provider and model.
//   - Hooks before the model change a copy of the request. The pointers in its parts are shared with the thread: a part
//     is replaced, never written through.
//   - Control text goes through [agent.Run.Note]: it is part of one logical model call, is sent again with each of its
//     attempts, and is spent when one succeeds.
//   - Every edge in a Spec has a reason in Why, and a test that shows what breaks without it.
package middleware

import (
	"context"
	"math/rand/v2"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
)

// Names of the middlewares, for edges.
const (
	NameOutputBudget         = "output_budget"
	NameToolResultSanitising = "tool_result_sanitising"
	NameSystemCoalescing     = "system_coalescing"
	NameDanglingToolCalls    = "dangling_tool_calls"
	NameStepBudget           = "step_budget"
	NameTokenBudget          = "token_budget"
	NameTimeBudget           = "time_budget"
	NameTerminalResponse     = "terminal_response"
	NameFinishReasons        = "finish_reasons"
	NameModelErrors          = "model_errors"
	NameToolErrors           = "tool_errors"
)

// stateKey is the key of a middleware's state in a run.
type stateKey string

// Config is what the middlewares need from outside. The zero Config works.
type Config struct {
	Now   func() time.Time                                 // nil: time.Now
	Sleep func(ctx context.Context, d time.Duration) error // nil: a timer; returns early with ctx's error
	Rand  func() float64                                   // in [0,1), nil: math/rand
	// Breakers is shared by all chains of a process. nil makes an own set.
	Breakers *Breakers
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Breakers == nil {
		c.Breakers = NewBreakers(c.Now)
	}
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Default returns the middlewares of the lead agent, in an order that [agent.NewChain] keeps.
func Default(cfg Config) []agent.Middleware {
	cfg = cfg.withDefaults()
	return []agent.Middleware{
		OutputBudget{},
		ToolResultSanitising{},
		SystemCoalescing{},
		DanglingToolCalls{},
		StepBudget{},
		TokenBudget{},
		TimeBudget{},
		TerminalResponse{},
		FinishReasons{},
		NewModelErrors(cfg),
		ToolErrors{},
	}
}

// warn tells the model, by note, and people, by event, that a limit is near.
func warn(r *agent.Run, guard, detail, note string) {
	r.Emit(event.GuardWarned{Guard: guard, Detail: detail})
	r.Note(note)
}
