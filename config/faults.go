package config

import (
	"fmt"
	"strings"
)

// Fault is one thing wrong with a configuration. It never holds a value that could be secret.
type Fault struct {
	File string // "" when the key came from the environment or a default
	Line int    // 0 when unknown
	Key  string // such as channels.telegram.allow[0]; "" for the file as a whole
	Text string // what is wrong and what to do
}

// Error writes the fault as file:line: key: text.
func (f *Fault) Error() string {
	var b strings.Builder
	switch {
	case f.File != "" && f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	case f.File != "":
		fmt.Fprintf(&b, "%s: ", f.File)
	}
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	b.WriteString(f.Text)
	return b.String()
}

// Faults is everything wrong with a configuration, one line each.
type Faults []*Fault

// Error writes one fault per line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults one by one, for errors.As.
func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}
