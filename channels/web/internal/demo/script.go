package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"sync"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/web"
)

// script is the bot of the demo.
type script struct {
	ctx  context.Context
	ch   *web.Channel
	web  cards.Dialect
	pace time.Duration

	mu    sync.Mutex
	stops map[string]chan struct{} // by action
	n     int
}

func (s *script) take(in *channels.Inbound) {
	if in.Kind == channels.KindAction {
		s.pressed(in)
		return
	}
	go s.answer(in.Place, in.Text, len(in.Attachments))
}

func (s *script) pressed(in *channels.Inbound) {
	s.mu.Lock()
	stop := s.stops[in.Action.Data]
	delete(s.stops, in.Action.Data)
	s.mu.Unlock()
	if stop != nil {
		close(stop)
	}
	_ = s.ch.AnswerAction(s.ctx, in.Action.ID, "Taken: "+in.Action.Data)
}

func (s *script) answer(to channels.Place, text string, files int) {
	word, _, _ := strings.Cut(strings.ToLower(text), " ")
	_ = s.ch.Typing(s.ctx, to)
	s.wait(3)
	switch word {
	case "long":
		s.long(to)
	case "busy":
		s.busy(to)
	case "file":
		s.files(to)
	case "ask":
		s.send(to, s.say("Which of the two shall I use?",
			cards.Button{Label: "SQLite", Action: "answer:1", Style: "primary"}, cards.Button{Label: "bbolt", Action: "answer:2"},
			cards.Button{Label: "Neither", Action: "answer:3", Style: "danger"}))
	case "/stop":
	default:
		if files > 0 {
			s.send(to, s.say(fmt.Sprintf("Got %d files.", files)))
		}
		s.send(to, s.say(everything))
	}
}

func (s *script) wait(n int) {
	select {
	case <-s.ctx.Done():
	case <-time.After(time.Duration(n) * s.pace):
	}
}

// say renders Markdown with buttons below it.
func (s *script) say(md string, buttons ...cards.Button) cards.Body {
	b := s.web.Markdown(md)[0]
	if len(buttons) > 0 {
		b.Buttons = [][]cards.Button{buttons}
	}
	return b
}

func (s *script) send(to channels.Place, b cards.Body) channels.Ref {
	s.mu.Lock()
	s.n++
	key := fmt.Sprint("demo-", s.n)
	s.mu.Unlock()
	ref, _ := s.ch.Send(s.ctx, to, channels.Message{Body: b}, key)
	return ref
}

// busy works until it is stopped.
func (s *script) busy(to channels.Place) {
	s.mu.Lock()
	action := fmt.Sprint("stop:", len(s.stops)+1)
	stop := make(chan struct{})
	s.stops[action] = stop
	s.mu.Unlock()
	c := card(1, action)
	ref := s.send(to, s.web.Card(c))
	for {
		select {
		case <-stop:
			c.Phase, c.Buttons, c.Reasons = cards.PhaseStopped, nil, []string{"Stopped by you. What was done is kept."}
			s.edit(ref, c)
			return
		case <-s.ctx.Done():
			return
		case <-time.After(8 * s.pace):
			c.Elapsed += time.Second
			c.Tools[0].Elapsed += time.Second
			s.edit(ref, c)
		}
	}
}

// long shows a card and then streams the answer into it.
func (s *script) long(to channels.Place) {
	c := card(0, "stop:long")
	ref := s.send(to, s.web.Card(c))
	for step := 1; step <= 3; step++ {
		s.wait(5)
		c = card(step, "stop:long")
		s.edit(ref, c)
	}
	words := strings.SplitAfter(answer, " ")
	for i := 4; i < len(words); i += 4 {
		s.wait(1)
		c.Phase, c.Answer, c.Open, c.Tools = cards.PhaseWriting, strings.Join(words[:i], ""), true, nil
		s.edit(ref, c)
	}
	c = card(4, "")
	c.Phase, c.Answer, c.Plan, c.Tools, c.Buttons, c.Title = cards.PhaseDone, answer, nil, nil, nil, ""
	s.edit(ref, c)
}

func (s *script) edit(ref channels.Ref, c cards.Card) {
	_ = s.ch.Edit(s.ctx, ref, channels.Message{Body: s.web.Card(c)})
}

func (s *script) files(to channels.Place) {
	img := image.NewRGBA(image.Rect(0, 0, 480, 220))
	for x := range 480 {
		h := 40 + (x/40*37)%150
		for y := range 220 {
			c := color.RGBA{245, 244, 240, 255}
			if 220-y < h && x%40 > 6 {
				c = color.RGBA{44, 110, 90, 255}
			}
			img.Set(x, y, c)
		}
	}
	var buf bytes.Buffer
	_ = png.Encode(&buf, img)
	pdf, _ := base64.StdEncoding.DecodeString("JVBERi0xLjQK")
	for name, data := range map[string][]byte{"throughput.png": buf.Bytes(), "wasm-report.pdf": pdf} {
		_, _ = s.ch.SendFile(s.ctx, to, channels.File{Name: name, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}}, "", "")
	}
}

func card(step int, stop string) cards.Card {
	plan := []cards.PlanItem{{Text: "collect sources"}, {Text: "read"}, {Text: "compare runtimes"}, {Text: "write"}}
	for i := range plan {
		switch {
		case i < step:
			plan[i].Status = "completed"
		case i == step:
			plan[i].Status = "in_progress"
		default:
			plan[i].Status = "pending"
		}
	}
	return cards.Card{
		Title: "Researching wasm outside the browser", Phase: cards.PhaseTool, Plan: plan,
		Tools: []cards.ToolLine{
			{Name: "web_search", Args: `"wasi preview 3 status"`, State: "running", Elapsed: 2 * time.Second},
			{Name: "web_fetch", Args: "https://example.org/runtimes", State: "ok", Elapsed: time.Second},
		},
		Totals:  cards.Totals{Steps: step + 1, Tokens: 48_200, CostUSD: 0.11},
		Elapsed: time.Duration(12+step) * time.Second,
		Buttons: []cards.Button{{Label: "Stop", Action: stop, Style: "danger"}, {Label: "Details", Action: "details:1"}},
	}
}

const answer = `WebAssembly outside the browser has settled on **two runtimes for servers** and a third for small devices. ` +
	`Startup is below a millisecond in all three, memory is bounded by the module, and the difference that is left is the ` +
	`maturity of the component model. For a plugin system in Go, a pure Go runtime avoids cgo at a quarter of the speed. ` +
	`That is a good trade for plugins that run for a moment and a bad one for number crunching.`

const everything = `## What it looks like

A paragraph with **strong**, *emphasis*, ` + "`inline code`" + `, a [link](https://example.org/) and 中文混排的文字。

- first
- second
  - inside

1. one
   ` + "```sh\n   make test\n   ```" + `
2. two

- [x] done
- [ ] still open

` + "```go" + `
func main() {
	fmt.Println("a line of code that is long enough to need scrolling on a phone, as code lines in answers often are")
}
` + "```" + `

| Runtime | Start | Memory | Component model | Remarks |
|---|---:|---:|---|---|
| wasmtime | 0.4 ms | 12 MB | preview 3 | the reference, moves fast |
| wazero | 0.9 ms | 9 MB | none | pure Go, no C compiler needed |
| WAMR | 0.2 ms | 1 MB | preview 2 | for small devices |

> A quotation says what somebody else said.
`
