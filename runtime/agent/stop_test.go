package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// Why a run was cut decides what it is called and what its open calls are answered.
func TestCauses(t *testing.T) {
	for _, tc := range []struct {
		cause error
		state store.RunState
		code  store.StopCode
		text  string // "" leaves the call open
	}{
		{agent.ErrUserStop, store.RunInterrupted, store.StopUserStop, "cancelled by user"},
		{agent.ErrInterrupted, store.RunInterrupted, store.StopInterrupted, "newer message"},
		{agent.ErrTimeCapped, store.RunError, store.StopTimeCapped, "time for this task"},
		{agent.ErrSuspend, "", "", ""},
		{agent.ErrFenced, "", "", ""},
	} {
		t.Run(tc.cause.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := tool{tools.Spec{Name: "slow"}, func(ctx context.Context, _ *tools.Env, _ json.RawMessage) (tools.Result, error) {
					<-ctx.Done()
					return tools.Result{}, ctx.Err()
				}}
				b := newBench(t, []tools.Tool{slow}, calls("slow", "slow"))
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(tc.cause) })
				out := b.drive(ctx)
				if out.State != tc.state || tc.code != "" && !slices.Equal(b.codes(), []store.StopCode{tc.code}) {
					t.Errorf("%+v, %v", out, b.codes())
				}
				if tc.text == "" {
					if len(agent.OpenCalls(b.Log)) != 2 {
						t.Errorf("answered: %+v", b.results())
					}
					return
				}
				for _, r := range b.results() {
					if !strings.Contains(r.Content, tc.text) || !r.IsError {
						t.Errorf("result %+v", r)
					}
				}
				if len(b.results()) != 2 {
					t.Errorf("%d results", len(b.results()))
				}
			})
		})
	}
}
