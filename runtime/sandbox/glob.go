package sandbox

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Limits of patterns.
const (
	maxPattern      = 512 // bytes
	maxAlternatives = 64  // after {a,b} is written out
)

// Pattern is a compiled file pattern.
type Pattern struct {
	alts   [][]string // alternatives, each a list of elements; "**" stands for any number of them
	base   bool       // no slash: matches the last element at any depth
	dotted bool       // some element begins with a dot
}

// Compile reads a pattern: * and ? match within one element, [a-z] and [!a-z] one character of a class, {a,b} either
// of several texts, ** as a whole element any number of directories, none included. A pattern without a slash matches
// the last element of a path at any depth, so *.md means **/*.md. Matching is case sensitive.
func Compile(pattern string) (*Pattern, error) {
	switch {
	case pattern == "":
		return nil, errors.New("the pattern is empty")
	case len(pattern) > maxPattern:
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	case strings.ContainsAny(pattern, "\\\x00"):
		return nil, errors.New("the pattern holds a backslash or NUL")
	}
	texts, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	p := &Pattern{base: !strings.Contains(pattern, "/")}
	for _, t := range texts {
		t = strings.TrimPrefix(strings.TrimPrefix(t, "./"), "/")
		elems := slices.DeleteFunc(strings.Split(t, "/"), func(e string) bool { return e == "" || e == "." })
		for i, e := range elems {
			if e == ".." {
				return nil, errors.New(`the pattern holds ".."`)
			}
			if e == "**" {
				continue
			}
			if strings.Contains(e, "**") {
				e = squeeze(e)
			}
			elems[i] = strings.ReplaceAll(e, "[!", "[^")
			if _, err := path.Match(elems[i], ""); err != nil {
				return nil, fmt.Errorf("the pattern element %q is malformed", e)
			}
			p.dotted = p.dotted || e[0] == '.'
		}
		if len(elems) == 0 {
			continue
		}
		if last := len(elems) - 1; elems[last] == "**" {
			elems = append(elems, "*") // what is below, not the directory itself
		}
		p.alts = append(p.alts, elems)
	}
	if len(p.alts) == 0 {
		return nil, errors.New("the pattern names nothing")
	}
	return p, nil
}

// squeeze turns runs of stars into one: inside an element ** means *.
func squeeze(e string) string {
	for strings.Contains(e, "**") {
		e = strings.ReplaceAll(e, "**", "*")
	}
	return e
}

// expand writes out {a,b} groups; they do not nest.
func expand(p string) ([]string, error) {
	open := strings.IndexByte(p, '{')
	if open < 0 {
		return []string{p}, nil
	}
	n := strings.IndexByte(p[open:], '}')
	if n < 0 {
		return nil, errors.New(`the pattern has "{" without "}"`)
	}
	inner := p[open+1 : open+n]
	if strings.Contains(inner, "{") {
		return nil, errors.New("groups in braces cannot be nested")
	}
	rest, err := expand(p[open+n+1:])
	if err != nil {
		return nil, err
	}
	var out []string
	for alt := range strings.SplitSeq(inner, ",") {
		for _, r := range rest {
			if len(out) == maxAlternatives {
				return nil, fmt.Errorf("the pattern has more than %d alternatives", maxAlternatives)
			}
			out = append(out, p[:open]+alt+r)
		}
	}
	return out, nil
}

// Match reports whether the slash-separated relative path matches.
func (p *Pattern) Match(rel string) bool {
	if p.base {
		rel = path.Base(rel)
	}
	elems := strings.Split(rel, "/")
	return slices.ContainsFunc(p.alts, func(pat []string) bool { return matchElems(pat, elems) })
}

// matchElems matches by dynamic programming, so several ** cost no more than their number times the path's length.
func matchElems(pat, elems []string) bool {
	// ok[j]: the patterns so far match elems[:j].
	ok := make([]bool, len(elems)+1)
	ok[0] = true
	for _, pe := range pat {
		next := make([]bool, len(elems)+1)
		if pe == "**" {
			for j, seen := 0, false; j <= len(elems); j++ {
				seen = seen || ok[j]
				next[j] = seen
			}
		} else {
			for j, e := range elems {
				if ok[j] {
					next[j+1], _ = path.Match(pe, e)
				}
			}
		}
		ok = next
	}
	return ok[len(elems)]
}
