package commands

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"deerbot/cards/phrase"
)

// sanitize makes text from outside fit to stand in a line of ours, inside backquotes: control characters and marks that
// change the direction of writing go, white space becomes single spaces, backquotes become apostrophes.
func sanitize(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u200b', r == '\ufeff', r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// escape makes sanitized text stand for itself in Markdown.
func escape(s string) string {
	var b strings.Builder
	for _, r := range sanitize(s) {
		if strings.ContainsRune("\\*_[]<>#|~!@&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cut shortens s to n characters.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// sentences joins sentences as the language has it.
func sentences(l phrase.Lang, parts ...string) string {
	if l == phrase.ZH {
		return strings.Join(parts, "")
	}
	return strings.Join(parts, " ")
}

// span writes a duration in the two units that matter: 45s, 4m12s, 3h05m, 2d4h.
func span(d time.Duration) string {
	d = max(d.Round(time.Second), 0)
	s := int64(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
}

// count writes a number of tokens: 950, 48.2k, 1.3M.
func count(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// money writes USD: $0.41, $0.0031.
func money(usd float64) string {
	if usd > 0 && usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// bytesText writes a size: 812 B, 12 KB, 3.4 MB.
func bytesText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KB", (n+1<<9)>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
