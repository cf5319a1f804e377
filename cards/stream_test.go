package cards

import (
	"strings"
	"testing"
)

func TestClose(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text", "plain text"},
		{"a **bold", "a **bold**"},
		{"a **bold *both", "a **bold *both***"},
		{"a **bold*", "a **bold**"},
		{"a **bold**", "a **bold**"},
		{"a **", "a"},
		{"中**粗", "中**粗**"},
		{"5*3 = 15", "5*3 = 15"},
		{"a ~~gone", "a ~~gone~~"},
		{"run `go te", "run `go te`"},
		{"run ``a`b", "run ``a`b``"},
		{"run `", "run"},
		{"**a `b", "**a `b`**"},
		{"see [the docs](https://exam", "see the docs"},
		{"see [the docs]", "see [the docs]"},
		{"see [the do", "see the do"},
		{"see ![pic](https://e", "see"},
		{"see ![pi", "see"},
		{"see [a](b) and", "see [a](b) and"},
		{"**see [a](b", "**see a**"},
		{"a <thi", "a"},
		{"<thi", ""},
		{"a <", "a"},
		{"a < b", "a < b"},
		{"x &am", "x"},
		{"x \\", "x"},
		{"```go\nx := 1", "```go\nx := 1\n```"},
		{"```go\nx := 1\n``", "```go\nx := 1\n```"},
		{"```go", ""},
		{"text\n\n```py", "text\n\n"},
		{"- item\n  ```sh\n  ls", "- item\n  ```sh\n  ls\n  ```"},
		{"> ```\n> a", "> ```\n> a\n> ```"},
		{"```\n**not bold", "```\n**not bold\n```"},
		{"```\na\n```\n**b", "```\na\n```\n**b**"},
		{"text\n-", "text\n"},
		{"text\n=", "text\n"},
		{"text\n##", "text\n"},
		{"text\n1.", "text\n"},
		{"in 2024", "in 2024"},
		{"2024", "2024"},
		{"text\n\n| a | b |", "text\n\n"},
		{"text\n\n| a | b |\n|--", "text\n\n"},
		{"| a | b |\n|---|---|\n", "| a | b |\n|---|---|"},
		{"| a | b |\n|---|---|\n| 1 | **2", "| a | b |\n|---|---|\n| 1 | **2**"},
		{"$$\nx_1 *", "$$\nx_1 *\n$$"},
		{"para **one**\n\n- item *two", "para **one**\n\n- item *two*"},
		{"**open\n\nnext", "**open\n\nnext"},
	} {
		got := Close(c.in)
		if strings.TrimRight(got, "\n") != strings.TrimRight(c.want, "\n") {
			t.Errorf("Close(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// TestClosePrefixes renders every prefix of the corpus as if it were streamed: always well formed, and no marker of
// what is about to come shows.
func TestClosePrefixes(t *testing.T) {
	step := 1
	if testing.Short() || raceEnabled {
		step = 7
	}
	tg := Telegram().(*dialect)
	for name, md := range corpus(t) {
		for i := 0; i <= len(md); i += step {
			cut := md[:runeStart(md, i)]
			bs := tg.parse(Close(cut))
			text := tg.render.text(bs)
			if text == "" {
				continue
			}
			visible, err := checkTelegram(text)
			if err != nil && visibleText(untag(text)) {
				t.Fatalf("%s %d: %v\n%s\n-> %s", name, i, err, cut, text)
			}
			if name == "odd" || name == "code" || name == "math" {
				continue // has such marks on purpose
			}
			for _, mark := range []string{"**", "~~", "```", "](", "|--", "<thi", "<det"} {
				if strings.Contains(visible, mark) {
					t.Fatalf("%s %d: %q shows in %q\nof %q", name, i, mark, visible, cut)
				}
			}
		}
	}
}

// TestCloseFinished: finished texts keep their meaning.
func TestCloseFinished(t *testing.T) {
	for name, md := range corpus(t) {
		if name == "odd" { // ends in what could go on
			continue
		}
		for _, d := range dialects {
			a, b := show(d.Markdown(md)), show(d.Markdown(Close(md)))
			if a != b {
				t.Errorf("%s %s changed:\n%s\nto:\n%s", name, d.Name(), a, b)
			}
		}
	}
}

func TestLastOf(t *testing.T) {
	code := "intro\n\n```go\n" + strings.Repeat("x := 1\n", 500)
	got := lastOf(code, 700)
	if !strings.HasPrefix(got, "```go\nx := 1\n") || len(got) > 1100 {
		t.Errorf("%d bytes, begins %.30q", len(got), got)
	}
	if s := "short"; lastOf(s, 100) != s {
		t.Error("a short text is cut")
	}
	paras := strings.Repeat("para para para\n\n", 200)
	if got := lastOf(paras, 500); !strings.HasPrefix(got, "para") || len(got) > 800 {
		t.Errorf("%d bytes, begins %.30q", len(got), got)
	}
}
