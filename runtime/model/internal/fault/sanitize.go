// Package fault turns what a provider answered into a classified [model.Error] whose text is safe to log.
package fault

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage is the longest message kept of a provider, in characters.
const maxMessage = 500

var (
	urlPattern    = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>\\]+`)
	headerPattern = regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|x-api-key|api-key|x-goog-api-key|cookie)\b["']?\s*[:=]\s*["']?(?:(?:bearer|basic)\s+)?[^\s"',;}]+`)
	bearerPattern = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=*-]{6,}`)
	keyPattern    = regexp.MustCompile(`\b(?:sk|pk|rk|gsk|xai|hf|AIza|ghp|r8|nvapi|tgp|fw|csk|ak)[-_A-Za-z0-9*.•…]{10,}|\b[a-z]{2,5}-[-_A-Za-z0-9]*\*{3,}[-_A-Za-z0-9*]*`)
	fieldPattern  = regexp.MustCompile(`(?i)\b(api[-_ ]?key|access[-_]?token|secret|password|token|key)\b(["']?\s*[:=]\s*["']?)[^\s"',;&}]{6,}`)
)

const hidden = "[hidden]"

// Clean makes text of unknown origin fit for an error: secrets and what looks like one are replaced, URLs lose user,
// query and fragment, control characters become spaces, and the rest is cut at 500 characters.
func Clean(text string, secrets ...string) string {
	for _, s := range secrets {
		for _, form := range []string{s, strings.TrimSpace(s), url.QueryEscape(s), url.PathEscape(s)} {
			if len(form) >= 4 {
				text = strings.ReplaceAll(text, form, hidden)
			}
		}
	}
	if len(text) > 16*maxMessage {
		text = text[:16*maxMessage]
	}
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	text = urlPattern.ReplaceAllStringFunc(text, cleanURL)
	text = headerPattern.ReplaceAllString(text, "$1: "+hidden)
	text = bearerPattern.ReplaceAllString(text, "$1 "+hidden)
	text = fieldPattern.ReplaceAllString(text, "$1$2"+hidden)
	text = keyPattern.ReplaceAllString(text, hidden)
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > maxMessage {
		text = string([]rune(text)[:maxMessage-1]) + "…"
	}
	return text
}

func cleanURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return hidden
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return u.String()
}
