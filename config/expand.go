package config

import (
	"fmt"
	"strings"
)

// expand replaces ${NAME} and ${NAME:-default} in a value and turns $$ into $. The default stands in when the variable
// is unset or empty. A $ before anything else is itself.
func expand(s string, env func(string) (string, bool)) (string, error) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			s = rest[1:]
		case strings.HasPrefix(rest, "{"):
			ref, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return "", fmt.Errorf("${ has no closing }; write $$ for a plain $")
			}
			name, fallback, hasFallback := strings.Cut(ref, ":-")
			if !isEnvName(name) {
				return "", fmt.Errorf("${…} wants the name of an environment variable; write $$ for a plain $")
			}
			v, ok := env(name)
			switch {
			case ok && (v != "" || !hasFallback):
				b.WriteString(v)
			case hasFallback:
				b.WriteString(fallback)
			default:
				return "", fmt.Errorf("environment variable %s is not set; set it, or write ${%s:-default}", name, name)
			}
			s = after
		default:
			b.WriteByte('$')
			s = rest
		}
	}
}

func isEnvName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
