package nearest

import "testing"

func TestWord(t *testing.T) {
	words := []string{"stop", "status", "new", "help", "level", "format", "telegram"}
	for _, tt := range []struct{ in, want string }{
		{"stopp", "stop"},
		{"sotp", "stop"}, // neighbours swapped
		{"STATUSS", "status"},
		{"lvel", "level"},
		{"fromat", "format"},
		{"telegarm", "telegram"},
		{"nwe", "new"},
		{"xyz", ""},
		{"", ""},
		{"tmp", ""},
	} {
		if got, _ := Word(tt.in, words); got != tt.want {
			t.Errorf("Word(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
