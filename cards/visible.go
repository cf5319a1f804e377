package cards

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible reports whether a reader would see anything of b. A platform refuses a message that renders to nothing.
func Visible(b Body) bool {
	if b.Format != "html" {
		return visibleText(b.Text)
	}
	s := b.Text
	for s != "" {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			i = len(s)
		}
		if visibleText(html.UnescapeString(s[:i])) {
			return true
		}
		j := strings.IndexByte(s[i:], '>')
		if j < 0 {
			break
		}
		s = s[i+j+1:]
	}
	return false
}

// UTF16Len is the length of s in UTF-16 code units, the unit in which Telegram and Discord count.
func UTF16Len(s string) int { return unitsOf(s) }

func unitsOf[T string | []byte](s T) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < 0x80 || c >= 0xC0 && c < 0xF0:
			n++
		case c >= 0xF0:
			n += 2
		}
	}
	return n
}

func visibleText(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c > ' ' && c < 0x7F {
			return true
		} else if c >= utf8.RuneSelf {
			for _, r := range s[i:] {
				if visibleRune(r) {
					return true
				}
			}
			return false
		}
	}
	return false
}

func visibleRune(r rune) bool {
	switch {
	case r == 0x2800, r == 0x3164, r == 0x115F, r == 0x1160, r == 0xFFA0, r == 0x034F: // blank by design
		return false
	case unicode.IsSpace(r), unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		return false
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF: // variation selectors
		return false
	}
	return true
}

func visibleInlines(in []inline) bool {
	for i := range in {
		switch in[i].kind {
		case inBreak:
		case inImage:
			if visibleText(in[i].text) || visibleText(in[i].href) {
				return true
			}
		case inText, inCode:
			if visibleText(in[i].text) {
				return true
			}
		default:
			if visibleInlines(in[i].kids) {
				return true
			}
		}
	}
	return false
}
