package sandbox

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestC206UploadNames(t *testing.T) {
	f, host := newFiles(t)
	if _, err := f.ReadDir(Uploads); err != nil {
		t.Fatal(err)
	}
	top := filepath.Dir(filepath.Dir(host))
	before := map[string]bool{}
	for _, p := range tree(t, top) {
		before[p] = true
	}
	names := []string{
		"../../../AGENTS.md", `..\..\x`, "/etc/cron.d/x", ".", "", "a/b.txt", "con", "x\x00.txt",
		strings.Repeat("n", 300), "AGENTS.md", "x",
	}
	seen := map[string]bool{}
	for _, msg := range []string{"om_1", "1718.2231", "../../evil", "", ".", "a/b", "-x", "con"} {
		for _, name := range names {
			p, size, err := f.SaveUpload(msg, name, strings.NewReader("text "+name), 1000)
			if err != nil {
				t.Fatalf("%q %q: %v", msg, name, err)
			}
			if seen[p] || !strings.HasPrefix(p, Uploads+"/") || strings.Count(p, "/") != strings.Count(Uploads, "/")+2 {
				t.Errorf("%q %q went to %s", msg, name, p)
			}
			seen[p] = true
			if got := read(t, f, p); got != "text "+name || size != int64(len(got)) {
				t.Errorf("%s: %q, %d bytes", p, got, size)
			}
		}
	}
	for _, p := range tree(t, top) {
		if !before[p] && !strings.Contains(p, "uploads/") {
			t.Errorf("%s appeared", p)
		}
	}
}

func TestC087SameNameTwice(t *testing.T) {
	f, _ := newFiles(t)
	jpeg := "\xff\xd8\xff\xe0 first"
	png := "\x89PNG\r\n\x1a\n second"
	var got []string
	for _, up := range []struct{ name, content string }{
		{"photo", jpeg}, {"photo", jpeg}, {"photo", png}, {"", "some text"}, {"photo.jpg", jpeg}, {"image", "\x00\x01\x02\x03"},
	} {
		p, _, err := f.SaveUpload("m", up.name, strings.NewReader(up.content), 100)
		if err != nil {
			t.Fatal(err)
		}
		if c := read(t, f, p); c != up.content {
			t.Errorf("%s holds %q", p, c)
		}
		got = append(got, strings.TrimPrefix(p, Uploads+"/m/"))
	}
	if diff := cmp.Diff([]string{"photo.jpg", "photo-2.jpg", "photo.png", "file.txt", "photo-3.jpg", "image"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestUploadsAtTheSameTime(t *testing.T) {
	f, _ := newFiles(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			text := strings.Repeat("x", 1000+i)
			p, _, err := f.SaveUpload("m", "a.txt", strings.NewReader(text), 1<<20)
			if err != nil {
				t.Error(err)
				return
			}
			if b, err := f.ReadFile(p, 1<<20); err != nil || string(b) != text {
				t.Errorf("%s: %v", p, err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[p] = true
		})
	}
	wg.Wait()
	if len(seen) != 20 {
		t.Errorf("%d files of 20", len(seen))
	}
}

func TestUploadLimit(t *testing.T) {
	f, host := newFiles(t)
	if _, size, err := f.SaveUpload("m", "a", bytes.NewReader(make([]byte, 5000)), 5000); err != nil || size != 5000 {
		t.Fatalf("exact size: %d, %v", size, err)
	}
	_, _, err := f.SaveUpload("m2", "a", bytes.NewReader(make([]byte, 5001)), 5000)
	checkErr(t, err, ErrTooLarge, host)
	broken := errors.New("get https://files.example/bot123:secret/x: reset")
	_, _, err = f.SaveUpload("m3", "a", io.MultiReader(bytes.NewReader(make([]byte, 9000)), failing{broken}), 1<<20)
	if !errors.Is(err, broken) || strings.Contains(err.Error(), "secret") {
		t.Errorf("broken transfer: %v", err)
	}
	_, _, err = f.SaveUpload("m3", "a", failing{broken}, 1<<20)
	if !errors.Is(err, broken) || strings.Contains(err.Error(), "secret") {
		t.Errorf("broken at once: %v", err)
	}
	if diff := cmp.Diff([]string{"outputs", "uploads", "uploads/m", "uploads/m/a", "workspace"}, tree(t, host)); diff != "" {
		t.Errorf("something was left: %s", diff)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestUploadNeverThroughLinks(t *testing.T) {
	f, host := newFiles(t)
	write(t, f, Workspace+"/AGENTS.md", "mine")
	if err := os.Symlink("../workspace", filepath.Join(host, "uploads", "m")); err != nil {
		t.Fatal(err)
	}
	_, _, err := f.SaveUpload("m", "x.txt", strings.NewReader("x"), 10)
	checkErr(t, err, ErrOutside, host)
	if err := os.Mkdir(filepath.Join(host, "uploads", "n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"../../workspace/AGENTS.md", "/tmp/none", "../../workspace/new.md"} {
		link := filepath.Join(host, "uploads", "n", "x.txt")
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		p, _, err := f.SaveUpload("n", "x.txt", strings.NewReader("evil"), 10)
		if err != nil || p == Uploads+"/n/x.txt" {
			t.Errorf("%s: %v", p, err)
		}
		os.Remove(link)
	}
	if got := read(t, f, Workspace+"/AGENTS.md"); got != "mine" {
		t.Errorf("overwritten: %q", got)
	}
	if _, err := f.Stat(Workspace + "/new.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("created through a link: %v", err)
	}
}

func TestTypeOf(t *testing.T) {
	tests := []struct{ name, head, want string }{
		{"a.md", "# x", "text/markdown"},
		{"a.md", "<h1>x</h1>", "text/markdown"},
		{"a.csv", "a,b", "text/csv"},
		{"a.json", "{}", "application/json"},
		{"a", "{}", "text/plain"},
		{"a.xyz", "x", "text/plain"},
		{"a.html", "\x89PNG\r\n\x1a\n", "image/png"},
		{"a.png", "<html>", "text/html"},
		{"a.svg", "<svg", "image/svg+xml"},
		{"a.docx", "PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.txt", "PK\x03\x04", "application/zip"},
		{"a.pdf", "%PDF-1.7", "application/pdf"},
		{"a.txt", "\x00\x01\x02", "application/octet-stream"},
		{"a.parquet", "PAR1\x00\x01\x00", "application/vnd.apache.parquet"},
	}
	for _, tt := range tests {
		if got := TypeOf(tt.name, []byte(tt.head)); got != tt.want {
			t.Errorf("TypeOf(%q, %q) is %s, want %s", tt.name, tt.head, got, tt.want)
		}
	}
}

func TestOutputs(t *testing.T) {
	f, host := newFiles(t)
	write(t, f, Outputs+"/same.txt", "same")
	write(t, f, Outputs+"/grows.txt", "a")
	write(t, f, Outputs+"/d/rewritten.txt", "aaaa")
	write(t, f, Outputs+"/gone.txt", "x")
	before, err := f.SnapshotOutputs()
	if err != nil {
		t.Fatal(err)
	}
	if len(before) != 4 {
		t.Fatalf("snapshot %v", before)
	}
	if err := f.Append(Outputs+"/grows.txt", []byte("b")); err != nil {
		t.Fatal(err)
	}
	old, _ := os.Stat(filepath.Join(host, "outputs/d/rewritten.txt"))
	write(t, f, Outputs+"/d/rewritten.txt", "bbbb")
	if err := os.Chtimes(filepath.Join(host, "outputs/d/rewritten.txt"), old.ModTime(), old.ModTime()); err != nil {
		t.Fatal(err)
	}
	write(t, f, Outputs+"/new/n.txt", "n")
	write(t, f, Outputs+"/.hidden/n.txt", "n")
	write(t, f, Outputs+"/.dot", "n")
	write(t, f, Workspace+"/w.txt", "n")
	if err := f.Remove(Outputs + "/gone.txt"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("same.txt", filepath.Join(host, "outputs/link")); err != nil {
		t.Fatal(err)
	}
	changed, err := f.ChangedOutputs(before)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range changed {
		s := strings.TrimPrefix(o.Path, Outputs+"/")
		if o.New {
			s += " new"
		}
		got = append(got, s)
	}
	if diff := cmp.Diff([]string{"d/rewritten.txt", "grows.txt", "new/n.txt new"}, got); diff != "" {
		t.Error(diff)
	}
}
