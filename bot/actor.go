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

	"deerbot/cards/phrase"
	"deerbot/channels"
	"deerbot/commands"
	"deerbot/runtime"
	"deerbot/runtime/model"
	"deerbot/runtime/sandbox"
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

// handle works on one message (or merged album), whose inbox entries are ids. On nil it was dealt with: every entry is
// settled, taken by a run, or settled by an outgoing record.
func (b *Bot) handle(ctx context.Context, a *actor, in *channels.Inbound, ids []string) error {
	if in.Kind == channels.KindAction {
		return b.handleAction(ctx, in, ids)
	}
	if in.GroupID != "" && in.ChatKind != "dm" && !b.addressed(in) {
		if _, err := b.store.Conversation(ctx, in.Place); in.Place.Topic == "" || err != nil {
			return b.store.SettleInbound(ctx, ids...)
		}
	}
	conv, err := b.conversation(ctx, in)
	if err != nil {
		return err
	}
	p := commands.Parse(commands.Input{Text: in.Text, BotName: in.BotName, LeadingCode: in.LeadingCode, Mentioned: in.Mentioned})
	lang := b.langOf(conv, in)
	switch p.Kind {
	case commands.KindOtherBot:
		return b.store.SettleInbound(ctx, ids...)
	case commands.KindUnknown:
		return b.reply(ctx, in, ids, commands.Unknown(lang, p.Command.Name, p.Nearest))
	case commands.KindCommand:
		may, err := b.mayCommand(ctx, conv, in, p.Command.Name)
		if err != nil {
			return err
		}
		if !may {
			return b.reply(ctx, in, ids, commands.Reply{Markdown: textNotYours.In(lang)})
		}
		s := &session{b: b, conv: conv, in: in, lang: lang, key: ids[0], prepStopped: a.takeStopped()}
		r, err := commands.Handle(ctx, s, p.Command)
		if err != nil {
			if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
				return err
			}
			b.log.Error("command failed", "command", p.Command.Name, "chat", in.Place.String(), "err", err)
		}
		return b.reply(ctx, in, ids, r)
	}
	return b.message(ctx, a, in, ids, conv, lang)
}

// message makes a run of a plain message.
func (b *Bot) message(ctx context.Context, a *actor, in *channels.Inbound, ids []string, conv store.Conversation, lang phrase.Lang) error {
	if strings.TrimSpace(in.Text) == "" && len(in.Attachments) == 0 && in.Quote == nil && in.Note == "" {
		if !in.Mentioned {
			return b.store.SettleInbound(ctx, ids...)
		}
		return b.reply(ctx, in, ids, commands.Reply{Markdown: textGreeting.In(lang)})
	}
	if err := b.throttle(ctx, in, lang); err != nil {
		return err
	}
	settings := b.settings().Channels[in.Place.Channel]
	strategy := store.StrategyEnqueue
	switch settings.WhileRunning {
	case "interrupt":
		strategy = store.StrategyInterrupt
	case "reject":
		strategy = store.StrategyReject
	}
	prep, cancel := context.WithCancel(ctx)
	a.mu.Lock()
	a.prep, a.sender, a.stopped = cancel, in.Sender.ID, false
	a.mu.Unlock()
	// A stop that was committed before this looks is found here, a later one finds prep.
	overtaken, err := b.overtaken(ctx, in, ids)
	var input []model.Message
	if err == nil && !overtaken {
		input, err = b.input(prep, in, &conv, ids[0])
	}
	stopped := overtaken || prep.Err() != nil && ctx.Err() == nil
	a.mu.Lock()
	a.prep, a.stopped = nil, a.stopped || overtaken
	a.mu.Unlock()
	cancel()
	if stopped {
		// The stop behind this message meant it. Its own reply says so; nothing of this message reaches a model.
		return b.store.SettleInbound(ctx, ids...)
	}
	if err != nil {
		return err
	}
	meta := turnMeta{
		Place: in.Place, Entries: ids, ReplyTo: in.MessageID, Lang: lang, ChatKind: in.ChatKind, Sender: in.Sender.ID,
	}
	r, err := b.startRun(ctx, conv, "inbox/"+ids[0], input, strategy, meta)
	if errors.Is(err, store.ErrConflict) {
		return b.reply(ctx, in, ids, commands.Reply{Markdown: textBusy.In(lang)})
	}
	if err != nil {
		return err
	}
	b.follow(r)
	return b.store.TakeInbound(ctx, r.ID, ids...)
}

// handleAction carries out a pressed button.
func (b *Bot) handleAction(ctx context.Context, in *channels.Inbound, ids []string) error {
	conv, err := b.conversation(ctx, in)
	if err != nil {
		return err
	}
	lang := b.langOf(conv, in)
	answer := func(text string) error {
		if aa, ok := b.channel(in.Place.Channel).(channels.ActionAnswerer); ok && in.Action != nil {
			call, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := aa.AnswerAction(call, in.Action.ID, text); err != nil && ctx.Err() == nil {
				b.log.Debug("a button press was not answered", "chat", in.Place.String(), "err", err)
			}
		}
		return b.store.SettleInbound(ctx, ids...)
	}
	if in.Action == nil {
		return b.store.SettleInbound(ctx, ids...)
	}
	if id, ok := strings.CutPrefix(in.Action.Data, actionStop); ok {
		r, err := b.store.Run(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return answer(textActionGone.In(lang))
		case err != nil:
			return err
		case r.State.Terminal():
			return answer(textAlreadyOver.In(lang))
		case !b.mayStop(r, in):
			return answer(textNotYours.In(lang))
		}
		if err := b.rt.Cancel(ctx, id, in.Sender.ID); err != nil {
			return err
		}
		return answer(textStopping.In(lang))
	}
	if id, ok := strings.CutPrefix(in.Action.Data, actionResume); ok {
		return b.resumeRun(ctx, conv, in, id, lang, answer)
	}
	if c, ok := commands.ParseAction(in.Action.Data); ok {
		switch may, err := b.mayCommand(ctx, conv, in, c.Name); {
		case err != nil:
			return err
		case !may:
			return answer(textNotYours.In(lang))
		}
		s := &session{b: b, conv: conv, in: in, lang: lang, key: ids[0]}
		r, err := commands.Handle(ctx, s, c)
		if err != nil {
			b.log.Error("command failed", "command", c.Name, "chat", in.Place.String(), "err", err)
		}
		if err := answer(""); err != nil {
			return err
		}
		return b.reply(ctx, in, ids, r)
	}
	return answer(textActionGone.In(lang))
}

// mayStop: in a group, a run is stopped by who asked for it or by an operator of the channel.
func (b *Bot) mayStop(r store.Run, in *channels.Inbound) bool {
	var meta turnMeta
	if json.Unmarshal(r.Meta, &meta) != nil {
		return true
	}
	return b.mayEnd(meta.Sender, in)
}

// mayEnd reports whether who sent in may end what owner began.
func (b *Bot) mayEnd(owner string, in *channels.Inbound) bool {
	return in.ChatKind == "dm" || owner == "" || owner == in.Sender.ID ||
		contains(b.settings().Channels[in.Place.Channel].Admins, in.Sender.ID)
}

// mayCommand reports whether who sent in may give the command: one that ends runs may end only runs of their own.
func (b *Bot) mayCommand(ctx context.Context, conv store.Conversation, in *channels.Inbound, name string) (bool, error) {
	if in.ChatKind == "dm" || name != "stop" && name != "new" {
		return true, nil
	}
	r, err := b.store.ActiveRun(ctx, conv.ThreadID)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return false, err
	case !b.mayStop(r, in):
		return false, nil
	}
	if name == "stop" {
		return true, nil
	}
	pending, err := b.store.PendingRuns(ctx, conv.ThreadID)
	if err != nil {
		return false, err
	}
	for _, r := range pending {
		if !b.mayStop(r, in) {
			return false, nil
		}
	}
	return true, nil
}

// reply posts the answer to a command or a notice; sending it settles the entries.
func (b *Bot) reply(ctx context.Context, in *channels.Inbound, ids []string, r commands.Reply) error {
	ch := b.channel(in.Place.Channel)
	if ch == nil || strings.TrimSpace(r.Markdown) == "" {
		return b.store.SettleInbound(ctx, ids...)
	}
	bodies := ch.Capabilities().Dialect.Markdown(r.Markdown)
	if len(bodies) == 0 {
		return b.store.SettleInbound(ctx, ids...)
	}
	bodies[len(bodies)-1].Buttons = r.Buttons
	_, err := b.out.post(ctx, store.Outgoing{
		Key: "inbox/" + ids[0] + "/reply", Conversation: in.Place, Kind: outReply, Settles: ids,
	}, content{Bodies: bodies, ReplyTo: replyTo(in.ChatKind, in.MessageID)})
	if err != nil {
		return err
	}
	// The record settles the entries when it is sent. Until then they are taken, so that the actor does not see them.
	return b.store.TakeInbound(ctx, "", ids...)
}

// notice posts a text that answers nothing.
func (b *Bot) notice(ctx context.Context, p channels.Place, key, replyTo, md string) (<-chan struct{}, error) {
	ch := b.channel(p.Channel)
	if ch == nil {
		return nil, nil
	}
	return b.out.post(ctx, store.Outgoing{Key: key, Conversation: p, Kind: outReply},
		content{Bodies: ch.Capabilities().Dialect.Markdown(md), ReplyTo: replyTo})
}

// replyTo quotes the asker in groups only: in a DM every message is the asker's.
func replyTo(chatKind, messageID string) string {
	if chatKind == "dm" {
		return ""
	}
	return messageID
}

// conversation loads or makes the record of in's place.
func (b *Bot) conversation(ctx context.Context, in *channels.Inbound) (store.Conversation, error) {
	c, err := b.store.Conversation(ctx, in.Place)
	if err == nil {
		return c, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return c, err
	}
	now := b.now()
	c = store.Conversation{
		Key: in.Place, ThreadID: runtime.NewID(), Kind: in.ChatKind, Title: sandbox.Label(in.ChatTitle), CreatedAt: now, UpdatedAt: now,
	}
	return c, b.store.PutConversation(ctx, &c)
}

// lang tells the language for a place from its record, if it has one, and the message.
func (b *Bot) lang(ctx context.Context, in *channels.Inbound) phrase.Lang {
	c, err := b.store.Conversation(ctx, in.Place)
	if err != nil {
		c = store.Conversation{}
	}
	return b.langOf(c, in)
}

// langOf chooses the language of fixed texts: configuration, the chat's own choice, the message, the platform's locale.
func (b *Bot) langOf(c store.Conversation, in *channels.Inbound) phrase.Lang {
	if l := b.settings().Locale; l == "en" || l == "zh" {
		return phrase.Lang(l)
	}
	if c.Locale != "" {
		return phrase.Lang(c.Locale)
	}
	if !strings.HasPrefix(in.Text, "/") {
		if l := phrase.Guess(in.Text); l != "" {
			return l
		}
	}
	if strings.HasPrefix(strings.ToLower(in.Sender.Locale), "zh") {
		return phrase.ZH
	}
	return phrase.EN
}

// throttle holds a chat that writes more than limits.inbound_per_minute, and says so once a minute. Nothing is dropped.
func (b *Bot) throttle(ctx context.Context, in *channels.Inbound, lang phrase.Lang) error {
	limit := b.settings().InboundPerMinute
	if limit <= 0 {
		return nil
	}
	wait, first := b.rates.take(chatScope(in.Place), limit, b.now())
	if wait <= 0 {
		return nil
	}
	if first {
		if _, err := b.notice(ctx, in.Place, "slow/"+runtime.NewID(), "", textSlow.In(lang, limit)); err != nil {
			return err
		}
	}
	return &throttled{wait: wait}
}
