package telegram

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // dimensions of photos
	_ "image/png"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Limits of files (core.telegram.org/bots/api#getfile, #sendphoto).
const (
	maxDownload = 20 << 20
	maxPhoto    = 10 << 20
)

// storedFile is a file on the server.
type storedFile struct {
	id, path, kind, name, mime string
	data                       []byte
	size                       int64 // declared; larger than data for files that only pretend
}

// addFile stores a file under an id. The lock is held.
func (s *Server) addFile(a attach) *storedFile {
	s.ids.file++
	n := s.ids.file
	f := &storedFile{id: fmt.Sprintf("AgACAgIAAxkBAAI%06d", n), kind: a.kind, name: a.name, mime: a.mime, data: a.data, size: int64(len(a.data))}
	dir, ext := "documents", path.Ext(a.name)
	switch a.kind {
	case "photo":
		dir, ext = "photos", ".jpg"
	case "voice":
		dir, ext = "voice", ".oga"
	case "video", "animation":
		dir, ext = a.kind+"s", ".mp4"
	case "video_note":
		dir, ext = "video_notes", ".mp4"
	case "audio":
		dir = "music"
	case "sticker":
		dir, ext = "stickers", ".webp"
	}
	f.path = fmt.Sprintf("%s/file_%d%s", dir, n, ext)
	s.files[f.id], s.paths[f.path] = f, f
	return f
}

// attach adds a file to a message, as the API describes its kind.
func (m *stored) attach(s *Server, a attach) {
	f := s.addFile(a)
	m.files = append(m.files, f)
	w := &wireFile{FileID: f.id, FileUniqueID: "AQAD" + f.id[len(f.id)-6:], FileSize: f.size, FileName: f.name, MIME: f.mime}
	switch a.kind {
	case "photo":
		small := s.addFile(attach{kind: "photo", mime: "image/jpeg", data: a.data[:min(len(a.data), 64)]})
		w.FileName, w.MIME, w.Width, w.Height = "", "", 1280, 960
		if cfg, _, err := image.DecodeConfig(bytes.NewReader(a.data)); err == nil {
			w.Width, w.Height = cfg.Width, cfg.Height
		}
		thumb := &wireFile{FileID: small.id, FileUniqueID: "AQAD" + small.id[len(small.id)-6:], FileSize: small.size, Width: 90, Height: 67}
		m.wire.Photo = []*wireFile{thumb, w}
	case "voice":
		w.FileName, w.Duration = "", 4
		m.wire.Voice = w
	case "audio":
		w.Duration = 120
		m.wire.Audio = w
	case "video":
		w.Width, w.Height, w.Duration = 640, 480, 7
		m.wire.Video = w
	case "animation":
		w.Width, w.Height, w.Duration = 320, 240, 3
		m.wire.Animation = w
		doc := *w
		m.wire.Document = &doc // for older bots, as the real server does
	case "video_note":
		w.Length, w.Duration, w.MIME = 240, 5, ""
		m.wire.VideoNote = w
	case "sticker":
		w.Emoji, w.FileName, w.MIME, w.Type, w.Width, w.Height = a.name, "", "", "regular", 512, 512
		m.wire.Sticker = w
	default:
		m.wire.Document = w
	}
}

// Pretend makes every file that arrives in the chat from now on claim the given size, without its bytes.
func (s *Server) Pretend(fileID string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[fileID]; f != nil {
		f.size = size
	}
}

func (s *Server) getFile(c *request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[c.text("file_id")]
	if f == nil {
		return nil, bad("wrong file_id or the file is temporarily unavailable")
	}
	if f.size > maxDownload {
		return nil, bad("file is too big")
	}
	return wireFile{FileID: f.id, FileUniqueID: "AQAD" + f.id[len(f.id)-6:], FileSize: f.size, FilePath: f.path}, nil
}

// serveFile serves {token}/{path}.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	token, name, _ := strings.Cut(rest, "/")
	c := &request{Call: Call{Method: "file", At: s.opt.Now(), Params: map[string]string{"path": name}}, http: r}
	s.mu.Lock()
	down, fault := s.down, s.takeFault(c)
	c.cut = s.cut
	f := s.paths[name]
	s.mu.Unlock()
	if down || fault != nil && fault.Drop != NoDrop {
		s.record(c, 0, "dropped")
		panic(http.ErrAbortHandler)
	}
	if fault != nil {
		s.obeyDelay(r, c, fault)
		if fault.Code != 0 {
			s.answerFault(w, c, fault)
			return
		}
	}
	if token != s.opt.Token || f == nil {
		s.record(c, 404, "Not Found")
		write(w, nil, &apiError{Code: 404, Text: "Not Found"})
		return
	}
	s.record(c, 200, "")
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(f.data)))
	_, _ = w.Write(f.data)
}

func (s *Server) sendDocument(c *request) (any, *apiError) { return s.sendFile(c, "document") }

func (s *Server) sendPhoto(c *request) (any, *apiError) { return s.sendFile(c, "photo") }

// input finds the bytes of a file parameter: an upload or the id of a known file.
func (s *Server) input(c *request, kind, ref string) (attach, *apiError) {
	up := c.files[kind]
	if name, ok := strings.CutPrefix(ref, "attach://"); ok {
		up = c.files[name]
	}
	if up == nil {
		s.mu.Lock()
		f := s.files[ref]
		s.mu.Unlock()
		if f == nil {
			if ref == "" {
				return attach{}, bad("there is no " + kind + " in the request")
			}
			return attach{}, bad("wrong remote file identifier specified: can't unserialize it. Wrong last symbol")
		}
		return attach{kind, f.name, f.mime, f.data}, nil
	}
	if len(up.data) == 0 {
		return attach{}, bad("file must be non-empty")
	}
	if kind == "photo" {
		if len(up.data) > maxPhoto {
			return attach{}, bad(fmt.Sprintf("file of size %d bytes is too big for a photo; the maximum size is %d bytes", len(up.data), maxPhoto))
		}
		cfg, _, err := image.DecodeConfig(bytes.NewReader(up.data))
		if err != nil {
			return attach{}, bad("IMAGE_PROCESS_FAILED")
		}
		if w, h := cfg.Width, cfg.Height; w+h > 10000 || w > 20*h || h > 20*w {
			return attach{}, bad("PHOTO_INVALID_DIMENSIONS")
		}
	}
	return attach{kind, up.name, up.mime, up.data}, nil
}

func (s *Server) sendFile(c *request, kind string) (any, *apiError) {
	text, ents, e := formatted(c.text("caption"), c.text("parse_mode"), c.text("caption_entities"), maxCaption, "message caption is too long")
	if e != nil {
		return nil, e
	}
	markup, e := parseKeyboard(c.text("reply_markup"))
	if e != nil {
		return nil, e
	}
	a, e := s.input(c, kind, c.text(kind))
	if e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, m, e := s.begin(c, markup)
	if e != nil {
		return nil, e
	}
	m.wire.Caption, m.wire.CaptionEntities = text, ents
	m.attach(s, a)
	ch.fire()
	return m.wire, nil
}

func (s *Server) sendMediaGroup(c *request) (any, *apiError) {
	var items []struct {
		Type, Media, Caption string
		ParseMode            string `json:"parse_mode"`
	}
	if json.Unmarshal([]byte(c.text("media")), &items) != nil {
		return nil, bad("can't parse media JSON object")
	}
	if len(items) < 2 || len(items) > 10 {
		return nil, bad("there must be 2-10 media in the group")
	}
	files := make([]attach, len(items))
	texts := make([]string, len(items))
	ents := make([][]Entity, len(items))
	for i, it := range items {
		var e *apiError
		if texts[i], ents[i], e = formatted(it.Caption, it.ParseMode, "", maxCaption, "message caption is too long"); e != nil {
			return nil, e
		}
		if files[i], e = s.input(c, it.Type, it.Media); e != nil {
			return nil, e
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.album++
	group := strconv.Itoa(1390000000 + s.ids.album)
	out := make([]*wireMessage, len(items))
	for i := range items {
		ch, m, e := s.begin(c, nil)
		if e != nil {
			return nil, e
		}
		m.wire.MediaGroupID, m.wire.Caption, m.wire.CaptionEntities = group, texts[i], ents[i]
		m.attach(s, files[i])
		ch.fire()
		out[i] = m.wire
	}
	return out, nil
}
