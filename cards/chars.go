package cards

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// flanking tells whether a delimiter run between two characters can open and close.
func flanking(before, after rune, char byte) (canOpen, canClose bool) {
	spaceB, spaceA := unicode.IsSpace(before), unicode.IsSpace(after)
	punctB, punctA := isPunct(before), isPunct(after)
	cjkB, cjkA := isCJK(before), isCJK(after)
	left := !spaceA && (!punctA || cjkA || spaceB || punctB || cjkB)
	right := !spaceB && (!punctB || cjkB || spaceA || punctA || cjkA)
	if char == '_' {
		return left && (!right || punctB), right && (!left || punctA)
	}
	return left, right
}

func isPunct(r rune) bool {
	if r < utf8.RuneSelf {
		return isPunctByte(byte(r))
	}
	return unicode.IsPunct(r) || unicode.IsSymbol(r)
}

func isPunctByte(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isCJK tells characters of scripts that are written without spaces, and their punctuation.
func isCJK(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x11FF, // Hangul Jamo
		r >= 0x2E80 && r <= 0x303F, // radicals, CJK punctuation
		r >= 0x3040 && r <= 0x31FF, // kana, Bopomofo
		r >= 0x3200 && r <= 0x4DBF,
		r >= 0x4E00 && r <= 0xA4CF, // Han, Yi
		r >= 0xAC00 && r <= 0xD7FF, // Hangul
		r >= 0xF900 && r <= 0xFAFF,
		r >= 0xFE30 && r <= 0xFE4F,
		r >= 0xFF00 && r <= 0xFFEF, // full width
		r >= 0x20000 && r <= 0x3FFFF:
		return true
	}
	return false
}

func hasAlnum(s string) bool {
	for i := 0; i < len(s); i++ {
		if isAlnum(s[i]) || s[i] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// entity decodes the entity that s begins with.
func entity(s string) (int, string) {
	end := -1
	for j := 1; j < len(s) && j < 34; j++ {
		if s[j] == ';' {
			end = j
			break
		}
		if !isAlnum(s[j]) && (j != 1 || s[j] != '#') {
			return 0, ""
		}
	}
	if end < 2 {
		return 0, ""
	}
	if s[1] == '#' && !numeric(s[2:end]) {
		return 0, ""
	}
	d := html.UnescapeString(s[:end+1])
	if d == s[:end+1] || strings.HasSuffix(d, ";") && d != ";" {
		return 0, ""
	}
	if r, n := utf8.DecodeRuneInString(d); n == len(d) && r < ' ' && r != '\n' && r != '\t' {
		d = "\uFFFD"
	}
	return end + 1, d
}

// numeric tells whether s can stand between "&#" and ";".
func numeric(s string) bool {
	if len(s) > 1 && (s[0] == 'x' || s[0] == 'X') {
		return len(s) <= 7 && strings.Trim(s[1:], "0123456789abcdefABCDEF") == ""
	}
	return s != "" && len(s) <= 7 && strings.Trim(s, "0123456789") == ""
}
