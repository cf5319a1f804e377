package discord

import (
	"sync"
	"time"

	"deerbot/channels"
)

type health struct {
	mu    sync.Mutex
	state channels.Health
}

// Health implements channels.HealthReporter.
func (c *Channel) Health() channels.Health {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.state
}

// heard notes a sign of life of the gateway: an event or an acknowledged heartbeat.
func (c *Channel) heard(at time.Time) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.health.state.LastEvent = at
}

// well notes that events come.
func (c *Channel) well() {
	h := &c.health
	now := c.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.LastEvent = now
	if h.state.Connected && h.state.Trouble == "" {
		return
	}
	if h.state.Trouble != "" {
		c.log.Info("discord is well again", "after", h.state.Trouble)
	}
	h.state.Connected, h.state.Trouble, h.state.Since = true, "", now
}

// trouble notes what is wrong and logs it when it is news.
func (c *Channel) trouble(text string) {
	h := &c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.Trouble == text {
		return
	}
	h.state.Trouble, h.state.Since = text, c.now()
	c.log.Warn("discord is in trouble", "trouble", text)
}

func (c *Channel) named(account string) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.health.state.Account = account
}
