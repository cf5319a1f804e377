package run

import (
	"strings"
	"testing"

	"deerbot/runtime/model"
)

func TestTitleOf(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"six words are not too many", "six words are not too many"},
		{"compare the wasm runtimes outside the browser", "compare the wasm runtimes outside the…"},
		{strings.Repeat("字", 61), strings.Repeat("字", 59) + "…"},
		{"<from id=1>\nwords", ""},
	} {
		got := titleOf([]model.Message{{Role: model.RoleUser, Parts: []model.Part{{Kind: model.PartText, Text: tt.text}}}})
		if got != tt.want {
			t.Errorf("titleOf(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}
