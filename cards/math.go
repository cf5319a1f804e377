package cards

import "strings"

// dollarLen is the length of the mathematics "$…$" or "$$…$$" that begins at i. As in Pandoc, white space may not stand
// inside next to a single dollar, and no digit after the last: so prices are no mathematics.
func dollarLen(s string, i int) int {
	n := runLen(s, i)
	if n > 2 || i+n >= len(s) {
		return 0
	}
	end := -1
	for j := i + n; j < len(s) && j < i+1024; j++ {
		if s[j] == '\\' {
			j++
			continue
		}
		if s[j] == '$' {
			end = j
			break
		}
	}
	if end < 0 || end == i+n {
		return 0
	}
	body := s[i+n : end]
	if n == 2 {
		if runLen(s, end) != 2 {
			return 0
		}
		return end + 2 - i
	}
	last := body[len(body)-1]
	if body[0] <= ' ' || last <= ' ' || end+1 < len(s) && (isAlnum(s[end+1]) || s[end+1] == '$') ||
		i > 0 && isAlnum(s[i-1]) ||
		strings.IndexByte(body, '\\') < 0 && (strings.Contains(body, "**") || strings.ContainsAny(body, "`\n[")) {
		return 0
	}
	return end + 1 - i
}

// mathLen is the length of "\(…\)" or "\[…\]" at the start of s when it looks like mathematics.
func mathLen(s string) int {
	end := `\)`
	if s[1] == '[' {
		end = `\]`
	}
	k := strings.Index(s[2:min(len(s), 1024)], end)
	if k <= 0 {
		return 0
	}
	body := strings.TrimSpace(s[2 : 2+k])
	if !hasAlnum(body) || len(body) > 3 && !strings.ContainsAny(body, `\^_=+-*/<>|0123456789`) || strings.HasPrefix(body, "http") {
		return 0
	}
	return k + 4
}
