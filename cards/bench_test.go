package cards

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"deerbot/cards/phrase"
	"deerbot/runtime/event"
	"deerbot/store"
)

func report20k() string {
	const part = "## Findings for section %d\n\nThe **runtime** keeps its `state` in a [store](https://example.org/store/%d) and *never* " +
		"rewrites it. 结果是**“稳定”**的，见 https://example.com/a_b。\n\n- first point with `code`\n- second **point**\n  - nested\n\n" +
		"| name | value |\n|---|---:|\n| a | %d |\n\n```go\nfor i := range %d {\n\tfmt.Println(i)\n}\n```\n\n"
	var b strings.Builder
	for i := 0; b.Len() < 20_000; i++ {
		fmt.Fprintf(&b, part, i, i, i, i)
	}
	return b.String()
}

func BenchmarkParse20k(b *testing.B) {
	md := report20k()
	b.ReportAllocs()
	b.SetBytes(int64(len(md)))
	for b.Loop() {
		parse(md)
	}
}

func BenchmarkMarkdown20k(b *testing.B) {
	md := report20k()
	for _, d := range dialects {
		b.Run(d.Name(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(md)))
			start := cpuTime()
			for b.Loop() {
				d.Markdown(md)
			}
			b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// TestMarkdownBound guards the processor time for a text of 20 KB: the best of some rounds, because
// the machine may be busy.
func TestMarkdownBound(t *testing.T) {
	if raceEnabled || testing.CoverMode() != "" {
		t.Skip("instrumented")
	}
	md := report20k()
	for _, d := range dialects {
		best := time.Hour
		for range 12 {
			start := cpuTime()
			for range 10 {
				d.Markdown(md)
			}
			best = min(best, (cpuTime()-start)/10)
		}
		t.Logf("%s: %v", d.Name(), best)
		if best > 5*time.Millisecond {
			t.Errorf("%s: %v for %d bytes", d.Name(), best, len(md))
		}
	}
}

func BenchmarkCard(b *testing.B) {
	md := report20k()
	for _, d := range dialects {
		b.Run(d.Name(), func(b *testing.B) {
			c := Card{Title: "A long report", Phase: PhaseWriting, Answer: md[:len(md)-7], Open: true, Elapsed: time.Minute}
			b.ReportAllocs()
			for b.Loop() {
				d.Card(c)
			}
		})
	}
}

func BenchmarkClose20k(b *testing.B) {
	md := report20k()
	b.SetBytes(int64(len(md)))
	for b.Loop() {
		Close(md[:len(md)-9])
	}
}

// BenchmarkRunView folds a run of 20 steps with 2,000 deltas and draws it.
func BenchmarkRunView(b *testing.B) {
	at := time.Unix(1_700_000_000, 0)
	var evs []event.Event
	add := func(step int, body event.Body) {
		evs = append(evs, event.Event{Run: "r", Seq: uint64(len(evs)), At: at.Add(time.Duration(len(evs)) * 10 * time.Millisecond), Step: step, Body: body})
	}
	add(0, event.RunStarted{Model: "m"})
	for s := 1; s <= 20; s++ {
		add(s, event.StepStarted{})
		for range 100 {
			add(s, event.MessageDelta{Text: "some words "})
		}
		add(s, event.MessageCompleted{MessageID: fmt.Sprint(s), Text: strings.Repeat("some words ", 100)})
		for t := range 3 {
			id := fmt.Sprint(s, t)
			add(s, event.ToolStarted{CallID: id, Name: "read_file", Args: "/mnt/user-data/workspace/file.txt"})
			add(s, event.ToolFinished{CallID: id, Name: "read_file", Elapsed: time.Second})
		}
		add(s, event.UsageUpdated{Totals: store.Totals{Steps: s, InputTokens: int64(1000 * s)}})
		add(s, event.StepFinished{})
	}
	b.ReportAllocs()
	for b.Loop() {
		var v RunView
		for _, e := range evs {
			v.Apply(e)
		}
		v.Card(at.Add(time.Minute), phrase.EN)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(evs)), "ns/event")
}
