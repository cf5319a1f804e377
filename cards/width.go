package cards

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// displayWidth is how many columns s takes in a font of fixed width: CJK and emoji two, combining marks none.
func displayWidth(s string) int {
	w := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			w++
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		w += runeWidth(r)
		i += n
	}
	return w
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case isCJK(r):
		if r >= 0xFF61 && r <= 0xFFDC || r >= 0xFFE8 && r <= 0xFFEE { // half width
			return 1
		}
		return 2
	case r >= 0x1F300 && r <= 0x1F64F, r >= 0x1F680 && r <= 0x1F6FF, r >= 0x1F900 && r <= 0x1FAFF, r >= 0x1F1E6 && r <= 0x1F1FF:
		return 2
	}
	switch r {
	case 0x231A, 0x231B, 0x23E9, 0x23EA, 0x23EB, 0x23EC, 0x2614, 0x2615, 0x26A1, 0x2705, 0x274C, 0x274E, 0x2753, 0x2754,
		0x2755, 0x2757, 0x2795, 0x2796, 0x2797, 0x2B50, 0x2B55:
		return 2
	}
	return 1
}

// maxTableWidth is how wide a table may be to stand as aligned text. A wider one becomes lines of "column: value".
const maxTableWidth = 60

// layout is a table as lines of text.
type layout struct {
	text string
	ok   bool
}

// aligned lays the table out in columns; ok is false when it is too wide or a cell has several lines.
func (t *table) aligned() (text string, ok bool) {
	if t.laid == nil {
		rows, ok := t.layOut()
		t.laid = &layout{strings.Join(rows, "\n"), ok}
	}
	return t.laid.text, t.laid.ok
}

func (t *table) layOut() (rows []string, ok bool) {
	widths := make([]int, len(t.head))
	all := t.all()
	texts := make([][]string, len(all))
	for i, row := range all {
		texts[i] = make([]string, len(row))
		for j, c := range row {
			s := cellText(c)
			if strings.IndexByte(s, '\n') >= 0 {
				return nil, false
			}
			texts[i][j] = s
			widths[j] = max(widths[j], displayWidth(s))
		}
	}
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if total > maxTableWidth {
		return nil, false
	}
	var b strings.Builder
	for _, row := range texts {
		b.Reset()
		for j, w := range widths {
			s := ""
			if j < len(row) {
				s = row[j]
			}
			if j > 0 {
				b.WriteString("  ")
			}
			pad := w - displayWidth(s)
			left := 0
			switch t.align[j] {
			case alignRight:
				left = pad
			case alignCenter:
				left = pad / 2
			}
			spaces(&b, left)
			b.WriteString(s)
			spaces(&b, pad-left)
		}
		rows = append(rows, strings.TrimRight(b.String(), " "))
	}
	return rows, true
}

func spaces(b *strings.Builder, n int) {
	for range n {
		b.WriteByte(' ')
	}
}

// cellText is the text of a cell where no format is possible: a link keeps its target.
func cellText(in []inline) string {
	var b strings.Builder
	plainInlines(&b, in)
	return strings.ReplaceAll(b.String(), "\t", " ")
}

func plainInlines(b *strings.Builder, in []inline) {
	for i := range in {
		switch n := &in[i]; n.kind {
		case inText, inCode:
			b.WriteString(n.text)
		case inBreak:
			b.WriteByte('\n')
		case inImage:
			b.WriteString(n.text)
			if t := targetAfter(n.text, n.href); t != "" {
				b.WriteString(t)
			}
		case inLink:
			s := plainText(n.kids)
			plainInlines(b, n.kids)
			b.WriteString(targetAfter(s, n.href))
		default:
			plainInlines(b, n.kids)
		}
	}
}

// targetAfter is what follows a link's text where links cannot be pressed: nothing when the text says it already.
func targetAfter(text, href string) string {
	if href == "" || text == href || "mailto:"+text == href || "http://"+text == href || "https://"+text == href {
		return ""
	}
	if text == "" {
		return href
	}
	return " (" + href + ")"
}

// lowerTables turns the tables that cannot stand as aligned text into lines of "column: value".
func lowerTables(in []block) []block {
	var out []block
	for i := range in {
		b := in[i]
		switch b.kind {
		case blockQuote:
			b.kids = lowerTables(b.kids)
		case blockList:
			for j := range b.items {
				b.items[j].kids = lowerTables(b.items[j].kids)
			}
		case blockTable:
			if _, ok := b.table.aligned(); !ok {
				if out == nil {
					out = append(make([]block, 0, len(in)+len(b.table.rows)), in[:i]...)
				}
				out = append(out, b.table.lines()...)
				continue
			}
		}
		if out != nil {
			out = append(out, b)
		} else {
			in[i] = b
		}
	}
	if out == nil {
		return in
	}
	return out
}

// lines shows each row as a paragraph of "column: value".
func (t *table) lines() []block {
	var out []block
	if len(t.rows) == 0 {
		var in []inline
		for i, c := range t.head {
			if i > 0 {
				in = append(in, inline{kind: inBreak})
			}
			in = append(in, inline{kind: inStrong, kids: c})
		}
		return []block{para(in...)}
	}
	for _, row := range t.rows {
		var in []inline
		for j, c := range row {
			if !visibleInlines(c) {
				continue
			}
			if len(in) > 0 {
				in = append(in, inline{kind: inBreak})
			}
			if head := t.head; j < len(head) && visibleInlines(head[j]) {
				in = append(in, head[j]...)
				in = append(in, textOf(": "))
			}
			if j == 0 {
				in = append(in, inline{kind: inStrong, kids: c})
			} else {
				in = append(in, c...)
			}
		}
		if len(in) > 0 {
			out = append(out, para(in...))
		}
	}
	return out
}
