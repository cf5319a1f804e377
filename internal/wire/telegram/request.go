package telegram

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// request is one call: its parameters as texts, and its files.
type request struct {
	Call
	files map[string]*upload
	http  *http.Request
	cut   <-chan struct{}
}

type upload struct {
	name, mime string
	data       []byte
}

// maxUpload is the largest file a bot may send: 50 MB (core.telegram.org/bots/api#senddocument).
const maxUpload = 50 << 20

// parseRequest reads the parameters of a call. The request is returned on errors too.
func parseRequest(r *http.Request, method string) (*request, *apiError) {
	c := &request{Call: Call{Method: method, Params: make(map[string]string)}, http: r}
	for k, v := range r.URL.Query() {
		c.Params[k] = v[0]
	}
	if r.Method != http.MethodPost {
		c.fill()
		return c, nil
	}
	kind, ps, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var err *apiError
	switch kind {
	case "application/json":
		err = c.readJSON(r.Body)
	case "multipart/form-data":
		err = c.readMultipart(r, ps["boundary"])
	case "application/x-www-form-urlencoded":
		if e := r.ParseForm(); e != nil {
			err = bad("can't parse the form")
		}
		for k, v := range r.PostForm {
			c.Params[k] = v[0]
		}
	default:
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20))
	}
	c.fill()
	return c, err
}

func (c *request) readJSON(body io.Reader) *apiError {
	raw, err := io.ReadAll(io.LimitReader(body, 8<<20))
	if err != nil {
		return bad("can't read the request")
	}
	if len(raw) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return bad("can't parse JSON object")
	}
	for k, v := range fields {
		switch {
		case v[0] == '"':
			var text string
			if json.Unmarshal(v, &text) != nil {
				return bad("can't parse JSON object")
			}
			c.Params[k] = text
		case string(v) != "null":
			c.Params[k] = string(v)
		}
	}
	return nil
}

func (c *request) readMultipart(r *http.Request, boundary string) *apiError {
	mr, err := r.MultipartReader()
	if err != nil || boundary == "" {
		return bad("can't parse the multipart request")
	}
	for {
		p, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return bad("can't parse the multipart request")
		}
		data, err := io.ReadAll(io.LimitReader(p, maxUpload+1))
		if err != nil {
			return bad("can't parse the multipart request")
		}
		if p.FileName() == "" {
			c.Params[p.FormName()] = string(data)
			continue
		}
		if len(data) > maxUpload {
			_, _ = io.Copy(io.Discard, r.Body)
			return &apiError{Code: 413, Text: "Request Entity Too Large"}
		}
		if c.files == nil {
			c.files = make(map[string]*upload)
		}
		c.files[p.FormName()] = &upload{name: p.FileName(), mime: p.Header.Get("Content-Type"), data: data}
	}
}

// fill sets the fields of the record that come from parameters.
func (c *request) fill() {
	c.Chat, _ = strconv.ParseInt(c.Params["chat_id"], 10, 64)
	c.Message, _ = strconv.Atoi(c.Params["message_id"])
}

func (c *request) text(name string) string { return c.Params[name] }
func (c *request) num(name string) int     { n, _ := strconv.Atoi(c.Params[name]); return n }
func (c *request) flag(name string) bool {
	v := strings.ToLower(c.Params[name])
	return v == "true" || v == "1" || v == "yes"
}

// Call is one call of the Bot API.
type Call struct {
	Seq         int               `json:"seq"`
	At          time.Time         `json:"at"`
	Method      string            `json:"method"`
	Chat        int64             `json:"chat,omitempty"`
	Message     int               `json:"message,omitempty"` // edited, deleted or made
	Params      map[string]string `json:"params,omitempty"`
	Code        int               `json:"code"` // 200, the error code, or 0 for a dropped connection
	Description string            `json:"description,omitempty"`
	RetryAfter  int               `json:"retry_after,omitempty"`
}

// callLog keeps the latest calls and counts all.
type callLog struct {
	keep   int
	seq    int
	calls  []Call
	counts map[string]int // "method code", "code"
}

func (s *Server) record(c *request, code int, text string) {
	c.Code, c.Description = code, text
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.log
	l.seq++
	c.Seq = l.seq
	l.counts[c.Method+" "+strconv.Itoa(code)]++
	l.counts[strconv.Itoa(code)]++
	if l.keep > 0 {
		if len(l.calls) >= l.keep {
			l.calls = append(l.calls[:0], l.calls[len(l.calls)/2:]...)
		}
		l.calls = append(l.calls, c.Call)
	}
	s.changed.fire()
}
