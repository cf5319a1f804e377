package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"deerbot/channels"
)

// fileInfo describes a kept file. Name is for people; on disk a file is known by its id alone.
type fileInfo struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	MIME  string `json:"mime"`
	Size  int64  `json:"size"`
	Image bool   `json:"image,omitempty"` // its first bytes say so: a kind every browser shows and none executes
}

// kind is the attachment kind.
func (f fileInfo) kind() string {
	main, _, _ := strings.Cut(f.MIME, "/")
	switch {
	case f.Image:
		return "image"
	case main == "audio", main == "video":
		return main
	}
	return "document"
}

var (
	errTooBig   = errors.New("file is too large")
	fileIDForm  = regexp.MustCompile(`^[0-9a-f]{32}$`)
	inlineKinds = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}
)

// fileStore keeps files flat in one directory: {id} is the content, {id}.json the description. Ids are ours, never
// anything from the outside, so no name can lead anywhere else.
type fileStore struct{ dir string }

func (s fileStore) path(id string) (string, error) {
	if !fileIDForm.MatchString(id) {
		return "", fmt.Errorf("web: file id %.40q: %w", id, os.ErrNotExist)
	}
	return filepath.Join(s.dir, id), nil
}

// save copies r, at most limit bytes, to the disk; the file is durable when it returns. Saving an id again replaces it.
func (s fileStore) save(id, name, declared string, r io.Reader, limit int64) (fileInfo, error) {
	path, err := s.path(id)
	if err != nil {
		return fileInfo{}, err
	}
	tmp, err := os.CreateTemp(s.dir, "part-*")
	if err != nil {
		return fileInfo{}, fmt.Errorf("web: save file: %w", err)
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	defer tmp.Close()
	var head bytes.Buffer
	n, err := io.Copy(io.MultiWriter(tmp, &limitedBuffer{&head, 512}), io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return fileInfo{}, fmt.Errorf("web: save file: %w", err)
	case n > limit:
		return fileInfo{}, fmt.Errorf("web: over %d bytes: %w", limit, errTooBig)
	}
	sniffed := http.DetectContentType(head.Bytes())
	info := fileInfo{ID: id, Name: safeName(name), Size: n, Image: inlineKinds[sniffed], MIME: kindOf(declared, name, sniffed)}
	desc, err := json.Marshal(info)
	if err != nil {
		return fileInfo{}, fmt.Errorf("web: save file: %w", err)
	}
	if err := errors.Join(tmp.Sync(), tmp.Close(), os.WriteFile(path+".json", desc, 0o600)); err != nil {
		return fileInfo{}, fmt.Errorf("web: save file: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fileInfo{}, fmt.Errorf("web: save file: %w", err)
	}
	return info, nil
}

// open returns a kept file and its description; the caller closes it.
func (s fileStore) open(id string) (*os.File, fileInfo, error) {
	path, err := s.path(id)
	if err != nil {
		return nil, fileInfo{}, err
	}
	desc, err := os.ReadFile(path + ".json")
	if err != nil {
		return nil, fileInfo{}, fmt.Errorf("web: file %s: %w", id, err)
	}
	var info fileInfo
	if err := json.Unmarshal(desc, &info); err != nil {
		return nil, fileInfo{}, fmt.Errorf("web: file %s: %w", id, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileInfo{}, fmt.Errorf("web: file %s: %w", id, err)
	}
	return f, info, nil
}

func (s fileStore) remove(files []fileInfo) {
	for _, f := range files {
		if path, err := s.path(f.ID); err == nil {
			_ = os.Remove(path)
			_ = os.Remove(path + ".json")
		}
	}
}

// sweep removes what an interrupted save left.
func (s fileStore) sweep() {
	left, _ := filepath.Glob(filepath.Join(s.dir, "part-*"))
	for _, p := range left {
		_ = os.Remove(p)
	}
}

// Fetch opens an uploaded file.
func (c *Channel) Fetch(_ context.Context, a channels.Attachment) (io.ReadCloser, error) {
	f, _, err := c.files.open(a.ID)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, &channels.Gone{What: "file", Err: err}
	case err != nil:
		return nil, &channels.Transient{Err: err}
	}
	return f, nil
}

// kindOf chooses the media type to remember: what a picture really is, else what was declared, else what the name says.
func kindOf(declared, name, sniffed string) string {
	if inlineKinds[sniffed] {
		return sniffed
	}
	for _, t := range []string{declared, mime.TypeByExtension(strings.ToLower(filepath.Ext(name)))} {
		if mt, _, err := mime.ParseMediaType(t); err == nil && strings.Contains(mt, "/") && mt != "application/octet-stream" {
			return mt
		}
	}
	mt, _, _ := strings.Cut(sniffed, ";")
	return mt
}

const maxName = 120 // runes of a file name

// safeName makes a name from outside fit for showing and for saving: the last element of any path, without control,
// format and bidi characters, never hidden, never empty, and cut in front of its extension when long.
func safeName(name string) string {
	name = strings.ToValidUTF8(name, "")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\u2028', r == '\u2029':
			return -1
		case strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, name)
	name = strings.TrimRight(strings.TrimLeft(strings.TrimSpace(name), ". "), ". ")
	if name == "" {
		return "file"
	}
	if utf8.RuneCountInString(name) > maxName {
		ext := []rune(filepath.Ext(name))
		if len(ext) > 16 {
			ext = nil
		}
		name = string([]rune(name)[:maxName-len(ext)]) + string(ext)
	}
	return name
}

// limitedBuffer keeps the first n bytes and swallows the rest.
type limitedBuffer struct {
	b *bytes.Buffer
	n int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if room := l.n - l.b.Len(); room > 0 {
		l.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
