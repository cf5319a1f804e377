package cards

import "strings"

// blockState is what the end of a text stands in.
type blockState struct {
	fence     string // marker of the open fence
	fenceLine int    // where its line starts
	math      string // end marker of open display mathematics
	leaf      int    // start of the last paragraph: after the last blank line, fence or heading
}

func scanBlocks(md string) blockState {
	var st blockState
	for start := 0; start < len(md); {
		end := strings.IndexByte(md[start:], '\n')
		next := len(md)
		if end < 0 {
			end = len(md)
		} else {
			end += start
			next = end + 1
		}
		line := skipContainers(md[start:end])
		switch {
		case st.fence != "":
			if n := fenceRun(line); n >= len(st.fence) && line[0] == st.fence[0] && strings.TrimSpace(line[n:]) == "" {
				st.fence = ""
				st.leaf = next
			}
		case st.math != "":
			if strings.HasSuffix(strings.TrimSpace(line), st.math) {
				st.math = ""
				st.leaf = next
			}
		case line == "":
			st.leaf = next
		default:
			if n := fenceRun(line); n >= 3 && (line[0] == '~' || strings.IndexByte(line[n:], '`') < 0) {
				st.fence, st.fenceLine = line[:n], start
			} else if t := strings.TrimSpace(line); (t == "$$" || t == `\[`) && next <= len(md) && end < len(md) {
				st.math = "$$"
				if t == `\[` {
					st.math = `\]`
				}
			} else if line[0] == '#' && end < len(md) {
				st.leaf = next
			}
		}
		start = next
	}
	return st
}

// skipContainers is line without indentation, quote and list markers.
func skipContainers(line string) string {
	for {
		line = strings.TrimLeft(line, " \t\r")
		n := containerMarker(line)
		if n == 0 {
			return strings.TrimRight(line, "\r")
		}
		line = line[n:]
	}
}

// containerMarker is the length of the quote or list marker at the start of line.
func containerMarker(line string) int {
	if line == "" {
		return 0
	}
	switch c := line[0]; {
	case c == '>':
		return 1
	case c == '-' || c == '*' || c == '+':
		if len(line) > 1 && (line[1] == ' ' || line[1] == '\t') {
			return 2
		}
	case c >= '0' && c <= '9':
		n := 1
		for n < len(line) && n < 10 && line[n] >= '0' && line[n] <= '9' {
			n++
		}
		if n+1 < len(line) && (line[n] == '.' || line[n] == ')') && line[n+1] == ' ' {
			return n + 2
		}
	}
	return 0
}

func fenceRun(line string) int {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0
	}
	return runLen(line, 0)
}

// lastOf is about the last n bytes of md, from the start of a block on, with an open fence opened again.
func lastOf(md string, n int) string {
	if n <= 0 || len(md) <= n+n/2 {
		return md
	}
	want := len(md) - n
	i := strings.IndexByte(md[want:], '\n')
	if i < 0 || want+i+1 == len(md) {
		return md[runeStart(md, want):]
	}
	at := want + i + 1
	st := scanBlocks(md[:at])
	if st.fence != "" {
		line, _, _ := strings.Cut(md[st.fenceLine:], "\n")
		return line + "\n" + md[at:]
	}
	if st.math != "" {
		open := "$$"
		if st.math != "$$" {
			open = `\[`
		}
		return open + "\n" + md[at:]
	}
	// a blank line soon after begins a block; else a line does
	if k := strings.Index(md[at:min(len(md), at+n/4)], "\n\n"); k >= 0 && scanBlocks(md[at:at+k+1]).fence == "" {
		at += k + 2
	}
	return md[at:]
}
