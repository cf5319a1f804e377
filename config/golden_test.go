package config

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the files made from the types")

// TestGeneratedFiles compares what the types generate with the files in the repository.
func TestGeneratedFiles(t *testing.T) {
	for name, got := range map[string][]byte{
		"config.example.yaml":     Example(),
		"docs/config.schema.json": Schema(),
		"docs/configuration.md":   Reference(),
	} {
		path := filepath.Join("..", filepath.FromSlash(name))
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s is not what the types say; go test ./config -update rewrites it (-file +types):\n%s", name, d)
		}
	}
}
