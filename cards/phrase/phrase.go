// Package phrase holds the form of deerbot's fixed texts: each in English and Chinese, chosen per chat.
//
// A package that speaks to people declares its phrases as variables with [New]. The voice is short, calm and concrete:
// no exclamation marks, no apology without a next step; an error says what happened, what was kept and what to do.
package phrase

import "fmt"

// Lang is a language of fixed texts.
type Lang string

// Languages.
const (
	EN Lang = "en"
	ZH Lang = "zh"
)

// Phrase is one text in all languages, with the same fmt verbs in the same order.
type Phrase struct{ en, zh string }

var all []Phrase

// New declares a phrase. It is meant for package-level variables.
func New(en, zh string) Phrase {
	p := Phrase{en: en, zh: zh}
	all = append(all, p)
	return p
}

// All lists the declared phrases, for the test that compares their verbs.
func All() []Phrase { return all }

// Texts returns the raw texts, English first.
func (p Phrase) Texts() (en, zh string) { return p.en, p.zh }

// In formats the phrase in l; any l but ZH is English.
func (p Phrase) In(l Lang, args ...any) string {
	s := p.en
	if l == ZH {
		s = p.zh
	}
	if len(args) == 0 {
		return s
	}
	return fmt.Sprintf(s, args...)
}

// Guess tells the language of a text by its script: ZH when Han characters make up a fifth or more of its letters, ""
// when it has no letters.
func Guess(text string) Lang {
	var han, other int
	for _, r := range text {
		switch {
		case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3400 && r <= 0x4DBF:
			han++
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r > 0x7F:
			other++
		}
	}
	switch {
	case han+other == 0:
		return ""
	case han*5 >= han+other:
		return ZH
	}
	return EN
}
