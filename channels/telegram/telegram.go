package telegram

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

// Limits of the platform.
const (
	maxUpload    = 50 << 20 // core.telegram.org/bots/api#senddocument
	maxPhoto     = 10 << 20 // core.telegram.org/bots/api#sendphoto
	maxDownload  = 20 << 20 // core.telegram.org/bots/api#getfile
	maxCaption   = 1024     // UTF-16 units, core.telegram.org/bots/api#sendphoto
	maxNotice    = 200      // core.telegram.org/bots/api#answercallbackquery
	maxCommands  = 100      // core.telegram.org/bots/api#setmycommands
	maxLongPoll  = 50 * time.Second
	callTimeout  = 30 * time.Second
	fileTimeout  = 10 * time.Minute
	defaultURL   = "https://api.telegram.org"
	channelName  = "telegram"
	maxQuoteRune = 2000
)

// Config of a channel. Token and Dialect are required.
type Config struct {
	Token   string
	APIURL  string // default https://api.telegram.org
	Proxy   string // http, https, socks5 or socks5h URL; "" uses the environment's
	Dialect cards.Dialect
	Log     *slog.Logger     // says which channel it is; default discards
	Now     func() time.Time // default time.Now

	PollTimeout  time.Duration // of a long poll, default and most 50 s
	RetryMin     time.Duration // first wait after a failed poll, default 500 ms; doubles with jitter
	RetryMax     time.Duration // default 30 s
	ConflictWait time.Duration // wait when another process polls with this token, default 15 s
}

// String hides the secrets of c.
func (c Config) String() string { return "telegram.Config{APIURL:" + redactURL(c.APIURL) + "}" }

// GoString hides the secrets of c.
func (c Config) GoString() string { return c.String() }

// Channel is the Telegram adapter. Its methods may be called from many goroutines; Run only once at a time.
type Channel struct {
	// address makes the URL of "bot" or "file/bot" and what follows the token. It is a function so that no print of a
	// Channel shows the token: fmt does not ask unexported fields how they want to be printed.
	address func(kind, rest string) string
	hide    *strings.Replacer
	dialect cards.Dialect
	client  *http.Client
	log     *slog.Logger
	now     func() time.Time

	poll, retryMin, retryMax, conflictWait time.Duration

	me      atomic.Pointer[account]
	health  health
	stopped atomic.Bool // Run has ended: keep no connection
}

var (
	_ channels.Channel          = (*Channel)(nil)
	_ channels.Typer            = (*Channel)(nil)
	_ channels.Deleter          = (*Channel)(nil)
	_ channels.FileSender       = (*Channel)(nil)
	_ channels.FileFetcher      = (*Channel)(nil)
	_ channels.CommandRegistrar = (*Channel)(nil)
	_ channels.ActionAnswerer   = (*Channel)(nil)
	_ channels.HealthReporter   = (*Channel)(nil)
)

// New checks cfg and makes a channel; it calls nobody.
func New(cfg Config) (*Channel, error) {
	var faults []error
	token := strings.TrimSpace(cfg.Token)
	if token == "" {
		faults = append(faults, errors.New("token is empty"))
	} else if strings.ContainsAny(token, "/?# \t\n") || !strings.Contains(token, ":") {
		faults = append(faults, errors.New("token does not look like <number>:<secret>"))
	}
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
	hide := []string{token}
	client, secrets, err := newClient(cfg.Proxy)
	if err != nil {
		faults = append(faults, err)
	}
	if u != nil && u.User != nil {
		if pw, ok := u.User.Password(); ok {
			secrets = append(secrets, pw)
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("telegram: %w", errors.Join(faults...))
	}
	c := &Channel{
		address: func(kind, rest string) string { return base + "/" + kind + token + "/" + rest },
		dialect: cfg.Dialect, client: client, log: cfg.Log, now: cfg.Now,
		hide: newReplacer(append(hide, secrets...)),
		poll: cfg.PollTimeout, retryMin: cfg.RetryMin, retryMax: cfg.RetryMax, conflictWait: cfg.ConflictWait,
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.poll <= 0 || c.poll > maxLongPoll {
		c.poll = maxLongPoll
	}
	c.poll = max(c.poll, time.Second) // the API counts seconds; 0 would not wait at all
	if c.retryMin <= 0 {
		c.retryMin = 500 * time.Millisecond
	}
	if c.retryMax <= 0 {
		c.retryMax = 30 * time.Second
	}
	if c.conflictWait <= 0 {
		c.conflictWait = 15 * time.Second
	}
	return c, nil
}

// Name implements channels.Channel.
func (c *Channel) Name() string { return channelName }

// Capabilities implements channels.Channel.
func (c *Channel) Capabilities() channels.Capabilities {
	return channels.Capabilities{Dialect: c.dialect, Edits: true, MaxFile: maxUpload, Pace: pace}
}

// pace is what core.telegram.org/bots/faq says a bot may do: about a message a second in a chat, 20 a minute in a group,
// 30 a second over all; edits are counted like messages. The gaps have a margin for the way: a call that was held up a
// little comes closer to the next one.
func pace(p channels.Place) channels.Pace {
	if strings.HasPrefix(p.Chat, "-") { // groups have negative ids
		return channels.Pace{Gap: 3100 * time.Millisecond, PerMinute: 20, PerSecond: 30}
	}
	return channels.Pace{Gap: 1080 * time.Millisecond, PerSecond: 30}
}

func (c *Channel) place(chat, topic string) channels.Place {
	return store.ConversationKey{Channel: channelName, Chat: chat, Topic: topic}
}
