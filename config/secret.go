package config

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// masked is what every secret looks like when it is printed.
const masked = "***"

// Secret is a value that must not be seen: a token, a key, a password. However it is formatted, logged or marshalled, it
// reads *** (and nothing at all when it is empty). [Secret.Reveal] is the only way to the value.
type Secret string

// NewSecret makes a secret of s without the white space and carriage returns that files and environments leave around
// keys.
func NewSecret(s string) Secret { return Secret(strings.TrimSpace(s)) }

// Reveal returns the value, for the one call that needs it.
func (s Secret) Reveal() string { return string(s) }

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s != "" }

// String returns *** or "".
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString returns what %#v prints.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format prints *** whatever the verb, %x and %q included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue keeps the value out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps the value out of every text encoding, JSON and YAML among them.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON keeps the value out of JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalYAML keeps the value out of YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }
