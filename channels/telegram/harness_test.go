package telegram_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/telegram"
	"deerbot/store"

	wire "deerbot/internal/wire/telegram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a dialect that does nothing; adapters only pass it on.
type plain struct{}

func (plain) Name() string                 { return "telegram" }
func (plain) Markdown(string) []cards.Body { return nil }
func (plain) Card(cards.Card) cards.Body   { return cards.Body{} }

// inbox collects what the adapter delivers; refuse, when set, is asked first.
type inbox struct {
	mu     sync.Mutex
	refuse func(*channels.Inbound) error
	got    []*channels.Inbound
	ch     chan *channels.Inbound
}

func (b *inbox) Accept(_ context.Context, in *channels.Inbound) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		if err := b.refuse(in); err != nil {
			return err
		}
	}
	b.got = append(b.got, in)
	b.ch <- in
	return nil
}

// rig is a running adapter against a wire server.
type rig struct {
	t      *testing.T
	s      *wire.Server
	url    string
	c      *telegram.Channel
	in     *inbox
	stop   func()
	result chan error
	log    *logBuffer
}

type logBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	return len(p), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// setup starts a server without an adapter.
func setup(t *testing.T, o wire.Options) *rig {
	t.Helper()
	s := wire.New(o)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Cut()
		ts.Close()
	})
	r := &rig{t: t, s: s, url: ts.URL, in: &inbox{ch: make(chan *channels.Inbound, 1000)}, log: &logBuffer{}}
	r.c = r.channel(func(*telegram.Config) {})
	return r
}

// channel makes an adapter for the rig's server.
func (r *rig) channel(change func(*telegram.Config)) *telegram.Channel {
	r.t.Helper()
	cfg := telegram.Config{
		Token: r.s.Token(), APIURL: r.url, Dialect: plain{}, RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond,
		ConflictWait: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	change(&cfg)
	c, err := telegram.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// start runs the adapter until the test ends.
func start(t *testing.T, o wire.Options) *rig {
	t.Helper()
	r := setup(t, o)
	r.run()
	return r
}

func (r *rig) run() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.result = make(chan error, 1)
	go func() { r.result <- r.c.Run(ctx, r.in) }()
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-r.result; err != nil {
				r.t.Errorf("Run returned %v", err)
			}
		})
	}
	r.t.Cleanup(r.stop)
}

// next is the next event.
func (r *rig) next() *channels.Inbound {
	r.t.Helper()
	select {
	case in := <-r.in.ch:
		return in
	case <-time.After(10 * time.Second):
		r.t.Fatalf("no event came; log:\n%s", r.log)
		return nil
	}
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) wait(what string, ok func() bool) {
	r.t.Helper()
	if err := r.s.WaitFor(r.ctx(), ok); err != nil {
		r.t.Fatalf("waiting for %s: %v; log:\n%s", what, err, r.log)
	}
}

// eventually looks at a state of the adapter, which has no event, until ok.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := r.ctx(); !ok(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("waiting for %s; log:\n%s", what, r.log)
		}
	}
}

func at(ch *wire.Chat, topic string) channels.Place {
	return store.ConversationKey{Channel: "telegram", Chat: ch.Key(), Topic: topic}
}

func text(s string) channels.Message {
	return channels.Message{Body: cards.Body{Text: s, Plain: s, Format: "html"}}
}

func (r *rig) send(to channels.Place, m channels.Message) channels.Ref {
	r.t.Helper()
	ref, err := r.c.Send(r.ctx(), to, m, "")
	if err != nil {
		r.t.Fatalf("Send: %v", err)
	}
	return ref
}
