package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed page.html
var pageSource string

//go:embed static
var staticFiles embed.FS

// pagePolicy lets the page run and load only what comes from here: no inline script, no foreign picture (a picture's
// address can carry words away), no frame around it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// page is the HTML page and its static files, which live below an address that changes with their content.
type page struct {
	tmpl    *template.Template
	files   fs.FS
	version string
	data    pageData
}

type pageData struct {
	Lang      string // html lang: en, zh
	Fixed     string // language by configuration, "" for the browser's
	Static    string // path of the static files
	LogoutURL string
	MaxUpload int64
	MaxFiles  int
	MaxText   int
}

func newPage(cfg Config) (*page, error) {
	tmpl, err := template.New("page").Parse(pageSource)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(staticFiles, "static")
	if err != nil {
		return nil, err
	}
	version, err := contentHash(files)
	if err != nil {
		return nil, err
	}
	p := &page{tmpl: tmpl, files: files, version: version}
	p.data = pageData{
		Static: "/chat/static/" + version, LogoutURL: cfg.LogoutURL,
		MaxUpload: cfg.MaxUpload, MaxFiles: MaxFiles, MaxText: MaxText,
	}
	if cfg.Lang == "en" || cfg.Lang == "zh" {
		p.data.Fixed = cfg.Lang
	}
	return p, nil
}

func contentHash(files fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		h.Write([]byte(path))
		h.Write(data)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}

func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	data := p.data
	if data.Lang = data.Fixed; data.Lang == "" {
		data.Lang = "en"
		if strings.HasPrefix(strings.ToLower(locale(r)), "zh") {
			data.Lang = "zh"
		}
	}
	var buf bytes.Buffer
	if err := p.tmpl.Execute(&buf, data); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Language")
	_, _ = w.Write(buf.Bytes())
}

// static serves the files of this version. Another version's address is not found, and so is never cached wrongly.
func (p *page) static() http.Handler {
	files := http.StripPrefix("/chat/static/"+p.version, http.FileServerFS(p.files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, "/chat/static/"+p.version+"/")
		if info, err := fs.Stat(p.files, name); !ok || err != nil || info.IsDir() {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		files.ServeHTTP(w, r)
	})
}
