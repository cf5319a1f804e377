package webtest

import (
	"context"
	"html"
	"slices"
	"strings"
	"sync"

	"deerbot/cards"
	"deerbot/channels"
)

// Inbox keeps what it accepts and dedupes as the real one does. Fail, when set, may refuse an event; On, when set, is told
// of every new one.
type Inbox struct {
	Fail func(*channels.Inbound) error
	On   func(*channels.Inbound)

	mu   sync.Mutex
	seen map[string]bool
	got  []channels.Inbound
}

// Accept takes the event.
func (b *Inbox) Accept(_ context.Context, in *channels.Inbound) error {
	b.mu.Lock()
	if b.Fail != nil {
		if err := b.Fail(in); err != nil {
			b.mu.Unlock()
			return err
		}
	}
	key := in.Place.Workspace + "|" + in.Place.Chat + "|" + in.EventID
	if b.seen[key] {
		b.mu.Unlock()
		return nil
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[key] = true
	b.got = append(b.got, *in)
	on := b.On
	b.mu.Unlock()
	if on != nil {
		on(in)
	}
	return nil
}

// Got lists what was accepted, each event once.
func (b *Inbox) Got() []channels.Inbound {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// Refuse sets Fail while the inbox is in use.
func (b *Inbox) Refuse(fn func(*channels.Inbound) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Fail = fn
}

// Dialect renders paragraphs and nothing else.
type Dialect struct{}

// Name is "web".
func (Dialect) Name() string { return "web" }

// Markdown escapes md.
func (Dialect) Markdown(md string) []cards.Body {
	if strings.TrimSpace(md) == "" {
		return nil
	}
	return []cards.Body{{Text: "<p>" + html.EscapeString(md) + "</p>", Format: "html", Plain: md}}
}

// Card shows the answer and the buttons of c.
func (d Dialect) Card(c cards.Card) cards.Body {
	b := cards.Body{Text: "<p>" + html.EscapeString(c.Answer) + "</p>", Format: "html", Plain: c.Answer}
	if len(c.Buttons) > 0 {
		b.Buttons = [][]cards.Button{c.Buttons}
	}
	return b
}
