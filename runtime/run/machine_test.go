package run

import (
	"context"
	"flag"
	"os"
	"testing"

	"pgregory.net/rapid"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// machine drives a world at random: admissions, cancels, answers, restarts and crashes.
type machine struct {
	t       *rapid.T
	w       *world
	threads []string
	runs    map[string]*run // admitted and not known to have ended
	over    map[string]store.RunState
	keys    map[string]string // idempotency key -> run
	worlds  []*world
}

// run is what the machine knows of a run.
type run struct {
	store.Run
	free chan struct{} // closed: its model may go on
}

// script makes the model of a run: some tool calls, then an answer; every call of it passes the gate.
func script(free chan struct{}, steps int) play {
	return func(ctx context.Context, req *model.Request, say func(string)) (*model.Response, error) {
		done := 0
		for _, m := range req.Messages {
			if m.Role == model.RoleTool {
				done++
			}
		}
		say("working ")
		if done%3 != 0 { // some calls go through at once, so that histories of all lengths come about
			select {
			case <-free:
			case <-ctx.Done():
				return nil, fault(model.ClassCanceled)
			}
		}
		if done < steps && done < 6 {
			return ask("act", "act"), nil
		}
		return answer("working done"), nil
	}
}

func (m *machine) open(w *world) {
	m.w = w
	m.worlds = append(m.worlds, w)
	w.slots = 2
}

func (m *machine) start() {
	dir, err := os.MkdirTemp("", "machine")
	if err != nil {
		m.t.Fatalf("temp: %v", err)
	}
	m.open(openWorld(m.t, dir))
	m.w.dir = dir
	m.w.tool("act", func(ctx context.Context, _ *tools.Env) (string, error) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return "acted", nil
	})
	m.runs, m.over, m.keys = map[string]*run{}, map[string]store.RunState{}, map[string]string{}
	for range 3 {
		m.threads = append(m.threads, m.w.thread())
	}
}

func (m *machine) stop() {
	for _, r := range m.runs {
		m.release(r)
	}
	for _, w := range m.worlds {
		w.close()
	}
	_ = os.RemoveAll(m.worlds[0].dir)
}

func (m *machine) release(r *run) {
	select {
	case <-r.free:
	default:
		close(r.free)
	}
}

func (m *machine) admit(t *rapid.T) {
	th := rapid.SampledFrom(m.threads).Draw(t, "thread")
	strategy := rapid.SampledFrom([]store.Strategy{
		store.StrategyEnqueue, store.StrategyEnqueue, store.StrategyReject, store.StrategyInterrupt,
	}).Draw(t, "strategy")
	req := request(th, "")
	req.Model = req.ID
	if rapid.Bool().Draw(t, "key") {
		req.IdempotencyKey = rapid.StringMatching("[abc]").Draw(t, "name")
	}
	r := &run{free: make(chan struct{})}
	if rapid.Bool().Draw(t, "quick") {
		close(r.free)
	}
	m.w.model(req.ID, script(r.free, rapid.IntRange(0, 4).Draw(t, "steps")))
	got, reused, err := m.w.m.Admit(context.Background(), req, strategy)
	key := th + req.IdempotencyKey
	known := m.keys[key]
	switch {
	case err != nil:
		if strategy != store.StrategyReject {
			t.Fatalf("admit: %v", err)
		}
		if _, err := m.w.db.Run(context.Background(), req.ID); err == nil {
			t.Fatalf("a refused run exists")
		}
	case reused:
		if known == "" || got.ID != known {
			t.Fatalf("key %q gave run %s, had %q", req.IdempotencyKey, got.ID, known)
		}
	default:
		if req.IdempotencyKey != "" {
			if known != "" {
				t.Fatalf("key %q is known as %s and gave a new run", req.IdempotencyKey, known)
			}
			m.keys[key] = got.ID
		}
		r.Run = got
		m.runs[got.ID] = r
	}
}

func (m *machine) pick(t *rapid.T) *run {
	var ids []string
	for _, th := range m.threads {
		for id, r := range m.runs {
			if r.ThreadID == th {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		t.Skip("no runs")
	}
	// The draw names a rank by order of admission, so that a failure shrinks and replays.
	rank := rapid.IntRange(0, len(ids)-1).Draw(t, "run")
	best := m.sorted()[rank]
	return m.runs[best]
}

func (m *machine) sorted() (out []string) {
	for id := range m.runs {
		i := len(out)
		for i > 0 && m.runs[out[i-1]].Seq > m.runs[id].Seq {
			i--
		}
		out = append(out[:i], append([]string{id}, out[i:]...)...)
	}
	return out
}

// crash leaves everything as it is on disk and goes on with a copy, as after kill -9.
func (m *machine) crash(t *rapid.T) {
	old := m.w
	m.open(old.crash())
	m.recover(t)
	old.close() // its workers end; what they write is not in our file
}

func (m *machine) recover(t *rapid.T) {
	policy := rapid.SampledFrom([]Recovery{RecoverResume, RecoverResume, RecoverAsk, RecoverInterrupt}).Draw(t, "policy")
	before, err := m.w.db.LiveRuns(context.Background())
	if err != nil {
		t.Fatalf("live: %v", err)
	}
	rec := m.w.recover(policy)
	if n := len(rec.Resumed) + len(rec.Ended) + len(rec.Waiting); n != len(before) {
		t.Fatalf("%d runs were live, recovered %+v", len(before), rec)
	}
	if policy != RecoverResume && len(rec.Resumed) > 0 {
		t.Fatalf("policy %s resumed %v", policy, rec.Resumed)
	}
}

// check holds what must hold at any moment.
func (m *machine) check(t *rapid.T) {
	list, err := m.w.db.LiveRuns(context.Background())
	if err != nil {
		t.Fatalf("live: %v", err)
	}
	active := map[string]string{}
	for _, r := range list {
		if r.State.Active() {
			if other := active[r.ThreadID]; other != "" {
				t.Fatalf("thread %s has two active runs: %s and %s", r.ThreadID, other, r.ID)
			}
			active[r.ThreadID] = r.ID
		}
		if r.Resumes > MaxResumes+1 {
			t.Fatalf("run %s was taken up %d times", r.ID, r.Resumes)
		}
		if m.over[r.ID] != "" {
			t.Fatalf("run %s is %s again, was %s", r.ID, r.State, m.over[r.ID])
		}
	}
	for id := range m.runs {
		r := m.w.record(id) // admitted is durable, whatever came after
		if r.State.Terminal() {
			m.over[id] = r.State
			delete(m.runs, id)
		}
	}
	for id, was := range m.over {
		if r := m.w.record(id); r.State != was {
			t.Fatalf("run %s was %s, is %s", id, was, r.State)
		}
	}
}

// settle lets everything end and looks at what is left.
func (m *machine) settle(t *rapid.T) {
	for _, r := range m.runs {
		m.release(r)
	}
	for id := range m.runs {
		es := m.w.follow(id)
		ends := 0
		for _, e := range es {
			if is[event.End](e.Body) {
				ends++
			}
		}
		if ends != 1 {
			t.Fatalf("run %s has %d ends", id, ends)
		}
	}
	m.check(t)
	if len(m.runs) != 0 {
		t.Fatalf("%d runs did not end", len(m.runs))
	}
	for _, th := range m.threads {
		m.w.sound(th)
		seen := map[string]int{}
		for _, msg := range m.w.messages(th) {
			seen[msg.ID]++
		}
		runs, err := m.w.db.ThreadRuns(context.Background(), th, 1000)
		if err != nil {
			t.Fatalf("runs: %v", err)
		}
		for _, r := range runs {
			if r.State == store.RunSuccess && seen["in-"+r.ID] != 1 {
				t.Fatalf("the input of run %s stands %d times", r.ID, seen["in-"+r.ID])
			}
			finished := 0
			for _, e := range m.w.journal(r.ID) {
				if is[event.RunFinished](e.Body) {
					finished++
				}
			}
			if r.Epoch > 0 && finished != 1 {
				t.Fatalf("the journal of run %s (%s) finishes %d times", r.ID, r.State, finished)
			}
		}
	}
}

// TestMachine: whatever happens in whatever order, a thread has at most one active run, every admitted run reaches exactly
// one terminal state, and every history is one that a strict provider takes.
func TestMachine(t *testing.T) {
	// Each step is on disk, so the usual 100 checks take minutes where a sync is slow. -rapid.checks asks for more.
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		n := "10"
		if raceEnabled {
			n = "5"
		}
		_ = f.Value.Set(n)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{t: t}
		m.start()
		defer m.stop()
		actions := map[string]func(*rapid.T){
			"":      m.check,
			"admit": m.admit,
			"go on": func(t *rapid.T) { m.release(m.pick(t)) },
			"cancel": func(t *rapid.T) {
				r := m.pick(t)
				if err := m.w.m.Cancel(context.Background(), r.ID, "me", agent.ErrUserStop); err != nil {
					t.Fatalf("cancel: %v", err)
				}
			},
			"wait": func(t *rapid.T) {
				r := m.pick(t)
				for _, id := range m.sorted() { // what is in front of it must be able to go
					m.release(m.runs[id])
				}
				m.w.follow(r.ID)
			},
			"renew": func(*rapid.T) { m.w.m.renew(context.Background()) },
			"restart": func(t *rapid.T) {
				m.w.restart()
				m.recover(t)
			},
			"crash": m.crash,
		}
		t.Repeat(actions)
		m.settle(t)
	})
}
