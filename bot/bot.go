package bot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"deerbot/channels"
	"deerbot/commands"
	"deerbot/runtime"
	"deerbot/runtime/model"
	"deerbot/runtime/sandbox"
	"deerbot/store"
)

// Store is what the bot needs of the store.
type Store interface {
	store.Inbox
	store.Conversations
	store.Threads
	store.Runs
	store.Outbox
	store.Artifacts
	store.Users
}

// ChannelSettings are the options of one channel.
type ChannelSettings struct {
	Allow          []string // user or chat ids; empty = everybody the platform lets in
	Admins         []string // user ids with operator rights
	Groups         string   // mention, all, off
	WhileRunning   string   // queue, interrupt, reject
	Stream         string   // auto, edit, off
	Answer         string   // auto, edit, new
	AnswerNewAfter time.Duration
}

// Settings are what may change while the bot runs.
type Settings struct {
	Locale           string // auto, en, zh
	Channels         map[string]ChannelSettings
	InboundPerMinute int   // messages a minute a chat may have handled, 0 = no limit
	AttachmentBytes  int64 // largest inbound file
}

// Config is what a Bot is made of. Store, Runtime, Settings and Log are required.
type Config struct {
	Store    Store
	Runtime  *runtime.Runtime
	Channels []channels.Channel
	Settings func() Settings
	Models   func() []model.Info // the default first
	// Files opens a thread's file tree; the bot closes it.
	Files   func(threadID string) (*sandbox.Files, error)
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
	Version string
	RSS     func() int64 // bytes of memory, nil: unknown
}

// Delays of the conduct of a turn.
const (
	typingAfter = 250 * time.Millisecond // before the working sign: an instant answer needs none
	typingEvery = 4 * time.Second        // platforms drop it after 5 s
	cardAfter   = 1500 * time.Millisecond
	albumQuiet  = 800 * time.Millisecond // silence that ends an album
	maxPending  = 200                    // messages a conversation may have waiting
	maxParts    = 12                     // messages of one answer; beyond, it goes as a file
	handling    = 256                    // conversations handled at once
)

// Bot connects chats to the runtime.
type Bot struct {
	store    Store
	rt       *runtime.Runtime
	channels map[string]channels.Channel
	order    []channels.Channel
	settings func() Settings
	models   func() []model.Info
	files    func(string) (*sandbox.Files, error)
	log      *slog.Logger
	now      func() time.Time
	version  string
	rss      func() int64
	started  time.Time

	out    *outbox
	slots  *semaphore.Weighted
	seen   *seenTexts
	rates  *rateWatch
	ctx    context.Context // of everything spawned; ends when Run does
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	actors    map[channels.Place]*actor
	followers map[string]*follower // by run id
	lastRun   map[string]*follower // of the newest run that is drawn, by thread
	stopping  bool
}

// New checks cfg. It starts nothing.
func New(cfg Config) (*Bot, error) {
	var errs []error
	for _, f := range []struct {
		name string
		nil  bool
	}{
		{"Store", cfg.Store == nil},
		{"Runtime", cfg.Runtime == nil},
		{"Settings", cfg.Settings == nil},
		{"Models", cfg.Models == nil},
		{"Files", cfg.Files == nil},
		{"Log", cfg.Log == nil},
	} {
		if f.nil {
			errs = append(errs, fmt.Errorf("bot: Config.%s is missing", f.name))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.RSS == nil {
		cfg.RSS = func() int64 { return 0 }
	}
	b := &Bot{
		store: cfg.Store, rt: cfg.Runtime, channels: map[string]channels.Channel{}, order: cfg.Channels,
		settings: cfg.Settings, models: cfg.Models, files: cfg.Files, log: cfg.Log, now: cfg.Now, version: cfg.Version,
		rss: cfg.RSS, started: cfg.Now(), slots: semaphore.NewWeighted(handling), seen: newSeenTexts(), rates: newRateWatch(),
		actors: map[channels.Place]*actor{}, followers: map[string]*follower{}, lastRun: map[string]*follower{},
	}
	for _, ch := range cfg.Channels {
		b.channels[ch.Name()] = ch
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.out = newOutbox(b)
	return b, nil
}

func (b *Bot) channel(name string) channels.Channel { return b.channels[name] }

// spawn runs f on a goroutine that Stop waits for. f must end when its context does.
func (b *Bot) spawn(f func(ctx context.Context)) {
	b.mu.Lock()
	if b.stopping {
		b.mu.Unlock()
		return
	}
	b.wg.Add(1)
	b.mu.Unlock()
	go func() {
		defer b.wg.Done()
		f(b.ctx)
	}()
}

// Resume takes up what an earlier process left: unsent messages, runs to be followed, entries not yet handled. Call it
// after the runtime's Recover and before RunChannels.
func (b *Bot) Resume(ctx context.Context) error {
	penalties, err := b.store.Penalties(ctx, b.now())
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	b.out.gate.restore(penalties)
	unsent, err := b.store.UnsentOutgoing(ctx)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	for _, rec := range unsent {
		b.out.resume(rec)
	}
	live, err := b.store.LiveRuns(ctx)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	for _, r := range live {
		b.follow(r)
	}
	entries, err := b.store.UnsettledInbound(ctx)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	for _, e := range entries {
		if e.State == store.InboxTaken && e.RunID != "" {
			r, err := b.store.Run(ctx, e.RunID)
			if err != nil {
				return fmt.Errorf("resume: entry %s: %w", e.ID, err)
			}
			b.follow(r)
			continue
		}
		b.wake(e.Conversation)
	}
	if len(unsent)+len(live)+len(entries) > 0 {
		b.log.Info("took up what was left", "messages", len(entries), "runs", len(live), "unsent", len(unsent))
	}
	return nil
}

// RunChannels runs all channels until ctx ends. A channel that fails for good is logged and told by its health; the
// others go on. failed is called with each such channel.
func (b *Bot) RunChannels(ctx context.Context, failed func(name string, err error)) {
	var wg sync.WaitGroup
	for _, ch := range b.order {
		wg.Go(func() {
			b.register(ctx, ch)
			if err := ch.Run(ctx, (*inbox)(b)); err != nil && ctx.Err() == nil {
				b.log.Error("channel stopped", "channel", ch.Name(), "err", err)
				failed(ch.Name(), err)
			}
		})
	}
	wg.Go(func() { b.prune(ctx) })
	wg.Wait()
}

func (b *Bot) register(ctx context.Context, ch channels.Channel) {
	reg, ok := ch.(channels.CommandRegistrar)
	if !ok {
		return
	}
	b.spawn(func(context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		wait := time.Second
		for {
			err := reg.RegisterCommands(ctx, commands.Infos())
			if err == nil || channels.IsFatal(err) || permanent(err) {
				if err != nil {
					b.log.Warn("commands are not registered", "channel", ch.Name(), "err", err)
				}
				return
			}
			if sleep(ctx, wait) != nil {
				b.log.Warn("commands are not registered", "channel", ch.Name(), "err", err)
				return
			}
			wait *= 2
		}
	})
}

// prune forgets old dedupe keys and delivered records, hourly.
func (b *Bot) prune(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		before := b.now().Add(-store.DedupeKeep)
		if _, err := b.store.PruneDedupe(ctx, before); err != nil && ctx.Err() == nil {
			b.log.Warn("cannot prune the dedupe keys", "err", err)
		}
		if _, err := b.store.PruneOutgoing(ctx, before); err != nil && ctx.Err() == nil {
			b.log.Warn("cannot prune the outbox", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Flush waits until the answers of runs that have ended are queued and everything queued is sent, or ctx ends. Call it
// after the runtime was closed: runs that were suspended have not ended, and nothing more ends.
func (b *Bot) Flush(ctx context.Context) {
	b.mu.Lock()
	fs := make([]*follower, 0, len(b.followers))
	for _, f := range b.followers {
		fs = append(fs, f)
	}
	b.mu.Unlock()
	for _, f := range fs {
		if r, err := b.store.Run(ctx, f.run.ID); err != nil || !r.State.Terminal() {
			continue
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return
		}
	}
	for {
		b.out.mu.Lock()
		var done chan struct{}
		for _, d := range b.out.known {
			done = d
			break
		}
		b.out.mu.Unlock()
		if done == nil {
			return
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// Stop ends everything the bot started and waits for it. What is not done is on disk.
func (b *Bot) Stop() {
	b.mu.Lock()
	b.stopping = true
	b.mu.Unlock()
	b.cancel()
	b.wg.Wait()
}

// Health lists the channels' health in order of configuration.
func (b *Bot) Health() []commands.ChannelStatus {
	var out []commands.ChannelStatus
	for _, ch := range b.order {
		s := commands.ChannelStatus{Name: ch.Name(), Health: channels.Health{Connected: true}}
		if h, ok := ch.(channels.HealthReporter); ok {
			s.Health = h.Health()
		}
		out = append(out, s)
	}
	return out
}
