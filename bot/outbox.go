package bot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/internal/crash"
	"deerbot/store"
)

// Kinds of outgoing records.
const (
	outReply = "reply" // to a command, or a notice
	outCard  = "card"  // the live card: its record only remembers the message
	outLine  = "line"  // the card's last state, when the answer is a message of its own
	outFinal = "final" // a run's answer
	outFile  = "file"  // an artifact
)

// content is the body of an outgoing record.
type content struct {
	Bodies  []cards.Body    `json:"bodies,omitempty"` // one per part
	ReplyTo string          `json:"reply_to,omitempty"`
	Silent  bool            `json:"silent,omitempty"`
	File    *store.Artifact `json:"file,omitempty"`
	Inline  string          `json:"inline,omitempty"` // content of a file that is nowhere else: a too long answer
}

// send retries: capped exponential backoff, and a cap on attempts after which a person must look.
const (
	firstRetry  = 500 * time.Millisecond
	maxRetry    = 2 * time.Minute
	maxAttempts = 40
	callTimeout = 30 * time.Second
	fileTimeout = 5 * time.Minute
)

// outbox sends committed records, in order per chat, one chat beside another.
type outbox struct {
	b    *Bot
	gate *gate

	mu      sync.Mutex
	senders map[string]*sender
	known   map[string]chan struct{} // records under way by key; closed when done with
}

type sender struct{ queue []store.Outgoing }

func newOutbox(b *Bot) *outbox {
	o := &outbox{b: b, senders: map[string]*sender{}, known: map[string]chan struct{}{}}
	o.gate = newGate(b.now, func(scope string, until time.Time) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := b.store.PutPenalty(ctx, scope, until); err != nil {
			b.log.Warn("cannot remember a rate penalty", "err", err)
		}
	})
	return o
}

// post commits a record and queues it for sending. A key that is known already is not posted again; when its record was
// delivered, the entries it settles are settled. The channel is closed when the record is sent or given up.
func (o *outbox) post(ctx context.Context, rec store.Outgoing, c content) (<-chan struct{}, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("outgoing %s: %w", rec.Key, err)
	}
	now := o.b.now()
	rec.Body, rec.CreatedAt, rec.UpdatedAt = body, now, now
	for len(rec.Parts) < max(1, len(c.Bodies)) {
		rec.Parts = append(rec.Parts, store.OutgoingPart{State: store.DeliveryPending})
	}
	done, mine := o.reserve(rec.Key)
	if !mine {
		return done, nil // its record is on its way already
	}
	// When the call follows at once, the intent says so: one commit less before it.
	rec.State = store.DeliveryPending
	if o.ready(rec.Conversation) {
		rec.State = store.DeliverySending
	}
	got, created, err := o.b.store.PutOutgoing(ctx, &rec)
	if err != nil {
		o.release(rec.Key)
		return nil, fmt.Errorf("outgoing %s: %w", rec.Key, err)
	}
	crash.Point(crash.OutboxIntent)
	if !created && (got.State == store.DeliverySent || got.State == store.DeliveryPermanent) {
		o.release(rec.Key)
		return done, o.b.store.SettleInbound(ctx, rec.Settles...)
	}
	if !created {
		got.Settles = rec.Settles
	}
	o.enqueue(got)
	return done, nil
}

// reserve claims a record's key for sending. Until release nobody else sends it, so what the store says of it when mine is
// true stays true: without this, a restart's resend and the run's follower would both send.
func (o *outbox) reserve(key string) (done chan struct{}, mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if done, ok := o.known[key]; ok {
		return done, false
	}
	done = make(chan struct{})
	o.known[key] = done
	return done, true
}

func (o *outbox) release(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.known[key])
	delete(o.known, key)
}

// ready reports whether a record of p would be called for at once.
func (o *outbox) ready(p channels.Place) bool {
	o.mu.Lock()
	idle := o.senders[chatScope(p)] == nil
	o.mu.Unlock()
	return idle && o.gate.penalty(p) <= 0
}

// enqueue hands a committed record, whose key is reserved, to its chat's sender.
func (o *outbox) enqueue(rec store.Outgoing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	scope := chatScope(rec.Conversation)
	s := o.senders[scope]
	if s == nil {
		s = &sender{}
		o.senders[scope] = s
		o.b.spawn(func(ctx context.Context) { o.serve(ctx, scope, s) })
	}
	s.queue = append(s.queue, rec)
}

// serve sends a chat's records until none is left.
func (o *outbox) serve(ctx context.Context, scope string, s *sender) {
	for {
		o.mu.Lock()
		if len(s.queue) == 0 || ctx.Err() != nil {
			delete(o.senders, scope)
			o.mu.Unlock()
			return
		}
		rec := s.queue[0]
		s.queue = s.queue[1:]
		o.mu.Unlock()
		o.deliver(ctx, &rec)
		o.release(rec.Key)
	}
}

// deliver sends all parts of rec and records what came of it. It returns early only when ctx ends; the record then stays
// for the next start.
func (o *outbox) deliver(ctx context.Context, rec *store.Outgoing) {
	log := o.b.log.With("out", rec.Key, "chat", rec.Conversation.String())
	ch := o.b.channel(rec.Conversation.Channel)
	var c content
	if err := json.Unmarshal(rec.Body, &c); err != nil {
		log.Error("an outgoing record cannot be read", "err", err)
		o.giveUp(ctx, rec, "unreadable record")
		return
	}
	if ch == nil {
		log.Warn("no such channel now; the message waits for a start that has it")
		return
	}
	wait, last := firstRetry, ""
	for {
		if rec.State != store.DeliverySending && rec.State != store.DeliveryUnknown {
			// Wait first, then say so, then call: a crash while waiting must not look like a lost answer.
			if sleep(ctx, o.gate.penalty(rec.Conversation)) != nil {
				return
			}
			o.mark(ctx, rec, store.DeliverySending, log)
		}
		err := o.attempt(ctx, ch, rec, &c)
		if err == nil {
			rec.State, rec.Error, rec.UpdatedAt = store.DeliverySent, unconfirmed(rec), o.b.now()
			o.update(ctx, rec, log)
			crash.Point(crash.OutboxCompleted)
			return
		}
		var (
			limited *channels.RateLimited
			moved   *channels.Moved
		)
		if errors.As(err, &limited) {
			o.penalize(rec.Conversation, limited) // also when we stop: it outlives this process
		}
		if ctx.Err() != nil {
			return
		}
		rec.Attempts++
		switch {
		case limited != nil:
			rec.Attempts-- // waiting as told is not a failed attempt
			o.mark(ctx, rec, store.DeliveryPending, log)
			continue
		case errors.As(err, &moved) && rec.Attempts < maxAttempts:
			log.Info("the chat has a new id", "to", moved.To)
			k := rec.Conversation
			if err := o.b.store.MoveChat(ctx, k.Channel, k.Workspace, k.Chat, moved.To); err != nil {
				log.Error("cannot move the chat", "err", err)
			}
			rec.Conversation.Chat = moved.To
			continue
		case channels.IsFatal(err), permanent(err), rec.Attempts >= maxAttempts:
			if err.Error() != last {
				log.Error("a message cannot be delivered", "err", err, "attempts", rec.Attempts)
			}
			if channels.IsFatal(err) {
				rec.State, rec.Error = store.DeliveryFailed, err.Error()
				o.update(ctx, rec, log)
				return
			}
			o.giveUp(ctx, rec, err.Error())
			return
		}
		if err.Error() != last {
			last = err.Error()
			log.Warn("a message was not delivered, trying again", "err", err, "in", wait)
		}
		rec.Error = last
		if rec.State != store.DeliveryUnknown {
			o.mark(ctx, rec, store.DeliveryFailed, log)
		}
		if sleep(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, maxRetry)
	}
}

// unconfirmed says of a delivered record that a part of it was never confirmed, "" when all are.
func unconfirmed(rec *store.Outgoing) string {
	for _, p := range rec.Parts {
		if p.State == store.DeliveryPermanent {
			return "outcome unknown: sent twice, never confirmed"
		}
	}
	return ""
}

func (o *outbox) penalize(p channels.Place, limited *channels.RateLimited) {
	scope := chatScope(p)
	if limited.Account {
		scope = accountScope(p)
	}
	o.gate.penalize(scope, max(limited.RetryAfter, 100*time.Millisecond))
}

func permanent(err error) bool {
	var (
		gone      *channels.Gone
		forbidden *channels.Forbidden
		refused   *channels.Refused
		format    *channels.BadFormat // of the plain form: the other was tried
	)
	return errors.As(err, &gone) || errors.As(err, &forbidden) || errors.As(err, &refused) || errors.As(err, &format)
}

// attempt sends the parts that are not sent yet.
func (o *outbox) attempt(ctx context.Context, ch channels.Channel, rec *store.Outgoing, c *content) error {
	if rec.Kind == outFile {
		return o.attemptFile(ctx, ch, rec, c)
	}
	for i := 0; i < len(c.Bodies); i++ {
		part := &rec.Parts[i]
		if part.State == store.DeliverySent || part.State == store.DeliveryPermanent {
			continue
		}
		m := channels.Message{Body: c.Bodies[i], Silent: c.Silent}
		if i == 0 {
			m.ReplyTo = c.ReplyTo
		}
		key := fmt.Sprintf("%s/%d", rec.Key, i)
		if part.State == store.DeliveryUnknown && part.MessageID == "" {
			copied, err := o.doubt(ctx, ch, rec, part, key)
			if err != nil {
				return err
			}
			if part.State == store.DeliverySent {
				continue
			}
			if copied {
				m.Body = markSecondCopy(m.Body)
			}
		}
		err := o.one(ctx, ch, rec, part, m, key)
		var (
			long   *channels.TooLong
			format *channels.BadFormat
			refuse *channels.Refused
		)
		plain := m.Body.Format != "plain" && m.Body.Plain != ""
		switch {
		case err == nil:
		case errors.As(err, &long):
			// The platform counts otherwise than we do: halve this part and go on.
			halves := halve(c.Bodies[i])
			if halves == nil {
				return &channels.Refused{Err: err}
			}
			c.Bodies = append(c.Bodies[:i:i], append(halves, c.Bodies[i+1:]...)...)
			second := store.OutgoingPart{State: store.DeliveryPending}
			if part.State == store.DeliveryUnknown {
				second.State = store.DeliveryUnknown // the whole may be there already, with this half
			}
			rest := append([]store.OutgoingPart{second}, rec.Parts[i+1:]...)
			rec.Parts = append(rec.Parts[:i+1:i+1], rest...)
			if rec.Body, err = json.Marshal(c); err != nil {
				return err
			}
			i--
			continue
		case plain && (errors.As(err, &format) || errors.As(err, &refuse)):
			// Content is never lost to format. The same bytes are not sent twice.
			o.b.log.Warn("the platform refused the format, sending plain text", "out", rec.Key, "err", err)
			c.Bodies[i] = c.Bodies[i].AsPlain()
			if rec.Body, err = json.Marshal(c); err != nil {
				return err
			}
			i--
			continue
		default:
			return err
		}
		if i < len(c.Bodies)-1 {
			rec.UpdatedAt = o.b.now()
			if err := o.b.store.UpdateOutgoing(context.WithoutCancel(ctx), rec); err != nil { // it is true, whoever stops now
				return &channels.Transient{Err: err}
			}
			crash.Point(crash.PartSent)
		}
	}
	return nil
}

// dedupeFor is how long after a call a platform with idempotent sends is trusted to know the key.
const dedupeFor = 2 * time.Minute

// doubt settles what can be settled about a part whose send may or may not have arrived: a platform that can be searched
// is, and the part is then sent or pending; one that dedupes by key may be called again. copied says that neither is so,
// and that the next send may make a second copy.
func (o *outbox) doubt(ctx context.Context, ch channels.Channel, rec *store.Outgoing, part *store.OutgoingPart, key string) (copied bool, err error) {
	caps := ch.Capabilities()
	if caps.Loopback || caps.IdempotentSends && o.b.now().Sub(rec.UpdatedAt) < dedupeFor {
		return false, nil
	}
	f, ok := ch.(channels.Finder)
	if !ok {
		return true, nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ref, found, err := f.Find(call, rec.Conversation, key)
	switch {
	case err != nil:
		return false, err
	case found:
		part.MessageID, part.State = ref.ID, store.DeliverySent
	default:
		part.State = store.DeliveryPending
	}
	return false, nil
}

// one sends or edits one part.
func (o *outbox) one(ctx context.Context, ch channels.Channel, rec *store.Outgoing, part *store.OutgoingPart, m channels.Message, key string) error {
	wait := o.gate.waitFinal
	if part != &rec.Parts[0] {
		wait = o.gate.waitEdit // the first part of an answer goes at once; the others keep to the platform's pace
	}
	if err := wait(ctx, rec.Conversation, paceOf(ch, rec.Conversation)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // a call that is cut before it begins has an outcome that nobody knows
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	crash.Point(crash.EditBefore)
	if part.MessageID != "" {
		err := ch.Edit(call, channels.Ref{Place: rec.Conversation, ID: part.MessageID}, m)
		var gone *channels.Gone
		if errors.As(err, &gone) && gone.What == "message" {
			part.MessageID = "" // somebody deleted it: the content goes as a new message
			return o.one(ctx, ch, rec, part, m, key)
		}
		if err == nil {
			part.State, part.Hash = store.DeliverySent, hashOf(m.Body)
		}
		crash.Point(crash.EditAfter)
		return err
	}
	ref, err := ch.Send(call, rec.Conversation, m, key)
	var transient *channels.Transient
	switch {
	case err == nil:
		part.MessageID, part.State, part.Hash = ref.ID, store.DeliverySent, hashOf(m.Body)
	case errors.As(err, &transient) && transient.MaybeSent:
		if part.State == store.DeliveryUnknown {
			// Twice without an answer. A third copy helps nobody, also not when a later part is tried again.
			o.b.log.Warn("a message was sent twice and no answer came; it counts as delivered, outcome unknown", "out", rec.Key)
			part.State = store.DeliveryPermanent
			return nil
		}
		part.State = store.DeliveryUnknown
		rec.State, rec.Error, rec.UpdatedAt = store.DeliveryUnknown, err.Error(), o.b.now()
		if uerr := o.b.store.UpdateOutgoing(context.WithoutCancel(ctx), rec); uerr != nil {
			o.b.log.Error("cannot record an unknown delivery", "out", rec.Key, "err", uerr)
		}
	}
	crash.Point(crash.EditAfter)
	return err
}

// attemptFile sends the record's file.
func (o *outbox) attemptFile(ctx context.Context, ch channels.Channel, rec *store.Outgoing, c *content) error {
	part := &rec.Parts[0]
	if part.State == store.DeliverySent {
		return nil
	}
	fs, ok := ch.(channels.FileSender)
	if !ok || ch.Capabilities().MaxFile == 0 {
		return o.insteadOfFile(ctx, ch, rec, c, "this channel takes no files")
	}
	f, err := o.b.openOutgoing(rec, c)
	if err != nil {
		o.b.log.Warn("a presented file cannot be read", "out", rec.Key, "err", err)
		return o.insteadOfFile(ctx, ch, rec, c, "it is no longer there")
	}
	if f.Size > ch.Capabilities().MaxFile {
		return o.insteadOfFile(ctx, ch, rec, c, fmt.Sprintf("it has %s, the limit here is %s", size(f.Size), size(ch.Capabilities().MaxFile)))
	}
	if err := o.gate.waitFinal(ctx, rec.Conversation, paceOf(ch, rec.Conversation)); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	ref, err := fs.SendFile(call, rec.Conversation, f, c.ReplyTo, rec.Key)
	var (
		transient *channels.Transient
		long      *channels.TooLong
		refused   *channels.Refused
	)
	switch {
	case err == nil:
		part.MessageID, part.State = ref.ID, store.DeliverySent
		return nil
	case errors.As(err, &long), errors.As(err, &refused):
		return o.insteadOfFile(ctx, ch, rec, c, "the platform refused it")
	case errors.As(err, &transient) && transient.MaybeSent:
		if part.State == store.DeliveryUnknown {
			return nil
		}
		part.State = store.DeliveryUnknown
	}
	return err
}

// insteadOfFile names a file that cannot be sent, with the reason.
func (o *outbox) insteadOfFile(ctx context.Context, ch channels.Channel, rec *store.Outgoing, c *content, why string) error {
	name := "answer.md"
	if c.File != nil {
		name = c.File.Name
	}
	md := fmt.Sprintf("File `%s` was not sent: %s.", cleanName(name), why)
	bodies := ch.Capabilities().Dialect.Markdown(md)
	if len(bodies) == 0 {
		return nil
	}
	return o.one(ctx, ch, rec, &rec.Parts[0], channels.Message{Body: bodies[0], ReplyTo: c.ReplyTo}, rec.Key)
}

// mark records a state on the way. Failing costs only precision after a crash.
func (o *outbox) mark(ctx context.Context, rec *store.Outgoing, s store.DeliveryState, log *slog.Logger) {
	rec.State, rec.UpdatedAt = s, o.b.now()
	if err := o.b.store.UpdateOutgoing(ctx, rec); err != nil && ctx.Err() == nil {
		log.Warn("cannot record a delivery state", "state", s, "err", err)
	}
}

func (o *outbox) giveUp(ctx context.Context, rec *store.Outgoing, why string) {
	rec.State, rec.Error, rec.UpdatedAt = store.DeliveryPermanent, why, o.b.now()
	o.update(ctx, rec, o.b.log)
}

// update writes the record back. It insists: what it says is true already.
func (o *outbox) update(ctx context.Context, rec *store.Outgoing, log *slog.Logger) {
	wait := 50 * time.Millisecond
	for {
		err := o.b.store.UpdateOutgoing(context.WithoutCancel(ctx), rec)
		if err == nil || errors.Is(err, store.ErrClosed) {
			return
		}
		if wait == 50*time.Millisecond {
			log.Error("cannot record a delivery, trying again", "out", rec.Key, "err", err)
		}
		if sleep(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, 30*time.Second)
	}
}

func paceOf(ch channels.Channel, p channels.Place) channels.Pace {
	if f := ch.Capabilities().Pace; f != nil {
		return f(p)
	}
	return channels.Pace{}
}

func hashOf(b cards.Body) string {
	raw, err := json.Marshal(b)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
