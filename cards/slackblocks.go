package cards

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Limits of Block Kit.
const (
	slackSection    = 3000 // characters of a section's text
	slackBlocks     = 50   // blocks of a message
	slackActions    = 25   // elements of an actions block
	slackButtonText = 75
)

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type slackButton struct {
	Type     string    `json:"type"`
	Text     slackText `json:"text"`
	ActionID string    `json:"action_id"`
	Value    string    `json:"value"`
	Style    string    `json:"style,omitempty"`
}

type slackBlock struct {
	Type     string        `json:"type"`
	Text     *slackText    `json:"text,omitempty"`
	Elements []slackButton `json:"elements,omitempty"`
}

// SlackBlocks is b as Block Kit blocks: its text in sections, in mrkdwn or plain as b's format says, and a row of
// actions for each row of buttons.
func SlackBlocks(b Body) json.RawMessage {
	kind, parts := "mrkdwn", slackSections(b.Text, slackSection)
	if b.Format != "mrkdwn" {
		kind, parts = "plain_text", slackCutUnits(b.Text, slackSection)
	}
	var blocks []slackBlock
	for _, p := range parts {
		blocks = append(blocks, slackBlock{Type: "section", Text: &slackText{kind, p}})
	}
	n := 0
	for _, row := range b.Buttons {
		for row := range chunks(row, slackActions) {
			block := slackBlock{Type: "actions"}
			for _, k := range row {
				e := slackButton{Type: "button", Text: slackText{"plain_text", oneLine(k.Label, slackButtonText)}, Value: k.Action}
				if e.Text.Text == "" {
					e.Text.Text = "…"
				}
				n++
				e.ActionID = "deer" + slackNumber(n) // must differ within a message
				if k.Style == "primary" || k.Style == "danger" {
					e.Style = k.Style
				}
				block.Elements = append(block.Elements, e)
			}
			if len(block.Elements) > 0 && len(blocks) < slackBlocks {
				blocks = append(blocks, block)
			}
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(blocks); err != nil {
		return nil
	}
	return bytes.TrimSpace(buf.Bytes())
}

func slackNumber(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return slackNumber(n/10) + string(rune('0'+n%10))
}

// slackSections cuts mrkdwn into pieces of at most limit UTF-16 units: between paragraphs, else lines, else at a space
// outside of marks. A block of code is closed and opened again.
func slackSections(text string, limit int) []string {
	var out []string
	for text = strings.Trim(text, "\n"); unitsOf(text) > limit; {
		head, rest := slackCut(text, limit)
		if h := strings.Trim(head, "\n"); h != "" {
			out = append(out, h)
		}
		inLine := len(rest) < len(text) && !strings.HasSuffix(head, "\n") && !strings.HasPrefix(rest, "\n")
		if text = strings.Trim(rest, "\n"); inLine && strings.HasPrefix(text, "&gt;") { // not a quote
			text = slackHyphen + text
		}
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}

func slackCut(text string, limit int) (head, rest string) {
	room := limit - len("\n"+slackFence)
	para, line, space := 0, 0, 0 // where to cut, of each kind the last
	fence, lineFence := false, false
	units := 0
	lineStart := 0
	marks := slackMarks{}
	for i, r := range text {
		if i == lineStart && strings.HasPrefix(text[i:], slackFence) {
			fence = !fence
		}
		w := 1
		if r > 0xFFFF {
			w = 2
		}
		if units += w; units > room {
			break
		}
		switch {
		case r == '\n':
			line, lineFence = i+1, fence
			if !fence && i+1 < len(text) && text[i+1] == '\n' {
				para = i + 1
			}
			lineStart, marks = i+1, slackMarks{}
		case fence:
		case r == ' ' && marks.none():
			space = i + 1
		default:
			marks.see(r)
		}
	}
	const opened = len(slackFence) + 1
	switch {
	case para > len(text)/8:
		return text[:para], text[para:]
	case line > opened && lineFence && (line > len(text)/8 || space < line):
		return text[:line] + slackFence, slackFence + "\n" + text[line:]
	case line > 0 && !lineFence && (line > len(text)/8 || space < line):
		return text[:line], text[line:]
	case space > 0:
		return text[:space], text[space:]
	}
	at := len(slackCutUnits(text, room)[0])
	// Not inside of an entity or a link, when that is possible.
	for _, ends := range []string{"<>", "&;"} {
		if i := strings.LastIndexByte(text[:at], ends[0]); i > opened && strings.IndexByte(text[i:at], ends[1]) < 0 {
			at = i
		}
	}
	if slackFenceAt(text, at) {
		return text[:at] + "\n" + slackFence, slackFence + "\n" + text[at:]
	}
	return text[:at], text[at:]
}

// slackFenceAt reports whether a block of code is open at a place of text.
func slackFenceAt(text string, at int) bool {
	return strings.Count("\n"+text[:at], "\n"+slackFence)%2 == 1
}

// slackMarks follows the marks of a line.
type slackMarks struct {
	open  string
	angle bool
}

func (m *slackMarks) none() bool { return m.open == "" && !m.angle }

func (m *slackMarks) see(r rune) {
	switch r {
	case '<':
		m.angle = true
	case '>':
		m.angle = false
	case '*', '_', '~', '`':
		if m.angle {
			return
		}
		if i := strings.IndexRune(m.open, r); i >= 0 {
			m.open = m.open[:i]
		} else {
			m.open += string(r)
		}
	}
}

// slackCutUnits cuts s into pieces of at most n UTF-16 units.
func slackCutUnits(s string, n int) []string {
	var out []string
	start, units := 0, 0
	for i, r := range s {
		w := 1
		if r > 0xFFFF {
			w = 2
		}
		if units+w > n {
			out = append(out, s[start:i])
			start, units = i, 0
		}
		units += w
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
