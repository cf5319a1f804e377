package cards

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file under testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// show writes bodies for a golden file.
func show(bodies []Body) string {
	var b strings.Builder
	for i, body := range bodies {
		if i > 0 {
			b.WriteString("\n======== next body\n")
		}
		b.WriteString(body.Text)
		b.WriteString("\n")
		for _, row := range body.Buttons {
			for _, k := range row {
				b.WriteString("[" + k.Label + "] ")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// corpus are texts as models write them, by file name.
func corpus(t testing.TB) map[string]string {
	files, err := filepath.Glob("testdata/corpus/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".md")] = string(b)
	}
	return out
}

func TestCorpus(t *testing.T) {
	for name, md := range corpus(t) {
		for _, d := range dialects {
			bodies := d.Markdown(md)
			for i, b := range bodies {
				if _, err := checkBody(d, b); err != nil {
					t.Errorf("%s, %s part %d: %v", name, d.Name(), i, err)
				}
			}
			golden(t, "corpus/"+name+"."+d.Name()+".golden", show(bodies))
		}
	}
}
