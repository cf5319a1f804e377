package slack_test

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
	"deerbot/channels/slack"
	"deerbot/store"

	wire "deerbot/internal/wire/slack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inbox collects what the adapter delivers, once; refuse, when set, is asked first.
type inbox struct {
	mu     sync.Mutex
	refuse func(*channels.Inbound) error
	seen   map[string]bool
	offers int
	ch     chan *channels.Inbound
}

func newInbox() *inbox {
	return &inbox{ch: make(chan *channels.Inbound, 10_000), seen: map[string]bool{}}
}

func (b *inbox) Accept(_ context.Context, in *channels.Inbound) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offers++
	if b.refuse != nil {
		if err := b.refuse(in); err != nil {
			return err
		}
	}
	key := in.Place.Workspace + "\x00" + in.Place.Chat + "\x00" + in.EventID
	if !b.seen[key] {
		b.seen[key] = true
		b.ch <- in
	}
	return nil
}

// rig is an adapter against a wire server.
type rig struct {
	t      *testing.T
	s      *wire.Server
	url    string
	c      *slack.Channel
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
		s.Close()
		ts.Close()
	})
	r := &rig{t: t, s: s, url: ts.URL, in: newInbox(), log: &logBuffer{}}
	r.c = r.channel(func(*slack.Config) {})
	return r
}

func (r *rig) channel(change func(*slack.Config)) *slack.Channel {
	r.t.Helper()
	bot, app := r.s.Tokens()
	cfg := slack.Config{
		BotToken: bot, AppToken: app, APIURL: r.url + "/api", Dialect: cards.Slack(), RetryMin: 2 * time.Millisecond,
		RetryMax: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	change(&cfg)
	c, err := slack.New(cfg)
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
	c := r.c
	go func() { r.result <- c.Run(ctx, r.in) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-r.result; err != nil {
			r.t.Errorf("Run returned %v", err)
		}
	})
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

func at(ch *wire.Channel, topic string) channels.Place {
	return store.ConversationKey{Channel: "slack", Workspace: wire.TeamID, Chat: ch.ID(), Topic: topic}
}

func text(s string) channels.Message {
	return channels.Message{Body: cards.Body{Text: s, Plain: s, Format: "mrkdwn"}}
}

func (r *rig) send(to channels.Place, m channels.Message) channels.Ref {
	r.t.Helper()
	ref, err := r.c.Send(r.ctx(), to, m, "key")
	if err != nil {
		r.t.Fatalf("Send: %v", err)
	}
	return ref
}
