package discord

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxSeen bounds the channels whose last message is remembered, and those that are looked through after a gap.
const maxSeen = 300

// track is how far the gateway was followed: everything up to seq of session was stored.
type track struct {
	mu      sync.Mutex
	state   state
	changed bool
	saved   time.Time
}

// state is what Memory keeps.
type state struct {
	Session string            `json:"session,omitempty"`
	Seq     int64             `json:"seq,omitempty"`
	URL     string            `json:"url,omitempty"`
	Horizon string            `json:"horizon,omitempty"` // the newest message stored, or when first listened
	Seen    map[string]string `json:"seen,omitempty"`    // channel to its newest message stored
	Direct  map[string]bool   `json:"direct,omitempty"`  // which of them are direct messages
}

// load reads what Memory has; what cannot be read is nothing.
func (c *Channel) load() {
	t := &c.track
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.memory != nil && t.state.Horizon == "" {
		data, err := c.memory.Load()
		if err == nil && len(data) > 0 {
			err = json.Unmarshal(data, &t.state)
		}
		if err != nil {
			c.log.Warn("what was seen last of discord cannot be read; messages written while deerbot was away are not fetched", "error", c.hide.Replace(err.Error()))
			t.state = state{}
		}
	}
	if t.state.Seen == nil {
		t.state.Seen = map[string]string{}
	}
	if t.state.Direct == nil {
		t.state.Direct = map[string]bool{}
	}
}

// save writes the state when it changed, at most every few seconds unless now is set.
func (c *Channel) save(now bool) {
	t := &c.track
	t.mu.Lock()
	defer t.mu.Unlock()
	at := c.now()
	if c.memory == nil || !t.changed || !now && at.Sub(t.saved) < 5*time.Second {
		return
	}
	data, err := json.Marshal(t.state)
	if err == nil {
		err = c.memory.Save(data)
	}
	if err != nil {
		c.log.Warn("what was seen last of discord cannot be kept", "error", c.hide.Replace(err.Error()))
	}
	t.changed, t.saved = false, at
}

// session is what RESUME needs; id is "" for none.
func (t *track) session() (id string, seq int64, url string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Session, t.state.Seq, t.state.URL
}

// begin starts a new session; end gives one up.
func (t *track) begin(id, url string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Session, t.state.URL, t.state.Seq = id, url, 0
	t.changed = true
}

func (t *track) end() { t.begin("", "") }

// commit notes that an event was stored.
func (t *track) commit(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Session != "" && seq > t.state.Seq {
		t.state.Seq, t.changed = seq, true
	}
}

func (t *track) seq() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Seq
}

// listen sets the horizon when there is none: messages from now on are ours. It reports whether there was one, which
// makes a new session a gap.
func (t *track) listen(now time.Time) (gap bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Horizon != "" {
		return true
	}
	t.state.Horizon = snowflakeAt(now)
	t.changed = true
	return false
}

// see notes the newest message stored of a channel.
func (t *track) see(channel, id string, direct bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if newer(t.state.Seen[channel], id) {
		return
	}
	t.state.Seen[channel] = id
	if direct {
		t.state.Direct[channel] = true
	}
	if newer(id, t.state.Horizon) {
		t.state.Horizon = id
	}
	t.changed = true
	if len(t.state.Seen) > maxSeen {
		t.prune()
	}
}

// prune forgets the tenth of the channels where nothing was said for longest.
func (t *track) prune() {
	ids := make([]string, 0, len(t.state.Seen))
	for ch := range t.state.Seen {
		ids = append(ids, ch)
	}
	slices.SortFunc(ids, func(a, b string) int { return order(t.state.Seen[a], t.state.Seen[b]) })
	for _, ch := range ids[:len(ids)-maxSeen*9/10] {
		delete(t.state.Seen, ch)
		delete(t.state.Direct, ch)
	}
}

func (t *track) forget(channel string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.state.Seen, channel)
	delete(t.state.Direct, channel)
	t.changed = true
}

// maxGap is how far back messages are fetched: what is older nobody waits for any more.
const maxGap = 24 * time.Hour

// after is from where a channel is to be read after a gap that began at horizon.
func (t *track) after(channel, horizon string, now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := or(t.state.Seen[channel], horizon)
	if oldest := snowflakeAt(now.Add(-maxGap)); newer(oldest, from) {
		return oldest
	}
	return from
}

// snowflakeAt is the least id of a time (docs.discord.com/developers/reference#snowflakes).
func snowflakeAt(t time.Time) string {
	return strconv.FormatInt(max(0, t.UnixMilli()-1420070400000)<<22, 10)
}

// directs are the direct messages seen, and the horizon.
func (t *track) directs() (ids []string, horizon string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ch := range t.state.Direct {
		ids = append(ids, ch)
	}
	slices.Sort(ids)
	return ids, t.state.Horizon
}

// order compares snowflakes, which are numbers; newer reports whether a is greater than b.
func order(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func newer(a, b string) bool { return order(a, b) > 0 }

// maxOurs bounds the messages of our own that are remembered.
const maxOurs = 2000

// ours are the last messages the bot sent: their deletion is no recall.
type ours struct {
	mu  sync.Mutex
	ids map[string]bool
	all []string
}

func (o *ours) add(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = map[string]bool{}
	}
	if o.ids[id] {
		return
	}
	o.ids[id] = true
	if o.all = append(o.all, id); len(o.all) > maxOurs {
		delete(o.ids, o.all[0])
		o.all = o.all[1:]
	}
}

func (o *ours) has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ids[id]
}
