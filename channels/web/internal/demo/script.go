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
	pace time.Duration

	mu    sync.Mutex
	stops map[string]chan struct{} // by action
	n     int
}

func (s *script) take(in *channels.Inbound) {
	switch {
	case in.Kind == channels.KindAction:
		s.pressed(in)
	default:
		go s.answer(in.Place, in.Text, len(in.Attachments))
	}
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
		s.send(to, html("<p>Which of the two shall I use?</p>", [][]cards.Button{{
			{Label: "SQLite", Action: "answer:1", Style: "primary"}, {Label: "bbolt", Action: "answer:2"}, {Label: "Neither", Action: "answer:3", Style: "danger"},
		}}))
	case "/stop":
	default:
		if files > 0 {
			s.send(to, html(fmt.Sprintf("<p>Got %d files.</p>", files), nil))
		}
		s.send(to, html(everything, nil))
	}
}

func (s *script) wait(n int) {
	select {
	case <-s.ctx.Done():
	case <-time.After(time.Duration(n) * s.pace):
	}
}

func html(text string, buttons [][]cards.Button) cards.Body {
	return cards.Body{Text: text, Format: "html", Plain: text, Buttons: buttons}
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
	buttons := [][]cards.Button{{{Label: "Stop", Action: action, Style: "danger"}, {Label: "Details", Action: "details:1"}}}
	ref := s.send(to, html(card(1, 0), buttons))
	for i := 1; ; i++ {
		select {
		case <-stop:
			_ = s.ch.Edit(s.ctx, ref, channels.Message{Body: html("<p><strong>Stopped.</strong> What was done is kept.</p>", nil)})
			return
		case <-s.ctx.Done():
			return
		case <-time.After(8 * s.pace):
			_ = s.ch.Edit(s.ctx, ref, channels.Message{Body: html(card(1, i), buttons)})
		}
	}
}

// long shows a card and then streams the answer into it.
func (s *script) long(to channels.Place) {
	buttons := [][]cards.Button{{{Label: "Stop", Action: "stop:long", Style: "danger"}, {Label: "Details", Action: "details:1"}}}
	ref := s.send(to, html(card(0, 0), buttons))
	for step := 1; step <= 3; step++ {
		s.wait(5)
		_ = s.ch.Edit(s.ctx, ref, channels.Message{Body: html(card(step, step), buttons)})
	}
	words := strings.SplitAfter(answer, " ")
	for i := 4; i < len(words); i += 4 {
		s.wait(1)
		text := card(3, 3) + "<hr><p>" + strings.Join(words[:i], "") + "</p>"
		_ = s.ch.Edit(s.ctx, ref, channels.Message{Body: html(text, buttons)})
	}
	_ = s.ch.Edit(s.ctx, ref, channels.Message{Body: html("<p>"+answer+"</p><p><em>4m12s · 3 steps · 182k tokens · $0.41</em></p>", nil)})
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

func card(step, tick int) string {
	marks := []string{"○", "○", "○", "○"}
	for i := range marks {
		if i < step {
			marks[i] = "✓"
		} else if i == step {
			marks[i] = "●"
		}
	}
	return fmt.Sprintf(`<p><strong>Researching wasm outside the browser</strong></p>
<p>▸ Plan %d/4<br>%s collect sources<br>%s read<br>%s compare runtimes<br>%s write</p>
<p>▸ <code>web_search</code> "wasi preview 3 status" · %d s</p>
<p><em>%ds · %d steps · 48.2k tokens · $0.11</em></p>`, step, marks[0], marks[1], marks[2], marks[3], tick, 12+tick, step+1)
}

const answer = `WebAssembly outside the browser has settled on two runtimes for servers and a third for small devices. ` +
	`Startup is below a millisecond in all three, memory is bounded by the module, and the difference that is left is the ` +
	`maturity of the component model. For a plugin system in Go, a pure Go runtime avoids cgo at a quarter of the speed. ` +
	`That is a good trade for plugins that run for a moment and a bad one for number crunching.`

const everything = `<h2>What it looks like</h2>
<p>A paragraph with <strong>strong</strong>, <em>emphasis</em>, <code>inline code</code>, a <a href="https://example.org/">link</a> and 中文混排的文字。</p>
<ul><li>first</li><li>second<ul><li>inside</li></ul></li></ul>
<ul><li class="task">☑ done</li><li class="task">☐ still open</li></ul>
<pre><code class="language-go">func main() {
	fmt.Println("a line of code that is long enough to need scrolling on a phone, as code lines in answers often are")
}
</code></pre>
<table><thead><tr><th>Runtime</th><th class="right">Start</th><th class="right">Memory</th><th>Component model</th><th>Remarks</th></tr></thead>
<tbody><tr><td>wasmtime</td><td class="right">0.4 ms</td><td class="right">12 MB</td><td>preview 3</td><td>the reference, moves fast</td></tr>
<tr><td>wazero</td><td class="right">0.9 ms</td><td class="right">9 MB</td><td>none</td><td>pure Go, no C compiler needed</td></tr>
<tr><td>WAMR</td><td class="right">0.2 ms</td><td class="right">1 MB</td><td>preview 2</td><td>for small devices</td></tr></tbody></table>
<blockquote>
<p>A quotation says what somebody else said.</p>
</blockquote>`
