package budget

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"deerbot/runtime/sandbox"
)

// texts draws texts with lines, wide characters and bytes that are no characters.
func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "line\n", "\n", "日本語", "🦌", "\xff", "\xe6\x97", "a longer line without end ", "\r\n", "é",
		}), 0, 300).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

func TestClipNeverLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := texts().Draw(t, "content")
		max := rapid.IntRange(-1, 800).Draw(t, "max")
		note := rapid.SampledFrom([]string{"", "see there", strings.Repeat("long ", 60)}).Draw(t, "note")
		got, clipped := ClipNote(content, max, note)
		n := utf8.RuneCountInString(got)
		if clipped != (utf8.RuneCountInString(content) > max) {
			t.Fatalf("clipped is %v", clipped)
		}
		if !clipped {
			if got != content {
				t.Fatal("changed though short enough")
			}
			return
		}
		if n > max && max >= 0 {
			t.Fatalf("%d characters, allowed are %d", n, max)
		}
		if utf8.ValidString(content) && !utf8.ValidString(got) {
			t.Fatal("cut inside a character")
		}
		head, tail, marked := cutMark(got)
		if !strings.HasPrefix(content, head) || !strings.HasSuffix(content, tail) {
			t.Fatalf("head %q or tail %q are not of the content", head, tail)
		}
		if marked && len(head)+len(tail) > len(content) {
			t.Fatal("head and tail overlap")
		}
	})
}

func cutMark(s string) (head, tail string, ok bool) {
	head, rest, ok := strings.Cut(s, "\n[… ")
	if !ok {
		return s, "", false
	}
	_, tail, _ = strings.Cut(rest, " …]\n")
	return head, tail, true
}

func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := texts().Draw(t, "content")
		h := rapid.IntRange(0, 400).Draw(t, "head")
		n := rapid.IntRange(0, 400).Draw(t, "tail")
		head, tail := Split(content, h, n)
		if !strings.HasPrefix(content, head) || !strings.HasSuffix(content, tail) || len(head)+len(tail) > len(content) {
			t.Fatalf("%q, %q", head, tail)
		}
		if utf8.RuneCountInString(head) > h || utf8.RuneCountInString(tail) > n {
			t.Fatalf("too long: %q, %q", head, tail)
		}
	})
}

func TestClipAtLines(t *testing.T) {
	var b strings.Builder
	for range 1000 {
		b.WriteString("0123456789\n")
	}
	got, _ := Clip(b.String(), 1000)
	for i, l := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
		if l != "0123456789" && l != "" && !strings.HasPrefix(l, "[… ") {
			t.Errorf("line %d is cut: %q", i, l)
		}
	}
	if !strings.Contains(got, "characters left out") || utf8.RuneCountInString(got) < 900 {
		t.Errorf("got %q", got)
	}
}

func TestFitSpills(t *testing.T) {
	files, err := sandbox.Open(filepath.Join(t.TempDir(), "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	long := strings.Repeat("line of output\n", 2000)
	got := Fit(files, "web_fetch", long, 0)
	i := strings.Index(got, sandbox.ToolResults)
	if i < 0 || utf8.RuneCountInString(got) > Default {
		t.Fatalf("no path, or too long: %.200q", got)
	}
	p, _, _ := strings.Cut(got[i:], ",")
	if b, err := files.ReadFile(p, 1<<20); err != nil || string(b) != long {
		t.Errorf("%s: %v", p, err)
	}
	if again, err := Spill(files, "web_fetch", long); err != nil || again != p {
		t.Errorf("the same output went to %s, %v", again, err)
	}
	if evil, err := Spill(files, "../../x y", "z"); err != nil || !strings.HasPrefix(evil, sandbox.ToolResults+"/x_y-") {
		t.Errorf("got %s, %v", evil, err)
	}
	if got := Fit(files, "read_file", long, 500); strings.Contains(got, sandbox.ToolResults) || utf8.RuneCountInString(got) > 500 {
		t.Errorf("read_file: %q", got)
	}
	if got := Fit(nil, "x", long, 500); utf8.RuneCountInString(got) > 500 {
		t.Errorf("without files: %q", got)
	}
	if got := Fit(files, "x", "short", 5); got != "short" {
		t.Errorf("exact: %q", got)
	}
	if changed, err := files.ChangedOutputs(nil); err != nil || len(changed) != 0 {
		t.Errorf("spilled files count as outputs: %v, %v", changed, err)
	}
}
