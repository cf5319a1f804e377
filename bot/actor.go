package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"deerbot/channels"
	"deerbot/commands"
	"deerbot/store"
)

// Button actions of the bot itself. What follows the prefix is a run id.
const (
	actionStop   = "stop:"
	actionResume = "resume:"
)

// actor handles the committed messages of one conversation, one after another. It never waits for a run. It ends when
// nothing is pending and is made again by the next message, so idle conversations cost nothing.
type actor struct {
	place channels.Place

	mu      sync.Mutex
	more    bool               // something came since the last look
	prep    context.CancelFunc // of the message in preparation (files being fetched), nil otherwise
	sender  string             // of the message in preparation
	stopped bool               // a preparation was stopped, and the command that did it is not handled yet

	signal chan struct{} // capacity 1: something came
}

// throttled says that a chat's next message is not due yet.
type throttled struct{ wait time.Duration }

func (t *throttled) Error() string { return "over the chat's rate, next message in " + t.wait.String() }

// wake makes sure that the conversation's pending messages are looked at.
func (b *Bot) wake(p channels.Place) {
	b.mu.Lock()
	a := b.actors[p]
	if a != nil {
		a.mu.Lock()
		a.more = true
		a.mu.Unlock()
		b.mu.Unlock()
		select {
		case a.signal <- struct{}{}:
		default:
		}
		return
	}
	a = &actor{place: p, signal: make(chan struct{}, 1)}
	b.actors[p] = a
	b.mu.Unlock()
	b.spawn(func(ctx context.Context) { b.act(ctx, a) })
}

// interruptPreparation stops the fetching of files for a message that in, a stop, has overtaken.
func (b *Bot) interruptPreparation(in *channels.Inbound) {
	b.mu.Lock()
	a := b.actors[in.Place]
	b.mu.Unlock()
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.prep != nil && b.mayEnd(a.sender, in) {
		a.prep()
		a.stopped = true
	}
}

// overtaken reports whether a stop waits behind a message whose files would be fetched first.
func (b *Bot) overtaken(ctx context.Context, in *channels.Inbound, ids []string) (bool, error) {
	if len(in.Attachments) == 0 && (in.Quote == nil || len(in.Quote.Attachments) == 0) {
		return false, nil
	}
	entries, err := b.store.PendingInbound(ctx, in.Place, 2*maxPending)
	if err != nil {
		return false, err
	}
	behind := false
	for _, e := range entries {
		if contains(ids, e.ID) {
			behind = true
			continue
		}
		next, err := decodeInbound(e)
		if behind && err == nil && next.Kind == channels.KindMessage && b.stops(next) && b.mayEnd(in.Sender.ID, next) {
			return true, nil
		}
	}
	return false, nil
}

// takeStopped reports, once, whether a preparation was stopped.
func (a *actor) takeStopped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	stopped := a.stopped
	a.stopped = false
	return stopped
}

func (b *Bot) act(ctx context.Context, a *actor) {
	wait := 100 * time.Millisecond
	for {
		if err := b.slots.Acquire(ctx, 1); err != nil {
			return
		}
		err := b.handlePending(ctx, a)
		b.slots.Release(1)
		if ctx.Err() != nil {
			return
		}
		if slow, ok := errors.AsType[*throttled](err); ok {
			if a.await(ctx, slow.wait) != nil {
				return
			}
			continue
		}
		if err != nil {
			b.log.Error("cannot handle a conversation's messages, trying again", "chat", a.place.String(), "err", err, "in", wait)
			if sleep(ctx, wait) != nil {
				return
			}
			wait = min(2*wait, 30*time.Second)
			continue
		}
		wait = 100 * time.Millisecond
		b.mu.Lock()
		a.mu.Lock()
		more := a.more
		a.more = false
		if !more {
			delete(b.actors, a.place)
		}
		a.mu.Unlock()
		b.mu.Unlock()
		if !more {
			return
		}
	}
}

// await waits d, or until something came.
func (a *actor) await(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.signal:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// handlePending handles what is pending now. An entry that fails stays pending and stops the round: order matters.
func (b *Bot) handlePending(ctx context.Context, a *actor) error {
	for {
		entries, err := b.store.PendingInbound(ctx, a.place, 32)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
		for i := 0; i < len(entries); {
			in, err := decodeInbound(entries[i])
			if err != nil {
				b.log.Error("an inbox entry cannot be read, it is dropped", "entry", entries[i].ID, "err", err)
				if err := b.store.SettleInbound(ctx, entries[i].ID); err != nil {
					return err
				}
				i++
				continue
			}
			if in.GroupID != "" && in.Kind == channels.KindMessage {
				// The rest of the album may still be on its way. Entries behind it wait too: their order is the chat's.
				if left := albumQuiet - b.now().Sub(entries[len(entries)-1].ReceivedAt); left > 0 {
					if err := sleep(ctx, left); err != nil {
						return err
					}
					break
				}
				n := i + 1
				group := []*channels.Inbound{in}
				ids := []string{entries[i].ID}
				for ; n < len(entries); n++ {
					next, err := decodeInbound(entries[n])
					if err != nil || next.GroupID != in.GroupID {
						break
					}
					group, ids = append(group, next), append(ids, entries[n].ID)
				}
				if err := b.handleOrHold(ctx, a, mergeAlbum(group), ids); err != nil {
					return err
				}
				i = n
				continue
			}
			if err := b.handleOrHold(ctx, a, in, []string{entries[i].ID}); err != nil {
				return err
			}
			i++
		}
	}
}

// handleOrHold handles in. When it is held back for the chat's rate, what must not wait behind it is handled.
func (b *Bot) handleOrHold(ctx context.Context, a *actor, in *channels.Inbound, ids []string) error {
	err := b.handle(ctx, a, in, ids)
	if _, ok := errors.AsType[*throttled](err); ok {
		if uerr := b.handleUrgent(ctx, a); uerr != nil {
			return uerr
		}
	}
	return err
}

// urgent reports whether in must not wait behind messages: a button, or a command that changes nothing of what is in
// front of it.
func urgent(in *channels.Inbound) bool {
	if in.Kind == channels.KindAction {
		return true
	}
	p := commands.Parse(commands.Input{Text: in.Text, BotName: in.BotName, LeadingCode: in.LeadingCode, Mentioned: in.Mentioned})
	if p.Kind != commands.KindCommand {
		return false
	}
	switch p.Command.Name {
	case "stop", "status", "help", "whoami":
		return true
	}
	return false
}

// handleUrgent handles what is urgent among all that is pending.
func (b *Bot) handleUrgent(ctx context.Context, a *actor) error {
	entries, err := b.store.PendingInbound(ctx, a.place, 2*maxPending)
	if err != nil {
		return err
	}
	for _, e := range entries {
		in, err := decodeInbound(e)
		if err != nil || !urgent(in) {
			continue
		}
		if err := b.handle(ctx, a, in, []string{e.ID}); err != nil {
			return err
		}
	}
	return nil
}

func decodeInbound(e store.InboxEntry) (*channels.Inbound, error) {
	var in channels.Inbound
	if err := json.Unmarshal(e.Payload, &in); err != nil {
		return nil, err
	}
	in.Place = e.Conversation // the chat may have moved since
	return &in, nil
}

// mergeAlbum makes one message of an album's: files in the order of their message ids, captions with their file's number.
func mergeAlbum(group []*channels.Inbound) *channels.Inbound {
	sort.SliceStable(group, func(i, j int) bool { return lessID(group[i].MessageID, group[j].MessageID) })
	out := *group[0]
	out.Text, out.Attachments = "", nil
	captions := 0
	for _, in := range group {
		if strings.TrimSpace(in.Text) != "" {
			captions++
		}
	}
	var text []string
	n := 0
	for _, in := range group {
		n += max(1, len(in.Attachments))
		out.Attachments = append(out.Attachments, in.Attachments...)
		out.Mentioned = out.Mentioned || in.Mentioned
		out.RepliesToBot = out.RepliesToBot || in.RepliesToBot
		if out.Quote == nil {
			out.Quote = in.Quote
		}
		switch t := strings.TrimSpace(in.Text); {
		case t == "":
		case captions == 1:
			text = append(text, t)
		default:
			text = append(text, fmt.Sprintf("(%d) %s", n, t))
		}
		if in.Note != "" {
			out.Note = in.Note
		}
	}
	out.Text = strings.Join(text, "\n")
	return &out
}

func lessID(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}
