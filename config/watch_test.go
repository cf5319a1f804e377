package config

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// change is one call of Watch.
type change struct {
	cfg *Config
	err error
}

// watching starts Watch on a file and returns its changes. touch changes the file.
func watching(t *testing.T, file string, touch func()) chan change {
	t.Helper()
	got := make(chan change, 16)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Watch(ctx, LoadOptions{Path: file, Env: envOf(nil)}, func(c *Config, err error) { got <- change{c, err} })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch: %v", err)
		}
	})
	// The watcher gives no sign when it is ready: touch the file until it is seen.
	deadline := time.After(10 * time.Second)
	for {
		touch()
		select {
		case <-got:
			return got
		case <-time.After(2 * debounce):
		case <-deadline:
			t.Fatal("the watcher sees nothing")
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// next waits for the next change for which want holds; others may come before it, since one writing can be seen as two.
func next(t *testing.T, got chan change, want func(change) bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case c := <-got:
			if want(c) {
				return
			}
		case <-deadline:
			t.Fatal("the change was not reported")
		}
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	write(t, file, "locale: auto\n")
	got := watching(t, file, func() { write(t, file, "locale: en\n") })

	write(t, file, "locale: zh\n")
	next(t, got, func(c change) bool { return c.err == nil && c.cfg.Locale == "zh" })

	// Editors write beside the file and rename.
	tmp := filepath.Join(dir, ".config.yaml.swp")
	write(t, tmp, "locale: en\nlog: {level: debug}\n")
	if err := os.Rename(tmp, file); err != nil {
		t.Fatal(err)
	}
	next(t, got, func(c change) bool { return c.err == nil && c.cfg.Log.Level == "debug" })

	// A fault is reported, and the file is still watched.
	write(t, file, "locale: xx\n")
	next(t, got, func(c change) bool { return c.err != nil && c.cfg == nil })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	next(t, got, func(c change) bool { return c.err != nil })
	write(t, file, "locale: zh\n")
	next(t, got, func(c change) bool { return c.err == nil && c.cfg.Locale == "zh" })
}

// TestWatchMounted changes a file as configuration mounts do: by swapping a link to a directory.
func TestWatchMounted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"v1": "locale: auto\n", "v2": "locale: zh\n"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "config.yaml"), text)
	}
	link := func(target, name string) {
		t.Helper()
		tmp := filepath.Join(dir, "tmp")
		if err := os.Symlink(target, tmp); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("v1", "..data")
	file := filepath.Join(dir, "config.yaml")
	link("..data/config.yaml", "config.yaml")
	got := watching(t, file, func() { link("v1", "..data") })
	link("v2", "..data")
	next(t, got, func(c change) bool { return c.err == nil && c.cfg.Locale == "zh" })
}

func TestWatchWithoutFile(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Watch(ctx, LoadOptions{Dir: t.TempDir(), Env: envOf(nil)}, nil); err != nil {
		t.Error(err)
	}
	err := Watch(ctx, LoadOptions{Path: filepath.Join(t.TempDir(), "no", "config.yaml"), Env: envOf(nil)}, nil)
	if err == nil {
		t.Error("a directory that is not there was watched")
	}
}
