package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/store"
)

// Name is the channel's name in configuration and keys.
const Name = "web"

// SenderID is the id of the one person who uses the page.
const SenderID = "local"

// Bounds of what one request may bring.
const (
	MaxText          = 64 << 10 // bytes of a message's text
	MaxFiles         = 10       // files of a message
	MaxConversations = 200      // conversations listed
	maxTitle         = 120      // runes
	defaultUpload    = 25 << 20
	maxOutgoing      = 1 << 30 // an outgoing file goes to the local disk only
)

// Log keeps the messages. store.Store satisfies it; see [store.ChatLog] for the contract.
type Log interface {
	PutChatMessage(ctx context.Context, m *store.ChatMessage) error
	ChatMessage(ctx context.Context, chat, id string) (store.ChatMessage, error)
	ChatMessages(ctx context.Context, chat string, after uint64, limit int) ([]store.ChatMessage, error)
	Chats(ctx context.Context, limit int) ([]store.ChatSummary, error)
	PutChatTitle(ctx context.Context, chat, title string) error
	DeleteChat(ctx context.Context, chat string) error
}

// Config configures the channel.
type Config struct {
	Log       Log           // required
	FilesDir  string        // required: where uploaded and sent files are kept; created when missing
	Dialect   cards.Dialect // required: bodies of its format "html" are shown as they are, so it must escape
	MaxUpload int64         // bytes of one uploaded file, 0 for 25 MiB
	Lang      string        // language of the page: en, zh; anything else follows the browser
	LogoutURL string        // where a POST signs out, "" when nobody signs in
	Logger    *slog.Logger  // for this channel; nil discards
	Now       func() time.Time
}

// Channel is the web chat: a [channels.Channel] and the http.Handler of its page.
type Channel struct {
	cfg   Config
	log   *slog.Logger
	files fileStore
	rooms rooms
	mux   http.Handler
	page  *page

	mu       sync.Mutex
	inbox    channels.Inbox // nil unless Run runs
	done     chan struct{}  // closed when Run ends
	health   channels.Health
	known    map[string]bool // conversations that exist
	commands []channels.CommandInfo

	streams atomic.Int64 // open event streams
}

// The abilities of the channel.
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

// New makes the channel. It creates FilesDir and touches nothing else.
func New(cfg Config) (*Channel, error) {
	var faults []error
	if cfg.Log == nil {
		faults = append(faults, errors.New("no Log"))
	}
	if cfg.FilesDir == "" {
		faults = append(faults, errors.New("no FilesDir"))
	}
	if cfg.Dialect == nil {
		faults = append(faults, errors.New("no Dialect"))
	}
	if cfg.MaxUpload < 0 {
		faults = append(faults, errors.New("MaxUpload is negative"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	if cfg.MaxUpload == 0 {
		cfg.MaxUpload = defaultUpload
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := os.MkdirAll(cfg.FilesDir, 0o700); err != nil {
		return nil, fmt.Errorf("web: files: %w", err)
	}
	pg, err := newPage(cfg)
	if err != nil {
		return nil, fmt.Errorf("web: page: %w", err)
	}
	c := &Channel{
		cfg:    cfg,
		log:    cfg.Logger,
		files:  fileStore{dir: cfg.FilesDir},
		page:   pg,
		known:  map[string]bool{},
		health: channels.Health{Account: "deerbot", Since: cfg.Now()},
	}
	c.mux = c.routes()
	return c, nil
}

// Name is "web".
func (c *Channel) Name() string { return Name }

// Capabilities of the page: what arrives is shown at once and nothing is lost on the way.
func (c *Channel) Capabilities() channels.Capabilities {
	return channels.Capabilities{
		Dialect:  c.cfg.Dialect,
		Edits:    true,
		MaxFile:  maxOutgoing,
		Pace:     func(channels.Place) channels.Pace { return channels.Pace{Gap: 100 * time.Millisecond} },
		Loopback: true,
	}
}

// Run takes messages from the page until ctx ends. Before and after, posting is answered with 503 and the page tries
// again. When it returns, all event streams have been told to end.
func (c *Channel) Run(ctx context.Context, inbox channels.Inbox) error {
	if inbox == nil {
		return &channels.Fatal{Err: errors.New("web: no inbox")}
	}
	done := make(chan struct{})
	c.mu.Lock()
	if c.inbox != nil {
		c.mu.Unlock()
		return &channels.Fatal{Err: errors.New("web: runs already")}
	}
	c.inbox, c.done = inbox, done
	c.health.Connected, c.health.Since, c.health.Trouble = true, c.cfg.Now(), ""
	c.mu.Unlock()

	c.files.sweep()
	if err := c.recover(ctx, inbox); err != nil && ctx.Err() == nil {
		c.log.Warn("could not look for messages a crash left behind", "err", err)
	}
	<-ctx.Done()

	c.mu.Lock()
	c.inbox = nil
	c.health.Connected, c.health.Since = false, c.cfg.Now()
	c.mu.Unlock()
	close(done)
	return nil
}

// Health of the channel: connected while Run runs.
func (c *Channel) Health() channels.Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// RegisterCommands sets what the composer offers after a slash.
func (c *Channel) RegisterCommands(_ context.Context, cmds []channels.CommandInfo) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commands = append([]channels.CommandInfo(nil), cmds...)
	return nil
}

// running returns the inbox and a channel that closes when Run ends; the inbox is nil when Run does not run.
func (c *Channel) running() (channels.Inbox, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inbox, c.done
}

// accept hands in to the inbox.
func (c *Channel) accept(ctx context.Context, in *channels.Inbound) error {
	inbox, _ := c.running()
	if inbox == nil {
		return errNotRunning
	}
	if err := inbox.Accept(ctx, in); err != nil {
		return err
	}
	c.mu.Lock()
	c.health.LastEvent = c.cfg.Now()
	c.mu.Unlock()
	return nil
}

var errNotRunning = errors.New("web: not taking messages now")

// exists reports whether the conversation is there.
func (c *Channel) exists(ctx context.Context, chat string) (bool, error) {
	c.mu.Lock()
	known := c.known[chat]
	c.mu.Unlock()
	if known {
		return true, nil
	}
	msgs, err := c.cfg.Log.ChatMessages(ctx, chat, 0, 1)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if len(msgs) == 0 {
		sum, err := c.summary(ctx, chat)
		if err != nil || sum == nil {
			return false, err
		}
	}
	c.setKnown(chat, true)
	return true, nil
}

// summary finds the list entry of a conversation, nil when there is none.
func (c *Channel) summary(ctx context.Context, chat string) (*store.ChatSummary, error) {
	const all = 1 << 20
	list, err := c.cfg.Log.Chats(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Chat == chat {
			return &list[i], nil
		}
	}
	return nil, nil
}

func (c *Channel) setKnown(chat string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known {
		c.known[chat] = true
	} else {
		delete(c.known, chat)
	}
}
