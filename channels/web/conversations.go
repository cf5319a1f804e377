package web

import (
	"context"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"deerbot/channels"
	"deerbot/store"
)

type wireConversation struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	Messages  int       `json:"messages"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

func (c *Channel) listConversations(w http.ResponseWriter, r *http.Request) {
	list, err := c.cfg.Log.Chats(r.Context(), MaxConversations)
	if err != nil {
		c.failStore(w, "list conversations", err)
		return
	}
	out := make([]wireConversation, 0, len(list))
	for _, s := range list[:min(len(list), MaxConversations)] {
		out = append(out, wireConversation{ID: s.Chat, Title: s.Title, Messages: s.Messages, UpdatedAt: s.UpdatedAt})
	}
	reply(w, http.StatusOK, map[string]any{"conversations": out})
}

func (c *Channel) createConversation(w http.ResponseWriter, r *http.Request) {
	var req struct{ Title string }
	if !readJSON(w, r, 4<<10, &req) {
		return
	}
	id, err := uuid.NewV7()
	if err != nil {
		c.failStore(w, "create conversation", err)
		return
	}
	ctx, cancel := settled(r.Context())
	defer cancel()
	title := cleanTitle(req.Title)
	if err := c.cfg.Log.PutChatTitle(ctx, id.String(), title); err != nil {
		c.failStore(w, "create conversation", err)
		return
	}
	c.setKnown(id.String(), true)
	reply(w, http.StatusCreated, wireConversation{ID: id.String(), Title: title})
}

func (c *Channel) renameConversation(w http.ResponseWriter, r *http.Request, chat string) {
	var req struct{ Title string }
	if !readJSON(w, r, 4<<10, &req) {
		return
	}
	title := cleanTitle(req.Title)
	if title == "" {
		fail(w, http.StatusBadRequest, "no_title", "a title is needed")
		return
	}
	ctx, cancel := settled(r.Context())
	defer cancel()
	rm := c.rooms.lock(chat)
	defer c.rooms.unlock(chat, rm)
	ok, err := c.exists(ctx, chat)
	if err == nil && !ok {
		err = store.ErrNotFound
	}
	if err == nil {
		err = c.setTitle(ctx, rm, chat, title)
	}
	if err != nil {
		c.failStore(w, "rename conversation", err)
		return
	}
	reply(w, http.StatusOK, wireConversation{ID: chat, Title: title})
}

// setTitle names the conversation of the locked room.
func (c *Channel) setTitle(ctx context.Context, rm *room, chat, title string) error {
	if err := c.cfg.Log.PutChatTitle(ctx, chat, title); err != nil {
		return err
	}
	rm.publish(jsonEvent("chat", wireConversation{ID: chat, Title: title}))
	return nil
}

// deleteConversation removes messages and files. Work that the bot may be doing there is told to stop first: nobody could
// see it any more, or stop it.
func (c *Channel) deleteConversation(w http.ResponseWriter, r *http.Request, chat string) {
	ctx, cancel := settled(r.Context())
	defer cancel()
	ok, err := c.exists(ctx, chat)
	switch {
	case err != nil:
		c.failStore(w, "delete conversation", err)
		return
	case !ok:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	stop := &channels.Inbound{
		Kind: channels.KindMessage, Place: place(chat), EventID: "deleted:" + chat, MessageID: "deleted-" + chat,
		ChatKind: "dm", Sender: channels.Sender{ID: SenderID, Name: SenderID, Locale: locale(r)},
		Text: "/stop", SentAt: c.cfg.Now(),
	}
	if err := c.accept(ctx, stop); err != nil {
		c.failStore(w, "delete conversation", err)
		return
	}
	rm := c.rooms.lock(chat)
	defer c.rooms.unlock(chat, rm)
	var files []fileInfo
	err = c.each(ctx, chat, 0, func(m store.ChatMessage) bool {
		if b, err := decodeBody(m); err == nil {
			files = append(files, b.Files...)
		}
		return true
	})
	if err == nil {
		err = c.cfg.Log.DeleteChat(ctx, chat)
	}
	if err != nil {
		c.failStore(w, "delete conversation", err)
		return
	}
	c.setKnown(chat, false)
	c.files.remove(files)
	rm.publish(jsonEvent("gone", wireConversation{ID: chat}))
	w.WriteHeader(http.StatusNoContent)
}

func (c *Channel) getCommands(w http.ResponseWriter, _ *http.Request) {
	type command struct {
		Name        string            `json:"name"`
		Description map[string]string `json:"description"`
		Args        string            `json:"args,omitempty"`
	}
	c.mu.Lock()
	out := make([]command, 0, len(c.commands))
	for _, ci := range c.commands {
		out = append(out, command(ci))
	}
	c.mu.Unlock()
	reply(w, http.StatusOK, map[string]any{"commands": out})
}

// cleanTitle makes one short line of any text.
func cleanTitle(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200d', r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if rs := []rune(s); len(rs) > maxTitle {
		s = strings.TrimSpace(string(rs[:maxTitle-1])) + "…"
	}
	return s
}

// titleFrom is the name a conversation gets from its first message.
func titleFrom(b body) string {
	first, _, _ := strings.Cut(strings.TrimSpace(b.Text), "\n")
	title := cleanTitle(first)
	if title == "" && len(b.Files) > 0 {
		title = b.Files[0].Name
	}
	const short = 60
	if rs := []rune(title); len(rs) > short {
		title = strings.TrimSpace(string(rs[:short-1])) + "…"
	}
	return title
}
