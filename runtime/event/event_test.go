package event

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deerbot/store"
)

var update = flag.Bool("update", false, "write golden files")

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// samples has one event of every kind, with every field set.
func samples() []Event {
	reason := store.StopReason{Code: store.StopStepCapped, Source: "step_budget", Step: 3, At: at, Detail: "200 model calls"}
	totals := store.Totals{Steps: 3, ToolCalls: 5, InputTokens: 1000, CachedTokens: 800, OutputTokens: 90, CostUSD: 0.25, Estimated: true}
	bodies := []Body{
		RunQueued{Position: 2},
		RunStarted{Model: "fast", Resumed: 1, Rehearsal: true},
		RunSteered{Text: "also in French"},
		RunFinished{State: store.RunError, Stop: []store.StopReason{reason}, Totals: totals, Error: "overload: busy"},
		StepStarted{},
		StepFinished{Finish: "tool_calls", ToolCalls: 2, Latency: 1500 * time.Millisecond},
		MessageDelta{Text: "Hel"},
		MessageReasoning{Text: "hm"},
		MessageReset{},
		MessageCompleted{MessageID: "m1", Text: "Hello", Final: true},
		ToolStarted{CallID: "c1", Name: "web_fetch", Args: "example.com"},
		ToolProgress{CallID: "c1", Text: "half"},
		ToolFinished{CallID: "c1", Name: "web_fetch", IsError: true, Unknown: true, Result: "404", Elapsed: 2 * time.Second},
		TodoUpdated{Todos: []Todo{{Text: "read", Status: "completed"}, {Text: "write", Status: "pending"}}},
		ArtifactPresented{Artifact: store.Artifact{
			ID: "a1", ThreadID: "t1", RunID: "r1", Path: "/mnt/user-data/outputs/x.md", Name: "x.md", MIME: "text/markdown",
			Size: 12, SHA256: "ab", CreatedAt: at,
		}},
		UsageUpdated{Totals: totals},
		GuardWarned{Guard: "token_budget", Detail: "80 of 100 tokens"},
		GuardStopped{Reason: reason},
		ModelRetry{Attempt: 1, Max: 3, Wait: time.Second, Class: "overload", Detail: "busy"},
		TitleUpdated{Title: "A title"},
		Gap{From: 3, To: 9},
		Heartbeat{},
		End{State: store.RunSuccess},
	}
	out := make([]Event, len(bodies))
	for i, b := range bodies {
		out[i] = Event{Run: "r1", Thread: "t1", Seq: uint64(i + 1), At: at, Step: 3, Task: "k1", Body: b}
	}
	return out
}

// The JSON of events is read by other processes and by later versions: a change here is a change of a contract.
func TestGolden(t *testing.T) {
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	for _, e := range samples() {
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	const file = "testdata/events.golden"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSamplesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range samples() {
		if seen[e.Body.Kind()] {
			t.Errorf("kind %s twice", e.Body.Kind())
		}
		seen[e.Body.Kind()] = true
		v := reflect.ValueOf(e.Body)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s: field %s has no sample", e.Body.Kind(), v.Type().Field(i).Name)
			}
		}
	}
	for _, k := range Kinds() {
		if !seen[k] {
			t.Errorf("kind %s has no sample", k)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, e := range samples() {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var got Event
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", e.Body.Kind(), err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("%s: %s", e.Body.Kind(), diff)
		}
	}
}

// Zero bodies survive too: omitted fields must not change what is read back.
func TestZeroRoundTrip(t *testing.T) {
	for _, k := range Kinds() {
		body, err := Decode(k, json.RawMessage(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(Event{Run: "r", Body: body})
		if err != nil {
			t.Fatal(err)
		}
		var got Event
		if err := json.Unmarshal(b, &got); err != nil || got.Body.Kind() != k {
			t.Errorf("%s: %v", k, err)
		}
		if diff := cmp.Diff(body, got.Body); diff != "" {
			t.Errorf("%s: %s", k, diff)
		}
	}
}

func TestBadEvents(t *testing.T) {
	if _, err := json.Marshal(Event{Run: "r"}); err == nil {
		t.Error("an event without body was written")
	}
	for _, s := range []string{`{"kind":"nonsense","data":{}}`, `{"kind":"end","data":[]}`, `{"kind":7}`, `[]`} {
		var e Event
		if err := json.Unmarshal([]byte(s), &e); err == nil {
			t.Errorf("%s was read", s)
		}
	}
}

// What is live only never needs the journal to make sense of a run, and deltas are all of it.
func TestLive(t *testing.T) {
	var live []string
	for _, e := range samples() {
		if Live(e.Body) {
			live = append(live, e.Body.Kind())
		}
	}
	want := "message.delta message.reasoning message.reset tool.progress gap heartbeat end"
	if got := strings.Join(live, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
