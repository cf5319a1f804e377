package web

import (
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"time"
)

// getFile serves a kept file. The name in the path is only for the address bar; what counts is the name kept with the
// file. Pictures are shown; everything else, above all HTML and SVG, is only ever downloaded, and could do nothing if a
// browser showed it after all.
func (c *Channel) getFile(w http.ResponseWriter, r *http.Request) {
	f, info, err := c.files.open(r.PathValue("file"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		fail(w, http.StatusNotFound, "no_file", "there is no such file")
		return
	case err != nil:
		c.failStore(w, "open file", err)
		return
	}
	defer f.Close()
	kind, disposition := "application/octet-stream", "attachment"
	if info.Image && inlineKinds[info.MIME] {
		kind = info.MIME
		if r.URL.Query().Get("download") == "" {
			disposition = "inline"
		}
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": info.Name}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, max-age=3600")
	h.Set("ETag", `"`+info.ID+`"`)
	http.ServeContent(w, r, "", time.Time{}, f)
}

// isDisk reports whether err came from the file system and not from the request.
func isDisk(err error) bool {
	var pe *fs.PathError
	var le *os.LinkError
	return errors.As(err, &pe) || errors.As(err, &le)
}
