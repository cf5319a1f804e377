package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"deerbot/runtime/event"
	"deerbot/runtime/sandbox"
	"deerbot/store"
)

func TestLs(t *testing.T) {
	r := newRig(t)
	r.file(ws+"/a.txt", "hello")
	r.file(ws+"/d/e/deep.txt", "x")
	r.file(ws+"/.tool-results/x.txt", "x")
	if err := os.Symlink("a.txt", filepath.Join(r.host, "workspace", "l")); err != nil {
		t.Fatal(err)
	}
	want := "/mnt/user-data/workspace/\n  .tool-results/\n  a.txt  5 B\n  d/\n    e/\n  l (link)\n"
	if diff := cmp.Diff(want, r.ok("ls", m{"path": ws})); diff != "" {
		t.Error(diff)
	}
	if got := r.ok("ls", m{}); !strings.Contains(got, "\n  outputs/\n  uploads/\n  workspace/\n") || !strings.Contains(got, "    a.txt") {
		t.Errorf("got %q", got)
	}
	if got := r.ok("ls", m{"path": outs}); !strings.Contains(got, "(empty)") {
		t.Errorf("got %q", got)
	}
	r.fails("ls", m{"path": ws + "/a.txt"}, "is a file", "read_file")
	r.fails("ls", m{"path": ws + "/a.tx"}, "does not exist", "there is /mnt/user-data/workspace/a.txt")
	for i := range 600 {
		r.file(fmt.Sprintf("%s/many/%03d-%s", ws, i, strings.Repeat("n", 60)), "")
	}
	got := r.ok("ls", m{"path": ws + "/many"})
	if n := utf8.RuneCountInString(got); n > 20_500 || n < 19_000 || !strings.Contains(got, "more entries not shown") {
		t.Errorf("%d characters: %q", n, got[len(got)-100:])
	}
	if err := os.WriteFile(filepath.Join(r.host, "outputs", "a\n[forged]"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.ok("ls", m{"path": outs}); strings.Contains(got, "\n[forged]") {
		t.Errorf("a name forged a line: %q", got)
	}
}

func TestReadFile(t *testing.T) {
	r := newRig(t)
	r.file(ws+"/a.txt", "one\ntwo\nthree")
	r.file(ws+"/empty", "")
	r.file(ws+"/bin", "a\x00b")
	r.file(ws+"/pic.png", "\x89PNG\r\n\x1a\n\x00\x00")
	r.file(ws+"/latin", "caf\xe9\n")
	r.file(ws+"/bom", "\ufeffx\n")
	r.file(ws+"/utf16", "\xff\xfea\x00\n\x00b\x00")
	tests := []struct {
		name string
		args m
		want string
	}{
		{"whole", m{"path": ws + "/a.txt"}, "[lines 1-3 of 3]\none\ntwo\nthree"},
		{"part", m{"path": ws + "/a.txt", "start_line": 2, "end_line": 2}, "[lines 2-2 of 3]\ntwo\n"},
		{"end behind the file", m{"path": ws + "/a.txt", "start_line": 3, "end_line": 99}, "[lines 3-3 of 3]\nthree"},
		{"empty", m{"path": ws + "/empty"}, "[the file is empty]\n"},
		{"latin", m{"path": ws + "/latin"}, "[lines 1-1 of 1; not UTF-8, unreadable bytes are shown as \ufffd]\ncaf\ufffd\n"},
		{"bom", m{"path": ws + "/bom"}, "[lines 1-1 of 1]\nx\n"},
		{"utf-16", m{"path": ws + "/utf16"}, "[lines 1-2 of 2]\na\nb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, r.ok("read_file", tt.args)); diff != "" {
				t.Error(diff)
			}
		})
	}
	r.fails("read_file", m{"path": ws + "/bin"}, "binary file", "application/octet-stream, 3 B")
	r.fails("read_file", m{"path": ws + "/pic.png"}, "image/png")
	r.fails("read_file", m{"path": ws}, "is a directory", "ls")
	r.fails("read_file", m{"path": ws + "/a.text"}, "does not exist", "there is /mnt/user-data/workspace/a.txt")
	r.fails("read_file", m{"path": ws + "/a.txt", "start_line": 4}, "behind the end", "3 lines")
	r.fails("read_file", m{"path": ws + "/a.txt", "start_line": 3, "end_line": 2}, "before start_line")
	r.fails("read_file", m{"path": ws + "/a.txt", "start_line": 0}, "at least 1")
	r.fails("read_file", m{"path": "a.txt"}, "absolute", "/mnt/user-data/workspace/a.txt")
	r.fails("read_file", m{"path": "/etc/passwd"}, "outside the allowed directories")
}

func TestReadFilePages(t *testing.T) {
	r := newRig(t)
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "line %d äöü\n", i+1)
	}
	r.file(ws+"/long", b.String())
	var got strings.Builder
	for start, calls := 1, 0; ; calls++ {
		out := r.ok("read_file", m{"path": ws + "/long", "start_line": start})
		head, text, _ := strings.Cut(out, "\n")
		if n := utf8.RuneCountInString(text); n > 50_000 {
			t.Fatalf("%d characters", n)
		}
		got.WriteString(text)
		_, next, more := strings.Cut(head, "start_line=")
		if !more {
			break
		}
		if _, err := fmt.Sscanf(next, "%d", &start); err != nil || calls > 20 {
			t.Fatalf("%s: %v", head, err)
		}
	}
	if got.String() != b.String() {
		t.Error("the pages together are not the file")
	}
	r.file(ws+"/wide", "short\n"+strings.Repeat("é", 200_000)+"\nend\n")
	if out := r.ok("read_file", m{"path": ws + "/wide"}); !strings.HasPrefix(out, "[lines 1-1 of 3; cut here, go on with start_line=2]\nshort\n") {
		t.Errorf("got %.100q", out)
	}
	out := r.ok("read_file", m{"path": ws + "/wide", "start_line": 2})
	if !strings.Contains(out, "longer than 50,000 characters") || !utf8.ValidString(out) || utf8.RuneCountInString(out) > 50_200 {
		t.Errorf("got %.200q", out)
	}
	r.file(ws+"/exact", strings.Repeat("x", 49_999)+"\n")
	if out := r.ok("read_file", m{"path": ws + "/exact"}); !strings.HasPrefix(out, "[lines 1-1 of 1]\n") {
		t.Errorf("the exact limit: %.100q", out)
	}
}

func TestReadFileTaint(t *testing.T) {
	r := newRig(t)
	for p, want := range map[string]bool{
		sandbox.ToolResults + "/web_fetch-0.txt": true, sandbox.Downloads + "/page.html": true,
		ws + "/own.md": false, ws + "/downloads2/x": false,
	} {
		r.file(p, "secret words")
		res, err := r.call("read_file", m{"path": p})
		if err != nil || res.Untrusted != want {
			t.Errorf("read_file %s: untrusted %v, %v", p, res.Untrusted, err)
		}
		res, err = r.call("grep", m{"pattern": "words", "path": p})
		if err != nil || res.Untrusted != want {
			t.Errorf("grep %s: untrusted %v, %v", p, res.Untrusted, err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	r := newRig(t)
	if got := r.ok("write_file", m{"path": outs + "/d/a.md", "content": "one\ntwo"}); got != "created /mnt/user-data/outputs/d/a.md: 7 B, 2 lines" {
		t.Errorf("got %q", got)
	}
	if got := r.ok("write_file", m{"path": outs + "/d/a.md", "content": "1\n"}); !strings.HasPrefix(got, "replaced (7 B before)") {
		t.Errorf("got %q", got)
	}
	if got := r.ok("write_file", m{"path": outs + "/d/a.md", "content": "2\n", "append": "true"}); got != "added 2 B (1 line) to /mnt/user-data/outputs/d/a.md, now 4 B" {
		t.Errorf("got %q", got)
	}
	if got := r.text(outs + "/d/a.md"); got != "1\n2\n" {
		t.Errorf("file %q", got)
	}
	r.ok("write_file", m{"path": ws + "/exact", "content": strings.Repeat("x", 80<<10)})
	r.fails("write_file", m{"path": ws + "/over", "content": strings.Repeat("x", 80<<10+1)}, "80.0 KiB", "append=true")
	r.fails("write_file", m{"path": ws, "content": "x"}, "fixed directory")
	r.fails("write_file", m{"path": outs + "/d", "content": "x"}, "is a directory", "path of a file")
	r.fails("write_file", m{"path": outs + "/d/a.md/x", "content": "x"}, "not a directory")
	r.fails("write_file", m{"path": "/mnt/skills/public/x", "content": "x"}, "outside")
	r.fails("write_file", m{"path": ws + "/x", "text": "x"}, "text is not an argument", "content is required")
	r.ok("write_file", m{"path": ws + "/blank", "content": ""})
}

func TestStrReplace(t *testing.T) {
	r := newRig(t)
	p := ws + "/a.go"
	reset := func(text string) { r.file(p, text) }
	reset("func a() {\n\treturn 1\n}\nfunc b() {\n\treturn 1\n}\n")
	before := r.text(p)
	r.fails("str_replace", m{"path": p, "old_str": "return 1", "new_str": "return 2"}, "occurs 2 times", "lines 2, 5", "replace_all")
	r.fails("str_replace", m{"path": p, "old_str": "", "new_str": "x"}, "old_str is empty")
	r.fails("str_replace", m{"path": p, "old_str": "x", "new_str": "x"}, "same")
	r.fails("str_replace", m{"path": p, "old_str": "func c() {", "new_str": "x"}, "does not occur", "nearest is line")
	r.fails("str_replace", m{"path": p, "old_str": "    return 1\n}", "new_str": "x"}, "line 2 has its first line with other blanks")
	r.fails("str_replace", m{"path": ws + "/b.go", "old_str": "a", "new_str": "x"}, "does not exist", "a.go")
	if got := r.text(p); got != before {
		t.Errorf("a failed call changed the file: %q", got)
	}
	if got := r.ok("str_replace", m{"path": p, "old_str": "b() {\n\treturn 1", "new_str": "b() {\n\treturn 2"}); !strings.HasSuffix(got, "replaced once in "+p+", line 4") {
		t.Errorf("got %q", got)
	}
	if got := r.ok("str_replace", m{"path": p, "old_str": "func", "new_str": "fn", "replace_all": true}); !strings.Contains(got, "2 times") {
		t.Errorf("got %q", got)
	}
	if got := r.text(p); got != "fn a() {\n\treturn 1\n}\nfn b() {\n\treturn 2\n}\n" {
		t.Errorf("file %q", got)
	}
	reset("a\r\nb\r\nc\r\n")
	r.ok("str_replace", m{"path": p, "old_str": "a\nb", "new_str": "x\ny"})
	if got := r.text(p); got != "x\r\ny\r\nc\r\n" {
		t.Errorf("line ends of Windows: %q", got)
	}
	reset("a\x00b")
	r.fails("str_replace", m{"path": p, "old_str": "a", "new_str": "x"}, "binary")
	reset("aaa")
	r.fails("str_replace", m{"path": p, "old_str": "a", "new_str": "b"}, "3 times")
	r.ok("str_replace", m{"path": p, "old_str": "aaa", "new_str": ""})
	if got := r.text(p); got != "" {
		t.Errorf("emptied file: %q", got)
	}
}

func TestGlob(t *testing.T) {
	r := newRig(t)
	for i := range 205 {
		r.file(fmt.Sprintf("%s/d/%03d.md", ws, i), "")
	}
	r.file(ws+"/top.md", "")
	if got := r.ok("glob", m{"pattern": ws + "/*.md"}); got != ws+"/top.md\n" {
		t.Errorf("absolute pattern: %q", got)
	}
	got := r.ok("glob", m{"pattern": "*.md"})
	if n := strings.Count(got, ".md\n"); n != 200 || !strings.Contains(got, "200 shown, there are more") {
		t.Errorf("%d lines: %q", n, got[len(got)-120:])
	}
	if got := r.ok("glob", m{"pattern": "*.md", "max_results": 206}); strings.Count(got, ".md\n") != 206 || strings.Contains(got, "more") {
		t.Errorf("the exact limit: %q", got[len(got)-120:])
	}
	if got := r.ok("glob", m{"pattern": "*.pdf", "path": ws}); !strings.HasPrefix(got, "no file matches") {
		t.Errorf("got %q", got)
	}
	if got := r.ok("glob", m{"pattern": ws + "/**/00?.md"}); strings.Count(got, "\n") != 10 {
		t.Errorf("got %q", got)
	}
	r.fails("glob", m{"pattern": "*", "max_results": 1001}, "at most 1000")
	r.fails("glob", m{"pattern": "["}, "malformed")
	r.fails("glob", m{"pattern": "/etc/*"}, "outside")
	r.fails("glob", m{"pattern": "../*"}, "..")
}

func TestGrep(t *testing.T) {
	r := newRig(t)
	r.file(ws+"/a.go", "package a\n\nfunc Alpha() {}\r\nfunc beta() {}\n")
	r.file(ws+"/b.txt", "alpha.beta\n"+strings.Repeat("x", 500)+"needle"+strings.Repeat("y", 500))
	r.file(ws+"/bin", "alpha\x00")
	r.file(ws+"/.git/c", "alpha")
	r.file(ws+"/big", strings.Repeat("alpha\n", 200_000))
	want := ws + "/a.go:3: func Alpha() {}\n" + ws + "/b.txt:1: alpha.beta\n[1 file over 1 MB not searched]\n"
	if diff := cmp.Diff(want, r.ok("grep", m{"pattern": "alpha"})); diff != "" {
		t.Error(diff)
	}
	if got := r.ok("grep", m{"pattern": "Alpha", "case_sensitive": true, "path": ws + "/a.go"}); got != ws+"/a.go:3: func Alpha() {}\n" {
		t.Errorf("got %q", got)
	}
	if got := r.ok("grep", m{"pattern": "a.b", "literal": true, "glob": "*.txt"}); !strings.HasPrefix(got, ws+"/b.txt:1: alpha.beta\n") {
		t.Errorf("got %q", got)
	}
	if got := r.ok("grep", m{"pattern": `func \w+\(\) \{\}$`, "glob": "*.go"}); strings.Count(got, "func") != 2 {
		t.Errorf("got %q", got)
	}
	got := r.ok("grep", m{"pattern": "needle", "glob": "b.txt"})
	line := strings.TrimPrefix(strings.SplitN(got, "\n", 2)[0], ws+"/b.txt:2: ")
	if n := utf8.RuneCountInString(line); n > 200 || !strings.Contains(line, "needle") || !strings.HasPrefix(line, "…") {
		t.Errorf("%d characters: %q", n, line)
	}
	if got := r.ok("grep", m{"pattern": "nothing"}); !strings.HasPrefix(got, "no line matches nothing") {
		t.Errorf("got %q", got)
	}
	if got := r.ok("grep", m{"pattern": "alpha", "path": ws + "/.git"}); !strings.Contains(got, "/.git/c:1") {
		t.Errorf("named dot directory: %q", got)
	}
	r.file(ws+"/many", strings.Repeat("hit\n", 150))
	if got := r.ok("grep", m{"pattern": "hit"}); strings.Count(got, ": hit\n") != 100 || !strings.Contains(got, "100 shown, there are more") {
		t.Errorf("%d lines", strings.Count(got, ": hit\n"))
	}
	if got := r.ok("grep", m{"pattern": "hit", "max_results": "150"}); strings.Count(got, ": hit\n") != 150 || strings.Contains(got, "there are more") {
		t.Errorf("the exact limit: %d lines", strings.Count(got, ": hit\n"))
	}
	r.fails("grep", m{"pattern": "(?=x)"}, "RE2", "literal=true")
	r.fails("grep", m{"pattern": ""}, "empty")
	r.fails("grep", m{"pattern": "x", "path": ws + "/big"}, "larger than 1 MB")
	r.fails("grep", m{"pattern": strings.Repeat("x", 1001)}, "1,000 characters")
}

func TestPresentFiles(t *testing.T) {
	r := newRig(t)
	r.file(outs+"/report.md", "# Report\n")
	r.file(outs+"/d/pic.png", "\x89PNG\r\n\x1a\n")
	r.file(outs+"/empty.txt", "")
	r.file(ws+"/draft.md", "x")
	res, err := r.call("present_files", m{"paths": []string{outs + "/report.md", outs + "/d/../d/pic.png", outs + "/report.md"}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("# Report\n"))
	want := store.Artifact{Path: outs + "/report.md", Name: "report.md", MIME: "text/markdown", Size: 9, SHA256: hex.EncodeToString(sum[:])}
	if len(res.Artifacts) != 2 {
		t.Fatalf("got %+v", res.Artifacts)
	}
	if diff := cmp.Diff(want, res.Artifacts[0]); diff != "" {
		t.Error(diff)
	}
	if a := res.Artifacts[1]; a.MIME != "image/png" || a.Path != outs+"/d/pic.png" {
		t.Errorf("got %+v", a)
	}
	if !strings.HasPrefix(res.Content, "presented 2 files:") {
		t.Errorf("content %q", res.Content)
	}
	if err := os.Symlink("../workspace/draft.md", filepath.Join(r.host, "outputs", "link.md")); err != nil {
		t.Fatal(err)
	}
	for p, say := range map[string]string{
		outs + "/repot.md": "there is /mnt/user-data/outputs/report.md", ws + "/draft.md": "only files under", outs: "only files under",
		outs + "/d": "is a directory", outs + "/empty.txt": "is empty", outs + "/link.md": "leads out", "report.md": "absolute",
		outs + "/../workspace/draft.md": "only files under", "/etc/passwd": "only files under",
	} {
		r.fails("present_files", m{"paths": []string{p, outs + "/report.md"}}, "nothing was presented", say)
	}
	res, err = r.call("present_files", json.RawMessage(`{"paths":"`+outs+`/report.md"}`))
	if err != nil || len(res.Artifacts) != 1 {
		t.Errorf("a single text as list: %v", err)
	}
	r.fails("present_files", m{"paths": []string{}}, "at least 1")
}

func TestTodo(t *testing.T) {
	r := newRig(t)
	items := []m{{"text": "one", "status": "completed"}, {"text": "two\n ", "status": "in_progress"}, {"text": "three", "status": "in_progress"}, {"text": "four", "status": "pending"}}
	res, err := r.call("todo", m{"todos": items})
	if err != nil {
		t.Fatal(err)
	}
	want := []event.Todo{{Text: "one", Status: "completed"}, {Text: "two", Status: "in_progress"}, {Text: "three", Status: "pending"}, {Text: "four", Status: "pending"}}
	if diff := cmp.Diff(want, res.Todos); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(any(want), res.State["todos"]); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(res.Content, "1 completed, 1 in progress, 2 pending; only one item") {
		t.Errorf("content %q", res.Content)
	}
	tool, _ := r.set.Get("todo")
	raw, _ := json.Marshal(m{"todos": items})
	if got := tool.Spec().Line(raw); got != "1/4 two" {
		t.Errorf("line %q", got)
	}
	res, err = r.call("todo", m{"todos": []m{}})
	if err != nil || res.Todos == nil || len(res.Todos) != 0 || res.Content != "plan cleared" {
		t.Errorf("cleared: %+v, %v", res, err)
	}
	r.fails("todo", m{"todos": []m{{"text": "x", "status": "done"}}}, "todos[0].status must be one of pending, in_progress, completed")
	r.fails("todo", m{"todos": []m{{"text": strings.Repeat("x", 201), "status": "pending"}}}, "at most 200")
	r.fails("todo", m{"todos": []m{{"text": " \n", "status": "pending"}}}, "blank")
	var many []m
	for range 51 {
		many = append(many, m{"text": "x", "status": "pending"})
	}
	r.fails("todo", m{"todos": many}, "at most 50")
	r.ok("todo", m{"todos": many[:50]})
}

func TestToolsWithoutFiles(t *testing.T) {
	r := newRig(t)
	r.env.Files = nil
	for _, name := range []string{"ls", "read_file", "write_file", "str_replace", "glob", "grep", "present_files"} {
		args := map[string]m{
			"read_file": {"path": "x"}, "write_file": {"path": "x", "content": ""}, "str_replace": {"path": "x", "old_str": "a", "new_str": "b"},
			"glob": {"pattern": "x"}, "grep": {"pattern": "x"}, "present_files": {"paths": []string{"x"}}, "ls": {},
		}[name]
		r.fails(name, args, "no files")
	}
}
