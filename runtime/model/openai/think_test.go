package openai

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func split(pieces []string) (text, reasoning string, all []string) {
	var s splitter
	say := func(p string) { text += p; all = append(all, p) }
	think := func(p string) { reasoning += p }
	for _, p := range pieces {
		s.feed(p, say, think)
	}
	s.flush(say, think)
	return text, reasoning, all
}

func TestC050ThinkTags(t *testing.T) {
	for name, tc := range map[string]struct{ in, text, reasoning string }{
		"plain":              {"Answer", "Answer", ""},
		"tagged":             {"<think>secret plan</think>Answer 42", "Answer 42", "secret plan"},
		"white space":        {"\n <think>\nplan\n</think>\n\nAnswer", "Answer", "\nplan\n"},
		"two":                {"<think>a</think><think>b</think>c", "c", "ab"},
		"thinking":           {"<thinking>a</thinking>b", "b", "a"},
		"at a later line":    {"One.\n<think>a</think>\nTwo.", "One.\nTwo.", "a"},
		"inside a sentence":  {"The <think> tag is old.", "The <think> tag is old.", ""},
		"inside a fence":     {"```\n<think>x</think>\n```\n", "```\n<think>x</think>\n```\n", ""},
		"never closed":       {"<think>still thinking", "", "still thinking"},
		"almost a tag":       {"<thin", "<thin", ""},
		"other markup":       {"<b>bold</b>\n  <i>", "<b>bold</b>\n  <i>", ""},
		"indented code":      {"  x\n\ty", "  x\n\ty", ""},
		"empty":              {"<think></think>ok", "ok", ""},
		"closing alone":      {"a</think>b", "a</think>b", ""},
		"trailing new lines": {"a\n\n", "a\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var pieces []string
				for rest := tc.in; rest != ""; {
					n := rapid.IntRange(1, len(rest)).Draw(t, "n")
					pieces = append(pieces, rest[:n])
					rest = rest[n:]
				}
				text, reasoning, all := split(pieces)
				if text != tc.text || reasoning != tc.reasoning {
					t.Fatalf("%q: text %q, reasoning %q; want %q, %q", pieces, text, reasoning, tc.text, tc.reasoning)
				}
				if !strings.Contains(tc.text, "<thi") {
					for i := range all {
						if shown := strings.Join(all[:i+1], ""); strings.Contains(shown, "<thi") {
							t.Fatalf("part of a tag was shown: %q", shown)
						}
					}
				}
			})
		})
	}
}
