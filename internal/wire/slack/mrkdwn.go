package slack

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shape is how a person sees mrkdwn.
type Shape struct {
	Text     string   // without marks; code blocks without their fences
	Bold     []string // runs in bold
	Italic   []string
	Struck   []string
	Code     []string // inline and blocks
	Links    []string // targets
	Notifies []string // who is called: user ids, channel, here, everyone, groups
}

// ReadMrkdwn reads s as Slack's clients do. It is strict: a control sequence that is none, a bare < or >, or an entity
// that Slack does not know is an error.
func ReadMrkdwn(s string) (Shape, error) {
	var sh Shape
	if !utf8.ValidString(s) {
		return sh, fmt.Errorf("not UTF-8")
	}
	var out strings.Builder
	for i, line := range splitFences(s) {
		if i > 0 && !line.joined {
			out.WriteByte('\n')
		}
		if line.code {
			text, err := plainRun(line.text)
			if err != nil {
				return sh, err
			}
			sh.Code = append(sh.Code, text)
			out.WriteString(text)
			continue
		}
		text := line.text
		if quoted, ok := strings.CutPrefix(text, ">"); ok {
			text = strings.TrimPrefix(quoted, " ")
		} else if strings.HasPrefix(text, "&gt;") {
			return sh, fmt.Errorf("a quote by accident: %q", text)
		}
		if err := readLine(&sh, &out, text); err != nil {
			return sh, err
		}
	}
	sh.Text = out.String()
	return sh, nil
}

type piece struct {
	text   string
	code   bool
	joined bool
}

// splitFences splits s into lines and blocks of code.
func splitFences(s string) []piece {
	var out []piece
	for {
		i := strings.Index(s, "```")
		var end int
		if i >= 0 {
			end = strings.Index(s[i+3:], "```")
		}
		if i < 0 || end < 0 {
			for line := range strings.SplitSeq(s, "\n") {
				out = append(out, piece{text: line})
			}
			return out
		}
		before, isLine := strings.CutSuffix(s[:i], "\n")
		if before != "" || isLine {
			for line := range strings.SplitSeq(before, "\n") {
				out = append(out, piece{text: line})
			}
		}
		code := s[i+3 : i+3+end]
		out = append(out, piece{text: strings.Trim(code, "\n"), code: true, joined: len(out) == 0})
		rest, isLine := strings.CutPrefix(s[i+3+end+3:], "\n")
		if rest == "" {
			return out
		}
		_ = isLine
		s = rest
	}
}

// plainRun is text without markup: entities only.
func plainRun(s string) (string, error) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '<', '>':
			return "", fmt.Errorf("bare %c in %q", s[i], s)
		case '&':
			if !knownEntity(s[i:]) {
				return "", fmt.Errorf("bare & in %q", s)
			}
		}
	}
	return unescape(s), nil
}

func knownEntity(s string) bool {
	return strings.HasPrefix(s, "&amp;") || strings.HasPrefix(s, "&lt;") || strings.HasPrefix(s, "&gt;")
}

func unescape(s string) string { return html.UnescapeString(s) }

// readLine reads the marks of one line.
func readLine(sh *Shape, out *strings.Builder, s string) error {
	runs := map[byte]*[]string{'*': &sh.Bold, '_': &sh.Italic, '~': &sh.Struck}
	type opened struct {
		mark byte
		at   int // in out
	}
	var open []opened
	for i := 0; i < len(s); {
		c := s[i]
		switch c {
		case '<':
			end := strings.IndexByte(s[i:], '>')
			if end < 0 {
				return fmt.Errorf("< without an end in %q", s)
			}
			text, err := control(sh, s[i+1:i+end])
			if err != nil {
				return err
			}
			out.WriteString(text)
			i += end + 1
			continue
		case '>':
			return fmt.Errorf("bare > in %q", s)
		case '&':
			if !knownEntity(s[i:]) {
				return fmt.Errorf("bare & in %q", s)
			}
			end := strings.IndexByte(s[i:], ';') + 1
			out.WriteString(unescape(s[i : i+end]))
			i += end
			continue
		case '`':
			if end := strings.IndexByte(s[i+1:], '`'); end > 0 && edgeBefore(s[:i]) && edgeAfter(s[i+1+end+1:]) {
				text, err := plainRun(s[i+1 : i+1+end])
				if err != nil {
					return err
				}
				sh.Code = append(sh.Code, text)
				out.WriteString(text)
				i += end + 2
				continue
			}
		case '*', '_', '~':
			if n := len(open); n > 0 && open[n-1].mark == c && i > 0 && s[i-1] != ' ' && edgeAfter(s[i+1:]) {
				text := out.String()[open[n-1].at:]
				*runs[c] = append(*runs[c], text)
				open = open[:n-1]
				i++
				continue
			}
			if edgeBefore(s[:i]) && i+1 < len(s) && s[i+1] != ' ' && s[i+1] != c && closes(s[i+1:], c) {
				open = append(open, opened{c, out.Len()})
				i++
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != '\u200b' && r != '\u00ad' {
			out.WriteRune(r)
		}
		i += n
	}
	if len(open) > 0 {
		return fmt.Errorf("a mark %c that crosses others in %q", open[0].mark, s)
	}
	return nil
}

// closes reports whether the mark c ends somewhere in s.
func closes(s string, c byte) bool {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '<':
			end := strings.IndexByte(s[i:], '>')
			if end < 0 {
				return false
			}
			i += end
		case '`':
			if end := strings.IndexByte(s[i+1:], '`'); end > 0 && edgeBefore(s[:i]) && edgeAfter(s[i+end+2:]) {
				i += end + 1
			}
		case c:
			if s[i-1] != ' ' && edgeAfter(s[i+1:]) {
				return true
			}
		}
	}
	return false
}

func edgeBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return edge(r, s == "")
}

func edgeAfter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return edge(r, s == "")
}

func edge(r rune, end bool) bool {
	return end || r == '\u200b' || r == '\u00ad' || r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// control reads what stands between < and >.
func control(sh *Shape, s string) (string, error) {
	target, label, labelled := strings.Cut(s, "|")
	if strings.ContainsAny(s, "<\n") {
		return "", fmt.Errorf("<%s> holds what it must not", s)
	}
	switch {
	case strings.HasPrefix(target, "@"), strings.HasPrefix(target, "!subteam^"):
		sh.Notifies = append(sh.Notifies, strings.TrimLeft(target, "@!"))
		return "@" + target[1:], nil
	case target == "!channel", target == "!here", target == "!everyone":
		sh.Notifies = append(sh.Notifies, target[1:])
		return "@" + target[1:], nil
	case strings.HasPrefix(target, "!date^"):
		if !labelled || label == "" {
			return "", fmt.Errorf("<%s> without a fallback", s)
		}
		return label, nil
	case strings.HasPrefix(target, "#"):
		return "#" + target[1:], nil
	case hasScheme(target):
		if strings.ContainsAny(target, " \t") {
			return "", fmt.Errorf("a space in the target %q", target)
		}
		raw, err := plainRun(target)
		if err != nil {
			return "", err
		}
		sh.Links = append(sh.Links, raw)
		if !labelled {
			return raw, nil
		}
		return plainRun(label)
	}
	return "", fmt.Errorf("<%s> is nothing Slack knows", s)
}

// View is a message as people see it.
type View struct {
	TS, Thread string
	User       *User
	Bot        bool // of the app under test
	Shape
	Raw       string // the text as sent
	Buttons   []string
	Files     []FileView
	Edits     int
	Ephemeral string // the user who alone sees it
	Reactions []string
	Key       string // of the metadata, "" for none
	Complaint string // what a reader of the markup would stumble over
}

// FileView is a file as people see it.
type FileView struct {
	ID, Name, MIME string
	Data           []byte
}

// Messages is what people see in the channel, oldest first; threads are among them.
func (c *Channel) Messages() []View {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	var out []View
	for _, m := range c.messages {
		if m.deleted {
			continue
		}
		v := View{
			TS: m.ts, Thread: m.thread, User: m.user, Bot: m.user.ID == BotUser, Raw: m.text, Edits: m.edits, Ephemeral: m.ephemeral,
			Reactions: append([]string(nil), m.reactions...),
		}
		text := m.text
		if m.blocks != nil { // shown instead of the text
			var blocks []block
			_ = json.Unmarshal(m.blocks, &blocks)
			var parts []string
			for _, b := range blocks {
				if b.Text != nil {
					t := b.Text.Text
					if b.Text.Type == "plain_text" {
						t = escapeText(t)
					}
					parts = append(parts, t)
				}
				for _, k := range b.buttons() {
					v.Buttons = append(v.Buttons, k.Text.Text)
				}
			}
			text = strings.Join(parts, "\n")
		}
		shape, err := ReadMrkdwn(text)
		if m.plain && m.blocks == nil {
			shape = Shape{}
			shape.Text, err = plainRun(text)
		}
		if err != nil {
			v.Complaint, shape.Text = err.Error(), text
		}
		v.Shape = shape
		for _, f := range m.files {
			v.Files = append(v.Files, FileView{f.id, f.name, f.mime, f.data})
		}
		var meta struct {
			Payload struct{ Key string } `json:"event_payload"`
		}
		if json.Unmarshal(m.metadata, &meta) == nil {
			v.Key = meta.Payload.Key
		}
		out = append(out, v)
	}
	return out
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escapeText(s string) string { return escaper.Replace(s) }

func hasScheme(s string) bool {
	s = strings.ToLower(s)
	for _, scheme := range []string{"http://", "https://", "mailto:", "tel:"} {
		if strings.HasPrefix(s, scheme) && len(s) > len(scheme) {
			return true
		}
	}
	return false
}
