package openai

import "strings"

// thinkTags open and close reasoning inside the text, longest first where one begins another.
var thinkTags = []struct{ open, close string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
}

// splitter separates reasoning in tags from text that comes in pieces. A tag counts at the beginning of a line outside
// code fences, where models put it; in the middle of a sentence it is a word about tags. What may still become a tag is
// held back, so that no part of one is ever shown.
type splitter struct {
	closing string // the tag that ends the reasoning we are in
	held    string
	line    string // what the present line holds so far, at most a few characters
	fenced  bool
	trim    bool // drop white space: before a tag at the very beginning, and after a closing one
	begun   bool
}

// feed takes the next piece and calls text and reasoning for what is certain.
func (s *splitter) feed(piece string, text, reasoning func(string)) {
	s.held += piece
	s.drain(false, text, reasoning)
}

// flush gives out what was held back.
func (s *splitter) flush(text, reasoning func(string)) {
	s.drain(true, text, reasoning)
}

func (s *splitter) drain(last bool, text, reasoning func(string)) {
	for s.held != "" {
		if s.closing != "" {
			before, after, found := strings.Cut(s.held, s.closing)
			if found {
				emit(reasoning, before)
				s.held, s.closing, s.trim, s.line = after, "", true, ""
				continue
			}
			keep := 0
			if !last {
				keep = overlap(s.held, s.closing)
			}
			emit(reasoning, s.held[:len(s.held)-keep])
			s.held = s.held[len(s.held)-keep:]
			return
		}
		if s.trim || !s.begun {
			rest := strings.TrimLeft(s.held, " \t\r\n")
			if rest == "" && !last {
				return // white space in front of a tag or of the answer: decided by what follows
			}
			if s.trim {
				s.held, s.trim, s.begun = rest, false, true
				continue
			}
			if s.tagAt(rest, last) {
				if s.closing == "" {
					return
				}
				continue
			}
			s.begun = true
		}
		if strings.TrimLeft(s.line, " \t") == "" && !s.fenced {
			lead := len(s.held) - len(strings.TrimLeft(s.held, " \t"))
			if s.tagAt(s.held[lead:], last) {
				if s.closing == "" {
					return
				}
				continue
			}
		}
		end := strings.IndexByte(s.held, '\n') + 1
		if end == 0 {
			end = len(s.held)
		}
		s.emitLine(s.held[:end], text)
		s.held = s.held[end:]
	}
}

// tagAt enters reasoning when rest begins with a tag. It also returns true, without entering, when rest may become one.
func (s *splitter) tagAt(rest string, last bool) bool {
	for _, tag := range thinkTags {
		if strings.HasPrefix(rest, tag.open) {
			s.held, s.closing, s.begun = rest[len(tag.open):], tag.close, true
			return true
		}
	}
	if last {
		return false
	}
	for _, tag := range thinkTags {
		if strings.HasPrefix(tag.open, rest) {
			return true
		}
	}
	return false
}

func (s *splitter) emitLine(part string, text func(string)) {
	if len(s.line) < 8 {
		s.line += part[:min(len(part), 8)]
	}
	if strings.HasSuffix(part, "\n") {
		if strings.HasPrefix(strings.TrimLeft(s.line, " \t"), "```") {
			s.fenced = !s.fenced
		}
		s.line = ""
	}
	emit(text, part)
}

func emit(to func(string), s string) {
	if s != "" {
		to(s)
	}
}

// overlap is the length of the longest end of s that begins tag.
func overlap(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
