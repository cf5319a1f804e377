package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"deerbot/store"
)

// ServeHTTP serves the page and its API. See the package comment for the routes.
func (c *Channel) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

func (c *Channel) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", c.page.serve)
	mux.Handle("GET /chat/static/", c.page.static())
	mux.HandleFunc("GET /chat/files/{file}/{name}", c.getFile)
	mux.HandleFunc("GET /chat/api/commands", c.getCommands)
	mux.HandleFunc("GET /chat/api/conversations", c.listConversations)
	mux.HandleFunc("POST /chat/api/conversations", c.createConversation)
	const one = "/chat/api/conversations/{id}"
	mux.HandleFunc("PATCH "+one, withChat(c.renameConversation))
	mux.HandleFunc("DELETE "+one, withChat(c.deleteConversation))
	mux.HandleFunc("GET "+one+"/messages", withChat(c.listMessages))
	mux.HandleFunc("POST "+one+"/messages", withChat(c.postMessage))
	mux.HandleFunc("POST "+one+"/actions", withChat(c.postAction))
	mux.HandleFunc("GET "+one+"/events", withChat(c.events))
	return mux
}

// withChat checks the conversation id of the path.
func withChat(h func(w http.ResponseWriter, r *http.Request, chat string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := uuid.Parse(r.PathValue("id"))
		if err != nil || id.String() != r.PathValue("id") {
			fail(w, http.StatusNotFound, "no_conversation", "there is no such conversation")
			return
		}
		h(w, r, id.String())
	}
}

// clientIDForm is what a page may name a message or a press. It never looks like an id of the bot.
var clientIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{7,63}$`)

func validClientID(id string) bool {
	return clientIDForm.MatchString(id) && !strings.HasPrefix(id, "b-")
}

func reply(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

func fail(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

// failStore answers a request that the log could not serve; trying again may help.
func (c *Channel) failStore(w http.ResponseWriter, op string, err error) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		fail(w, http.StatusNotFound, "not_found", "there is no such message or conversation")
		return
	case errors.Is(err, store.ErrTooLarge):
		fail(w, http.StatusRequestEntityTooLarge, "too_large", "the message is too large")
		return
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, errNotRunning) {
		c.log.Error("request failed", "op", op, "err", err)
	}
	w.Header().Set("Retry-After", "2")
	fail(w, http.StatusServiceUnavailable, "unavailable", "this cannot be stored now; nothing was taken, try again")
}

// readJSON reads a request of at most limit bytes into v, or answers what is wrong with it.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) bool {
	if mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mt != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "media_type", "the body must be application/json")
		return false
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit)).Decode(v)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		fail(w, http.StatusRequestEntityTooLarge, "too_large", "the request is too large")
		return false
	case err != nil && !errors.Is(err, io.EOF):
		fail(w, http.StatusBadRequest, "bad_json", "the body is not valid JSON")
		return false
	}
	return true
}

// settled detaches from the request: what was begun is finished even when the page goes away in the middle.
func settled(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
}

// locale is the first language a browser asks for, "" for none.
func locale(r *http.Request) string {
	first, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	first, _, _ = strings.Cut(first, ";")
	first = strings.TrimSpace(first)
	if len(first) > 35 || !localeForm.MatchString(first) {
		return ""
	}
	return first
}

var localeForm = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`)
