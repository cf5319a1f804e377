// Package budget keeps tool output short: head and tail stay in the history, the whole goes to a file that the model
// can page through.
//
// All lengths are in characters (runes; each byte that is not UTF-8 counts as one).
package budget

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"deerbot/runtime/sandbox"
)

// Default is the number of characters kept of a result whose tool names no limit.
const Default = 12_000

// Clip shortens content to at most max characters, the note about what is left out included, and reports whether it
// had to. Head and tail are cut at line ends where there are any, never inside a character.
func Clip(content string, max int) (string, bool) { return ClipNote(content, max, "") }

// ClipNote is [Clip] with words added to the note, such as where the whole can be read.
func ClipNote(content string, max int, note string) (string, bool) {
	total := utf8.RuneCountInString(content)
	if total <= max {
		return content, false
	}
	if max <= 0 {
		return "", true
	}
	mark := marker(total, note) // no shorter than the real one, which counts fewer
	room := max - utf8.RuneCountInString(mark)
	if room < max/2 {
		// A note that would take most of the room is left out, in the end with all words.
		mark, note = marker(total, ""), ""
		if room = max - utf8.RuneCountInString(mark); room < max/2 {
			head, _ := Split(content, max, 0)
			return head, true
		}
	}
	tail := room * 3 / 10
	h, t := Split(content, room-tail, tail)
	left := total - utf8.RuneCountInString(h) - utf8.RuneCountInString(t)
	return h + marker(left, note) + t, true
}

func marker(left int, note string) string {
	if note != "" {
		note = "; " + note
	}
	return fmt.Sprintf("\n[… %d characters left out%s …]\n", left, note)
}

// Split returns the first head and the last tail characters of content or fewer: head ends and tail begins at a line's
// border when one lies in the half that is nearer to the cut. They never overlap.
func Split(content string, head, tail int) (string, string) {
	h := forward(content, head)
	if i := strings.LastIndexByte(content[:h], '\n'); h < len(content) && i+1 > h/2 {
		h = i + 1
	}
	t := max(backward(content, tail), h)
	// A beginning snaps forwards: backwards would make the whole longer than allowed.
	if rest := content[t:]; t > 0 && content[t-1] != '\n' {
		if i := strings.IndexByte(rest, '\n'); i >= 0 && i+1 < (len(rest)+1)/2 {
			t += i + 1
		}
	}
	return content[:h], content[t:]
}

// forward is the offset behind the first n characters.
func forward(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// backward is the offset of the last n characters.
func backward(s string, n int) int {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return i
}

// Spill writes the whole output of a tool to a file under [sandbox.ToolResults] and returns its virtual path. The name
// comes from the content, so the same output is kept once. What is written there never counts as an output of the run.
func Spill(files *sandbox.Files, tool, content string) (string, error) {
	sum := sha256.Sum256([]byte(content))
	p := sandbox.ToolResults + "/" + sandbox.SafeName(tool) + "-" + hex.EncodeToString(sum[:6]) + ".txt"
	if fi, err := files.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Size() == int64(len(content)) {
		return p, nil
	}
	if err := files.WriteFile(p, []byte(content)); err != nil {
		return "", err
	}
	return p, nil
}

// Fit brings the result of a tool into the history: content as it is when it has at most max characters (0 means
// [Default]), else head and tail with the path of the whole. The output of read_file is clipped but not spilled: it is in
// a file already, and spilling it would only make the model read what it just read. When the file cannot be written, or
// files is nil, the clip says nothing of a path.
func Fit(files *sandbox.Files, tool, content string, max int) string {
	if max <= 0 {
		max = Default
	}
	if utf8.RuneCountInString(content) <= max {
		return content
	}
	note := ""
	if files != nil && tool != "read_file" {
		if p, err := Spill(files, tool, content); err == nil {
			note = "the whole is in " + p + ", page through it with read_file or search it with grep"
		}
	}
	out, _ := ClipNote(content, max, note)
	return out
}
