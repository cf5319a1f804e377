package phrase

import "testing"

func TestGuess(t *testing.T) {
	for text, want := range map[string]Lang{
		"": "", "123 !?": "", "hello": EN, "你好": ZH, "run 一下 tests please now": EN, "请运行 test": ZH, "Привет": EN,
	} {
		if got := Guess(text); got != want {
			t.Errorf("Guess(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestIn(t *testing.T) {
	p := New("%d of 100%%", "100%% 中的 %d")
	defer func() { all = all[:len(all)-1] }()
	for l, want := range map[Lang]string{EN: "3 of 100%", ZH: "100% 中的 3", "": "3 of 100%", "fr": "3 of 100%"} {
		if got := p.In(l, 3); got != want {
			t.Errorf("In(%q) = %q, want %q", l, got, want)
		}
	}
	if got := New("plain", "中").In(ZH); got != "中" {
		t.Errorf("got %q", got)
	}
	all = all[:len(all)-1]
}
