// Package daemon wires the parts of deerbot into one process and owns its life.
//
//	New     opens the store and builds everything; nothing runs yet; on an error all is closed again
//	Run     recovers, resumes, connects, serves until ctx ends, then stops in order; it blocks
//	Reload  swaps what may change while the daemon runs
//
// The order of a start is: store, HTTP server (so that health can be asked), runtime recovery, outbox, channels. The
// order of a stop is: channels, runtime (steps end within shutdown_grace, the rest is suspended for the next start),
// outbox, HTTP server, store.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"deerbot/bot"
	"deerbot/channels"
	"deerbot/config"
	"deerbot/console"
	"deerbot/runtime"
	"deerbot/runtime/agent"
	"deerbot/runtime/middleware"
	"deerbot/runtime/run"
	"deerbot/store"
	"deerbot/store/boltstore"
)

// Options are what the command line adds to the configuration.
type Options struct {
	Version string
	Log     *slog.Logger
	Level   *slog.LevelVar                    // changed on reload; may be nil
	Env     func(string) (string, bool)       // nil: os.LookupEnv
	Load    config.LoadOptions                // for watching the file
	Ready   func(url string)                  // called once when the daemon serves; may be nil
	Now     func() time.Time                  // nil: time.Now
	Exit    func(name string, err error) bool // a channel failed for good; may be nil
}

// crashLoop is how many unclean starts within crashWindow make a crash loop, in which nothing is resumed.
const (
	crashLoop   = 3
	crashWindow = 5 * time.Minute
)

// Daemon is one process's worth of deerbot.
type Daemon struct {
	opts Options
	log  *slog.Logger
	cfg  atomic.Pointer[config.Config]

	store   *boltstore.Store
	models  *models
	tools   *toolbox
	rt      *runtime.Runtime
	bot     *bot.Bot
	server  *console.Server
	conduct atomic.Pointer[bot.Settings] // the bot's view of cfg

	recovered atomic.Bool
	mu        sync.Mutex
	failed    map[string]string
}

// New builds the daemon of cfg. It opens the store; Close must follow, or Run, which closes it at its end.
func New(ctx context.Context, cfg *config.Config, opts Options) (_ *Daemon, err error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Env == nil {
		opts.Env = os.LookupEnv
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	d := &Daemon{opts: opts, log: opts.Log, failed: map[string]string{}}
	d.use(cfg)
	for _, n := range config.NotYet(cfg) {
		d.log.Warn("this setting has no effect yet", "key", n.Key, "why", n.Text)
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	if d.store, err = boltstore.Open(cfg.StorePath(), boltstore.Options{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.store.Close())
		}
	}()
	if d.models, err = buildModels(ctx, cfg, opts.Env, d.log); err != nil {
		return nil, err
	}
	if d.tools, err = buildTools(cfg); err != nil {
		return nil, err
	}
	chain, err := agent.NewChain(d.log, middleware.Default(middleware.Config{Now: opts.Now})...)
	if err != nil {
		return nil, fmt.Errorf("middleware: %w", err)
	}
	d.rt, err = runtime.New(runtime.Config{
		Store: d.store, Loop: &agent.Loop{Chain: chain, Log: d.log}, Setup: d.setup, Log: d.log, Now: opts.Now,
		Slots:    func() int { return d.cfg.Load().Limits.ConcurrentRuns },
		Recovery: run.Recovery(cfg.Agent.Recovery),
	})
	if err != nil {
		return nil, err
	}
	chans, web, err := buildChannels(cfg, d.store, d.wants, d.log, opts.Now)
	if err != nil {
		return nil, err
	}
	d.bot, err = bot.New(bot.Config{
		Store: d.store, Runtime: d.rt, Channels: chans, Settings: d.settings, Models: d.models.infos, Files: d.files,
		Log: d.log, Now: opts.Now, Version: opts.Version, RSS: residentBytes,
	})
	if err != nil {
		return nil, err
	}
	sc := console.Config{
		Listen: cfg.Server.Listen, AuthToken: cfg.Server.AuthToken.Reveal(), Ready: d.readiness, Logger: d.log, Now: opts.Now,
		Lang: cfg.Locale,
	}
	if web != nil {
		sc.Chat = web
	}
	if cfg.Telemetry.Metrics {
		sc.Registry = d.metrics()
	}
	if d.server, err = console.New(sc); err != nil {
		return nil, err
	}
	return d, nil
}

// wants reports whether a message will be answered: what an adapter may ask before it prepares a place for the answer.
func (d *Daemon) wants(in *channels.Inbound) bool { return d.bot.Wants(in) }

// URL is where the daemon serves, once Run has started to.
func (d *Daemon) URL() string { return d.server.URL() }

// Run serves until ctx ends and stops in order. It returns nil after a stop that was asked for.
func (d *Daemon) Run(ctx context.Context) (err error) {
	now := d.opts.Now()
	defer func() { err = errors.Join(err, d.store.Close()) }()
	unclean, err := d.store.MarkStart(ctx, now, now.Add(-crashWindow))
	if err != nil {
		return err
	}
	if err := d.server.Listen(ctx); err != nil {
		return err
	}
	serve, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	var g errgroup.Group
	g.Go(func() error { return d.server.Run(serve) })

	life, stopLife := context.WithCancel(context.Background())
	defer stopLife()
	g.Go(func() error { return d.rt.Run(life) })
	g.Go(func() error { return config.Watch(life, d.opts.Load, d.reloaded) })

	calm := len(unclean) < crashLoop
	if !calm {
		d.log.Error("deerbot did not stop cleanly several times within minutes; runs that were cut are not resumed",
			"starts", len(unclean), "within", crashWindow)
	}
	err = d.serve(ctx, calm)
	stopLife()
	stopServing()
	if werr := g.Wait(); err == nil {
		err = werr
	}
	if err == nil {
		err = d.store.MarkStop(context.Background())
	}
	return err
}

func (d *Daemon) serve(ctx context.Context, calm bool) error {
	rec, err := d.rt.Recover(ctx, calm)
	if err != nil {
		return err
	}
	if n := len(rec.Resumed) + len(rec.Ended) + len(rec.Waiting); n > 0 {
		d.log.Info("recovered", "resumed", len(rec.Resumed), "ended", len(rec.Ended), "waiting", len(rec.Waiting))
	}
	if err := d.bot.Resume(ctx); err != nil {
		return err
	}
	d.recovered.Store(true)
	d.log.Info("deerbot is up", "web", d.server.URL(), "model", d.models.describe(), "data", filepath.Clean(d.cfg.Load().DataDir))
	if d.opts.Ready != nil {
		d.opts.Ready(d.server.URL())
	}
	dropStartPages()
	chans, stopChannels := context.WithCancel(context.Background())
	defer stopChannels()
	done := make(chan struct{})
	go func() { // ends when the channels have; waited for below
		defer close(done)
		d.bot.RunChannels(chans, d.channelFailed)
	}()
	<-ctx.Done()
	d.log.Info("stopping", "grace", d.cfg.Load().ShutdownGrace)
	grace, cancel := context.WithTimeout(context.Background(), d.cfg.Load().ShutdownGrace)
	defer cancel()
	stopChannels()
	<-done
	d.rt.Close(grace)
	d.bot.Flush(grace)
	d.bot.Stop()
	return nil
}

func (d *Daemon) channelFailed(name string, err error) {
	d.mu.Lock()
	d.failed[name] = err.Error()
	d.mu.Unlock()
}

// readiness says what is missing before the daemon can do all it is configured for.
func (d *Daemon) readiness() console.Readiness {
	var r console.Readiness
	if !d.recovered.Load() {
		r.Missing = append(r.Missing, "recovery")
	}
	d.mu.Lock()
	for name, why := range d.failed {
		if r.Failed == nil {
			r.Failed = map[string]string{}
		}
		r.Failed[name] = why
	}
	d.mu.Unlock()
	for _, ch := range d.bot.Health() {
		if _, dead := r.Failed[ch.Name]; !dead && !ch.Health.Connected {
			missing := "channel " + ch.Name
			if ch.Health.Trouble != "" {
				missing += ": " + ch.Health.Trouble
			}
			r.Missing = append(r.Missing, missing)
		}
	}
	return r
}

// setup prepares a claimed run from the present configuration.
func (d *Daemon) setup(ctx context.Context, r store.Run) (run.Setup, error) {
	cfg := d.cfg.Load()
	m, err := d.models.get(r.Model)
	if err != nil {
		return run.Setup{}, err
	}
	files, err := d.files(r.ThreadID)
	if err != nil {
		return run.Setup{}, err
	}
	place, kind, title := d.bot.PlaceOf(ctx, r)
	return run.Setup{
		Model: m, Tools: d.tools.get(), Files: files, Place: place,
		System: agent.Prompt{
			Instructions: cfg.Agent.Instructions, Channel: place.Channel, ChatKind: kind, ChatTitle: title, Now: d.opts.Now(),
		}.String(),
		Limits: agent.Limits{
			MaxSteps: cfg.Agent.MaxSteps, TokenBudget: cfg.Agent.TokenBudget, Timeout: cfg.Agent.RunTimeout,
			Parallel: cfg.Agent.Parallel,
		},
	}, nil
}

// use makes cfg the present configuration.
func (d *Daemon) use(cfg *config.Config) {
	s := &bot.Settings{
		Locale: cfg.Locale, Channels: map[string]bot.ChannelSettings{}, InboundPerMinute: cfg.Limits.InboundPerMinute,
		AttachmentBytes: int64(cfg.Limits.AttachmentMB) << 20,
	}
	for _, name := range cfg.Channels.Names() {
		if o, ok := cfg.Channels.Options(name); ok {
			s.Channels[name] = bot.ChannelSettings{
				Allow: o.Allow, Admins: o.Admins, Groups: o.Groups, WhileRunning: o.WhileRunning, Stream: o.Stream,
				Answer: o.Answer, AnswerNewAfter: o.AnswerNewAfter,
			}
		}
	}
	d.cfg.Store(cfg)
	d.conduct.Store(s)
}

// settings are the bot's view of the configuration. They are read many times in a turn and must not be changed.
func (d *Daemon) settings() bot.Settings { return *d.conduct.Load() }

// reloaded takes a changed file. What cannot change live is named; an invalid file changes nothing.
func (d *Daemon) reloaded(next *config.Config, err error) {
	if err != nil {
		d.log.Error("the changed configuration is not valid; the old one stays", "err", err)
		return
	}
	if err := d.Reload(context.Background(), next); err != nil {
		d.log.Error("the changed configuration cannot be used; the old one stays", "err", err)
	}
}

// Reload swaps to next what may change live.
func (d *Daemon) Reload(ctx context.Context, next *config.Config) error {
	old := d.cfg.Load()
	live, restart := config.Diff(old, next)
	next = config.Apply(old, next)
	m, err := buildModels(ctx, next, d.opts.Env, d.log)
	if err != nil {
		return err
	}
	t, err := buildTools(next)
	if err != nil {
		return err
	}
	d.models.swap(m)
	d.tools.swap(t)
	d.use(next)
	if d.opts.Level != nil {
		d.opts.Level.Set(LevelOf(next.Log.Level))
	}
	for _, n := range config.NotYet(next) {
		d.log.Warn("this setting has no effect yet", "key", n.Key, "why", n.Text)
	}
	if len(restart) > 0 {
		d.log.Warn("these settings change at the next start", "keys", restart)
	}
	d.log.Info("configuration reloaded", "changed", live)
	return nil
}

// LevelOf maps a configured level to slog's.
func LevelOf(level string) slog.Level {
	switch level {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}
