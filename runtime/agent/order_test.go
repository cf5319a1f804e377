package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deerbot/runtime/model"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// specOnly is a middleware without hooks; embed it with some.
type specOnly struct{ s Spec }

func (m specOnly) Spec() Spec {
	if m.s.OnFailure == "" {
		m.s.OnFailure = Closed
	}
	return m.s
}

type before struct {
	specOnly
	f func(*model.Request) error
}

func (m before) BeforeModel(_ context.Context, _ *Run, req *model.Request) error {
	if m.f == nil {
		return nil
	}
	return m.f(req)
}

type after struct {
	specOnly
	f func() (Decision, error)
}

func (m after) AfterModel(context.Context, *Run, *model.Response) (Decision, error) { return m.f() }

type wrapTool struct {
	specOnly
	f func(next ToolFunc) ToolFunc
}

func (m wrapTool) WrapTool(next ToolFunc) ToolFunc { return m.f(next) }

func mw(s Spec) Middleware { return before{specOnly: specOnly{s}} }

func names(c *Chain) (out []string) {
	for _, e := range c.Describe() {
		out = append(out, e.Name)
	}
	return out
}

func TestNewChainOrders(t *testing.T) {
	c, err := NewChain(nil,
		mw(Spec{Name: "look", Phase: PhaseObserve}),
		mw(Spec{Name: "b", Phase: PhaseGuard, After: []string{"a", "not there"}}),
		mw(Spec{Name: "x", Phase: PhaseGuard}),
		mw(Spec{Name: "a", Phase: PhaseGuard}),
		mw(Spec{Name: "clean", Phase: PhaseSanitise, Before: []string{"look"}}),
		mw(Spec{Name: "first", Phase: PhaseGuard, Before: []string{"x"}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"clean", "a", "b", "first", "x", "look"}, names(c)); diff != "" {
		t.Error(diff)
	}
}

func TestNewChainRefuses(t *testing.T) {
	msgs := []Surface{SurfaceMessages}
	for _, tc := range []struct {
		name string
		ms   []Middleware
		want string // "" is fine
	}{
		{"cycle", []Middleware{
			mw(Spec{Name: "a", After: []string{"c"}}), mw(Spec{Name: "b", After: []string{"a"}}), mw(Spec{Name: "c", After: []string{"b"}}), mw(Spec{Name: "d"}),
		}, "a before b before c before a"},
		{"self", []Middleware{mw(Spec{Name: "a", Before: []string{"a"}})}, "a before a"},
		{"no name", []Middleware{mw(Spec{})}, "no name"},
		{"twice", []Middleware{mw(Spec{Name: "a"}), mw(Spec{Name: "a"})}, "used twice"},
		{"policy", []Middleware{mw(Spec{Name: "a", OnFailure: "shrug"})}, `unknown failure policy "shrug"`},
		{"phase", []Middleware{mw(Spec{Name: "a", Phase: 9})}, "unknown phase"},
		{"no hooks", []Middleware{specOnly{Spec{Name: "a"}}}, "no hooks"},
		{
			"against the phases",
			[]Middleware{mw(Spec{Name: "a", Phase: PhaseGuard, Before: []string{"b"}}), mw(Spec{Name: "b"})},
			"it wants a (guard) before b (sanitise)",
		},
		{
			"left to chance",
			[]Middleware{mw(Spec{Name: "a", Mutates: msgs}), mw(Spec{Name: "b", Mutates: msgs})},
			"a and b both change messages in BeforeModel",
		},
		{"direct order", []Middleware{mw(Spec{Name: "a", Mutates: msgs, After: []string{"b"}}), mw(Spec{Name: "b", Mutates: msgs})}, ""},
		{"transitive order", []Middleware{
			mw(Spec{Name: "a", Mutates: msgs}), mw(Spec{Name: "m", After: []string{"a"}}), mw(Spec{Name: "b", Mutates: msgs, After: []string{"m"}}),
		}, ""},
		{"order by phase", []Middleware{mw(Spec{Name: "a", Mutates: msgs}), mw(Spec{Name: "b", Phase: PhaseGuard, Mutates: msgs})}, ""},
		{"other hooks", []Middleware{mw(Spec{Name: "a", Mutates: msgs}), after{specOnly: specOnly{Spec{Name: "b", Mutates: msgs}}}}, ""},
		{"out of reach", []Middleware{
			mw(Spec{Name: "a", Mutates: []Surface{SurfaceToolResult}}), mw(Spec{Name: "b", Mutates: []Surface{SurfaceToolResult}}),
		}, ""},
		{"all faults", []Middleware{mw(Spec{}), mw(Spec{Name: "a", OnFailure: "shrug"})}, "no name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewChain(nil, tc.ms...)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Whatever the edges, a chain obeys phases and edges and keeps what they leave open.
func TestOrderProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		specs := make([]Spec, n)
		for i := range specs {
			specs[i] = Spec{Name: string(rune('a' + i)), Phase: Phase(rapid.IntRange(0, 4).Draw(t, "phase"))}
			for range rapid.IntRange(0, 2).Draw(t, "edges") {
				to := string(rune('a' + rapid.IntRange(0, n).Draw(t, "to")))
				if rapid.Bool().Draw(t, "before") {
					specs[i].Before = append(specs[i].Before, to)
				} else {
					specs[i].After = append(specs[i].After, to)
				}
			}
		}
		ms := make([]Middleware, n)
		for i, s := range specs {
			ms[i] = mw(s)
		}
		c, err := NewChain(nil, ms...)
		if err != nil {
			return
		}
		pos := map[string]int{}
		list := c.Describe()
		for i, e := range list {
			pos[e.Name] = i
			if i > 0 && e.Phase < list[i-1].Phase {
				t.Fatalf("phases out of order: %v", names(c))
			}
		}
		for _, s := range specs {
			for _, o := range s.Before {
				if p, ok := pos[o]; ok && p <= pos[s.Name] {
					t.Fatalf("%s before %s: %v", s.Name, o, names(c))
				}
			}
			for _, o := range s.After {
				if p, ok := pos[o]; ok && p >= pos[s.Name] {
					t.Fatalf("%s after %s: %v", s.Name, o, names(c))
				}
			}
		}
	})
}

func build(t *testing.T, ms ...Middleware) *Chain {
	t.Helper()
	c, err := NewChain(slog.New(slog.DiscardHandler), ms...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPolicyOfBeforeModel(t *testing.T) {
	fails := func(how string) func(*model.Request) error {
		return func(req *model.Request) error {
			req.Messages = nil
			req.MaxTokens = 1
			if how == "panic" {
				panic("boom")
			}
			return errors.New("broken")
		}
	}
	for _, how := range []string{"error", "panic"} {
		seen := -1
		last := before{specOnly{Spec{Name: "z", Phase: PhaseObserve}}, func(req *model.Request) error { seen = len(req.Messages) + req.MaxTokens; return nil }}
		req := &model.Request{Messages: []model.Message{model.Text("u", model.RoleUser, "x")}}
		c := build(t, before{specOnly{Spec{Name: "a", OnFailure: Open}}, fails(how)}, last)
		if err := c.BeforeModel(t.Context(), &Run{}, req); err != nil || seen != 1 {
			t.Errorf("open, %s: %v, the next saw %d", how, err, seen)
		}
		c = build(t, before{specOnly{Spec{Name: "a", OnFailure: Closed}}, fails(how)}, last)
		var he *HookError
		if err := c.BeforeModel(t.Context(), &Run{}, req); !errors.As(err, &he) || he.Middleware != "a" || he.Hook != "BeforeModel" {
			t.Errorf("closed, %s: %v", how, err)
		}
	}
}

func TestPolicyOfAfterModel(t *testing.T) {
	var order []string
	hook := func(name string, p Policy, d Decision, err error) Middleware {
		return after{specOnly{Spec{Name: name, OnFailure: p}}, func() (Decision, error) {
			order = append(order, name)
			if err != nil && err.Error() == "panic" {
				panic(err)
			}
			return d, err
		}}
	}
	c := build(t,
		hook("a", Closed, Decision{Action: RejectCalls}, nil),
		hook("b", Open, Decision{Action: EndRun}, errors.New("broken")),
		hook("c", Closed, Decision{}, errors.New("panic")),
		hook("d", Closed, Decision{}, nil))
	got := c.AfterModel(t.Context(), &Run{}, &model.Response{})
	want := []Decision{{Action: EndRun, Reason: &store.StopReason{Code: store.StopInternal, Source: "c"}}, {Action: RejectCalls}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"d", "c", "b", "a"}, order); diff != "" {
		t.Error(diff)
	}
}

func TestPolicyOfWraps(t *testing.T) {
	ok := func(context.Context, *Run, model.ToolCall) (tools.Result, error) {
		return tools.Result{Content: "ok"}, nil
	}
	early := func(ToolFunc) ToolFunc {
		return func(context.Context, *Run, model.ToolCall) (tools.Result, error) { panic("early") }
	}
	late := func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, r *Run, c model.ToolCall) (tools.Result, error) {
			_, _ = next(ctx, r, c)
			panic("late")
		}
	}
	for _, tc := range []struct {
		name   string
		policy Policy
		wrap   func(ToolFunc) ToolFunc
		fine   bool
	}{
		{"open early", Open, early, true},
		{"open late", Open, late, true},
		{"closed early", Closed, early, false},
		{"closed late", Closed, late, false},
	} {
		n := 0
		f := build(t, wrapTool{specOnly{Spec{Name: "w", OnFailure: tc.policy}}, tc.wrap}).WrapTool(
			func(ctx context.Context, r *Run, c model.ToolCall) (tools.Result, error) { n++; return ok(ctx, r, c) })
		res, err := f(t.Context(), &Run{}, model.ToolCall{})
		var he *HookError
		if tc.fine && (err != nil || res.Content != "ok" || n != 1) || !tc.fine && (!errors.As(err, &he) || he.Middleware != "w" || n > 1) {
			t.Errorf("%s: %+v, %v, the tool was called %d times", tc.name, res, err, n)
		}
	}
	f := build(t).WrapTool(func(context.Context, *Run, model.ToolCall) (tools.Result, error) { panic("tool") })
	var he *HookError
	if _, err := f(t.Context(), &Run{}, model.ToolCall{}); !errors.As(err, &he) || he.Hook != "tool" {
		t.Errorf("got %v", err)
	}
}

func TestWrapsNestFirstOutermost(t *testing.T) {
	var got []string
	wrap := func(name string) Middleware {
		return wrapTool{specOnly{Spec{Name: name}}, func(next ToolFunc) ToolFunc {
			return func(ctx context.Context, r *Run, c model.ToolCall) (tools.Result, error) {
				got = append(got, name)
				return next(ctx, r, c)
			}
		}}
	}
	f := build(t, wrap("a"), wrap("b")).WrapTool(func(context.Context, *Run, model.ToolCall) (tools.Result, error) { return tools.Result{}, nil })
	if _, err := f(t.Context(), &Run{}, model.ToolCall{}); err != nil || strings.Join(got, "") != "ab" {
		t.Errorf("%v, %v", got, err)
	}
}
