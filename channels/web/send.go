package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"deerbot/channels"
	"deerbot/store"
)

// keyID is the id of the message with that key: the same key gives the same id. "" gives a new one.
func keyID(key string) string {
	if key == "" {
		return "b-" + strings.ReplaceAll(uuid.NewString(), "-", "")
	}
	return "b-" + digest("message", key)
}

// digest names something by its parts; 128 bits, so that it cannot be guessed from the outside by chance.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Send puts the message into the log and on all open pages. A key that was sent to the chat before returns the message of
// then, as it is by now.
func (c *Channel) Send(ctx context.Context, to channels.Place, m channels.Message, key string) (channels.Ref, error) {
	return c.create(ctx, to.Chat, keyID(key), body{
		From: fromBot, Text: m.Body.Text, Format: m.Body.Format, Plain: m.Body.Plain, Buttons: m.Body.Buttons,
		ReplyTo: m.ReplyTo, Silent: m.Silent,
	})
}

// create writes a message of the bot unless it is there already.
func (c *Channel) create(ctx context.Context, chat, id string, b body) (channels.Ref, error) {
	ref := channels.Ref{Place: place(chat), ID: id}
	rm := c.rooms.lock(chat)
	defer c.rooms.unlock(chat, rm)
	if err := c.mustExist(ctx, chat); err != nil {
		return channels.Ref{}, err
	}
	_, err := c.cfg.Log.ChatMessage(ctx, chat, id)
	switch {
	case err == nil:
		return ref, nil
	case !errors.Is(err, store.ErrNotFound):
		return channels.Ref{}, classify("send", err)
	}
	if _, err := c.put(ctx, rm, chat, id, b); err != nil {
		return channels.Ref{}, classify("send", err)
	}
	return ref, nil
}

// put writes a message and publishes it; the room is locked.
func (c *Channel) put(ctx context.Context, rm *room, chat, id string, b body) (store.ChatMessage, error) {
	data, err := encodeBody(b)
	if err != nil {
		return store.ChatMessage{}, err
	}
	m := store.ChatMessage{Chat: chat, ID: id, Body: data}
	if err := c.cfg.Log.PutChatMessage(ctx, &m); err != nil {
		return store.ChatMessage{}, err
	}
	c.setKnown(chat, true)
	if len(rm.subs) > 0 {
		rm.publish(messageEvent(m))
	}
	return m, nil
}

func encodeBody(b body) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

// Edit replaces a message of the bot. The files of the message and what it replies to stay.
func (c *Channel) Edit(ctx context.Context, ref channels.Ref, m channels.Message) error {
	return c.change(ctx, "edit", ref, func(b *body) {
		b.Text, b.Format, b.Plain, b.Buttons = m.Body.Text, m.Body.Format, m.Body.Plain, m.Body.Buttons
	})
}

// Delete takes a message of the bot off the page. One that was deleted before is success.
func (c *Channel) Delete(ctx context.Context, ref channels.Ref) error {
	var files []fileInfo
	err := c.change(ctx, "delete", ref, func(b *body) {
		files = b.Files
		*b = body{From: b.From, Deleted: true}
	})
	var gone *channels.Gone
	if errors.As(err, &gone) && errors.Is(err, errDeleted) {
		return nil
	}
	if err == nil {
		c.files.remove(files)
	}
	return err
}

var errDeleted = errors.New("the message was deleted")

func (c *Channel) change(ctx context.Context, op string, ref channels.Ref, fn func(*body)) error {
	chat := ref.Place.Chat
	rm := c.rooms.lock(chat)
	defer c.rooms.unlock(chat, rm)
	old, err := c.cfg.Log.ChatMessage(ctx, chat, ref.ID)
	if err != nil {
		return classify(op, err)
	}
	b, err := decodeBody(old)
	if err != nil {
		return &channels.Refused{Err: err}
	}
	switch {
	case b.Deleted:
		return &channels.Gone{What: "message", Err: errDeleted}
	case b.From != fromBot:
		return &channels.Refused{Err: fmt.Errorf("web: %s: message %s is not the bot's", op, ref.ID)}
	}
	fn(&b)
	if data, err := encodeBody(b); err == nil && bytes.Equal(data, old.Body) {
		return nil
	}
	if _, err := c.put(ctx, rm, chat, ref.ID, b); err != nil {
		return classify(op, err)
	}
	return nil
}

// Typing shows the working sign on open pages for some seconds.
func (c *Channel) Typing(_ context.Context, to channels.Place) error {
	rm := c.rooms.lock(to.Chat)
	defer c.rooms.unlock(to.Chat, rm)
	rm.publish(event{name: "typing", data: []byte("{}")})
	return nil
}

// SendFile keeps a copy of the file and posts it. The same key never posts twice.
func (c *Channel) SendFile(ctx context.Context, to channels.Place, f channels.File, replyTo, key string) (channels.Ref, error) {
	if err := c.mustExist(ctx, to.Chat); err != nil {
		return channels.Ref{}, err
	}
	id := keyID(key)
	if _, err := c.cfg.Log.ChatMessage(ctx, to.Chat, id); err == nil {
		return channels.Ref{Place: place(to.Chat), ID: id}, nil
	}
	r, err := f.Open()
	if err != nil {
		return channels.Ref{}, &channels.Refused{Err: fmt.Errorf("web: open file: %w", err)}
	}
	defer r.Close()
	info, err := c.files.save(digest("outgoing", to.Chat, id), f.Name, f.MIME, r, maxOutgoing)
	switch {
	case errors.Is(err, errTooBig):
		return channels.Ref{}, &channels.TooLong{Err: err}
	case err != nil:
		return channels.Ref{}, &channels.Transient{Err: err}
	}
	ref, err := c.create(ctx, to.Chat, id, body{From: fromBot, Text: f.Caption, Files: []fileInfo{info}, ReplyTo: replyTo})
	if err != nil {
		c.files.remove([]fileInfo{info})
		return channels.Ref{}, err
	}
	return ref, nil
}

// AnswerAction shows the notice on the pages of the conversation where the button was pressed.
func (c *Channel) AnswerAction(_ context.Context, actionID, notice string) error {
	chat, id, ok := strings.Cut(actionID, "/")
	if !ok {
		return &channels.Gone{What: "action", Err: fmt.Errorf("web: unknown action")}
	}
	data, err := json.Marshal(map[string]string{"action_id": id, "text": notice})
	if err != nil {
		return &channels.Refused{Err: err}
	}
	rm := c.rooms.lock(chat)
	defer c.rooms.unlock(chat, rm)
	rm.publish(event{name: "notice", data: data})
	return nil
}

func (c *Channel) mustExist(ctx context.Context, chat string) error {
	ok, err := c.exists(ctx, chat)
	switch {
	case err != nil:
		return classify("look up conversation", err)
	case !ok:
		return &channels.Gone{What: "chat", Err: fmt.Errorf("web: no conversation %q", chat)}
	}
	return nil
}

// classify puts an error of the log into the classes of package channels.
func classify(op string, err error) error {
	err = fmt.Errorf("web: %s: %w", op, err)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &channels.Gone{What: "message", Err: err}
	case errors.Is(err, store.ErrTooLarge):
		return &channels.TooLong{Err: err}
	default:
		return &channels.Transient{Err: err}
	}
}
