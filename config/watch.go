package config

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// debounce is how long a file must be quiet before it is read: editors write in several steps.
const debounce = 250 * time.Millisecond

// Watch calls onChange after every change of o's file with the new configuration, or with the error that makes it
// unusable; then nothing is to change. It watches the directory, because editors and configuration mounts put a new file
// in the place of the old one. It blocks until ctx ends and returns nil then; without a file it only waits.
//
// onChange is called from this goroutine, one call at a time.
func Watch(ctx context.Context, o LoadOptions, onChange func(*Config, error)) error {
	path := o.Find()
	if path == "" {
		<-ctx.Done()
		return nil
	}
	o.Path = path
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("config: watch %s: %w", path, err)
	}
	defer w.Close()
	dir := filepath.Dir(path)
	if err := w.Add(dir); err != nil {
		return fmt.Errorf("config: watch %s: %w", dir, err)
	}
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.Events:
			if !ok {
				return fmt.Errorf("config: watch %s: the watcher ended", path)
			}
			if concerns(event, path) {
				timer.Reset(debounce)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return fmt.Errorf("config: watch %s: the watcher ended", path)
			}
			// Events may have been lost: look at the file.
			_ = err
			timer.Reset(debounce)
		case <-timer.C:
			onChange(Load(o))
		}
	}
}

// concerns reports whether an event in the file's directory can mean that its content changed. A configuration mount
// swaps a directory link named ..data beside the file.
func concerns(e fsnotify.Event, path string) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	base := filepath.Base(e.Name)
	return base == filepath.Base(path) || base == "..data"
}
