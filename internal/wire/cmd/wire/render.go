package main

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf16"

	"deerbot/internal/wire/telegram"
)

// render is a message as lines of text; formatting is shown by the marks people type for it.
func render(m telegram.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s", m.ID, m.From.FirstName)
	if m.Topic != 0 {
		fmt.Fprintf(&b, " in topic %d", m.Topic)
	}
	if m.ReplyTo != 0 {
		fmt.Fprintf(&b, " to #%d", m.ReplyTo)
	}
	if m.Edits > 0 {
		fmt.Fprintf(&b, " (edited %d)", m.Edits)
	}
	b.WriteByte(':')
	text := marked(m.Text, m.Entities)
	if strings.Contains(text, "\n") {
		b.WriteString("\n    " + strings.ReplaceAll(text, "\n", "\n    "))
	} else if text != "" {
		b.WriteString(" " + text)
	}
	for _, f := range m.Files {
		fmt.Fprintf(&b, "\n    <%s %s, %d bytes>", f.Kind, f.Name, f.Size)
	}
	for _, row := range m.Buttons {
		b.WriteString("\n    ")
		for _, k := range row {
			fmt.Fprintf(&b, "[%s] ", k.Text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// marked writes entities as marks around their text.
func marked(text string, ents []telegram.Entity) string {
	type mark struct {
		at, order int
		s         string
	}
	var marks []mark
	for i, e := range ents {
		open, end := "", ""
		switch e.Type {
		case "bold":
			open, end = "**", "**"
		case "italic":
			open, end = "_", "_"
		case "strikethrough":
			open, end = "~~", "~~"
		case "code":
			open, end = "`", "`"
		case "pre":
			open, end = "```"+e.Language+"\n", "\n```"
		case "text_link":
			open, end = "[", "]("+e.URL+")"
		case "blockquote", "expandable_blockquote":
			open = "> "
		}
		// At one place, ends come before beginnings, and inner ends before outer ones.
		marks = append(marks, mark{e.Offset, i + 1, open}, mark{e.Offset + e.Length, -i - 1, end})
	}
	sort.SliceStable(marks, func(i, j int) bool {
		if marks[i].at != marks[j].at {
			return marks[i].at < marks[j].at
		}
		return marks[i].order < marks[j].order
	})
	units := utf16.Encode([]rune(text))
	var b strings.Builder
	last := 0
	for _, m := range marks {
		at := min(max(m.at, last), len(units))
		b.WriteString(string(utf16.Decode(units[last:at])))
		b.WriteString(m.s)
		last = at
	}
	b.WriteString(string(utf16.Decode(units[last:])))
	return b.String()
}
