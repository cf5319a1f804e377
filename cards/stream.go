package cards

import (
	"strings"
)

// Close makes unfinished Markdown fit to show: what is open at its end is closed (a fence, emphasis, inline code), and
// what cannot be told yet is held back (half a link, an image, a tag, a table without its delimiter row, a marker alone
// on its line). Finished text comes back with the same meaning.
func Close(md string) string {
	st := scanBlocks(md)
	if st.fence != "" {
		return closeFence(md, st)
	}
	if st.math != "" {
		return strings.TrimRight(md, "\n") + "\n" + st.math
	}
	md = holdTable(md, st)
	if i := strings.LastIndexByte(md, '\n') + 1; i < len(md) && markersOnly(md[i:]) {
		md = md[:i]
	}
	start := leafStart(md, st.leaf)
	return md[:start] + closeInlines(md[start:])
}

func closeFence(md string, st blockState) string {
	if strings.IndexByte(md[st.fenceLine:], '\n') < 0 { // the opening line is not whole
		return strings.TrimRight(md[:st.fenceLine], " \t>")
	}
	if i := strings.LastIndexByte(md, '\n') + 1; strings.Trim(md[i:], " \t>"+st.fence[:1]) == "" {
		md = md[:i] // perhaps the closing line
	}
	return strings.TrimRight(md, "\n") + "\n" + containerPrefix(md[st.fenceLine:]) + st.fence
}

// containerPrefix is what a line needs to stand in the same containers as the line that s begins with.
func containerPrefix(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	prefix := line[:len(line)-len(skipContainers(line))]
	b := []byte(prefix)
	for i, c := range b {
		if c != '>' && c != '\t' {
			b[i] = ' '
		}
	}
	return string(b)
}

// markersOnly tells a last line that holds nothing but marks: what they make is decided by what comes next.
func markersOnly(line string) bool {
	t := strings.TrimSpace(line)
	if t == "" {
		return false
	}
	digits := 0
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case c >= '0' && c <= '9':
			digits++
		case strings.IndexByte("-*+=_#>|:`~.) \t[]!x", c) < 0:
			return false
		}
	}
	return digits < len(t) && (digits == 0 || containerMarker(t+" ") == len(t)+1) && t != "x"
}

// holdTable drops the beginning of a table at the end of md until its delimiter row is whole.
func holdTable(md string, st blockState) string {
	body := md[st.leaf:]
	start := len(body)
	var rows []string
	for start > 0 {
		i := strings.LastIndexByte(body[:start-1], '\n') + 1
		line := skipContainers(strings.TrimRight(body[i:start], "\n"))
		if line == "" || line[0] != '|' {
			break
		}
		rows = append(rows, line)
		start = i
	}
	if len(rows) == 0 {
		return md
	}
	if len(rows) >= 2 {
		head, delim := rows[len(rows)-1], rows[len(rows)-2]
		al := alignments(delim)
		if al != nil && len(al) == len(cells(head)) && (len(rows) > 2 || strings.HasSuffix(body, "\n")) {
			return md
		}
		if al == nil && strings.Trim(delim, "|-: \t") != "" { // not a table
			return md
		}
	}
	return md[:st.leaf+start]
}

// leafStart is where the inlines at the end of md begin: at the last list item, table row, or paragraph.
func leafStart(md string, leaf int) int {
	if leaf > len(md) {
		leaf = len(md)
	}
	end := len(md)
	for end > leaf {
		i := strings.LastIndexByte(md[leaf:max(end-1, leaf)], '\n') + 1 + leaf
		line := md[i:end]
		rest := skipContainers(line)
		if len(rest) < len(strings.TrimRight(line, "\n")) && rest != "" || strings.HasPrefix(rest, "|") || i == leaf {
			t := strings.TrimLeft(line, " \t")
			for n := containerMarker(t); n > 0; n = containerMarker(t) {
				t = strings.TrimLeft(t[n:], " \t")
			}
			if strings.HasPrefix(t, "|") {
				if k := strings.LastIndexByte(t, '|'); k >= 0 {
					t = t[k+1:]
				}
			}
			if len(t) > len(line) {
				t = line
			}
			if i == leaf || len(t) < len(strings.TrimLeft(line, " \t")) {
				return i + len(line) - len(t)
			}
		}
		end = i
	}
	return leaf
}

// closeInlines closes and holds back what is open in the last paragraph.
func closeInlines(s string) string {
	trimmed := strings.TrimRight(s, " \t\n")
	ended := strings.HasSuffix(s[len(trimmed):], "\n")
	s = trimmed
	for { // what is at the very end may go on
		t := s
		if n := len(t); n > 0 && t[n-1] == '\\' && trailing(t, '\\')%2 == 1 {
			t = t[:n-1]
		}
		t = strings.TrimRight(t, "*_~")
		if !ended || len(t) == len(s) {
			t = strings.TrimRight(t, " \t\n")
		}
		if t == s {
			break
		}
		s = t
	}
	s = holdEntity(s)
	s, ticks := closeCode(s)
	if ticks == "" {
		s = holdTag(s)
	}
	s = holdLink(s)
	s = strings.TrimRight(s, " \t\n")
	return closeEmphasis(s, ticks)
}

func trailing(s string, c byte) int {
	n := 0
	for n < len(s) && s[len(s)-1-n] == c {
		n++
	}
	return n
}

func holdEntity(s string) string {
	for i := len(s) - 1; i >= 0 && i > len(s)-34; i-- {
		if c := s[i]; c == '&' {
			return s[:i]
		} else if !isAlnum(c) && c != '#' {
			break
		}
	}
	return s
}

// closeCode returns the closing run of the inline code that is open at the end of s, and s without a part of it.
func closeCode(s string) (string, string) {
	for i := 0; i < len(s); {
		switch s[i] {
		case '\\':
			i += 2
		case '`':
			n := runLen(s, i)
			j := i + n
			for {
				k := strings.IndexByte(s[j:], '`')
				if k < 0 {
					j = -1
					break
				}
				j += k
				m := runLen(s, j)
				if m == n {
					j += m
					break
				}
				j += m
			}
			if j < 0 {
				body := strings.TrimRight(s[i+n:], "`")
				if strings.TrimSpace(body) == "" {
					return s[:i], ""
				}
				return s[:i+n] + body, s[i : i+n]
			}
			i = j
		default:
			i++
		}
	}
	return s, ""
}

// holdTag holds back a tag, comment or autolink that has no end yet.
func holdTag(s string) string {
	i := strings.LastIndexByte(s, '<')
	if i < 0 || strings.IndexByte(s[i:], '>') >= 0 || len(s)-i > 300 {
		return s
	}
	if i+1 < len(s) {
		c := s[i+1]
		if !isAlnum(c) && c != '/' && c != '!' || c <= '9' && c != '/' && c != '!' {
			return s
		}
	}
	return s[:i]
}

// holdLink shows half a link as its text and hides half an image.
func holdLink(s string) string {
	for i := len(s) - 1; i >= 0 && i > len(s)-maxTarget; i-- {
		if s[i] != '[' || i > 0 && s[i-1] == '\\' {
			continue
		}
		image := i > 0 && s[i-1] == '!'
		rest := s[i:]
		k := strings.IndexByte(rest, ']')
		switch {
		case k < 0: // text without an end
			if len(rest) > 200 || strings.IndexByte(rest, '\n') >= 0 || strings.IndexByte(rest, '`') >= 0 {
				return s
			}
			if image {
				return s[:i-1]
			}
			return s[:i] + rest[1:]
		case k+1 == len(rest):
			if image {
				return s[:i-1]
			}
			return s
		case rest[k+1] == '(':
			target := rest[k+1:]
			if _, _, ok := inlineTarget(target); ok || strings.Count(target, "(") <= strings.Count(target, ")") || strings.IndexByte(rest, '\n') >= 0 {
				return s
			}
			if image {
				return s[:i-1]
			}
			return s[:i] + rest[1:k]
		}
		return s
	}
	return s
}

// closeEmphasis adds what closes the emphasis that is open at the end of s, after the end of open code.
func closeEmphasis(s, ticks string) string {
	var p inlineParser
	p.src = s + ticks
	if strings.TrimSpace(p.src) == "" {
		return p.src
	}
	p.scan()
	p.pairDelims(0)
	var b strings.Builder
	b.WriteString(p.src)
	for i := len(p.toks) - 1; i >= 0; i-- {
		t := &p.toks[i]
		if t.kind != tokDelim || !t.canOpen || t.n == 0 || t.n > 3 || t.n == 1 && t.canClose {
			continue
		}
		b.WriteString(t.text[:t.n])
	}
	return b.String()
}
