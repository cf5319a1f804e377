package discord_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/discord"
	"deerbot/store"

	wire "deerbot/internal/wire/discord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory keeps the adapter's state as a file would.
type memory struct {
	mu   sync.Mutex
	data []byte
}

func (m *memory) Load() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data, nil
}

func (m *memory) Save(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = append([]byte(nil), b...)
	return nil
}

// inbox collects what the adapter delivers; refuse, when set, is asked first.
type inbox struct {
	mu     sync.Mutex
	refuse func(*channels.Inbound) error
	seen   map[string]bool
	twice  int
	ch     chan *channels.Inbound
}

func newInbox() *inbox {
	return &inbox{seen: map[string]bool{}, ch: make(chan *channels.Inbound, 10_000)}
}

func (b *inbox) Accept(_ context.Context, in *channels.Inbound) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		if err := b.refuse(in); err != nil {
			return err
		}
	}
	key := in.Place.Workspace + "/" + in.Place.Chat + "/" + in.EventID
	if b.seen[key] {
		b.twice++
		return nil
	}
	b.seen[key] = true
	b.ch <- in
	return nil
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// rig is an adapter against a wire server with one guild, one channel and two people.
type rig struct {
	t        *testing.T
	s        *wire.Server
	url      string
	c        *discord.Channel
	in       *inbox
	log      *logBuffer
	guild    *wire.Guild
	general  *wire.Channel
	ann, bob *wire.User
	dm       *wire.Channel
	stop     func()
	result   chan error
}

func setup(t *testing.T, o wire.Options, change ...func(*discord.Config)) *rig {
	t.Helper()
	s := wire.New(o)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Freeze(false)
		s.Cut()
		ts.Close()
	})
	s.SetHost(strings.TrimPrefix(ts.URL, "http://"))
	r := &rig{t: t, s: s, url: ts.URL, in: newInbox(), log: &logBuffer{}}
	r.ann, r.bob = s.Person("Ann", "ann"), s.Person("Bob", "bob_b")
	r.guild = s.Guild("Team")
	r.general = r.guild.Text("general")
	r.dm = s.DM(r.ann)
	r.c = r.channel(change...)
	return r
}

func (r *rig) channel(change ...func(*discord.Config)) *discord.Channel {
	r.t.Helper()
	cfg := config(r.s, r.url, slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, f := range change {
		f(&cfg)
	}
	c, err := discord.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func config(s *wire.Server, url string, log *slog.Logger) discord.Config {
	return discord.Config{
		Token: s.Token(), APIURL: url, Dialect: cards.Discord(), Log: log,
		RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond, IdentifyWait: time.Millisecond, OpenTimeout: 5 * time.Second,
	}
}

// start runs the adapter until the test ends and waits until it is connected.
func start(t *testing.T, o wire.Options, change ...func(*discord.Config)) *rig {
	t.Helper()
	r := setup(t, o, change...)
	r.run()
	r.connected(1)
	return r
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	r.result = result
	go func(c *discord.Channel) { result <- c.Run(ctx, r.in) }(r.c)
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-result; err != nil {
			r.t.Errorf("Run returned %v", err)
		}
	})
	r.t.Cleanup(r.stop)
}

// connected waits for the n-th connection that got a session and for the adapter to know.
func (r *rig) connected(n int) {
	r.t.Helper()
	r.wait("a connection", func() bool {
		open, ids, res := r.s.Connected()
		return open == 1 && ids+res >= n
	})
	r.eventually("health", func() bool { h := r.c.Health(); return h.Connected && h.Trouble == "" })
}

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

// at is the place of a channel.
func at(ch *wire.Channel) channels.Place {
	p := store.ConversationKey{Channel: "discord", Chat: ch.ID}
	if ch.Parent != nil {
		p.Chat, p.Topic = ch.Parent.ID, ch.ID
	}
	if g := ch.Guild(); g != nil {
		p.Workspace = g.ID
	}
	return p
}

func text(s string) channels.Message {
	return channels.Message{Body: cards.Body{Text: s, Plain: s, Format: "markdown"}}
}

func (r *rig) send(to channels.Place, m channels.Message) channels.Ref {
	r.t.Helper()
	ref, err := r.c.Send(r.ctx(), to, m, "")
	if err != nil {
		r.t.Fatalf("Send: %v", err)
	}
	return ref
}

func (r *rig) me() string { u := r.s.Bot(); return u.Mention() }
