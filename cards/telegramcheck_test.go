package cards

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// checkTelegram reads s as the Bot API's HTML mode does, strictly, and returns the visible text. It shares nothing with
// the renderer.
func checkTelegram(s string) (visible string, err error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("not UTF-8")
	}
	var (
		stack    []string
		out      strings.Builder
		entities int
	)
	has := func(names ...string) bool {
		for _, open := range stack {
			if slices.Contains(names, open) {
				return true
			}
		}
		return false
	}
	for i := 0; i < len(s); {
		switch s[i] {
		case '<':
			end := strings.IndexByte(s[i:], '>')
			if end < 0 {
				return "", fmt.Errorf("byte %d: tag without an end", i)
			}
			tag := s[i+1 : i+end]
			at := i
			i += end + 1
			if name, ok := strings.CutPrefix(tag, "/"); ok {
				if len(stack) == 0 || stack[len(stack)-1] != name {
					return "", fmt.Errorf("byte %d: </%s> does not close %v", at, name, stack)
				}
				stack = stack[:len(stack)-1]
				continue
			}
			name, attrs, _ := strings.Cut(tag, " ")
			switch name {
			case "b", "i", "u", "s", "pre", "blockquote":
				if attrs != "" {
					return "", fmt.Errorf("byte %d: attributes on <%s>", at, name)
				}
			case "code":
				if attrs != "" && (!languageAttr.MatchString(attrs) || !strings.HasSuffix(s[:at], "<pre>")) {
					return "", fmt.Errorf("byte %d: bad attributes %q", at, attrs)
				}
			case "a":
				m := hrefAttr.FindStringSubmatch(attrs)
				if m == nil {
					return "", fmt.Errorf("byte %d: bad attributes %q", at, attrs)
				}
				if err := checkEntities(m[1]); err != nil {
					return "", fmt.Errorf("byte %d: %w", at, err)
				}
				u := strings.ToLower(html.UnescapeString(m[1]))
				if !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "tg://") && !strings.HasPrefix(u, "mailto:") {
					return "", fmt.Errorf("byte %d: target %q", at, u)
				}
			default:
				return "", fmt.Errorf("byte %d: tag <%s> is not supported", at, name)
			}
			if has("code") || has("pre") && name != "code" {
				return "", fmt.Errorf("byte %d: <%s> inside code", at, name)
			}
			if (name == "code" || name == "pre") && has("b", "i", "u", "s", "a") {
				return "", fmt.Errorf("byte %d: <%s> inside %v", at, name, stack)
			}
			if has(name) {
				return "", fmt.Errorf("byte %d: <%s> inside itself", at, name)
			}
			if name != "code" || !has("pre") {
				entities++
			}
			stack = append(stack, name)
		case '>':
			return "", fmt.Errorf("byte %d: bare >", i)
		case '&':
			end := strings.IndexByte(s[i:], ';')
			if end < 0 || !entityName.MatchString(s[i:i+end+1]) {
				return "", fmt.Errorf("byte %d: bare &", i)
			}
			out.WriteString(html.UnescapeString(s[i : i+end+1]))
			i += end + 1
		default:
			_, n := utf8.DecodeRuneInString(s[i:])
			out.WriteString(s[i : i+n])
			i += n
		}
	}
	if len(stack) > 0 {
		return "", fmt.Errorf("not closed: %v", stack)
	}
	visible = out.String()
	if n := UTF16Len(visible); n > 4096 {
		return "", fmt.Errorf("%d units", n)
	}
	if entities > 100 {
		return "", fmt.Errorf("%d entities", entities)
	}
	if strings.TrimSpace(visible) == "" {
		return "", fmt.Errorf("nothing visible")
	}
	return visible, nil
}

var (
	languageAttr = regexp.MustCompile(`^class="language-[A-Za-z0-9_+#.-]{1,32}"$`)
	hrefAttr     = regexp.MustCompile(`^href="([^"<>]*)"$`)
	entityName   = regexp.MustCompile(`^&(amp|lt|gt|quot);$`)
	anyEntity    = regexp.MustCompile(`&[^;]{0,6};?`)
)

func checkEntities(s string) error {
	for _, e := range anyEntity.FindAllString(s, -1) {
		if !entityName.MatchString(e) {
			return fmt.Errorf("bare & in %q", s)
		}
	}
	return nil
}

// webTags are the tags of the web dialect.
var webTags = regexp.MustCompile(`^(/?(h[1-6]|p|ul|li|table|thead|tbody|tr|th|td|pre|code|blockquote|strong|em|del|u|a|ol)|br|hr|` +
	`ol start="\d+"|li class="(task|cont)"|t[hd] class="(center|right)"|code class="language-[A-Za-z0-9_+#.-]+"|` +
	`a href="(http|https|mailto):[^"<>]*" target="_blank" rel="noopener noreferrer")$`)

var inlineTag = map[string]bool{"strong": true, "em": true, "del": true, "u": true, "a": true, "code": true}

// checkWeb checks that s is a well-formed fragment of allowed tags, and returns its text.
func checkWeb(s string) (string, error) {
	var stack []string
	var out strings.Builder
	for i := 0; i < len(s); {
		switch s[i] {
		case '<':
			end := strings.IndexByte(s[i:], '>')
			if end < 0 {
				return "", fmt.Errorf("byte %d: tag without an end", i)
			}
			tag := s[i+1 : i+end]
			if !webTags.MatchString(strings.Replace(strings.Replace(tag, `href="HTTP`, `href="http`, 1), `href="MAILTO`, `href="mailto`, 1)) &&
				!webTags.MatchString(strings.ToLower(tag)) {
				return "", fmt.Errorf("byte %d: tag <%s>", i, tag)
			}
			name, _, _ := strings.Cut(tag, " ")
			switch {
			case name == "br" || name == "hr":
			case name[0] == '/':
				if len(stack) == 0 || stack[len(stack)-1] != name[1:] {
					return "", fmt.Errorf("byte %d: <%s> does not close %v", i, name, stack)
				}
				stack = stack[:len(stack)-1]
			default:
				if name == "a" {
					if slices.Contains(stack, "a") {
						return "", fmt.Errorf("byte %d: link in a link", i)
					}
				}
				stack = append(stack, name)
			}
			if !inlineTag[strings.TrimPrefix(name, "/")] {
				out.WriteByte('\n')
			}
			i += end + 1
		case '>':
			return "", fmt.Errorf("byte %d: bare >", i)
		case '&':
			end := strings.IndexByte(s[i:], ';')
			if end < 0 || !entityName.MatchString(s[i:i+end+1]) {
				return "", fmt.Errorf("byte %d: bare &", i)
			}
			out.WriteString(html.UnescapeString(s[i : i+end+1]))
			i += end + 1
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	if len(stack) > 0 {
		return "", fmt.Errorf("not closed: %v", stack)
	}
	return out.String(), nil
}

// checkBody checks a body of any dialect and returns its visible text.
func checkBody(d Dialect, b Body) (string, error) {
	if !Visible(b) {
		return "", fmt.Errorf("not visible: %q", b.Text)
	}
	if b.Plain == "" {
		return "", fmt.Errorf("no plain text")
	}
	switch d.Name() {
	case "telegram":
		if n := UTF16Len(b.Plain); n > 4096 {
			return "", fmt.Errorf("plain text has %d units", n)
		}
		return checkTelegram(b.Text)
	case "web":
		if len(b.Text) > WebLimit {
			return "", fmt.Errorf("%d bytes", len(b.Text))
		}
		return checkWeb(b.Text)
	}
	if n := UTF16Len(b.Text); n > PlainLimit {
		return "", fmt.Errorf("%d units", n)
	}
	return b.Text, nil
}

var dialects = []Dialect{Telegram(), Plain(), Web()}
