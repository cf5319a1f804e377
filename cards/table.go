package cards

import "slices"

import "strings"

// findTable looks for a table among the lines of a paragraph and returns the text before it.
func (p *treeParser) findTable(s string) (before string, t *table, ok bool) {
	prev := ""     // the line before
	prevStart := 0 // where it starts
	for start := 0; start < len(s); {
		end := strings.IndexByte(s[start:], '\n')
		if end < 0 {
			end = len(s)
		} else {
			end += start
		}
		line := s[start:end]
		if start > 0 {
			if al := alignments(line); al != nil {
				if head := cells(prev); len(head) == len(al) && strings.IndexByte(prev, '|') >= 0 {
					t := &table{align: al, head: p.row(head, len(al))}
					for row := range strings.SplitSeq(s[min(end+1, len(s)):], "\n") {
						if strings.TrimSpace(row) != "" {
							t.rows = append(t.rows, p.row(cells(row), len(al)))
						}
					}
					return strings.TrimRight(s[:prevStart], "\n"), t, true
				}
			}
		}
		prev, prevStart = line, start
		start = end + 1
	}
	return "", nil, false
}

// alignments reads a delimiter row, or returns nil.
func alignments(line string) []align {
	if strings.IndexByte(line, '-') < 0 || strings.Trim(line, "|-: \t") != "" {
		return nil
	}
	var out []align
	for _, c := range cells(line) {
		body := strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":")
		if body == "" || strings.Trim(body, "-") != "" || len(out) == maxColumns {
			return nil
		}
		a := alignNone
		switch l, r := c[0] == ':', c[len(c)-1] == ':'; {
		case l && r:
			a = alignCenter
		case r:
			a = alignRight
		case l:
			a = alignLeft
		}
		out = append(out, a)
	}
	return out
}

// cells splits a row at the pipes that are not escaped.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var out []string
	start, escaped := 0, false
	cell := func(s string) {
		if escaped {
			s = strings.ReplaceAll(s, `\|`, "|")
		}
		out = append(out, strings.TrimSpace(s))
		escaped = false
	}
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			if i+1 < len(line) && line[i+1] == '|' {
				escaped = true
			}
			i++
		case '|':
			cell(line[start:i])
			start = i + 1
		}
	}
	if start < len(line) || len(out) == 0 {
		cell(line[start:])
	}
	return out
}

// row parses cells to n columns. What is beyond goes to the last one.
func (p *treeParser) row(in []string, n int) [][]inline {
	if len(in) > n {
		in = append(in[:n-1:n-1], strings.Join(in[n-1:], " | "))
	}
	out := make([][]inline, len(in), n)
	for i, c := range in {
		out[i] = []inline{textOf(c)} // parsed by parseCells
	}
	return out
}

// parseCells parses the inlines of the cells.
func (t *table) parseCells(p *inlineParser) {
	for _, row := range t.all() {
		for i := range row {
			row[i] = p.parse(row[i][0].text)
		}
	}
}

func (t *table) all() [][][]inline {
	return append([][][]inline{t.head}, t.rows...)
}

func (t *table) visible() bool {
	for _, row := range t.all() {
		if slices.ContainsFunc(row, visibleInlines) {
			return true
		}
	}
	return false
}
