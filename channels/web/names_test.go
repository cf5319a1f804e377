package web

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSafeName(t *testing.T) {
	tests := map[string]string{
		"":                                  "file",
		".":                                 "file",
		"..":                                "file",
		"/":                                 "file",
		"../../../AGENTS.md":                "AGENTS.md",
		`..\..\x`:                           "x",
		"/etc/cron.d/x":                     "x",
		"x\x00.txt":                         "x.txt",
		"invoice\u202Efdp.exe":              "invoicefdp.exe",
		"a\r\nSet-Cookie: b":                "aSet-Cookie_ b",
		"\xff\xfe.txt":                      "txt",
		" spaced\tname .txt ":               "spacedname .txt",
		"报告 (终稿).pdf":                       "报告 (终稿).pdf",
		`<img src=x onerror="alert(1)">.md`: "_img src=x onerror=_alert(1)__.md",
		strings.Repeat("n", 300) + ".pdf":   strings.Repeat("n", 116) + ".pdf",
	}
	for in, want := range tests {
		if got := safeName(in); got != want {
			t.Errorf("safeName(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzSafeName(f *testing.F) {
	for _, s := range []string{"a.txt", "../x", "\x00", "\u202e", strings.Repeat("字", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := safeName(s)
		if got == "" || !utf8.ValidString(got) || strings.ContainsAny(got, "/\\\x00\r\n\"<>") || got[0] == '.' ||
			utf8.RuneCountInString(got) > maxName {
			t.Errorf("safeName(%q) = %q", s, got)
		}
		if again := safeName(got); again != got {
			t.Errorf("safeName is not stable: %q, %q", got, again)
		}
	})
}

func TestCleanTitle(t *testing.T) {
	tests := map[string]string{
		"  a\n b\t c ":           "a b c",
		"x\u202Ey\x00\x1b[31m":   "xy[31m",
		strings.Repeat("长", 200): strings.Repeat("长", maxTitle-1) + "…",
	}
	for in, want := range tests {
		if got := cleanTitle(in); got != want {
			t.Errorf("cleanTitle(%q) = %q, want %q", in, got, want)
		}
	}
}
