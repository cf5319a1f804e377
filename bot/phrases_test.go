package bot

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"deerbot/cards/phrase"
)

var verb = regexp.MustCompile(`%(?:\[\d+\])?[-+# 0]*\d*(?:\.\d+)?[a-zA-Z%]`)

// Every phrase that the bot, the cards and the commands declare has the same verbs in both languages, in the same order.
func TestPhrasesHaveTheSameVerbs(t *testing.T) {
	if len(phrase.All()) < 30 {
		t.Fatalf("only %d phrases are declared", len(phrase.All()))
	}
	for _, p := range phrase.All() {
		en, zh := p.Texts()
		verbs := func(s string) []string {
			return slices.DeleteFunc(verb.FindAllString(s, -1), func(v string) bool { return v == "%%" })
		}
		if !slices.Equal(verbs(en), verbs(zh)) {
			t.Errorf("verbs %v and %v:\n%q\n%q", verbs(en), verbs(zh), en, zh)
		}
		if strings.TrimSpace(en) == "" || strings.TrimSpace(zh) == "" {
			t.Errorf("a language is missing: %q, %q", en, zh)
		}
		if strings.ContainsAny(en+zh, "!！") {
			t.Errorf("an exclamation mark: %q, %q", en, zh)
		}
	}
}
