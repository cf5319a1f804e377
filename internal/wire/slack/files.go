package slack

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
)

const maxFile = 1 << 30

func (s *Server) wireFile(f *file) obj {
	o := obj{
		"id": f.id, "name": f.name, "title": f.name, "mimetype": f.mime, "size": f.size, "mode": "hosted", "is_external": false,
		"url_private":          "https://files.slack.com/files-pri/" + TeamID + "-" + f.id + "/" + f.name,
		"url_private_download": "https://files.slack.com/files-pri/" + TeamID + "-" + f.id + "/download/" + f.name,
	}
	if f.slow > 0 {
		f.slow--
		return o
	}
	if len(f.shares) > 0 {
		all := obj{}
		for ch, ts := range f.shares {
			all[ch] = []obj{{"ts": ts}}
		}
		o["shares"] = obj{"public": all}
	}
	return o
}

// fileAt makes the addresses of files those of this server.
func (s *Server) fileInfo(r *request) (obj, *apiError) {
	f := s.files[r.Get("file")]
	if f == nil {
		return nil, fail("file_not_found")
	}
	o := s.wireFile(f)
	base := "http://" + r.host + "/files-pri/" + f.id
	o["url_private"], o["url_private_download"] = base, base
	return obj{"file": o}, nil
}

func (s *Server) fileDelete(r *request) (obj, *apiError) {
	id := r.Get("file")
	if s.files[id] == nil {
		return nil, fail("file_not_found")
	}
	delete(s.files, id)
	for _, c := range s.channels {
		for _, m := range c.messages {
			for _, f := range m.files {
				if f.id == id {
					m.deleted = true
				}
			}
		}
	}
	return nil, nil
}

func (s *Server) uploadURL(r *request) (obj, *apiError) {
	n, err := strconv.ParseInt(r.Get("length"), 10, 64)
	if err != nil || n <= 0 || r.Get("filename") == "" {
		return nil, fail("invalid_arguments")
	}
	if n > maxFile {
		return nil, fail("file_upload_size_restricted")
	}
	f := &file{id: s.id("F"), name: r.Get("filename"), size: n, mime: mime.TypeByExtension(filepath.Ext(r.Get("filename")))}
	s.files[f.id] = f
	return obj{"upload_url": "http://" + r.host + "/upload/" + f.id, "file_id": f.id}, nil
}

func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	f := s.files[id]
	fault := s.takeFault("upload", "")
	s.mu.Unlock()
	if fault != nil && fault.answers() {
		fault.write(w)
		return
	}
	var src io.Reader = r.Body
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		mr, err := r.MultipartReader()
		if err == nil {
			src, err = mr.NextPart()
		}
		if err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
	}
	data, err := io.ReadAll(io.LimitReader(src, maxFile))
	if err != nil || f == nil || r.Method != http.MethodPost {
		http.Error(w, "bad upload", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	f.data = data
	s.mu.Unlock()
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(data)))
}

func (s *Server) completeUpload(r *request) (obj, *apiError) {
	var in []struct{ ID, Title string }
	if json.Unmarshal([]byte(r.Get("files")), &in) != nil || len(in) == 0 {
		return nil, fail("invalid_arguments")
	}
	id := r.Get("channel_id")
	c := s.channels[id]
	switch {
	case id == "":
	case c == nil:
		return nil, fail("channel_not_found")
	case !c.member:
		return nil, fail("not_in_channel")
	}
	var out []obj
	var files []*file
	for _, one := range in {
		f := s.files[one.ID]
		if f == nil {
			return nil, fail("file_not_found")
		}
		if int64(len(f.data)) != f.size {
			return nil, fail("file_update_failed")
		}
		f.title = one.Title
		files = append(files, f)
		out = append(out, obj{"id": f.id, "title": f.title})
	}
	if c != nil {
		m := &message{
			ts: s.ts(), thread: r.Get("thread_ts"), user: s.users[BotUser], subtype: "file_share", text: r.Get("initial_comment"), files: files,
		}
		c.messages = append(c.messages, m)
		for _, f := range files {
			f.shares, f.slow = map[string]string{c.id: m.ts}, 1
		}
		ev := c.wire(m)
		ev["channel"], ev["channel_type"], ev["event_ts"] = c.id, c.kind, m.ts
		s.event(ev)
	}
	return obj{"files": out}, nil
}

func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	f := s.files[id]
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+s.opt.BotToken {
		// Slack shows its sign-in page.
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html>Sign in</html>")
		return
	}
	if f == nil {
		http.NotFound(w, r)
		return
	}
	if f.redirect != "" {
		http.Redirect(w, r, f.redirect, http.StatusFound)
		return
	}
	w.Header().Set("Content-Type", f.mime)
	_, _ = w.Write(f.data)
}
