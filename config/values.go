package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Switch is auto, true or false.
type Switch string

// Values of a Switch.
const (
	Auto Switch = "auto"
	On   Switch = "true"
	Off  Switch = "false"
)

// Size is a number of bytes, written as 512MB, 2GiB or a plain number.
type Size int64

// sizeUnits in bytes. The decimal and the binary spelling mean the same here, powers of 1024, as docker has it.
var sizeUnits = []struct {
	name string
	unit int64
}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"b", 1}}

// ParseSize reads a size. "" is 0.
func ParseSize(s string) (Size, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	if text == "" {
		return 0, nil
	}
	unit := int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = strings.TrimSpace(rest), u.unit
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("want a size such as 512MB or 2GB")
	}
	return Size(n * unit), nil
}

// String writes the size with the largest unit that divides it.
func (s Size) String() string {
	switch {
	case s == 0:
		return ""
	case s%(1<<30) == 0:
		return fmt.Sprintf("%dGB", s>>30)
	case s%(1<<20) == 0:
		return fmt.Sprintf("%dMB", s>>20)
	case s%(1<<10) == 0:
		return fmt.Sprintf("%dKB", s>>10)
	}
	return strconv.FormatInt(int64(s), 10)
}
