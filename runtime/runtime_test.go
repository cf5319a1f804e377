package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/middleware"
	"deerbot/runtime/model"
	"deerbot/runtime/run"
	"deerbot/runtime/stream"
	"deerbot/runtime/tools"
	"deerbot/store"
	"deerbot/store/boltstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// words is a model that streams an answer in pieces, after one tool call.
type words struct {
	delays func(ctx context.Context) error
}

func (m *words) Info() model.Info {
	return model.Info{Name: "w", Provider: "openai", Model: "w", ContextWindow: 10_000}
}

func (m *words) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m.delays != nil {
			if err := m.delays(ctx); err != nil {
				yield(model.Chunk{}, &model.Error{Class: model.ClassCanceled, Err: err})
				return
			}
		}
		msg := model.Message{Role: model.RoleAssistant}
		if req.Messages[len(req.Messages)-1].Role != model.RoleTool {
			msg.Parts = []model.Part{{Kind: model.PartToolCall, Call: &model.ToolCall{ID: "c", Name: "act", Arguments: json.RawMessage("{}")}}}
		} else {
			msg.Parts = []model.Part{{Kind: model.PartText, Text: "two words"}}
			for _, d := range []string{"two ", "words"} {
				if !yield(model.Chunk{Kind: model.ChunkText, Text: d}, nil) {
					return
				}
			}
		}
		yield(model.Chunk{Kind: model.ChunkDone, Response: &model.Response{Message: msg, Finish: model.FinishStop}}, nil)
	}
}

// clock is a time that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

type act struct{}

func (act) Spec() tools.Spec {
	return tools.Spec{Name: "act", Description: "acts", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (act) Call(context.Context, *tools.Env, json.RawMessage) (tools.Result, error) {
	return tools.Result{Content: "acted"}, nil
}

func open(t *testing.T, path string, m model.Model, c *clock) (*Runtime, store.Store) {
	t.Helper()
	db, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(act{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	chain, err := agent.NewChain(log, middleware.Default(middleware.Config{})...)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := New(Config{
		Store: db, Loop: &agent.Loop{Chain: chain, Log: log}, Log: log, Now: c.now,
		Setup: func(context.Context, store.Run) (run.Setup, error) { return run.Setup{Model: m, Tools: set}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		rt.Close(ctx)
		_ = db.Close() // a test may have closed it
	})
	return rt, db
}

func start(t *testing.T, rt *Runtime, db store.Store) store.Run {
	t.Helper()
	th := NewID()
	if err := db.PutThread(t.Context(), &store.Thread{ID: th}); err != nil {
		t.Fatal(err)
	}
	r, _, err := rt.Start(t.Context(), Request{ThreadID: th, Input: []model.Message{model.Text("", model.RoleUser, "go")}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// collect reads a subscription to its end, or to its error.
func collect(seq iter.Seq2[event.Event, error]) (out []event.Event, err error) {
	for e, err := range seq {
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
	return out, nil
}

// lasting are the bodies of what is not only live, and the End.
func lasting(es []event.Event) (out []event.Body) {
	for _, e := range es {
		switch e.Body.(type) {
		case event.RunQueued:
		case event.End:
			out = append(out, e.Body)
		default:
			if !event.Live(e.Body) {
				out = append(out, e.Body)
			}
		}
	}
	return out
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty config is taken")
	}
}

func TestStartRefuses(t *testing.T) {
	rt, _ := open(t, filepath.Join(t.TempDir(), "db"), &words{}, &clock{})
	if _, _, err := rt.Start(t.Context(), Request{}); err == nil {
		t.Error("a run without a thread was admitted")
	}
	if _, _, err := rt.Start(t.Context(), Request{ThreadID: NewID()}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a run on a thread that does not exist: %v", err)
	}
}

// What a reader of an ended run gets from the journal is what a reader of the live stream got, but for the deltas.
func TestJournalEqualsLive(t *testing.T) {
	c := &clock{}
	rt, db := open(t, filepath.Join(t.TempDir(), "db"), &words{}, c)
	r := start(t, rt, db)
	live, err := collect(rt.Subscribe(t.Context(), r.ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	c.advance(stream.Keep + time.Second)
	later, err := collect(rt.Subscribe(t.Context(), r.ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lasting(live), lasting(later)); diff != "" {
		t.Errorf("journal differs from live (-live +journal):\n%s", diff)
	}
	if len(later) != len(lasting(later)) || len(later) >= len(live) {
		t.Errorf("%d events live, %d from the journal", len(live), len(later))
	}
	ends := 0
	for _, e := range later {
		if _, ok := e.Body.(event.End); ok {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d ends", ends)
	}
}

// A reader that was cut off comes back when the live stream is gone. The journal counts otherwise than the stream, so its
// cursor says nothing there; nothing may be lost silently.
func TestCursorAcrossTheEndOfTheStream(t *testing.T) {
	c := &clock{}
	rt, db := open(t, filepath.Join(t.TempDir(), "db"), &words{}, c)
	r := start(t, rt, db)
	live, err := collect(rt.Subscribe(t.Context(), r.ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	c.advance(stream.Keep + time.Second)
	all, err := collect(rt.Subscribe(t.Context(), r.ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range live {
		got, err := collect(rt.Subscribe(t.Context(), r.ID, e.Seq))
		if err != nil {
			t.Fatal(err)
		}
		gap, ok := got[0].Body.(event.Gap)
		if !ok || gap.From != e.Seq+1 || gap.To != all[0].Seq-1 {
			t.Errorf("cursor %d: first comes %+v, want the gap before %d", e.Seq, got[0].Body, all[0].Seq)
		}
		if diff := cmp.Diff(all, got[1:]); diff != "" {
			t.Errorf("cursor %d (-all +got):\n%s", e.Seq, diff)
		}
	}
	// A cursor that the journal gave is one to go on from.
	for i, e := range all {
		if i > 0 && e.Seq != all[i-1].Seq+1 {
			t.Errorf("sequence %d after %d", e.Seq, all[i-1].Seq)
		}
		got, err := collect(rt.Subscribe(t.Context(), r.ID, e.Seq))
		if err != nil {
			t.Fatal(err)
		}
		if want := all[min(i+1, len(all)-1):]; cmp.Diff(want, got) != "" {
			t.Errorf("cursor %d of the journal (-want +got):\n%s", e.Seq, cmp.Diff(want, got))
		}
	}
}

func TestSubscribeUnknown(t *testing.T) {
	rt, _ := open(t, filepath.Join(t.TempDir(), "db"), &words{}, &clock{})
	if _, err := collect(rt.Subscribe(t.Context(), NewID(), 0)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

func TestCancel(t *testing.T) {
	reached := make(chan struct{})
	m := &words{delays: func(ctx context.Context) error { close(reached); <-ctx.Done(); return ctx.Err() }}
	rt, db := open(t, filepath.Join(t.TempDir(), "db"), m, &clock{})
	r := start(t, rt, db)
	<-reached
	if err := rt.Cancel(t.Context(), r.ID, "me"); err != nil {
		t.Fatal(err)
	}
	if err := rt.Wait(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	if ids, waiting := rt.Live(); len(ids) != 0 || waiting != 0 {
		t.Errorf("live %v, %d", ids, waiting)
	}
	got, err := db.Run(t.Context(), r.ID)
	if err != nil || got.State != store.RunInterrupted {
		t.Errorf("state %s, %v", got.State, err)
	}
}

// After a restart the run goes on; in a crash loop it does not.
func TestRecover(t *testing.T) {
	for _, calm := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "db")
		reached := make(chan struct{})
		m := &words{delays: func(ctx context.Context) error { close(reached); <-ctx.Done(); return ctx.Err() }}
		rt, db := open(t, path, m, &clock{})
		r := start(t, rt, db)
		<-reached
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		rt.Close(ctx)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}

		rt, _ = open(t, path, &words{}, &clock{})
		rec, err := rt.Recover(t.Context(), calm)
		if err != nil {
			t.Fatal(err)
		}
		es, err := collect(rt.Subscribe(t.Context(), r.ID, 0))
		if err != nil {
			t.Fatal(err)
		}
		want, n := store.RunSuccess, len(rec.Resumed)
		if !calm {
			want, n = store.RunInterrupted, len(rec.Ended)
		}
		if got := es[len(es)-1].Body; n != 1 || got != (event.End{State: want}) {
			t.Errorf("calm %t: recovered %+v, end %+v", calm, rec, got)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	rt, _ := open(t, filepath.Join(t.TempDir(), "db"), &words{}, &clock{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rt.Run(ctx); err != nil {
		t.Error(err)
	}
}
