package discord

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// apiError is an error body (developers/topics/opcodes-and-status-codes#json).
type apiError struct {
	Status     int     `json:"-"`
	Code       int     `json:"code"`
	Message    string  `json:"message"`
	Errors     any     `json:"errors,omitempty"`
	RetryAfter float64 `json:"-"`
	Global     bool    `json:"-"`
	scope      string
}

var (
	notFound          = &apiError{Status: 404, Message: "404: Not Found"}
	unauthorized      = &apiError{Status: 401, Message: "401: Unauthorized"}
	unknownChannel    = &apiError{Status: 404, Code: 10003, Message: "Unknown Channel"}
	unknownGuild      = &apiError{Status: 404, Code: 10004, Message: "Unknown Guild"}
	unknownMessage    = &apiError{Status: 404, Code: 10008, Message: "Unknown Message"}
	unknownWebhook    = &apiError{Status: 404, Code: 10015, Message: "Unknown Webhook"}
	unknownAction     = &apiError{Status: 404, Code: 10062, Message: "Unknown interaction"}
	missingAccess     = &apiError{Status: 403, Code: 50001, Message: "Missing Access"}
	missingPermission = &apiError{Status: 403, Code: 50013, Message: "Missing Permissions"}
	notTheAuthor      = &apiError{Status: 403, Code: 50005, Message: "Cannot edit a message authored by another user"}
	emptyMessage      = &apiError{Status: 400, Code: 50006, Message: "Cannot send an empty message"}
	cannotDM          = &apiError{Status: 403, Code: 50007, Message: "Cannot send messages to this user"}
	wrongKind         = &apiError{Status: 400, Code: 50024, Message: "Cannot execute action on this channel type"}
	archived          = &apiError{Status: 400, Code: 50083, Message: "Thread is archived"}
	locked            = &apiError{Status: 403, Code: 160005, Message: "Thread is locked"}
	noHistory         = &apiError{Status: 403, Code: 160002, Message: "Cannot reply without permission to read message history"}
	threadExists      = &apiError{Status: 400, Code: 160004, Message: "A thread has already been created for this message"}
	acknowledged      = &apiError{Status: 400, Code: 40060, Message: "Interaction has already been acknowledged."}
	tooLarge          = &apiError{Status: 413, Code: 40005, Message: "Request entity too large"}
)

// invalid is a 50035 for one field, whose name may be a path.
func invalid(field, code, message string) *apiError {
	var errs any = map[string]any{"_errors": []map[string]string{{"code": code, "message": message}}}
	parts := strings.Split(field, ".")
	for _, part := range slices.Backward(parts) {
		errs = map[string]any{part: errs}
	}
	return &apiError{Status: 400, Code: 50035, Message: "Invalid Form Body", Errors: errs}
}

type request struct {
	name    string
	method  string
	path    []string
	channel string // of the path, "" for none
	query   map[string][]string
	body    []byte
	uploads []upload
	host    string
}

type upload struct {
	field, name, mime string
	data              []byte
}

// maxRequest is what a request may have (developers/resources/message#uploading-files).
const maxRequest = 25 << 20

func parseRequest(r *http.Request, name string, path []string) (*request, *apiError) {
	c := &request{name: name, method: r.Method, path: path, query: r.URL.Query(), host: r.Host}
	if len(path) > 1 && path[0] == "channels" {
		c.channel = path[1]
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	if err != nil {
		return c, &apiError{Status: 400, Message: "400: Bad Request"}
	}
	if len(raw) > maxRequest {
		return c, tooLarge
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind == "multipart/form-data":
		if e := c.form(multipart.NewReader(bytes.NewReader(raw), params["boundary"])); e != nil {
			return c, e
		}
	case len(raw) > 0 && kind != "application/json":
		return c, &apiError{Status: 400, Code: 50035, Message: "Invalid Form Body"}
	default:
		c.body = raw
	}
	if len(c.body) > 0 && !json.Valid(c.body) {
		return c, &apiError{Status: 400, Code: 50109, Message: "The request body contains invalid JSON."}
	}
	return c, nil
}

func (c *request) form(m *multipart.Reader) *apiError {
	for {
		p, err := m.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &apiError{Status: 400, Code: 50035, Message: "Invalid Form Body"}
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return &apiError{Status: 400, Code: 50035, Message: "Invalid Form Body"}
		}
		switch field := p.FormName(); {
		case field == "payload_json":
			c.body = data
		case strings.HasPrefix(field, "files["):
			c.uploads = append(c.uploads, upload{field, p.FileName(), p.Header.Get("Content-Type"), data})
		default:
			return invalid(field, "UNKNOWN_FIELD", "no such part")
		}
	}
}

// decode reads the body strictly.
func (c *request) decode(v any) *apiError {
	if len(c.body) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return invalid("body", "BASE_TYPE_BAD_TYPE", err.Error())
	}
	return nil
}

func (c *request) get(name string) string {
	if v := c.query[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (c *request) number(name string, usual int) int {
	if n, err := strconv.Atoi(c.get(name)); err == nil {
		return n
	}
	return usual
}

func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }

func tooLong(field string, limit int) *apiError {
	return invalid(field, "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", limit))
}
