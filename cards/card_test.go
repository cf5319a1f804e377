package cards

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"deerbot/cards/phrase"
	"deerbot/store"

	"github.com/google/go-cmp/cmp"
)

// exampleCards are one card for each state, in lang.
func exampleCards(lang phrase.Lang) map[string]Card {
	stop := Button{Label: "Stop", Action: "stop:r1", Style: "danger"}
	title, answer := "Researching wasm outside the browser", "The **short answer** is `wasmtime`.\n\n- first\n- sec"
	plan := []PlanItem{{"collect sources", "completed"}, {"read", "completed"}, {"compare runtimes", "in_progress"}, {"write", "pending"}, {"slides", "pending"}}
	tools := []ToolLine{
		{"web_search", `"wasi preview 3 status"`, "ok", 2 * time.Second},
		{"web_fetch", "https://wasi.dev/roadmap", "error", 900 * time.Millisecond},
		{"read_file", "/mnt/user-data/workspace/a/very/long/path/with/many/directories/in/it/so/that/it/must/be/cut/in/the/middle/notes.md", "unknown", 0},
		{"bash", "go test ./...", "running", 65 * time.Second},
	}
	if lang == phrase.ZH {
		title, answer = "浏览器之外的 wasm 调研", "**结论：**用 `wasmtime`。\n\n- 第一\n- 第"
		plan = []PlanItem{{"收集资料", "completed"}, {"阅读", "completed"}, {"比较运行时", "in_progress"}, {"撰写", "pending"}}
	}
	totals := Totals{Steps: 3, Tokens: 182_345, CostUSD: 0.41}
	reason := func(c store.StopCode, detail string) string {
		return Reason(store.StopReason{Code: c, Detail: detail}, lang)
	}
	cards := map[string]Card{
		"queued":      {Title: title, Phase: PhaseQueued, Position: 3, Buttons: []Button{stop}},
		"queued-next": {Title: title, Phase: PhaseQueued, Position: 1},
		"thinking":    {Title: title, Phase: PhaseThinking, Elapsed: 5 * time.Second, Buttons: []Button{stop}},
		"tool":        {Title: title, Phase: PhaseTool, Plan: plan, Tools: tools, Hidden: 12, Totals: totals, Elapsed: 250 * time.Second, Buttons: []Button{stop, {Label: "Details", Action: "details:r1"}}},
		"writing":     {Title: title, Phase: PhaseWriting, Plan: plan, Tools: tools[:1], Answer: answer, Open: true, Totals: Totals{Steps: 1, Tokens: 950, CostUSD: 0.001, Estimated: true}, Elapsed: 3720 * time.Second, Buttons: []Button{stop}},
		"retry": {Title: title, Phase: PhaseThinking, Notices: []string{
			sayRehearsal.In(lang), sayResumed.In(lang, 4), sayRetry.In(lang, sayClasses["overload"].In(lang), elapsedText(8*time.Second, lang), 2, 5),
		}, Elapsed: 30 * time.Second},
		"done":   {Title: title, Phase: PhaseDone, Answer: "The answer.", Totals: totals, Elapsed: 252 * time.Second},
		"capped": {Title: title, Phase: PhaseCapped, Reasons: []string{reason(store.StopTokenCapped, "2.0M of 2.0M"), reason(store.StopLengthCapped, "")}, Answer: answer, Totals: totals, Elapsed: 252 * time.Second},
		"stopped": {
			Title: title, Phase: PhaseStopped, Reasons: []string{reason(store.StopUserStop, "")}, Answer: answer, Totals: totals, Elapsed: 12 * time.Second,
			Buttons: []Button{{Label: "Retry", Action: "retry:r1"}},
		},
		"failed": {Title: title, Phase: PhaseFailed, Reasons: []string{reason(store.StopProviderError, "529 overloaded <html>")}, Totals: totals, Elapsed: 12 * time.Second},
		"subagents": {Title: title, Phase: PhaseTool, Subagents: []SubagentLine{
			{"runtimes survey", "running", 7, 48_200, 72 * time.Second}, {"market numbers", "ok", 4, 31_000, 54 * time.Second},
		}, Elapsed: 80 * time.Second},
	}
	for k, c := range cards {
		c.Lang = lang
		cards[k] = c
	}
	return cards
}

func TestCardGolden(t *testing.T) {
	for _, lang := range []phrase.Lang{phrase.EN, phrase.ZH} {
		for name, c := range exampleCards(lang) {
			for _, d := range dialects {
				b := d.Card(c)
				if _, err := checkBody(d, b); err != nil {
					t.Errorf("%s %s: %v\n%s", name, d.Name(), err, b.Text)
				}
				golden(t, fmt.Sprintf("card/%s.%s.%s.golden", name, lang, d.Name()), show([]Body{b})+"\n-- footer: "+Footer(c)+"\n-- one line: "+OneLine(c)+"\n")
			}
		}
	}
}

func TestCardLong(t *testing.T) {
	big := strings.Repeat("漢字 word ", 2000)
	var plan []PlanItem
	var tools []ToolLine
	var subs []SubagentLine
	for i := range 60 {
		plan = append(plan, PlanItem{fmt.Sprint("item ", i, " ", big[:300]), []string{"completed", "in_progress", "pending"}[min(i/20, 2)]})
		tools = append(tools, ToolLine{"tool_" + big[:90], big, "running", time.Hour})
		subs = append(subs, SubagentLine{Name: big, State: "running"})
	}
	c := Card{
		Title: big, Phase: PhaseWriting, Notices: []string{big, big, big, big, big, big}, Plan: plan, Tools: tools, Hidden: 5,
		Subagents: subs, Reasons: []string{big, big, big, big, big}, Answer: big, Open: true, Totals: Totals{Steps: 9, Tokens: 1e9, CostUSD: 12345},
		Elapsed: time.Hour,
	}
	for _, d := range append(dialects, PlainOf(200), PlainOf(500), PlainOf(2000)) {
		for _, answer := range []string{"", "short", big, "```\n" + big, "- a\n- " + big, "> " + big, "| a | b |\n|---|---|\n" + strings.Repeat("| x | y |\n", 3000)} {
			for _, open := range []bool{true, false} {
				c.Answer, c.Open = answer, open
				b := d.Card(c)
				room := d.(*dialect).room
				if n := UTF16Len(b.Plain); n > room.plain {
					t.Errorf("%s: %d units of plain text", d.Name(), n)
				}
				if d.Name() == "telegram" {
					if _, err := checkTelegram(b.Text); err != nil {
						t.Errorf("%.20q: %v", answer, err)
					}
				}
				if again := d.Card(c); !cmp.Equal(again, b) {
					t.Errorf("%s: equal cards, different bodies", d.Name())
				}
			}
		}
	}
}

// TestCardShowsTheEnd checks that a long answer in work shows its latest words, under a line of dots.
func TestCardShowsTheEnd(t *testing.T) {
	for name, md := range map[string]string{
		"paragraphs": strings.Repeat("Some words here. ", 20) + "\n\n" + strings.Repeat("More of them follow. \n\n", 900) + "THE LATEST",
		"one":        strings.Repeat("Some words here. ", 2000) + "THE LATEST",
		"code":       "text\n\n```go\n" + strings.Repeat("fmt.Println()\n", 2000) + "THE LATEST",
		"list":       strings.Repeat("- item with words\n", 1500) + "- THE LATEST",
		"quote":      "> " + strings.Repeat("Some words here. ", 2000) + "THE LATEST",
	} {
		b := Telegram().Card(Card{Phase: PhaseWriting, Title: "T", Answer: md, Open: true})
		visible, err := checkTelegram(b.Text)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(visible, "THE LATEST") || !strings.Contains(visible, "\n…\n") {
			t.Errorf("%s: ends %q", name, visible[max(0, len(visible)-60):])
		}
		if n := UTF16Len(visible); n < 2000 {
			t.Errorf("%s: shows only %d units", name, n)
		}
	}
}

func TestCardHostileText(t *testing.T) {
	const bad = "a\u202Eb\x00c\xffd\n\u2066e <b>&"
	c := Card{
		Phase: PhaseTool, Title: bad, Notices: []string{bad}, Reasons: []string{bad}, Plan: []PlanItem{{bad, "pending"}},
		Tools: []ToolLine{{bad, bad, "running", 0}}, Subagents: []SubagentLine{{Name: bad, State: "running"}}, Answer: bad,
	}
	for _, d := range dialects {
		b := d.Card(c)
		if _, err := checkBody(d, b); err != nil {
			t.Error(err)
		}
		head, _, _ := strings.Cut(b.Plain, "\n\n")
		if strings.ContainsAny(head, "\x00\u202E\u2066") {
			t.Errorf("%s: %q", d.Name(), head)
		}
	}
}

func TestButtons(t *testing.T) {
	c := Card{Phase: PhaseThinking}
	for i := range 7 {
		c.Buttons = append(c.Buttons, Button{Label: fmt.Sprint(i)})
	}
	b := Plain().Card(c)
	if len(b.Buttons) != 3 || len(b.Buttons[0]) != 3 || len(b.Buttons[2]) != 1 {
		t.Errorf("rows %v", b.Buttons)
	}
	if got := b.AsPlain(); len(got.Buttons) != 3 {
		t.Error("plain lost its buttons")
	}
}

func TestCounts(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 1249: "1.2k", 9949: "9.9k", 9950: "10k", 181_600: "182k", 999_499: "999k", 999_500: "1M", 3_440_000: "3.4M"} {
		if got := countText(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 60 * time.Second: "1m00s", 3599 * time.Second: "59m59s", 3840 * time.Second: "1h04m"} {
		if got := elapsedText(d, phrase.EN); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	if got := shorten("/mnt/user-data/workspace/"+strings.Repeat("dir/", 50)+"file.go", 60); len([]rune(got)) > 60 || !strings.HasPrefix(got, "/mnt/user") || !strings.HasSuffix(got, "/file.go") {
		t.Errorf("shortened to %q", got)
	}
}

func TestPhrases(t *testing.T) {
	verbs := func(s string) (out []string) {
		for i := 0; i+1 < len(s); i++ {
			if s[i] == '%' {
				out = append(out, s[i:i+2])
				i++
			}
		}
		return out
	}
	if len(phrase.All()) < 40 {
		t.Errorf("%d phrases", len(phrase.All()))
	}
	for _, p := range phrase.All() {
		en, zh := p.Texts()
		if diff := cmp.Diff(verbs(en), verbs(zh)); diff != "" {
			t.Errorf("%q and %q: %s", en, zh, diff)
		}
		if en == "" || zh == "" || strings.ContainsAny(en+zh, "!！") {
			t.Errorf("%q, %q", en, zh)
		}
	}
	for _, c := range []store.StopCode{
		store.StopLoopCapped, store.StopTokenCapped, store.StopCostCapped, store.StopStepCapped, store.StopTimeCapped,
		store.StopSubagentCapped, store.StopSafetyCapped, store.StopLengthCapped, store.StopNoProgress, store.StopUserStop,
		store.StopInterrupted, store.StopProviderError, store.StopToolDenied, store.StopGoalBlocked, store.StopRecovered, store.StopInternal,
	} {
		if _, ok := sayStops[c]; !ok {
			t.Errorf("%s has no words", c)
		}
	}
	if Reason(store.StopReason{Code: store.StopCompleted}, phrase.EN) != "" {
		t.Error("a plain end has a reason")
	}
	if got := Reason(store.StopReason{Code: "new_code"}, phrase.EN); !strings.Contains(got, "new_code") {
		t.Errorf("%q", got)
	}
}
