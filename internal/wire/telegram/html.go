package telegram

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tags are those of parse_mode HTML (core.telegram.org/bots/api#html-style) and the entity each makes.
var tags = map[string]string{
	"a": "text_link", "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
	"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler", "span": "spoiler",
	"tg-emoji": "custom_emoji", "code": "code", "pre": "pre", "blockquote": "blockquote",
}

type openTag struct {
	name   string
	entity Entity
	bytes  int // length of the output where it began
}

// parseHTML parses parse_mode HTML as strictly as the real server, with its words. An error is the part after
// "can't parse entities: ".
func parseHTML(s string) (string, []Entity, error) {
	if !strings.ContainsAny(s, "<&") {
		return s, nil, nil
	}
	var (
		out   strings.Builder
		units int
		stack []openTag
		ents  []Entity
	)
	out.Grow(len(s))
	for i := 0; i < len(s); {
		switch s[i] {
		case '&':
			r, n := decodeEntity(s[i:])
			out.WriteString(r)
			units += utf16Len(r)
			i += n
		case '<':
			begin := i
			if strings.HasPrefix(s[i:], "</") {
				end := strings.IndexByte(s[i:], '>')
				if end < 0 {
					return "", nil, fmt.Errorf("Unclosed end tag at byte offset %d", begin) //nolint:staticcheck // the words of the real server
				}
				name := strings.ToLower(strings.TrimSpace(s[i+2 : i+end]))
				i += end + 1
				if len(stack) == 0 {
					return "", nil, fmt.Errorf("Unexpected end tag at byte offset %d", begin) //nolint:staticcheck // the words of the real server
				}
				top := stack[len(stack)-1]
				if name != "" && name != top.name {
					return "", nil, fmt.Errorf("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", begin, top.name, name) //nolint:staticcheck // the words of the real server
				}
				stack = stack[:len(stack)-1]
				ents = closeTag(ents, stack, top, units, out.String()[top.bytes:])
				continue
			}
			tag, n, err := startTag(s, i)
			if err != nil {
				return "", nil, err
			}
			tag.entity.Offset, tag.bytes = units, out.Len()
			stack = append(stack, tag)
			i += n
		default:
			n := strings.IndexAny(s[i:], "<&")
			if n < 0 {
				n = len(s) - i
			}
			out.WriteString(s[i : i+n])
			units += utf16Len(s[i : i+n])
			i += n
		}
	}
	if len(stack) > 0 {
		return "", nil, fmt.Errorf("Can't find end tag corresponding to start tag %q", stack[len(stack)-1].name) //nolint:staticcheck // the words of the real server
	}
	return out.String(), sortEntities(ents), nil
}

func closeTag(ents []Entity, stack []openTag, top openTag, units int, inner string) []Entity {
	e := top.entity
	e.Length = units - e.Offset
	if e.Length == 0 {
		return ents
	}
	switch e.Type {
	case "text_link":
		if e.URL == "" {
			e.URL = inner
		}
		if !strings.Contains(e.URL, ".") && !strings.Contains(e.URL, ":") {
			return ents // a link to nowhere is plain text
		}
	case "code":
		// <pre><code class="language-x"> is one entity.
		if len(stack) > 0 && stack[len(stack)-1].name == "pre" && stack[len(stack)-1].entity.Offset == e.Offset {
			stack[len(stack)-1].entity.Language = e.Language
			return ents
		}
		e.Language = ""
	}
	return append(ents, e)
}

// startTag reads the start tag at s[i] and returns it with its length.
func startTag(s string, i int) (openTag, int, error) {
	begin := i
	i++
	for i < len(s) && !space(s[i]) && s[i] != '>' {
		i++
	}
	if i >= len(s) {
		return openTag{}, 0, unclosed(begin)
	}
	name := strings.ToLower(s[begin+1 : i])
	kind, ok := tags[name]
	if !ok {
		return openTag{}, 0, fmt.Errorf("Unsupported start tag %q at byte offset %d", name, begin) //nolint:staticcheck // the words of the real server
	}
	t := openTag{name: name, entity: Entity{Type: kind}}
	spoiler := false
	for {
		for i < len(s) && space(s[i]) {
			i++
		}
		if i >= len(s) {
			return t, 0, unclosed(begin)
		}
		if s[i] == '>' {
			break
		}
		key, value, next, err := attribute(s, i, name, begin)
		if err != nil {
			return t, 0, err
		}
		i = next
		switch {
		case name == "a" && key == "href":
			t.entity.URL = value
		case name == "code" && key == "class" && strings.HasPrefix(value, "language-"):
			t.entity.Language = value[len("language-"):]
		case name == "span" && key == "class" && value == "tg-spoiler":
			spoiler = true
		case name == "blockquote" && key == "expandable":
			t.entity.Type = "expandable_blockquote"
		}
	}
	if name == "span" && !spoiler {
		return t, 0, fmt.Errorf("Tag \"span\" must have class \"tg-spoiler\" at byte offset %d", begin) //nolint:staticcheck // the words of the real server
	}
	return t, i + 1 - begin, nil
}

func unclosed(begin int) error {
	return fmt.Errorf("Unclosed start tag at byte offset %d", begin) //nolint:staticcheck // the words of the real server
}

// attribute reads name[=value] at s[i].
func attribute(s string, i int, tag string, begin int) (key, value string, next int, err error) {
	j := i
	for j < len(s) && !space(s[j]) && s[j] != '=' && s[j] != '>' && s[j] != '/' && s[j] != '"' && s[j] != '\'' {
		j++
	}
	key = strings.ToLower(s[i:j])
	if key == "" {
		return "", "", 0, fmt.Errorf("Empty attribute name in the tag %q at byte offset %d", tag, begin) //nolint:staticcheck // the words of the real server
	}
	for j < len(s) && space(s[j]) {
		j++
	}
	if j >= len(s) {
		return "", "", 0, unclosed(begin)
	}
	if s[j] != '=' {
		return key, "", j, nil
	}
	j++
	for j < len(s) && space(s[j]) {
		j++
	}
	if j >= len(s) {
		return "", "", 0, unclosed(begin)
	}
	if q := s[j]; q == '"' || q == '\'' {
		end := strings.IndexByte(s[j+1:], q)
		if end < 0 {
			return "", "", 0, unclosed(begin)
		}
		return key, decodeAll(s[j+1 : j+1+end]), j + end + 2, nil
	}
	k := j
	for k < len(s) && !space(s[k]) && s[k] != '>' {
		k++
	}
	return key, decodeAll(s[j:k]), k, nil
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// decodeEntity decodes the character reference s begins with; an unknown one is text, as on the real server.
func decodeEntity(s string) (string, int) {
	switch {
	case strings.HasPrefix(s, "&lt;"):
		return "<", 4
	case strings.HasPrefix(s, "&gt;"):
		return ">", 4
	case strings.HasPrefix(s, "&amp;"):
		return "&", 5
	case strings.HasPrefix(s, "&quot;"):
		return `"`, 6
	}
	if end := strings.IndexByte(s, ';'); end > 2 && end < 12 && s[1] == '#' {
		digits, base := s[2:end], 10
		if digits[0] == 'x' || digits[0] == 'X' {
			digits, base = digits[1:], 16
		}
		if n, err := strconv.ParseUint(digits, base, 32); err == nil && n > 0 && n <= utf8.MaxRune {
			return string(rune(n)), end + 1
		}
	}
	return "&", 1
}

func decodeAll(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '&' {
			b.WriteByte(s[i])
			i++
			continue
		}
		r, n := decodeEntity(s[i:])
		b.WriteString(r)
		i += n
	}
	return b.String()
}
