package rehearsal

import (
	"strings"
	"unicode"
)

// mostlyChinese reports whether text has at least as many Han characters as words in other scripts.
func mostlyChinese(text string) bool {
	han, words := count(text)
	return han > 0 && han >= words
}

// count returns the Han characters of text and the words of other scripts.
func count(text string) (han, words int) {
	inWord := false
	for _, r := range text {
		if unicode.Is(unicode.Han, r) {
			han++
			inWord = false
			continue
		}
		letter := unicode.IsLetter(r) || unicode.IsDigit(r) || (inWord && (r == '\'' || r == '’' || r == '-'))
		if letter && !inWord {
			words++
		}
		inWord = letter
	}
	return han, words
}

var greetings = []string{
	"hi", "hello", "hey", "yo", "good morning", "good afternoon", "good evening", "good night", "thanks", "thank you",
	"bye", "goodbye", "how are you", "who are you", "what are you", "what can you do",
	"你好", "您好", "嗨", "哈喽", "早", "早上好", "下午好", "晚上好", "晚安", "谢谢", "多谢", "再见", "在吗", "你是谁", "你能做什么", "你会什么",
}

// smallTalk reports whether text wants an answer and no work: a greeting, or hardly any words.
func smallTalk(text string) bool {
	bare := strings.ToLower(strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
	han, words := count(bare)
	if han+words == 0 {
		return true
	}
	short := han <= 8 && words <= 6
	for _, g := range greetings {
		rest, ok := strings.CutPrefix(bare, g)
		if !ok || !short {
			continue
		}
		if rest == "" {
			return true
		}
		moreHan, moreWords := count(rest)
		if first := []rune(rest)[0]; !unicode.IsLetter(first) && (moreHan <= 4 && moreWords <= 2 || smallTalk(rest)) {
			return true
		}
	}
	question := strings.ContainsAny(text, "?？")
	return words < 3 && han == 0 || words == 0 && (han < 4 || question && han < 6)
}

// quoted is text as a Markdown quotation of at most 600 characters.
func quoted(text string) string {
	if runes := []rune(text); len(runes) > 600 {
		text = string(runes[:600]) + "…"
	}
	if text == "" {
		text = "…"
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}
