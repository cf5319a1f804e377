package middleware

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"deerbot/runtime/agent"
	"deerbot/runtime/model"
)

// caller makes logical calls whose attempts fail by a list.
type caller struct {
	t    *testing.T
	m    *ModelErrors
	r    *agent.Run
	errs []error // of the attempts to come, nil succeeds
	n    int     // attempts made
}

func newCaller(t *testing.T, cfg Config) *caller {
	return &caller{t: t, m: NewModelErrors(cfg), r: run(t)}
}

func (c *caller) call(errs ...error) error {
	c.errs = errs
	f := c.m.WrapModel(func(context.Context, *agent.Run, *model.Request) (*model.Response, error) {
		c.n++
		if len(c.errs) == 0 {
			return &model.Response{}, nil
		}
		err := c.errs[0]
		c.errs = c.errs[1:]
		if err != nil {
			return nil, err
		}
		return &model.Response{}, nil
	})
	_, err := f(c.t.Context(), c.r, &model.Request{})
	return err
}

func fault(c model.Class) *model.Error {
	return &model.Error{Class: c, Provider: "openai", Model: "x", Message: "words"}
}

func faults(c model.Class, n int) (out []error) {
	for range n {
		out = append(out, fault(c))
	}
	return out
}

func TestAttemptsPerClass(t *testing.T) {
	for class, want := range map[model.Class]int{
		model.ClassRate: 3, model.ClassOverload: 3, model.ClassNetwork: 3, model.ClassProtocol: 3,
		model.ClassStall: 2, // C132
		model.ClassAuth:  1, model.ClassBadRequest: 1, model.ClassOverflow: 1, model.ClassQuota: 1, model.ClassTimeout: 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCaller(t, Config{})
			if err := c.call(faults(class, 5)...); model.ClassOf(err) != class || c.n != want {
				t.Errorf("%s: %d attempts, want %d; %v", class, c.n, want, err)
			}
			got := retries(c.r)
			if len(got) != want-1 {
				t.Errorf("%s: %d retries announced", class, len(got))
			}
			for i, e := range got {
				if e.Attempt != i+1 || e.Max != want || e.Class != string(class) || e.Detail != "words" || e.Wait <= 0 {
					t.Errorf("%s: %+v", class, e)
				}
			}
		})
	}
}

// C145: an overflow is not blindly tried again, throttling that talks of tokens is.
func TestC145OverflowAndThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller(t, Config{})
		if err := c.call(fault(model.ClassOverflow)); c.n != 1 || model.ClassOf(err) != model.ClassOverflow {
			t.Errorf("overflow: %d attempts, %v", c.n, err)
		}
		c = newCaller(t, Config{})
		if err := c.call(fault(model.ClassRate), nil); err != nil || c.n != 2 {
			t.Errorf("throttling: %d attempts, %v", c.n, err)
		}
	})
}

func TestTightestBoundWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCaller(t, Config{})
		if err := c.call(fault(model.ClassNetwork), fault(model.ClassStall), nil); err == nil || c.n != 2 {
			t.Errorf("%d attempts, %v", c.n, err)
		}
	})
}

func TestWaits(t *testing.T) {
	later := fault(model.ClassOverload)
	later.RetryAfter = 5 * time.Minute
	for _, tc := range []struct {
		name string
		rand float64
		errs []error
		want []time.Duration
	}{
		{"low", 0, faults(model.ClassNetwork, 2), []time.Duration{time.Second, time.Second}},
		{"high", 1, faults(model.ClassNetwork, 2), []time.Duration{3 * time.Second, 8 * time.Second}},
		{"rate low", 0, faults(model.ClassRate, 2), []time.Duration{5 * time.Second, 5 * time.Second}},
		{"rate high", 1, faults(model.ClassRate, 2), []time.Duration{8 * time.Second, 8 * time.Second}},
		{"class changes", 0, []error{fault(model.ClassNetwork), fault(model.ClassRate)}, []time.Duration{time.Second, 5 * time.Second}},
		{"the server says", 0.5, []error{later}, []time.Duration{5 * time.Minute}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCaller(t, Config{Rand: func() float64 { return tc.rand }})
				began := time.Now()
				if err := c.call(tc.errs...); err != nil {
					t.Fatal(err)
				}
				var got []time.Duration
				var sum time.Duration
				for _, e := range retries(c.r) {
					got, sum = append(got, e.Wait), sum+e.Wait
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || time.Since(began) != sum {
					t.Errorf("waited %s: %s", time.Since(began), diff)
				}
			})
		})
	}
}

func TestRetryAfterTooLong(t *testing.T) {
	c := newCaller(t, Config{})
	e := fault(model.ClassRate)
	e.RetryAfter = 5*time.Minute + time.Second
	if err := c.call(e, nil); !errors.Is(err, error(e)) || c.n != 1 {
		t.Errorf("%d attempts, %v", c.n, err)
	}
}

func TestForeignErrorsPass(t *testing.T) {
	c := newCaller(t, Config{})
	foreign := errors.New("x")
	if err := c.call(foreign); !errors.Is(err, foreign) || c.n != 1 {
		t.Errorf("%d attempts, %v", c.n, err)
	}
}

func TestBreakerOpensAndProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Breakers: NewBreakers(nil)}
		for range breakAfter { // five runs, one exhausted loop each: three attempts count once
			if err := newCaller(t, cfg).call(faults(model.ClassOverload, 3)...); err == nil {
				t.Fatal("no error")
			}
		}
		c := newCaller(t, cfg)
		var me *model.Error
		if err := c.call(); !errors.As(err, &me) || me.Code != "circuit_open" || c.n != 0 || me.RetryAfter <= 0 {
			t.Fatalf("open: %v, %d attempts", err, c.n)
		}
		other := newCaller(t, cfg)
		other.r.Model = otherModel{}
		if err := other.call(); err != nil {
			t.Errorf("another model: %v", err)
		}
		<-time.After(breakFor)
		if err := c.call(faults(model.ClassOverload, 3)...); err == nil || c.n != 3 {
			t.Fatalf("probe: %v, %d attempts", err, c.n)
		}
		if err := c.call(); err == nil {
			t.Fatal("a failed probe must open again")
		}
		<-time.After(breakFor)
		if err := c.call(); err != nil {
			t.Fatal(err)
		}
		if err := c.call(faults(model.ClassOverload, 3)...); err == nil {
			t.Fatal("no error")
		}
		if err := c.call(); err != nil {
			t.Errorf("one failure after the recovery opens it: %v", err)
		}
	})
}

type otherModel struct{ noModel }

func (otherModel) Info() model.Info { return model.Info{Provider: "openai", Model: "y"} }

// A probe that says nothing of the provider gives its place back, and throttling does not count at all.
func TestProbeIsReleased(t *testing.T) {
	for _, class := range []model.Class{model.ClassBadRequest, model.ClassRate, model.ClassAuth, model.ClassOverflow} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Breakers: NewBreakers(nil)}
			c := newCaller(t, cfg)
			for range 2 * breakAfter {
				_ = c.call(faults(model.ClassRate, 3)...)
			}
			if err := c.call(); err != nil {
				t.Fatalf("throttling opened it: %v", err)
			}
			for range breakAfter {
				_ = c.call(faults(model.ClassNetwork, 3)...)
			}
			<-time.After(breakFor)
			if err := c.call(faults(class, 3)...); model.ClassOf(err) != class {
				t.Fatalf("probe: %v", err)
			}
			if err := c.call(); err != nil {
				t.Errorf("after a probe of class %s: %v", class, err)
			}
		})
	}
}

func TestOneProbeAtATime(t *testing.T) {
	now := time.Unix(0, 0)
	bs := NewBreakers(func() time.Time { return now })
	for range breakAfter {
		done, _ := bs.enter("p", "m")
		done(verdictFailure)
	}
	now = now.Add(breakFor)
	probe, _ := bs.enter("p", "m")
	if probe == nil {
		t.Fatal("no probe")
	}
	if second, wait := bs.enter("p", "m"); second != nil || wait <= 0 {
		t.Error("a second probe")
	}
	probe(verdictSuccess)
	if next, _ := bs.enter("p", "m"); next == nil {
		t.Error("not closed")
	}
}

func TestProbeThatPanicsIsReleased(t *testing.T) {
	now := time.Unix(0, 0)
	bs := NewBreakers(func() time.Time { return now })
	for range breakAfter {
		done, _ := bs.enter("openai", "x")
		done(verdictFailure)
	}
	now = now.Add(breakFor)
	m := NewModelErrors(Config{Breakers: bs})
	f := m.WrapModel(func(context.Context, *agent.Run, *model.Request) (*model.Response, error) { panic("boom") })
	func() {
		defer func() { _ = recover() }()
		_, _ = f(t.Context(), run(t), &model.Request{})
	}()
	if next, _ := bs.enter("openai", "x"); next == nil {
		t.Error("the probe's place is lost")
	}
}

func TestCancelDuringWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewModelErrors(Config{})
		r := run(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		f := m.WrapModel(func(context.Context, *agent.Run, *model.Request) (*model.Response, error) {
			return nil, fault(model.ClassOverload)
		})
		_, err := f(ctx, r, &model.Request{})
		if model.ClassOf(err) != model.ClassCanceled || time.Since(began) != 100*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
