package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of names.
const (
	maxSafeName = 120 // bytes, so that a suffix fits beside it in any file system
	maxLabel    = 128 // runes
)

// SafeName makes a file name that is safe on disk, in a shell and on other systems out of a name that somebody else
// chose: one path element of at most 120 bytes, without control and formatting characters, blanks or characters that
// mean something to a shell; never empty, hidden, an option or a reserved device name. The extension survives.
// SafeName(SafeName(x)) is SafeName(x). Names are not unique by it.
func SafeName(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co):
			return -1
		case r == '/' || r == '.' || r == '-' || r == '+' || r == '=' || r == ',' || r == '@':
			return r
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r):
			return r
		}
		return '_'
	}, name)
	parts := strings.Split(name, "/")
	name = ""
	for i := len(parts) - 1; i >= 0 && name == ""; i-- {
		name = trimName(squash(parts[i]))
	}
	if name == "" {
		return "file"
	}
	if reserved(name) {
		name = "_" + name
	}
	if len(name) <= maxSafeName {
		return name
	}
	ext := path.Ext(name)
	if len(ext) > 16 {
		ext = ""
	}
	return strings.TrimRight(cutBytes(name[:len(name)-len(ext)], maxSafeName-len(ext)), "._-") + ext
}

func trimName(s string) string {
	return strings.TrimRight(strings.TrimLeft(s, ".-,=+@"), ".")
}

// squash makes one underscore of several.
func squash(s string) string {
	for strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "__", "_")
	}
	return s
}

// reserved reports device names of Windows, which reserves them with any extension.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch stem {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	if dev, ok := strings.CutPrefix(stem, "com"); ok || strings.HasPrefix(stem, "lpt") {
		if !ok {
			dev = stem[len("lpt"):]
		}
		return utf8.RuneCountInString(dev) == 1 && strings.ContainsAny(dev, "0123456789¹²³")
	}
	return false
}

// cutBytes cuts s to at most n bytes, between characters.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// safeDir makes a directory name out of a platform's message id. Different ids give different names.
func safeDir(id string) string {
	ok := id != "" && len(id) <= 64 && id[0] != '.' && id[0] != '-' && id[len(id)-1] != '.' && !reserved(id) &&
		strings.IndexFunc(id, func(r rune) bool {
			return r > 0x7f || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '-' && r != '_'
		}) < 0
	if ok {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "m-" + hex.EncodeToString(sum[:8])
}

// Label makes a name fit to be shown to the model and to people: one line of at most 128 runes without brackets,
// quotes, control and formatting characters (bidi overrides are such), so that it cannot end the place it is put in.
// What is too long loses its middle. An empty name becomes "unnamed". Label(Label(x)) is Label(x).
func Label(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = strings.Map(func(r rune) rune {
		switch r {
		case '[', '{', '<', '⟦', '【', '［', '〔':
			return '('
		case ']', '}', '>', '⟧', '】', '］', '〕':
			return ')'
		case '"', '`', '“', '”':
			return '\''
		}
		switch {
		case unicode.IsSpace(r), unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.In(r, unicode.Cf, unicode.Co):
			return -1
		}
		return r
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	if name == "" {
		return "unnamed"
	}
	return Middle(name, maxLabel)
}

// Middle cuts s to at most n runes by putting "…" in place of its middle, so that a file's extension stays readable.
func Middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n < 3 {
		return string(r[:max(n, 0)])
	}
	tail := (n - 1) / 3
	head := n - 1 - tail
	return strings.TrimRight(string(r[:head]), " ") + "…" + strings.TrimLeft(string(r[len(r)-tail:]), " ")
}

// Printable returns a path or name for a listing: as it is, or quoted when it holds characters that would forge lines
// or turn the text's direction.
func Printable(s string) string {
	bad := !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
	})
	if bad {
		return strconv.QuoteToGraphic(s)
	}
	return s
}
