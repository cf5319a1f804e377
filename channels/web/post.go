package web

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"deerbot/channels"
	"deerbot/store"
)

// redeliver is how long a message may be handed to the inbox again. It is well below the time the inbox remembers what it
// took, so that handing over twice never makes two.
const redeliver = store.DedupeKeep / 2

// postMessage takes a person's message. It is first put into the log, so that the bot's answer cannot come before it,
// then committed to the inbox; when that fails it is taken back and the page keeps it. A crash between the two is mended
// by [Channel.recover].
func (c *Channel) postMessage(w http.ResponseWriter, r *http.Request, chat string) {
	if inbox, _ := c.running(); inbox == nil {
		c.failStore(w, "post message", errNotRunning)
		return
	}
	p, ok := c.readPost(w, r, chat)
	if !ok {
		return
	}
	p.body.Locale = locale(r)
	ctx, cancel := settled(r.Context())
	defer cancel()

	m, b, fresh, err := c.record(ctx, chat, p)
	if err != nil {
		c.files.remove(p.body.Files)
		c.failStore(w, "post message", err)
		return
	}
	if c.cfg.Now().Sub(m.CreatedAt) < redeliver {
		err = c.accept(ctx, inbound(m, b, m.CreatedAt))
	}
	if err != nil {
		if fresh {
			c.withdraw(ctx, chat, m.ID)
			c.files.remove(b.Files)
		}
		c.failStore(w, "post message", err)
		return
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusAccepted
	}
	reply(w, status, map[string]any{"message": wire(m)})
}

// record puts the message into the log unless it is there; fresh reports which.
func (c *Channel) record(ctx context.Context, chat string, p post) (m store.ChatMessage, b body, fresh bool, err error) {
	rm := c.rooms.lock(chat)
	defer c.rooms.unlock(chat, rm)
	m, err = c.cfg.Log.ChatMessage(ctx, chat, p.id)
	switch {
	case err == nil:
		if b, err = decodeBody(m); err != nil || !b.Deleted {
			return m, b, false, err
		}
	case !errors.Is(err, store.ErrNotFound):
		return m, b, false, err
	}
	if m, err = c.put(ctx, rm, chat, p.id, p.body); err != nil {
		return m, b, false, err
	}
	if m.Seq == 1 {
		if s, err := c.summary(ctx, chat); err == nil && (s == nil || s.Title == "") {
			if err := c.setTitle(ctx, rm, chat, titleFrom(p.body)); err != nil {
				c.log.Warn("conversation got no title", "chat", chat, "err", err)
			}
		}
	}
	return m, p.body, true, nil
}

// withdraw takes back a message that the inbox did not take.
func (c *Channel) withdraw(ctx context.Context, chat, id string) {
	rm := c.rooms.lock(chat)
	defer c.rooms.unlock(chat, rm)
	if _, err := c.put(ctx, rm, chat, id, body{From: fromUser, Deleted: true}); err != nil {
		c.log.Error("could not take back a message that was not accepted", "chat", chat, "message", id, "err", err)
	}
}

// post is a message as posted.
type post struct {
	id   string
	body body
}

// readPost reads the request, files to the disk, or answers what is wrong with it.
func (c *Channel) readPost(w http.ResponseWriter, r *http.Request, chat string) (post, bool) {
	mt, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	p := post{body: body{From: fromUser}}
	if mt == "multipart/form-data" {
		if !c.readForm(w, r, chat, &p) {
			c.files.remove(p.body.Files)
			return post{}, false
		}
	} else {
		var req struct {
			ClientID string `json:"client_id"`
			Text     string `json:"text"`
		}
		if !readJSON(w, r, 8*MaxText, &req) { // escapes may take six bytes for one
			return post{}, false
		}
		p.id, p.body.Text = req.ClientID, req.Text
	}
	p.body.Text = strings.ToValidUTF8(p.body.Text, "\uFFFD")
	switch {
	case !validClientID(p.id):
		fail(w, http.StatusBadRequest, "client_id", "client_id must be 8 to 64 letters, digits, - and _")
	case len(p.body.Text) > MaxText:
		fail(w, http.StatusRequestEntityTooLarge, "text_too_long", "a message holds at most 64 KB of text; send longer text as a file")
	case strings.TrimSpace(p.body.Text) == "" && len(p.body.Files) == 0:
		fail(w, http.StatusBadRequest, "empty", "there is neither text nor a file")
	default:
		return p, true
	}
	c.files.remove(p.body.Files)
	return post{}, false
}

// readForm reads a multipart request part by part; nothing but text is held in memory.
func (c *Channel) readForm(w http.ResponseWriter, r *http.Request, chat string, p *post) bool {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Minute)) // a slow line may take its time
	r.Body = http.MaxBytesReader(w, r.Body, MaxFiles*c.cfg.MaxUpload+4*MaxText)
	form, err := r.MultipartReader()
	if err != nil {
		fail(w, http.StatusBadRequest, "bad_form", "the form cannot be read")
		return false
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err == nil {
			err = c.readPart(part, chat, p)
		}
		var big *http.MaxBytesError
		var bad *badPart
		switch {
		case err == nil:
			continue
		case errors.As(err, &bad):
			fail(w, bad.status, bad.code, bad.message)
		case errors.As(err, &big), errors.Is(err, errTooBig):
			fail(w, http.StatusRequestEntityTooLarge, "file_too_large",
				"a file may have at most "+strconv.FormatInt(c.cfg.MaxUpload>>20, 10)+" MB")
		case isDisk(err):
			c.failStore(w, "save upload", err)
		default:
			fail(w, http.StatusBadRequest, "bad_form", "the form ended early or cannot be read")
		}
		return false
	}
}

type badPart struct {
	status        int
	code, message string
}

func (e *badPart) Error() string { return e.message }

func (c *Channel) readPart(part *multipart.Part, chat string, p *post) error {
	defer func() { _ = part.Close() }() // what is left of it is skipped either way
	switch part.FormName() {
	case "client_id":
		id, err := io.ReadAll(io.LimitReader(part, 100))
		p.id = string(id)
		return err
	case "text":
		text, err := io.ReadAll(io.LimitReader(part, MaxText+1))
		p.body.Text = string(text)
		return err
	case "file":
		switch {
		case !validClientID(p.id):
			return &badPart{http.StatusBadRequest, "client_id", "client_id must come before the files: 8 to 64 letters, digits, - and _"}
		case len(p.body.Files) == MaxFiles:
			return &badPart{http.StatusRequestEntityTooLarge, "too_many_files", "a message holds at most 10 files"}
		}
		id := digest("upload", chat, p.id, strconv.Itoa(len(p.body.Files)))
		info, err := c.files.save(id, part.FileName(), part.Header.Get("Content-Type"), part, c.cfg.MaxUpload)
		if err == nil {
			p.body.Files = append(p.body.Files, info)
		}
		return err
	}
	return nil // unknown fields are of no interest
}

// postAction hands over a pressed button.
func (c *Channel) postAction(w http.ResponseWriter, r *http.Request, chat string) {
	var req struct {
		MessageID string `json:"message_id"`
		Action    string `json:"action"`
		ClientID  string `json:"client_id"`
	}
	if !readJSON(w, r, 8<<10, &req) {
		return
	}
	if !validClientID(req.ClientID) || req.Action == "" || len(req.Action) > 64 {
		fail(w, http.StatusBadRequest, "bad_action", "client_id, message_id and an action of at most 64 bytes are needed")
		return
	}
	m, err := c.cfg.Log.ChatMessage(r.Context(), chat, req.MessageID)
	if err != nil {
		c.failStore(w, "press button", err)
		return
	}
	if b, err := decodeBody(m); err != nil || b.From != fromBot || b.Deleted {
		fail(w, http.StatusConflict, "no_button", "that message has no buttons")
		return
	}
	ctx, cancel := settled(r.Context())
	defer cancel()
	err = c.accept(ctx, &channels.Inbound{
		Kind: channels.KindAction, Place: place(chat), EventID: "action:" + req.ClientID, MessageID: req.MessageID,
		ChatKind: "dm", Sender: channels.Sender{ID: SenderID, Name: SenderID, Locale: locale(r)},
		Action: &channels.Action{ID: chat + "/" + req.ClientID, Data: req.Action}, SentAt: c.cfg.Now(),
	})
	if err != nil {
		c.failStore(w, "press button", err)
		return
	}
	reply(w, http.StatusAccepted, map[string]string{"action_id": req.ClientID})
}
