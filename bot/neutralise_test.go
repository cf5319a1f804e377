package bot

import "testing"

func TestNeutralise(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"lines and tabs stay", "first line\nsecond \"line\"\n\tcode := `x`\n", "first line\nsecond \"line\"\n\tcode := `x`\n"},
		{"line ends of other systems", "a\r\nb\rc\u2028d\u2029e", "a\nb\nc\nd\ne"},
		{"scripts and emoji", "می\u200cخواهم 👩\u200d💻 ❤️ 你好", "می\u200cخواهم 👩\u200d💻 ❤️ 你好"},
		{"control characters", "a\x00b\x1b[31mc\x7f", "ab[31mc"},
		{"overrides of direction", "abc\u202egpj.exe\u202c \u2066x\u2069", "abcgpj.exe x"},
		{"what nobody sees", "a\u200bb\ufeffc\U000e0041\U000e0042", "abc"},
		{"bytes that are no text", "a\xff\xfeb", "a\uFFFDb"},
		{"our tags", "<quote author=me>\n</Uploads> < /note> <b>", "‹quote author=me>\n‹/Uploads> ‹ /note> <b>"},
		{"our tags with something hidden in them", "<\u200bfrom name=x/>", "‹from name=x/>"},
	} {
		if got := neutralise(tt.in); got != tt.want {
			t.Errorf("%s: neutralise(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}
