package discord

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/store"
)

// Limits of the platform.
const (
	maxUpload    = 10 << 20 // docs.discord.com/developers/reference#uploading-files
	maxDownload  = 500 << 20
	maxContent   = 2000 // UTF-16 units, docs.discord.com/developers/resources/message
	maxNonce     = 25
	maxCommands  = 100 // docs.discord.com/developers/interactions/application-commands
	maxLabel     = 80
	callTimeout  = 30 * time.Second
	ackTimeout   = 3 * time.Second
	fileTimeout  = 10 * time.Minute
	defaultURL   = "https://discord.com/api/v10"
	channelName  = "discord"
	maxQuoteRune = 2000
)

// Thread says whether a mention in a text channel opens a thread.
type Thread string

// Threads.
const (
	ThreadAuto Thread = "auto" // when the bot may
	ThreadOff  Thread = "off"
)

// Memory keeps a few hundred bytes to some kilobytes across restarts: where the gateway was and what was seen last. Losing
// it loses nothing but the messages written while deerbot was away.
type Memory interface {
	Load() ([]byte, error) // nil for none
	Save(data []byte) error
}

// Config of a channel. Token and Dialect are required.
type Config struct {
	Token   string
	APIURL  string // default https://discord.com/api/v10; a host alone gets /api/v10
	Proxy   string // http, https, socks5 or socks5h URL; "" uses the environment's
	Dialect cards.Dialect
	Log     *slog.Logger     // says which channel it is; default discards
	Now     func() time.Time // default time.Now

	ApplicationCommands string // global (default), guild:<id> or off
	Thread              Thread // default auto
	Memory              Memory // default none: what was seen is known while the process lives
	// Wants is asked before a thread is opened for a mention: whether the message will be answered. Default yes.
	Wants func(*channels.Inbound) bool

	RetryMin     time.Duration // first wait after a lost connection, default 500 ms; doubles with jitter
	RetryMax     time.Duration // default 60 s
	OpenTimeout  time.Duration // from dialling to READY or RESUMED, default 20 s
	IdentifyWait time.Duration // least wait before a new session, default 5 s: Discord takes one per 5 s, 1000 a day
}

// String hides the secrets of c.
func (c Config) String() string { return "discord.Config{APIURL:" + redactURL(c.APIURL) + "}" }

// GoString hides the secrets of c.
func (c Config) GoString() string { return c.String() }

// Channel is the Discord adapter. Its methods may be called from many goroutines; Run only once at a time.
type Channel struct {
	token   func() string // a function, so that no print shows it
	base    string
	hide    *strings.Replacer
	dialect cards.Dialect
	client  *http.Client
	dialer  *websocket.Dialer
	log     *slog.Logger
	now     func() time.Time
	thread  Thread
	scope   string // "", or a guild, or "off"
	memory  Memory
	wants   func(*channels.Inbound) bool

	retryMin, retryMax, openTimeout, identifyWait time.Duration

	me      atomic.Pointer[account]
	health  health
	names   names
	pending interactions
	sent    ours
	track   track
	stopped atomic.Bool // Run has ended: keep no connection

	cmu        sync.Mutex
	registered string // what was registered last
}

// account is who the bot is.
type account struct {
	id, name, app string
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

var commandScope = regexp.MustCompile(`^guild:([1-9][0-9]*)$`)

// New checks cfg and makes a channel; it calls nobody.
func New(cfg Config) (*Channel, error) {
	var faults []error
	token := strings.TrimPrefix(strings.TrimSpace(cfg.Token), "Bot ")
	if token == "" {
		faults = append(faults, errors.New("token is empty"))
	} else if strings.Count(token, ".") != 2 || strings.ContainsAny(token, " \t\r\n") {
		faults = append(faults, errors.New("token does not look like a bot token, three parts with dots between"))
	}
	if cfg.Dialect == nil {
		faults = append(faults, errors.New("no dialect"))
	}
	base, err := apiBase(cfg.APIURL)
	if err != nil {
		faults = append(faults, err)
	}
	scope := ""
	switch m := commandScope.FindStringSubmatch(cfg.ApplicationCommands); {
	case cfg.ApplicationCommands == "" || cfg.ApplicationCommands == "global":
	case cfg.ApplicationCommands == "off":
		scope = "off"
	case m != nil:
		scope = m[1]
	default:
		faults = append(faults, errors.New("application_commands must be global, guild:<id> or off"))
	}
	if cfg.Thread == "" {
		cfg.Thread = ThreadAuto
	}
	if cfg.Thread != ThreadAuto && cfg.Thread != ThreadOff {
		faults = append(faults, errors.New("thread must be auto or off"))
	}
	client, dialer, secrets, err := newClient(cfg.Proxy)
	if err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("discord: %w", errors.Join(faults...))
	}
	c := &Channel{
		token: func() string { return token }, base: base, hide: newReplacer(token, secrets),
		dialect: cfg.Dialect, client: client, dialer: dialer, log: cfg.Log, now: cfg.Now, thread: cfg.Thread, scope: scope,
		memory: cfg.Memory, wants: cfg.Wants, retryMin: cfg.RetryMin, retryMax: cfg.RetryMax, openTimeout: cfg.OpenTimeout,
		identifyWait: cfg.IdentifyWait,
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	usual := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	usual(&c.retryMin, 500*time.Millisecond)
	usual(&c.retryMax, time.Minute)
	usual(&c.openTimeout, 20*time.Second)
	usual(&c.identifyWait, 5*time.Second)
	c.names.init()
	c.pending.init()
	return c, nil
}

// apiBase is the URL that paths of the API are appended to.
func apiBase(s string) (string, error) {
	s = strings.TrimRight(s, "/")
	if s == "" {
		return defaultURL, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return "", errors.New("api_url must be an http or https URL")
	}
	if u.Path == "" {
		return s + "/api/v10", nil
	}
	return s, nil
}

// String keeps what c holds, the tokens of interactions among it, out of every print.
func (c *Channel) String() string { return "discord.Channel" }

// GoString is String.
func (c *Channel) GoString() string { return c.String() }

// Name implements channels.Channel.
func (c *Channel) Name() string { return channelName }

// Capabilities implements channels.Channel.
func (c *Channel) Capabilities() channels.Capabilities {
	return channels.Capabilities{Dialect: c.dialect, Edits: true, MaxFile: maxUpload, Pace: pace, IdempotentSends: true}
}

// pace is what Discord was seen to allow: five calls of a route in five seconds in a channel, sends and edits each, and
// fifty a second over all (docs.discord.com/developers/topics/rate-limits). The rest is left for others.
func pace(channels.Place) channels.Pace {
	return channels.Pace{Gap: 1200 * time.Millisecond, PerSecond: 40}
}

func place(guild, chat, topic string) channels.Place {
	return store.ConversationKey{Channel: channelName, Workspace: guild, Chat: chat, Topic: topic}
}

// target is the channel to write to: a thread is a channel.
func target(p channels.Place) string {
	if p.Topic != "" {
		return p.Topic
	}
	return p.Chat
}
