package telegram

import (
	"sync"
	"time"

	"deerbot/channels"
)

// conflictMemory is how long a conflict is shown after it was last seen: both sides win a poll now and then.
const conflictMemory = 2 * time.Minute

type health struct {
	mu       sync.Mutex
	state    channels.Health
	conflict time.Time
}

// Health implements channels.HealthReporter.
func (c *Channel) Health() channels.Health {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	return c.health.state
}

// well notes a successful poll.
func (c *Channel) well() {
	h := &c.health
	now := c.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.LastEvent = now
	trouble := h.state.Trouble
	if trouble != "" && now.Sub(h.conflict) >= conflictMemory {
		trouble = ""
		c.log.Info("telegram is well again", "after", h.state.Trouble)
	}
	if !h.state.Connected || trouble != h.state.Trouble {
		h.state.Since = now
	}
	h.state.Connected, h.state.Trouble = true, trouble
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
	c.log.Warn("telegram is in trouble", "trouble", text)
}

func (c *Channel) conflicted(text string) {
	c.health.mu.Lock()
	c.health.conflict = c.now()
	c.health.mu.Unlock()
	c.trouble(text)
}

func (c *Channel) named(account string) {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.health.state.Account = account
}
