package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/runtime"
	"deerbot/runtime/model"
	"deerbot/runtime/sandbox"
	"deerbot/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is the part of a store that the outbox needs, without files, so that it can stand in a bubble of test time.
type memory struct {
	Store
	mu        sync.Mutex
	records   map[string][]byte
	order     []string
	settled   map[string]int
	penalties map[string]time.Time
	fail      func(op string) error
}

func newMemory() *memory {
	return &memory{records: map[string][]byte{}, settled: map[string]int{}, penalties: map[string]time.Time{}}
}

func (m *memory) get(key string) (o store.Outgoing, ok bool) {
	raw, ok := m.records[key]
	if ok {
		if err := json.Unmarshal(raw, &o); err != nil {
			panic(err)
		}
	}
	return o, ok
}

func (m *memory) put(o *store.Outgoing) {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	m.records[o.Key] = raw
}

func (m *memory) PutOutgoing(ctx context.Context, o *store.Outgoing) (store.Outgoing, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return store.Outgoing{}, false, ctx.Err()
	}
	if got, ok := m.get(o.Key); ok {
		return got, false, nil
	}
	m.put(o)
	m.order = append(m.order, o.Key)
	return *o, true, nil
}

func (m *memory) UpdateOutgoing(ctx context.Context, o *store.Outgoing) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if m.fail != nil {
		if err := m.fail("update"); err != nil {
			return err
		}
	}
	m.put(o)
	if o.State == store.DeliverySent || o.State == store.DeliveryPermanent {
		for _, id := range o.Settles {
			m.settled[id]++
		}
	}
	return nil
}

func (m *memory) Outgoing(_ context.Context, key string) (store.Outgoing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, ok := m.get(key); ok {
		return o, nil
	}
	return store.Outgoing{}, store.ErrNotFound
}

func (m *memory) UnsentOutgoing(context.Context) (out []store.Outgoing, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range m.order {
		if o, _ := m.get(key); o.State != store.DeliverySent && o.State != store.DeliveryPermanent {
			out = append(out, o)
		}
	}
	return out, nil
}

func (m *memory) SettleInbound(_ context.Context, ids ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.settled[id]++
	}
	return nil
}

func (m *memory) MoveChat(_ context.Context, channel, workspace, was, now string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range m.order {
		o, _ := m.get(key)
		if k := &o.Conversation; k.Channel == channel && k.Workspace == workspace && k.Chat == was {
			k.Chat = now
			m.put(&o)
		}
	}
	return nil
}

func (m *memory) PutPenalty(_ context.Context, scope string, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.penalties[scope] = until
	return nil
}

func (m *memory) Penalties(_ context.Context, now time.Time) (map[string]time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]time.Time{}
	for k, t := range m.penalties {
		if t.After(now) {
			out[k] = t
		}
	}
	return out, nil
}

func (m *memory) LiveRuns(context.Context) ([]store.Run, error)                { return nil, nil }
func (m *memory) UnsettledInbound(context.Context) ([]store.InboxEntry, error) { return nil, nil }

// fault is what the platform does with one call.
type fault struct {
	kind  string
	retry time.Duration
}

// platform is a chat platform whose calls take time and fail as told. It keeps what people would see.
type platform struct {
	mu       sync.Mutex
	faults   map[string][]fault // by chat, for the next calls
	messages []message
	calls    int
	moved    map[string]string
	blocked  map[string]blocked // by chat; "" is the account
	wrong    []string           // what must not have happened
	log      []string           // of calls
	cut      bool               // a call that its context cuts short was carried out all the same
	unsure   map[string]bool    // records whose outcome the caller could not know
	known    map[string]bool    // tokens that the platform has said it took
}

type blocked struct{ from, until time.Time }

type message struct {
	chat, id, text string
	format, reply  string
	at             time.Time
}

func newPlatform() *platform {
	return &platform{faults: map[string][]fault{}, moved: map[string]string{}, blocked: map[string]blocked{}, unsure: map[string]bool{}, known: map[string]bool{}}
}

func (p *platform) Name() string                                    { return "fake" }
func (p *platform) Capabilities() channels.Capabilities             { return channels.Capabilities{Edits: true} }
func (p *platform) Run(ctx context.Context, _ channels.Inbox) error { <-ctx.Done(); return nil }

func (p *platform) Send(ctx context.Context, to channels.Place, m channels.Message, key string) (channels.Ref, error) {
	var id string
	err := p.call(ctx, to.Chat, key, m.Body, func() bool {
		id = fmt.Sprint("m", len(p.messages))
		p.messages = append(p.messages, message{to.Chat, id, m.Body.Text, m.Body.Format, m.ReplyTo, time.Now()})
		return true
	})
	if err != nil {
		return channels.Ref{}, err
	}
	return channels.Ref{Place: to, ID: id}, nil
}

func (p *platform) Edit(ctx context.Context, ref channels.Ref, m channels.Message) error {
	err := p.call(ctx, ref.Place.Chat, "", m.Body, func() bool {
		for i := range p.messages {
			if p.messages[i].id == ref.ID {
				p.messages[i].text, p.messages[i].format = m.Body.Text, m.Body.Format
				return true
			}
		}
		return false
	})
	if gone := (*channels.Gone)(nil); errors.As(err, &gone) { // somebody deleted it just now
		p.mu.Lock()
		defer p.mu.Unlock()
		for i := range p.messages {
			if p.messages[i].id == ref.ID {
				p.messages[i].id, p.messages[i].text = "", ""
			}
		}
	}
	return err
}

// card puts a message of ours into a chat.
func (p *platform) card(chat string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := fmt.Sprint("m", len(p.messages))
	p.messages = append(p.messages, message{chat: chat, id: id, text: "card", at: time.Now()})
	return id
}

func (p *platform) call(ctx context.Context, chat, key string, body cards.Body, do func() bool) error {
	p.mu.Lock()
	p.calls++
	now := time.Now()
	for _, scope := range []string{chat, ""} {
		if b := p.blocked[scope]; now.After(b.from) && now.Before(b.until) { // what begins in the same instant cannot know
			p.wrong = append(p.wrong, fmt.Sprintf("call in %s, %s before its penalty (%q) ends", chat, b.until.Sub(now), scope))
		}
	}
	f := fault{kind: "ok"}
	if list := p.faults[chat]; len(list) > 0 {
		f, p.faults[chat] = list[0], list[1:]
	}
	if p.moved[chat] != "" {
		f = fault{kind: "moved"}
	}
	for w := range strings.FieldsSeq(body.Text) {
		if key != "" && p.known[w] {
			p.wrong = append(p.wrong, fmt.Sprintf("%s is sent again, though it was confirmed", w))
		}
	}
	p.mu.Unlock()

	var cut error
	t := time.NewTimer(30 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		cut = ctx.Err()
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, fmt.Sprintf("%s %s %q %s (cut %v): %s", time.Now().Format("15:04:05.000"), chat, key, f.kind, cut, body.Text))
	record, _, _ := strings.Cut(key, "/")
	if cut != nil {
		p.unsure[record] = true
		if p.cut {
			do()
		}
		return &channels.Transient{MaybeSent: true, Err: cut}
	}
	err := errors.New(f.kind)
	switch f.kind {
	case "limited":
		p.blocked[chat] = blocked{time.Now(), time.Now().Add(f.retry)}
		return &channels.RateLimited{RetryAfter: f.retry, Err: err}
	case "account limited":
		p.blocked[""] = blocked{time.Now(), time.Now().Add(f.retry)}
		return &channels.RateLimited{RetryAfter: f.retry, Account: true, Err: err}
	case "transient":
		return &channels.Transient{Err: err}
	case "lost before":
		p.unsure[record] = true
		return &channels.Transient{MaybeSent: true, Err: err}
	case "lost after":
		p.unsure[record] = true
		do()
		return &channels.Transient{MaybeSent: true, Err: err}
	case "format":
		if body.Format != "plain" {
			return &channels.BadFormat{Err: err}
		}
	case "long":
		if strings.Count(body.Text, ".") > 4 { // so that no token is cut
			return &channels.TooLong{Err: err}
		}
	case "gone":
		if key == "" {
			return &channels.Gone{What: "message", Err: err}
		}
	case "moved":
		if p.moved[chat] == "" {
			p.moved[chat] = chat + "x"
		}
		return &channels.Moved{To: p.moved[chat], Err: err}
	case "forbidden":
		return &channels.Forbidden{Err: err}
	}
	if !do() {
		return &channels.Gone{What: "message", Err: err}
	}
	for w := range strings.FieldsSeq(body.Text) {
		if strings.HasPrefix(w, "r") && strings.HasSuffix(w, ".") {
			p.known[w] = true
		}
	}
	return nil
}

func newBot(st Store, ch channels.Channel) *Bot {
	b, err := New(Config{
		Store: st, Runtime: &runtime.Runtime{}, Channels: []channels.Channel{ch}, Settings: func() Settings { return Settings{} },
		Models: func() []model.Info { return nil }, Files: func(string) (*sandbox.Files, error) { return nil, errors.New("none") },
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	return b
}

func place(chat string) channels.Place {
	return channels.Place{Channel: "fake", Workspace: "w", Chat: chat}
}

// words are the tokens of a part: each can be found again, wherever the part was cut.
func words(record string, part int) (out []string) {
	for i := range 6 {
		out = append(out, fmt.Sprintf("%s-%d-%d.", record, part, i))
	}
	return out
}

func bodies(record string, parts int) (out []cards.Body) {
	for i := range parts {
		text := strings.Join(words(record, i), " ")
		out = append(out, cards.Body{Text: text, Plain: text, Format: "html"})
	}
	return out
}

func record(key, chat string) store.Outgoing {
	return store.Outgoing{Key: key, Conversation: place(chat), Kind: outReply, Settles: []string{"entry-" + key}}
}

func flush(b *Bot) {
	ctx, cancel := context.WithTimeout(context.Background(), 48*time.Hour)
	defer cancel()
	b.Flush(ctx)
}

// plan is a random course of events.
type plan struct {
	Posts  []planned
	Faults map[string][]fault
	Cut    bool
}

type planned struct {
	Chat    string
	Parts   int
	InPlace bool          // it replaces a card
	Wait    time.Duration // before it
	Restart bool          // after it
	Again   bool          // it is posted twice
}

func drawPlan(t *rapid.T) plan {
	p := plan{Faults: map[string][]fault{}, Cut: rapid.Bool().Draw(t, "cut calls arrive")}
	chats := []string{"a", "b", "c"}
	for i := range rapid.IntRange(1, 12).Draw(t, "posts") {
		_ = i
		p.Posts = append(p.Posts, planned{
			Chat: rapid.SampledFrom(chats).Draw(t, "chat"), Parts: rapid.IntRange(1, 3).Draw(t, "parts"),
			InPlace: rapid.IntRange(0, 2).Draw(t, "in place") == 0,
			Wait:    time.Duration(rapid.SampledFrom([]int{0, 0, 10, 45, 700, 5000}).Draw(t, "wait")) * time.Millisecond,
			Restart: rapid.IntRange(0, 4).Draw(t, "restart") == 0, Again: rapid.IntRange(0, 3).Draw(t, "again") == 0,
		})
	}
	kinds := []string{
		"ok", "ok", "ok", "limited", "account limited", "transient", "lost before", "lost after", "format", "long", "gone", "moved", "forbidden",
	}
	for _, c := range []string{"a", "b", "c", "ax", "bx", "cx"} {
		for range rapid.IntRange(0, 8).Draw(t, "faults") {
			p.Faults[c] = append(p.Faults[c], fault{
				kind:  rapid.SampledFrom(kinds).Draw(t, "fault"),
				retry: time.Duration(rapid.IntRange(1, 40).Draw(t, "retry")) * time.Second,
			})
		}
	}
	return p
}

// run carries the plan out and returns what was wrong.
func (pl plan) run() (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	st, p := newMemory(), newPlatform()
	p.faults, p.cut = map[string][]fault{}, pl.Cut
	forbidden := 0
	for c, list := range pl.Faults {
		p.faults[c] = slices.Clone(list)
		for _, f := range list {
			if f.kind == "forbidden" {
				forbidden++
			}
		}
	}
	b := newBot(st, p)
	defer func() { b.Stop() }()
	posted := map[string][]string{} // chat -> records in order
	var keys []string
	for i, po := range pl.Posts {
		time.Sleep(po.Wait)
		p.mu.Lock()
		gone := p.moved[po.Chat] != ""
		p.mu.Unlock()
		if gone {
			continue // people write under the new id now
		}
		key := fmt.Sprint("r", i)
		rec := record(key, po.Chat)
		if po.InPlace {
			rec.Parts = []store.OutgoingPart{{MessageID: p.card(po.Chat), State: store.DeliveryPending}}
		} else {
			posted[po.Chat] = append(posted[po.Chat], key)
		}
		keys = append(keys, key)
		for range 1 + map[bool]int{true: 1}[po.Again] {
			if _, err := b.out.post(context.Background(), rec, content{Bodies: bodies(key, po.Parts)}); err != nil {
				fail("post %s: %v", key, err)
			}
		}
		if po.Restart {
			b.Stop()
			for _, key := range keys {
				if o, _ := st.get(key); o.State == store.DeliverySending {
					p.unsure[key] = true // whoever reads this cannot know whether the call was made
				}
			}
			b = newBot(st, p)
			if err := b.Resume(context.Background()); err != nil {
				fail("resume: %v", err)
			}
		}
	}
	flush(b)
	if n := b.Unsent(); n != 0 {
		fail("%d records are still under way", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	wrong = append(wrong, p.wrong...)

	mark, _ := textCopy.Texts()
	given := 0
	for _, key := range keys {
		o, _ := st.get(key)
		switch o.State {
		case store.DeliverySent:
		case store.DeliveryPermanent:
			given++
		default:
			fail("record %s is %s", key, o.State)
		}
		if n := st.settled["entry-"+key]; n < 1 {
			fail("record %s (%s) has not settled its entry", key, o.State)
		}
		var c content
		if err := json.Unmarshal(o.Body, &c); err != nil || len(c.Bodies) != len(o.Parts) {
			fail("record %s: %d bodies, %d parts, %v", key, len(c.Bodies), len(o.Parts), err)
		}
		for part := range pl.Posts[must(key)].Parts {
			for _, w := range words(key, part) {
				plain, marked := 0, 0
				for _, m := range p.messages {
					switch {
					case !strings.Contains(m.text, w):
					case strings.Contains(m.text, mark):
						marked++
					default:
						plain++
					}
				}
				switch {
				case plain > 1:
					fail("%s of %s stands %d times without a mark", w, key, plain)
				case o.State == store.DeliverySent && plain+marked == 0 && !unknown(o):
					fail("%s of %s, which is sent, is nowhere", w, key)
				case marked > 0 && !p.unsure[key]:
					fail("%s of %s is marked as a copy, though its outcome was known", w, key)
				case plain+marked > 2:
					fail("%s of %s stands %d times", w, key, plain+marked)
				}
			}
		}
	}
	if given > forbidden {
		fail("%d records were given up, %d calls were forbidden", given, forbidden)
	}
	if len(wrong) > 0 {
		fail("calls:\n%s", strings.Join(p.log, "\n"))
	}
	for chat, order := range posted {
		var seen []string
		for _, m := range p.messages {
			if m.chat != chat && m.chat != chat+"x" {
				continue
			}
			for _, key := range order {
				if strings.Contains(m.text, key+"-") && !slices.Contains(seen, key) {
					seen = append(seen, key)
				}
			}
		}
		var want []string
		for _, key := range order {
			if slices.Contains(seen, key) {
				want = append(want, key)
			}
		}
		if !slices.Equal(seen, want) {
			fail("chat %s got %v, posted %v", chat, seen, order)
		}
	}
	return wrong
}

func must(key string) (i int) {
	if _, err := fmt.Sscanf(key, "r%d", &i); err != nil {
		panic(err)
	}
	return i
}

// unknown reports whether a part of o counts as delivered though no answer ever came.
func unknown(o store.Outgoing) bool {
	return slices.ContainsFunc(o.Parts, func(p store.OutgoingPart) bool { return p.State == store.DeliveryPermanent })
}

// TestOutboxProperty: under any faults and restarts a message lands once, or a second time with a mark where nobody could
// know; in order per chat; never while the platform forbids calls; and entries are settled with what answers them.
func TestOutboxProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var wrong []string
		synctest.Test(t, func(*testing.T) { wrong = p.run() })
		if len(wrong) > 0 {
			rt.Fatalf("%s", strings.Join(wrong, "\n"))
		}
	})
}
