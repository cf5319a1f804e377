package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deerbot/runtime/model"
	"deerbot/store"
)

// chain is a store of one thread's checkpoints. It sets what the store sets.
type chain struct {
	store.Threads
	cps []store.Checkpoint
	err error
}

func (c *chain) Checkpoints(_ context.Context, _, head string) ([]store.Checkpoint, error) {
	for i, cp := range c.cps {
		if cp.ID == head {
			return c.cps[:i+1], c.err
		}
	}
	return c.cps, c.err
}

// put stores cp as JSON, as a store would.
func (c *chain) put(t interface{ Fatal(...any) }, cp *store.Checkpoint) {
	cp.Depth = uint64(len(c.cps) + 1)
	b, err := json.Marshal(cp)
	if err != nil {
		t.Fatal(err)
	}
	var got store.Checkpoint
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	c.cps = append(c.cps, got)
}

// content is what of a log counts.
type content struct {
	Messages []model.Message
	Values   map[string]string
	Head     string
}

func contentOf(l *Log) content {
	out := content{Head: l.Head(), Values: map[string]string{}}
	out.Messages = append(out.Messages, l.Messages()...)
	for k, v := range l.values {
		out.Values[k] = string(v)
	}
	return out
}

func commit(t interface{ Fatal(...any) }, c *chain, l *Log, step int) *store.Checkpoint {
	cp, err := l.Checkpoint(fmt.Sprint("cp", len(c.cps)), "run", step, time.Unix(int64(step), 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	if cp == nil {
		return nil
	}
	c.put(t, cp)
	l.Committed(cp)
	return cp
}

func load(t interface{ Fatal(...any) }, c *chain, head string) *Log {
	l, err := Load(context.Background(), c, "t", head)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Whatever is appended, set, committed or lost in a crash: folding the chain gives what was committed, at every point of
// the chain, and a log goes on from a load as it would have without.
func TestFoldIsTheInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chain{}
		l := New("t")
		heads := map[string]content{}
		last := contentOf(l)
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				for range rapid.IntRange(1, 3).Draw(t, "messages") {
					n++
					l.Append(model.Text(fmt.Sprint("m", rapid.IntRange(max(0, n-2), n).Draw(t, "id")), model.RoleUser, fmt.Sprint("text ", n)))
				}
			},
			"set": func(t *rapid.T) {
				v := rapid.SampledFrom([]any{nil, 1, "x", []string{"a"}, map[string]int{"b": 2}}).Draw(t, "value")
				if err := l.Set(rapid.SampledFrom([]string{"todos", "title", "x"}).Draw(t, "key"), v); err != nil {
					t.Fatal(err)
				}
			},
			"commit": func(t *rapid.T) {
				if cp := commit(t, c, l, n); cp != nil {
					last = contentOf(l)
					heads[cp.ID] = last
				}
				if l.Pending() {
					t.Fatal("pending after a commit")
				}
			},
			"many commits": func(t *rapid.T) { // up to the next snapshot
				for i := 0; i == 0 || len(c.cps)%SnapshotEvery < SnapshotEvery-2; i++ {
					if err := l.Set("count", i); err != nil {
						t.Fatal(err)
					}
					if commit(t, c, l, n) != nil {
						last = contentOf(l)
					}
				}
			},
			"crash": func(t *rapid.T) {
				l = load(t, c, "")
				if diff := cmp.Diff(last, contentOf(l)); diff != "" {
					t.Fatalf("after a crash:\n%s", diff)
				}
				if l.Pending() {
					t.Fatal("pending after a load")
				}
			},
			"": func(t *rapid.T) {
				if len(c.cps) == 0 || rapid.IntRange(0, 5).Draw(t, "look") > 0 {
					return
				}
				head := c.cps[rapid.IntRange(0, len(c.cps)-1).Draw(t, "head")].ID
				want, ok := heads[head]
				if diff := cmp.Diff(want, contentOf(load(t, c, head))); ok && diff != "" {
					t.Fatalf("at %s:\n%s", head, diff)
				}
			},
		})
	})
}

// A replayed step appends what is there already: nothing happens twice.
func TestReplayIsHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ms []model.Message
		for i := range rapid.IntRange(1, 10).Draw(t, "messages") {
			ms = append(ms, model.Text(fmt.Sprint("m", i), model.RoleUser, "x"))
		}
		l := New("t")
		l.Append(ms...)
		c := &chain{}
		commit(t, c, l, 1)
		want := contentOf(l)
		from := rapid.IntRange(0, len(ms)-1).Draw(t, "from")
		l.Append(ms[from:]...)
		l.Append(model.Message{Role: model.RoleUser}) // without an id it could not be recognised
		if diff := cmp.Diff(want, contentOf(l)); diff != "" || l.Pending() {
			t.Fatalf("pending %v:\n%s", l.Pending(), diff)
		}
		l = load(t, c, "")
		l.Append(ms...)
		if l.Pending() || !l.Has("m0") || l.Has("m99") {
			t.Fatal("a replay after a load counts")
		}
	})
}

// What a step writes does not grow with the thread.
func TestBytesPerCheckpointAreFlat(t *testing.T) {
	c := &chain{}
	l := New("t")
	size := func(i int) int {
		l.Append(model.Text(fmt.Sprintf("a%06d", i), model.RoleAssistant, strings.Repeat("x", 300)))
		if err := l.Set(KeyTodos, fmt.Sprintf("%06d", i)); err != nil {
			t.Fatal(err)
		}
		cp, err := l.Checkpoint(fmt.Sprintf("cp%06d", i), "run", 1, time.Unix(0, 0).UTC())
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(cp)
		if err != nil {
			t.Fatal(err)
		}
		c.put(t, cp)
		l.Committed(cp)
		return len(b)
	}
	first := size(0)
	for i := 1; i < 1000; i++ {
		if n := size(i); n > first+48 { // the snapshot's mark and the parent's id
			t.Fatalf("checkpoint %d has %d bytes, the first had %d", i, n, first)
		}
	}
	snapshots := 0
	for _, cp := range c.cps {
		if cp.Snapshot {
			snapshots++
		}
	}
	if want := 1000 / SnapshotEvery; snapshots != want {
		t.Errorf("%d snapshots, want %d", snapshots, want)
	}
}

func TestUnchangedValueIsNotWritten(t *testing.T) {
	c := &chain{}
	l := New("t")
	if err := l.Set(KeyTitle, "x"); err != nil {
		t.Fatal(err)
	}
	commit(t, c, l, 1)
	if err := l.Set(KeyTitle, "x"); err != nil || l.Pending() {
		t.Errorf("%v, pending %v", err, l.Pending())
	}
	if cp, err := l.Checkpoint("x", "run", 1, time.Now()); cp != nil || err != nil {
		t.Errorf("%+v, %v", cp, err)
	}
	if err := l.Set(KeyTitle, make(chan int)); err == nil || string(l.Value(KeyTitle)) != `"x"` {
		t.Errorf("%v, %s", err, l.Value(KeyTitle))
	}
}

func TestLoadFaults(t *testing.T) {
	if _, err := Load(t.Context(), &chain{err: store.ErrNotFound}, "t", ""); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	bad := &chain{cps: []store.Checkpoint{{ID: "cp0", Messages: []json.RawMessage{json.RawMessage(`{"parts":7}`)}}}}
	if _, err := Load(t.Context(), bad, "t", ""); err == nil || !strings.Contains(err.Error(), "cp0") {
		t.Errorf("got %v", err)
	}
	if l, err := Load(t.Context(), &chain{}, "t", ""); err != nil || l.Head() != "" || l.ThreadID() != "t" || len(l.Messages()) != 0 {
		t.Errorf("empty: %v", err)
	}
}
