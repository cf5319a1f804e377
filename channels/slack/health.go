package slack

import (
	"sync"

	"deerbot/channels"
)

type health struct {
	mu    sync.Mutex
	state channels.Health
}

// Health implements channels.HealthReporter. LastEvent is that of the last event or connection, never of a ping.
func (c *Channel) Health() channels.Health {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.state
}

// well notes that Slack talks to us.
func (c *Channel) well() {
	h, now := c.health, c.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.LastEvent = now
	if h.state.Connected && h.state.Trouble == "" {
		return
	}
	if h.state.Trouble != "" {
		c.log.Info("slack is well again", "after", h.state.Trouble)
	}
	h.state.Connected, h.state.Trouble, h.state.Since = true, "", now
}

// trouble notes what is wrong and logs it when it is news.
func (c *Channel) trouble(text string) {
	h := c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.Trouble == text {
		return
	}
	h.state.Trouble, h.state.Since = text, c.now()
	c.log.Warn("slack is in trouble", "trouble", text)
}

func (c *Channel) named(account string) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.health.state.Account = account
}
