// Package webtest has stand-ins for what surrounds the web channel: a log in memory, an inbox and a dialect.
package webtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"deerbot/store"
)

// Log is a [store.ChatLog] in memory. Fail, when set, is asked before every call and may return an error for it.
type Log struct {
	Fail func(op string) error
	Now  func() time.Time

	mu    sync.Mutex
	chats map[string]*chat
	order int
}

type chat struct {
	title   string
	msgs    []store.ChatMessage // by Seq, which is the index + 1
	rev     uint64
	updated time.Time
	order   int
}

func (l *Log) begin(op string) error {
	if l.Fail != nil {
		return l.Fail(op)
	}
	return nil
}

func (l *Log) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now().UTC()
}

// touch returns the chat, made when missing, as the newest one. l.mu is held.
func (l *Log) touch(id string) *chat {
	if l.chats == nil {
		l.chats = map[string]*chat{}
	}
	c := l.chats[id]
	if c == nil {
		c = &chat{}
		l.chats[id] = c
	}
	l.order++
	c.order, c.updated = l.order, l.now()
	return c
}

// PutChatMessage creates or replaces a message.
func (l *Log) PutChatMessage(_ context.Context, m *store.ChatMessage) error {
	if err := l.begin("put"); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(m.Body) > store.MaxValue {
		return fmt.Errorf("put: %w", store.ErrTooLarge)
	}
	c := l.touch(m.Chat)
	c.rev++
	m.Rev, m.UpdatedAt = c.rev, c.updated
	kept := *m
	kept.Body = slices.Clone(m.Body)
	if i := slices.IndexFunc(c.msgs, func(o store.ChatMessage) bool { return o.ID == m.ID }); i >= 0 {
		m.Seq, m.CreatedAt = c.msgs[i].Seq, c.msgs[i].CreatedAt
		kept.Seq, kept.CreatedAt = m.Seq, m.CreatedAt
		c.msgs[i] = kept
		return nil
	}
	m.Seq, m.CreatedAt = uint64(len(c.msgs)+1), c.updated
	kept.Seq, kept.CreatedAt = m.Seq, m.CreatedAt
	c.msgs = append(c.msgs, kept)
	return nil
}

// ChatMessage returns one message.
func (l *Log) ChatMessage(_ context.Context, id, msg string) (store.ChatMessage, error) {
	if err := l.begin("get"); err != nil {
		return store.ChatMessage{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.chats[id]; c != nil {
		for _, m := range c.msgs {
			if m.ID == msg {
				m.Body = slices.Clone(m.Body)
				return m, nil
			}
		}
	}
	return store.ChatMessage{}, fmt.Errorf("message %s: %w", msg, store.ErrNotFound)
}

// ChatMessages lists messages after a sequence number.
func (l *Log) ChatMessages(_ context.Context, id string, after uint64, limit int) ([]store.ChatMessage, error) {
	if err := l.begin("list"); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.chats[id]
	if c == nil || after >= uint64(len(c.msgs)) {
		return nil, nil
	}
	out := slices.Clone(c.msgs[after:min(uint64(len(c.msgs)), after+uint64(limit))])
	for i := range out {
		out[i].Body = slices.Clone(out[i].Body)
	}
	return out, nil
}

// Chats lists chats, the newest first.
func (l *Log) Chats(_ context.Context, limit int) ([]store.ChatSummary, error) {
	if err := l.begin("chats"); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	type ordered struct {
		s store.ChatSummary
		o int
	}
	var list []ordered
	for id, c := range l.chats {
		list = append(list, ordered{store.ChatSummary{Chat: id, Title: c.title, Messages: len(c.msgs), UpdatedAt: c.updated}, c.order})
	}
	slices.SortFunc(list, func(a, b ordered) int { return b.o - a.o })
	var out []store.ChatSummary
	for _, o := range list[:min(limit, len(list))] {
		out = append(out, o.s)
	}
	return out, nil
}

// PutChatTitle names a chat.
func (l *Log) PutChatTitle(_ context.Context, id, title string) error {
	if err := l.begin("title"); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.chats[id]; c != nil {
		c.title = title
		return nil
	}
	l.touch(id).title = title
	return nil
}

// DeleteChat removes a chat.
func (l *Log) DeleteChat(_ context.Context, id string) error {
	if err := l.begin("delete"); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.chats, id)
	return nil
}
