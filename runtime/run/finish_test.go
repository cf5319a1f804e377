package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/runtime/tools"
	"deerbot/store"
)

// End is published only when the terminal state is durable.
func TestEndComesAfterTheTransaction(t *testing.T) {
	w := newWorld(t)
	r := request(w.thread(), "")
	h := newHold()
	w.st.on(func(op, _ string) error {
		if op == "end" {
			return h.wait(context.Background())
		}
		return nil
	})
	if _, _, err := w.m.Admit(context.Background(), r, store.StrategyEnqueue); err != nil {
		t.Fatal(err)
	}
	h.await(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for e, err := range w.b.Subscribe(ctx, r.ID, 0) {
		if err == nil && is[event.End](e.Body) {
			t.Error("End before the terminal transaction")
		}
	}
	if got := w.record(r.ID); got.State != store.RunRunning {
		t.Errorf("state %s", got.State)
	}
	h.release()
	w.end(r.ID, store.RunSuccess)
	j := w.journal(r.ID)
	if !is[event.RunFinished](j[len(j)-1].Body) {
		t.Errorf("the journal's last word is %s", j[len(j)-1].Body.Kind())
	}
}

// No room while the end is written: it is tried until there is, and End follows.
func TestFullWhileFinishing(t *testing.T) {
	w := newWorld(t)
	var tries atomic.Int32
	w.st.on(func(op, _ string) error {
		if op == "end" && tries.Add(1) <= 3 {
			return store.ErrFull
		}
		return nil
	})
	th := w.thread()
	r := w.admit(th, "")
	w.end(r.ID, store.RunSuccess)
	if tries.Load() != 4 {
		t.Errorf("%d tries", tries.Load())
	}
	w.sound(th)
	if n := strings.Count(strings.Join(kinds(w.journal(r.ID)), " "), "run.finished"); n != 1 {
		t.Errorf("run.finished stands %d times in the journal", n)
	}
	w.end(w.admit(th, "").ID, store.RunSuccess)
}

// No room while a step is written: the run ends and says so; the answer to the open calls is not lost.
func TestFullMidRun(t *testing.T) {
	w := newWorld(t)
	w.tool("act", func(context.Context, *tools.Env) (string, error) {
		t.Error("the tool acted though its call is not on disk")
		return "", nil
	})
	w.model("tools", calls("never", "act"))
	w.st.on(func(op, _ string) error {
		if op == "write" {
			return store.ErrFull
		}
		return nil
	})
	th := w.thread()
	r := w.admit(th, "tools")
	rec := w.end(r.ID, store.RunError)
	if rec.Error != "disk full" {
		t.Errorf("error %q", rec.Error)
	}
	w.st.on(nil)
	w.sound(th)
	if msgs := w.messages(th); len(msgs) != 3 || msgs[2].Parts[0].Result.Content != resultNotRun {
		t.Errorf("history:\n%s", dump(msgs))
	}
	w.end(w.admit(th, "").ID, store.RunSuccess)
	w.sound(th)
}

// The store is closed: the run's end cannot be written. Its watchers are let go, and the next start goes on with it.
func TestClosedWhileFinishing(t *testing.T) {
	w := newWorld(t)
	w.st.on(func(op, _ string) error {
		if op == "end" {
			return store.ErrClosed
		}
		return nil
	})
	th := w.thread()
	r := w.admit(th, "")
	es := w.follow(r.ID)
	if !is[event.End](es[len(es)-1].Body) || w.record(r.ID).State != store.RunRunning {
		t.Fatalf("state %s, last %s", w.record(r.ID).State, es[len(es)-1].Body.Kind())
	}
	w.restart()
	rec, err := w.m.Recover(context.Background(), RecoverResume)
	if err != nil || !slices.Equal(rec.Resumed, []string{r.ID}) {
		t.Fatalf("recovered %+v, %v", rec, err)
	}
	w.end(r.ID, store.RunSuccess)
	w.sound(th)
}

// Somebody else has the run: what its former owner still does leaves no trace.
func TestFencedOwnerWritesNothing(t *testing.T) {
	for _, at := range []string{"model", "tool", "finish", "renew"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			h := newHold()
			w.tool("slow", func(ctx context.Context, _ *tools.Env) (string, error) { return "from the old owner", h.wait(ctx) })
			switch at {
			case "model", "renew":
				w.model("m", waits(h, "from the old owner"))
			case "tool":
				w.model("m", calls("from the old owner", "slow"))
			case "finish":
				w.model("m", says("from the old owner"))
				w.st.on(func(op, _ string) error {
					if op == "end" {
						return h.wait(context.Background())
					}
					return nil
				})
			}
			th := w.thread()
			r := w.admit(th, "m")
			h.await(t)
			got, err := w.db.TakeOverRun(context.Background(), r.ID, "other", time.Now().Add(time.Hour), time.Now().Add(Lease))
			if err != nil {
				t.Fatal(err)
			}
			before, msgs := w.record(r.ID), len(w.messages(th))
			if at == "renew" {
				w.m.renew(context.Background()) // tells the owner; the model need not come back by itself
			} else {
				h.release()
			}
			if err := w.m.Wait(context.Background(), r.ID); err != nil {
				t.Fatal(err)
			}
			after := w.record(r.ID)
			if after.State != store.RunRunning || after.Epoch != got.Epoch || after.JournalSeq != before.JournalSeq ||
				len(w.messages(th)) != msgs || len(after.Stop) != 0 {
				t.Errorf("the old owner wrote: %+v, was %+v", after, before)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			for e, err := range w.b.Subscribe(ctx, r.ID, 0) {
				if err == nil && is[event.End](e.Body) {
					t.Error("the old owner published an End")
				}
			}
		})
	}
}

func TestSetupFails(t *testing.T) {
	w := newWorld(t)
	w.setup = func(context.Context, store.Run) error { return errors.New("no such model") }
	th := w.thread()
	r := w.admit(th, "")
	rec := w.end(r.ID, store.RunError)
	wantCodes(t, rec, store.StopInternal)
	if rec.Stop[0].Detail != "no such model" {
		t.Errorf("detail %q", rec.Stop[0].Detail)
	}
	w.sound(th)
	if msgs := w.messages(th); len(msgs) != 1 {
		t.Errorf("what was asked is not in the thread:\n%s", dump(msgs))
	}
}

func TestThreadCannotBeRead(t *testing.T) {
	w := newWorld(t)
	th := w.thread()
	w.st.on(func(op, _ string) error {
		if op == "load" {
			return errDisk
		}
		return nil
	})
	r := w.admit(th, "")
	wantCodes(t, w.end(r.ID, store.RunError), store.StopInternal)
	w.st.on(nil)
	w.end(w.admit(th, "").ID, store.RunSuccess)
	w.sound(th)
}

func TestProviderError(t *testing.T) {
	w := newWorld(t)
	w.model("bad", func(context.Context, *model.Request, func(string)) (*model.Response, error) {
		return nil, fault(model.ClassBadRequest)
	})
	th := w.thread()
	rec := w.end(w.admit(th, "bad").ID, store.RunError)
	wantCodes(t, rec, store.StopProviderError)
	if !strings.Contains(rec.Error, "provider words") {
		t.Errorf("error %q", rec.Error)
	}
	w.end(w.admit(th, "").ID, store.RunSuccess)
	w.sound(th)
}

// Files that a run made and did not present are presented at its end; those of earlier runs are not.
func TestLeftovers(t *testing.T) {
	w := newWorld(t)
	w.files = true
	n := 0
	w.tool("make", func(_ context.Context, env *tools.Env) (string, error) {
		n++
		name := []string{"one.md", "two.md", "three.md"}[n-1]
		return "made", env.Files.WriteFile("/mnt/user-data/outputs/"+name, []byte("text of "+name))
	})
	w.model("make", calls("done", "make"))
	th := w.thread()
	var seen []string
	for i, want := range []string{"one.md", "two.md"} {
		r := w.admit(th, "make")
		es := w.follow(r.ID)
		arts, err := w.db.RunArtifacts(context.Background(), r.ID)
		if err != nil || len(arts) != 1 || arts[0].Name != want || arts[0].ThreadID != th || arts[0].SHA256 == "" {
			t.Fatalf("run %d presented %+v, %v", i+1, arts, err)
		}
		for _, e := range es {
			if p, ok := e.Body.(event.ArtifactPresented); ok {
				seen = append(seen, p.Artifact.Name)
			}
		}
		w.end(w.admit(th, "").ID, store.RunSuccess) // a run that makes nothing presents nothing
	}
	if !slices.Equal(seen, []string{"one.md", "two.md"}) {
		t.Errorf("events of %v", seen)
	}
	all, err := w.db.ThreadArtifacts(context.Background(), th)
	if err != nil || len(all) != 2 {
		t.Errorf("presented %+v, %v", all, err)
	}
}

// The kernel dates a file by its last tick, which may lie before the start of the run that wrote it.
func TestLeftoverOlderThanTheRunByATick(t *testing.T) {
	w := newWorld(t)
	w.files = true
	th := w.thread()
	var started time.Time
	w.setup = func(_ context.Context, r store.Run) error { started = r.StartedAt; return nil }
	for i, c := range []struct {
		name string
		back time.Duration
		want int
	}{{"tick.md", 5 * time.Millisecond, 1}, {"tick.md", 5 * time.Millisecond, 1}, {"old.md", time.Second, 1}} {
		w.model("make", func(context.Context, *model.Request, func(string)) (*model.Response, error) {
			p := filepath.Join(w.dir, "files", th, "outputs", c.name)
			if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
				return nil, err
			}
			if err := os.WriteFile(p, []byte("text"), 0o600); err != nil {
				return nil, err
			}
			return answer("ok"), os.Chtimes(p, started, started.Add(-c.back))
		})
		w.end(w.admit(th, "make").ID, store.RunSuccess)
		all, err := w.db.ThreadArtifacts(context.Background(), th)
		if err != nil || len(all) != c.want {
			t.Errorf("after run %d: presented %d files, %v; want %d", i+1, len(all), err, c.want)
		}
	}
}

// A clean stop lets the step under way end, then leaves the run to the next start.
func TestCloseDrains(t *testing.T) {
	w := newWorld(t)
	h := newHold()
	w.tool("slow", func(ctx context.Context, _ *tools.Env) (string, error) { return "finished", h.wait(ctx) })
	w.model("tools", calls("done", "slow"))
	th := w.thread()
	r, waiting := w.admit(th, "tools"), w.admit(th, "")
	h.await(t)
	var wg sync.WaitGroup
	wg.Go(func() { w.m.Close(context.Background()) })
	<-w.m.drain
	h.release()
	wg.Wait()
	if got := w.record(r.ID); got.State != store.RunRunning {
		t.Errorf("state %s, want it left for the next start", got.State)
	}
	msgs := w.messages(th)
	if last := msgs[len(msgs)-1]; last.Role != model.RoleTool || last.Parts[0].Result.Content != "finished" {
		t.Errorf("the step under way was not finished:\n%s", dump(msgs))
	}
	w.restart()
	rec, err := w.m.Recover(context.Background(), RecoverResume)
	if err != nil || !slices.Equal(rec.Resumed, []string{r.ID}) || !slices.Equal(rec.Waiting, []string{waiting.ID}) {
		t.Fatalf("recovered %+v, %v", rec, err)
	}
	w.end(r.ID, store.RunSuccess)
	w.end(waiting.ID, store.RunSuccess)
	w.sound(th)
}

// A stop whose time is over does not wait for the step.
func TestCloseSuspends(t *testing.T) {
	for _, where := range []string{"model", "tool", "setup"} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t)
			h := newHold()
			w.tool("slow", func(ctx context.Context, _ *tools.Env) (string, error) { return "", h.wait(ctx) })
			w.model("model", func(ctx context.Context, _ *model.Request, say func(string)) (*model.Response, error) {
				if h.wait(ctx) != nil {
					return nil, fault(model.ClassCanceled)
				}
				return answer("ok"), nil
			})
			w.model("tool", calls("ok", "slow"))
			if where == "setup" {
				w.setup = func(ctx context.Context, _ store.Run) error { return h.wait(ctx) }
			}
			th := w.thread()
			r := w.admit(th, where)
			h.await(t)
			w.suspend()
			if got := w.record(r.ID); got.State != store.RunRunning || len(got.Stop) != 0 {
				t.Fatalf("state %s, stop %v", got.State, got.Stop)
			}
			h.release()
			w.restart()
			if rec, err := w.m.Recover(context.Background(), RecoverResume); err != nil || len(rec.Resumed) != 1 {
				t.Fatalf("recovered %+v, %v", rec, err)
			}
			if got := codes(w.end(r.ID, store.RunSuccess).Stop); !slices.Contains(got, store.StopRecovered) {
				t.Errorf("stop reasons %v do not tell of the restart", got)
			}
			w.sound(th)
			unknown := 0
			for _, m := range w.messages(th) {
				for _, p := range m.Parts {
					if p.Result != nil && p.Result.Content == agent.ResultUnknown {
						unknown++
					}
				}
			}
			if want := map[string]int{"tool": 1}[where]; unknown != want {
				t.Errorf("%d unknown outcomes, want %d:\n%s", unknown, want, dump(w.messages(th)))
			}
		})
	}
}
