package slack

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/store"
)

const (
	channelName = "slack"
	defaultURL  = "https://slack.com/api"
	callTimeout = 30 * time.Second
	fileTimeout = 10 * time.Minute
	maxUpload   = 1 << 30
	maxText     = cards.SlackLimit // characters; more cannot be edited
	queueSize   = 2000
)

// Config of a channel. BotToken, AppToken and Dialect are required.
type Config struct {
	BotToken string // xoxb-…
	AppToken string // xapp-…, with connections:write
	APIURL   string // default https://slack.com/api
	Proxy    string // http, https, socks5 or socks5h URL; "" uses the environment's
	Command  string // the slash command, default /deer; /deer-new is /new
	Dialect  cards.Dialect
	Log      *slog.Logger     // says which channel it is; default discards
	Now      func() time.Time // default time.Now

	RetryMin  time.Duration // first wait after a failed connection, default 500 ms; doubles with jitter
	RetryMax  time.Duration // default 30 s
	PingEvery time.Duration // default 10 s
	DeadAfter time.Duration // a socket without any sign for so long is dropped, default 30 s
	LookUp    time.Duration // most time to look up names for one event, default 1.5 s
}

// String hides the secrets of c.
func (c Config) String() string { return "slack.Config{APIURL:" + redactURL(c.APIURL) + "}" }

// GoString hides the secrets of c.
func (c Config) GoString() string { return c.String() }

// Channel is the Slack adapter. Its methods may be called from many goroutines; Run only once at a time.
type Channel struct {
	// bearer gives the tokens. It is a function so that no print of a Channel shows them: fmt does not ask unexported
	// fields how they want to be printed.
	bearer  func(app bool) string
	api     *url.URL
	hide    *strings.Replacer
	command string
	dialect cards.Dialect
	client  *http.Client
	dialer  *dialer
	log     *slog.Logger
	now     func() time.Time

	retryMin, retryMax, pingEvery, deadAfter, lookUp time.Duration

	me       atomic.Pointer[account]
	health   *health
	names    *names
	threads  *threads
	actions  *actions
	noStatus atomic.Bool
	stopped  atomic.Bool // Run has ended: keep no connection
}

// account is who the bot is.
type account struct{ team, user, bot, name string }

var (
	_ channels.Channel        = (*Channel)(nil)
	_ channels.Typer          = (*Channel)(nil)
	_ channels.Deleter        = (*Channel)(nil)
	_ channels.FileSender     = (*Channel)(nil)
	_ channels.FileFetcher    = (*Channel)(nil)
	_ channels.ActionAnswerer = (*Channel)(nil)
	_ channels.HealthReporter = (*Channel)(nil)
)

// New checks cfg and makes a channel; it calls nobody.
func New(cfg Config) (*Channel, error) {
	var faults []error
	bot, app := strings.TrimSpace(cfg.BotToken), strings.TrimSpace(cfg.AppToken)
	check := func(field, token, prefix, other, hint string) {
		switch {
		case token == "":
			faults = append(faults, fmt.Errorf("%s is empty", field))
		case strings.ContainsAny(token, " \t\r\n"):
			faults = append(faults, fmt.Errorf("%s holds white space", field))
		case strings.HasPrefix(token, other):
			faults = append(faults, fmt.Errorf("%s begins with %s: the two tokens are exchanged", field, other))
		case !strings.HasPrefix(token, prefix):
			faults = append(faults, fmt.Errorf("%s does not begin with %s: it is %s", field, prefix, hint))
		}
	}
	check("bot_token", bot, "xox", "xapp-", "the Bot User OAuth Token of the app's OAuth & Permissions page")
	check("app_token", app, "xapp-", "xox", "an App-Level Token with connections:write of the app's Basic Information page")
	if cfg.Dialect == nil {
		faults = append(faults, errors.New("no dialect"))
	}
	base := strings.TrimRight(cfg.APIURL, "/")
	if base == "" {
		base = defaultURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		faults = append(faults, errors.New("api_url must be an http or https URL"))
	}
	client, dial, secrets, err := newClient(cfg.Proxy)
	if err != nil {
		faults = append(faults, err)
	}
	if u != nil && u.User != nil {
		if pw, ok := u.User.Password(); ok {
			secrets = append(secrets, pw)
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("slack: %w", errors.Join(faults...))
	}
	c := &Channel{
		bearer: func(a bool) string {
			if a {
				return app
			}
			return bot
		},
		api: u, hide: newReplacer(append(secrets, bot, app)), command: cfg.Command,
		dialect: cfg.Dialect, client: client, dialer: dial, log: cfg.Log, now: cfg.Now,
		retryMin: cfg.RetryMin, retryMax: cfg.RetryMax, pingEvery: cfg.PingEvery, deadAfter: cfg.DeadAfter, lookUp: cfg.LookUp,
		health: new(health), names: newNames(), threads: newThreads(), actions: newActions(),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.command == "" {
		c.command = "/deer"
	}
	for d, def := range map[*time.Duration]time.Duration{
		&c.retryMin: 500 * time.Millisecond, &c.retryMax: 30 * time.Second, &c.pingEvery: 10 * time.Second,
		&c.deadAfter: 30 * time.Second, &c.lookUp: 1500 * time.Millisecond,
	} {
		if *d <= 0 {
			*d = def
		}
	}
	return c, nil
}

// Name implements channels.Channel.
func (c *Channel) Name() string { return channelName }

// Capabilities implements channels.Channel.
func (c *Channel) Capabilities() channels.Capabilities {
	return channels.Capabilities{Dialect: c.dialect, Edits: true, MaxFile: maxUpload, Pace: pace}
}

// pace is what docs.slack.dev/apis/web-api/rate-limits says: chat.update is Tier 3, 50 a minute over the workspace, and
// about one message a second in a channel.
func pace(channels.Place) channels.Pace {
	return channels.Pace{Gap: 1200 * time.Millisecond, PerSecond: 50.0 / 60}
}

func (c *Channel) place(chat, topic string) channels.Place {
	p := store.ConversationKey{Channel: channelName, Chat: chat, Topic: topic}
	if me := c.me.Load(); me != nil {
		p.Workspace = me.team
	}
	return p
}
