package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"deerbot/cards"
	"deerbot/cards/phrase"
	"deerbot/channels"
	"deerbot/internal/crash"
	"deerbot/runtime"
	"deerbot/runtime/event"
	"deerbot/runtime/model"
	"deerbot/store"
)

// turnMeta is what a run's record says about the chat it belongs to: enough to go on after a restart.
type turnMeta struct {
	Place    channels.Place `json:"place"`
	Entries  []string       `json:"entries,omitempty"` // inbox entries that the answer settles
	ReplyTo  string         `json:"reply_to,omitempty"`
	Lang     phrase.Lang    `json:"lang"`
	ChatKind string         `json:"chat_kind"`
	Sender   string         `json:"sender,omitempty"`
}

// startRun admits a run for a conversation.
func (b *Bot) startRun(ctx context.Context, conv store.Conversation, key string, in []model.Message, s store.Strategy, meta turnMeta) (store.Run, error) {
	raw, err := json.Marshal(meta)
	if err != nil {
		return store.Run{}, err
	}
	r, _, err := b.rt.Start(ctx, runtime.Request{
		ThreadID: conv.ThreadID, IdempotencyKey: key, Origin: "chat", Model: conv.Model, Input: in, Strategy: s, Meta: raw,
	})
	return r, err
}

// follower draws one run: it folds the events, keeps the live card, and posts the answer.
type follower struct {
	b    *Bot
	run  store.Run
	meta turnMeta
	ch   channels.Channel
	done chan struct{} // closed when the answer is in the outbox
	prev *follower     // of the thread's run before this one, nil if none is drawn

	mu    sync.Mutex
	view  cards.RunView
	dirty chan struct{} // capacity 1: something changed since the card was drawn
}

// follow draws r, unless somebody does already. A run that has no chat is nobody's.
func (b *Bot) follow(r store.Run) {
	var meta turnMeta
	if err := json.Unmarshal(r.Meta, &meta); err != nil || meta.Place.Channel == "" {
		return
	}
	ch := b.channel(meta.Place.Channel)
	if ch == nil {
		b.log.Warn("a run belongs to a channel that is not there", "run", r.ID, "channel", meta.Place.Channel)
		return
	}
	f := &follower{b: b, run: r, meta: meta, ch: ch, done: make(chan struct{}), dirty: make(chan struct{}, 1)}
	b.mu.Lock()
	if b.followers[r.ID] != nil || b.stopping {
		b.mu.Unlock()
		return
	}
	b.followers[r.ID] = f
	if last := b.lastRun[r.ThreadID]; last == nil || last.run.ID < r.ID {
		f.prev, b.lastRun[r.ThreadID] = last, f
	}
	b.mu.Unlock()
	b.spawn(func(ctx context.Context) {
		defer close(f.done)
		defer func() {
			b.mu.Lock()
			delete(b.followers, r.ID)
			if b.lastRun[r.ThreadID] == f {
				delete(b.lastRun, r.ThreadID)
			}
			b.mu.Unlock()
		}()
		f.work(ctx)
	})
}

// following returns the follower of a run, or nil.
func (b *Bot) following(runID string) *follower {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.followers[runID]
}

func (f *follower) work(ctx context.Context) {
	surface, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	card := &liveCard{f: f}
	wg.Add(1)
	timer := time.AfterFunc(typingAfter, func() { // owned by wg: Stop below tells whether it ran
		defer wg.Done()
		f.typing(surface, card)
	})
	end := f.fold(ctx)
	stop()
	if timer.Stop() {
		wg.Done()
	}
	wg.Wait() // an edit under way returns first: per message one call at a time, and the final is the last
	if end == nil {
		return // the process stops; the next start follows again
	}
	if f.inTurn(ctx) != nil {
		return
	}
	if err := f.finish(ctx, card); err != nil && ctx.Err() == nil {
		f.b.log.Error("an answer is not in the outbox; the next start posts it", "run", f.run.ID, "err", err)
	}
}

// inTurn waits until the answer of the thread's run before this one is in the outbox: followers are not scheduled in the
// order in which their runs end. A run that ended before it began has no turn to wait for.
func (f *follower) inTurn(ctx context.Context) error {
	prev := f.prev
	f.prev = nil // a long queue must not keep all that went before
	if prev == nil {
		return nil
	}
	if r, err := f.b.store.Run(ctx, f.run.ID); err == nil && r.StartedAt.IsZero() {
		return nil
	}
	select {
	case <-prev.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fold reads the run's events to the End. It returns nil when ctx ended first.
func (f *follower) fold(ctx context.Context) *event.End {
	wait := 100 * time.Millisecond
	for {
		for e, err := range f.b.rt.Subscribe(ctx, f.run.ID, f.cursor()) {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				f.b.log.Warn("a run's stream broke, reading on", "run", f.run.ID, "err", err)
				break
			}
			f.mu.Lock()
			f.view.Apply(e)
			f.mu.Unlock()
			if end, ok := e.Body.(event.End); ok {
				return &end
			}
			select {
			case f.dirty <- struct{}{}:
			default:
			}
		}
		if sleep(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// cursor is where to read on. After a break everything is read again: a fold of the same events gives the same view.
func (f *follower) cursor() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = cards.RunView{}
	return 0
}

// typing shows the working sign until the card takes over, then keeps the card.
func (f *follower) typing(ctx context.Context, card *liveCard) {
	t, _ := f.ch.(channels.Typer)
	show := func() {
		if t == nil || f.b.out.gate.penalty(f.meta.Place) > 0 {
			return
		}
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := t.Typing(call, f.meta.Place); err != nil && ctx.Err() == nil {
			f.b.log.Debug("no working sign", "chat", f.meta.Place.String(), "err", err)
			if limited, ok := errors.AsType[*channels.RateLimited](err); ok {
				f.b.out.penalize(f.meta.Place, limited)
			}
		}
	}
	show()
	if f.b.settings().Channels[f.meta.Place.Channel].Stream == "off" || !f.ch.Capabilities().Edits {
		for sleep(ctx, typingEvery) == nil {
			show()
		}
		return
	}
	if sleep(ctx, cardAfter-typingAfter) != nil {
		return
	}
	card.keep(ctx)
}

// liveCard is the message that a run keeps editing.
type liveCard struct {
	f   *follower
	rec store.Outgoing // committed before the message was posted
	id  string         // of the message
	// last is the hash of the body the platform accepted last.
	last string
}

func (f *follower) cardKey() string { return "run/" + f.run.ID + "/card" }

// keep posts the card and edits it until ctx ends: the newest view whenever the budget has room. A call under way is
// finished first.
func (c *liveCard) keep(ctx context.Context) {
	f := c.f
	tick := time.NewTicker(5 * time.Second) // elapsed time moves even when nothing happens
	defer tick.Stop()
	for {
		pace := paceOf(f.ch, f.meta.Place)
		if f.b.out.gate.waitEdit(ctx, f.meta.Place, pace) != nil {
			return
		}
		if err := c.draw(ctx); err != nil {
			var (
				limited *channels.RateLimited
				gone    *channels.Gone
			)
			switch {
			case ctx.Err() != nil:
				return
			case errors.As(err, &limited):
				f.b.out.penalize(f.meta.Place, limited)
				continue
			case errors.As(err, &gone), permanent(err), channels.IsFatal(err):
				f.b.log.Info("the live card is given up, the answer comes as a new message", "run", f.run.ID, "err", err)
				if errors.As(err, &gone) {
					c.forget(ctx)
				}
				return
			}
			f.b.log.Debug("a card update failed", "run", f.run.ID, "err", err)
			if sleep(ctx, time.Second) != nil {
				return
			}
		}
		select {
		case <-f.dirty:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (f *follower) body() cards.Body {
	f.mu.Lock()
	card := f.view.Card(f.b.now(), f.meta.Lang)
	f.mu.Unlock()
	card.Buttons = []cards.Button{{Label: labelStop.In(f.meta.Lang), Action: actionStop + f.run.ID, Style: "danger"}}
	return f.ch.Capabilities().Dialect.Card(card)
}

// draw brings the message to the newest view. The call is not cut by ctx: its outcome would be unknown.
func (c *liveCard) draw(ctx context.Context) error {
	f := c.f
	if c.id == "" {
		if err := c.open(ctx); err != nil || c.id != "" {
			return err
		}
	}
	body := f.body()
	hash := hashOf(body)
	if hash == c.last {
		return nil
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	m := channels.Message{Body: body}
	var err error
	if c.id == "" {
		m.ReplyTo = replyTo(f.meta.ChatKind, f.meta.ReplyTo)
		err = c.post(call, m)
	} else {
		err = f.ch.Edit(call, channels.Ref{Place: f.meta.Place, ID: c.id}, m)
	}
	if _, ok := errors.AsType[*channels.BadFormat](err); ok {
		m.Body = body.AsPlain()
		if c.id == "" {
			err = c.post(call, m)
		} else {
			err = f.ch.Edit(call, channels.Ref{Place: f.meta.Place, ID: c.id}, m)
		}
	}
	if err == nil {
		c.last = hash
	}
	return err
}

// open finds the card that an earlier process posted, or commits the intent to post one.
func (c *liveCard) open(ctx context.Context) error {
	f := c.f
	now := f.b.now()
	rec := store.Outgoing{
		Key: f.cardKey(), Conversation: f.meta.Place, RunID: f.run.ID, Kind: outCard, State: store.DeliverySending,
		Parts: []store.OutgoingPart{{State: store.DeliveryPending}}, Body: json.RawMessage("{}"), CreatedAt: now, UpdatedAt: now,
	}
	got, _, err := f.b.store.PutOutgoing(ctx, &rec)
	if err != nil {
		return err
	}
	c.rec = got
	if got.State == store.DeliveryPermanent {
		return &channels.Gone{What: "message", Err: errors.New("the card was deleted")}
	}
	if len(got.Parts) > 0 {
		c.id = got.Parts[0].MessageID
	}
	return nil
}

func (c *liveCard) post(ctx context.Context, m channels.Message) error {
	ref, err := c.f.ch.Send(ctx, c.f.meta.Place, m, c.rec.Key)
	crash.Point(crash.PlaceholderAfter)
	if err != nil {
		return err
	}
	c.id = ref.ID
	c.rec.Parts = []store.OutgoingPart{{MessageID: ref.ID, State: store.DeliverySent}}
	c.rec.State, c.rec.UpdatedAt = store.DeliverySent, c.f.b.now()
	err = c.f.b.store.UpdateOutgoing(ctx, &c.rec)
	crash.Point(crash.PlaceholderKnown)
	return err
}

// forget takes note that somebody deleted the card.
func (c *liveCard) forget(ctx context.Context) {
	c.id, c.last = "", ""
	c.rec.Parts = []store.OutgoingPart{{State: store.DeliveryPermanent}}
	c.rec.State = store.DeliveryPermanent
	if err := c.f.b.store.UpdateOutgoing(ctx, &c.rec); err != nil {
		c.f.b.log.Warn("cannot record a deleted card", "run", c.f.run.ID, "err", err)
	}
}

// finish posts what remains: the answer, the card's last line, the files.
func (f *follower) finish(ctx context.Context, card *liveCard) error {
	if card.id == "" && card.rec.State != store.DeliveryPermanent {
		// The run may have been drawn by an earlier process.
		rec, err := f.b.store.Outgoing(ctx, f.cardKey())
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		switch caps := f.ch.Capabilities(); {
		case err != nil || len(rec.Parts) == 0:
		case rec.State == store.DeliverySent:
			card.id = rec.Parts[0].MessageID
		case rec.State == store.DeliverySending && (caps.Loopback || caps.IdempotentSends):
			// It may have been posted before its id was recorded. The same key finds it again.
			if err := card.draw(ctx); err != nil {
				f.b.log.Info("the card of an earlier process was not found", "run", f.run.ID, "err", err)
			}
		}
	}
	f.mu.Lock()
	view := f.view
	f.mu.Unlock()
	c := view.Card(f.b.now(), f.meta.Lang)
	artifacts, err := f.b.store.RunArtifacts(ctx, f.run.ID)
	if err != nil {
		return err
	}
	text := f.answer(view, c)
	if strings.TrimSpace(text) == "" && card.id == "" && len(artifacts) == 0 {
		// Stopped before anything was shown: whoever stopped it was told so, and of a restart answer speaks.
		return f.b.store.SettleInbound(ctx, f.meta.Entries...)
	}
	if strings.TrimSpace(text) == "" {
		text = cards.OneLine(c)
	}
	dialect := f.ch.Capabilities().Dialect
	bodies := dialect.Markdown(text)
	var attached string
	if len(bodies) > maxParts {
		attached = text
		bodies = dialect.Markdown(textAsFile.In(f.meta.Lang, firstBlock(text)))
	}
	if len(bodies) == 0 {
		bodies = dialect.Markdown(textNothing.In(f.meta.Lang))
	}
	if b := f.endButtons(c); b != nil {
		bodies[len(bodies)-1].Buttons = b
	}
	inPlace := card.id != "" && f.inPlace(c)
	rec := store.Outgoing{
		Key: "run/" + f.run.ID + "/final", Conversation: f.meta.Place, RunID: f.run.ID, Kind: outFinal, Settles: f.meta.Entries,
	}
	body := content{Bodies: bodies}
	switch {
	case inPlace:
		rec.Parts = []store.OutgoingPart{{MessageID: card.id, State: store.DeliveryPending}}
	case card.id != "":
		line := store.Outgoing{
			Key: "run/" + f.run.ID + "/line", Conversation: f.meta.Place, RunID: f.run.ID, Kind: outLine,
			Parts: []store.OutgoingPart{{MessageID: card.id, State: store.DeliveryPending}},
		}
		if _, err := f.b.out.post(ctx, line, content{Bodies: dialect.Markdown(cards.OneLine(c))[:1]}); err != nil {
			return err
		}
		body.ReplyTo = replyTo(f.meta.ChatKind, f.meta.ReplyTo)
	default:
		body.ReplyTo = replyTo(f.meta.ChatKind, f.meta.ReplyTo)
	}
	if _, err := f.b.out.post(ctx, rec, body); err != nil {
		return err
	}
	if attached != "" {
		_, err := f.b.out.post(ctx, store.Outgoing{
			Key: "run/" + f.run.ID + "/answer.md", Conversation: f.meta.Place, RunID: f.run.ID, Kind: outFile,
		}, content{Inline: attached})
		if err != nil {
			return err
		}
	}
	for _, a := range artifacts {
		_, err := f.b.out.post(ctx, store.Outgoing{
			Key: "run/" + f.run.ID + "/file/" + a.ID, Conversation: f.meta.Place, RunID: f.run.ID, Kind: outFile,
		}, content{File: &a})
		if err != nil {
			return err
		}
	}
	return nil
}

// answer is the text people get: the run's own words, then, if it did not plainly complete, why.
func (f *follower) answer(view cards.RunView, c cards.Card) string {
	var parts []string
	for _, n := range c.Notices {
		parts = append(parts, "> "+n)
	}
	body := strings.TrimSpace(view.FinalAnswer())
	if body == "" && c.Phase == cards.PhaseStopped && !cutByRestart(view.Stops()) {
		return ""
	}
	switch {
	case body != "":
		parts = append(parts, body)
	case len(c.Reasons) == 0:
		parts = append(parts, textNothing.In(f.meta.Lang))
	}
	if len(c.Reasons) > 0 {
		parts = append(parts, "*"+strings.Join(c.Reasons, "*\n\n*")+"*")
	}
	return strings.Join(parts, "\n\n")
}

// inPlace says whether the answer replaces the card, or comes as a message of its own so that people are notified.
func (f *follower) inPlace(c cards.Card) bool {
	s := f.b.settings().Channels[f.meta.Place.Channel]
	switch s.Answer {
	case "edit":
		return true
	case "new":
		return false
	}
	after := s.AnswerNewAfter
	if after <= 0 {
		after = 20 * time.Second
	}
	return c.Elapsed < after
}

// endButtons offers to go on where a restart ended the run.
func (f *follower) endButtons(c cards.Card) [][]cards.Button {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !cutByRestart(f.view.Stops()) {
		return nil
	}
	return [][]cards.Button{{{Label: labelResume.In(f.meta.Lang), Action: actionResume + f.run.ID, Style: "primary"}}}
}

// cutByRestart reports whether a restart ended the run: nobody asked for that, so people are told.
func cutByRestart(stops []store.StopReason) bool {
	for _, r := range stops {
		if r.Code == store.StopInterrupted && r.Source == "recovery" {
			return true
		}
	}
	return false
}

// resumeRun goes on with a run that a restart ended, as a new run on the same thread.
func (b *Bot) resumeRun(ctx context.Context, conv store.Conversation, in *channels.Inbound, id string, lang phrase.Lang, answer func(string) error) error {
	old, err := b.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return answer(textActionGone.In(lang))
	}
	if err != nil {
		return err
	}
	if old.ThreadID != conv.ThreadID {
		return answer(textThreadLeft.In(lang))
	}
	msg := model.Text("resume-"+id, model.RoleUser, resumeText)
	msg.Hidden, msg.Origin = true, "framework"
	var was turnMeta
	if err := json.Unmarshal(old.Meta, &was); err != nil {
		return fmt.Errorf("run %s: meta: %w", id, err)
	}
	meta := turnMeta{Place: in.Place, ReplyTo: was.ReplyTo, Lang: lang, ChatKind: was.ChatKind, Sender: in.Sender.ID}
	r, err := b.startRun(ctx, conv, "resume/"+id, []model.Message{msg}, store.StrategyEnqueue, meta)
	if err != nil {
		return err
	}
	b.follow(r)
	return answer(textResuming.In(lang))
}

// PlaceOf tells the chat of a run: where it is, its kind and its title. All are empty for a run without one.
func (b *Bot) PlaceOf(ctx context.Context, r store.Run) (p channels.Place, kind, title string) {
	var meta turnMeta
	if json.Unmarshal(r.Meta, &meta) != nil || meta.Place.Channel == "" {
		return p, "", ""
	}
	if c, err := b.store.Conversation(ctx, meta.Place); err == nil {
		title = c.Title
	}
	return meta.Place, meta.ChatKind, title
}

// Unsent is the number of outgoing records under way or queued.
func (b *Bot) Unsent() int {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	return len(b.out.known)
}
