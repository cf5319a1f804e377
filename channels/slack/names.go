package slack

import (
	"context"
	"strings"
	"sync"
	"time"

	"deerbot/channels"
)

// How long names are kept, and how long is waited after a look-up that failed.
const (
	nameFor  = time.Hour
	retryFor = time.Minute
	maxNames = 10_000
)

// person is what is known of a user.
type person struct {
	name, handle, locale string
	bot                  bool
	until                time.Time
}

// conversation is what is known of a channel.
type conversation struct {
	name  string
	until time.Time
}

// names caches who and what ids are.
type names struct {
	mu     sync.Mutex
	people map[string]person
	convs  map[string]conversation
}

func newNames() *names { return &names{people: map[string]person{}, convs: map[string]conversation{}} }

// person looks a user up. When Slack does not answer in time the id stands for the name.
func (c *Channel) person(ctx context.Context, id string) person {
	n, now := c.names, c.now()
	n.mu.Lock()
	p, ok := n.people[id]
	n.mu.Unlock()
	if ok && now.Before(p.until) {
		return p
	}
	var out struct {
		User struct {
			Name     string `json:"name"`
			RealName string `json:"real_name"`
			Locale   string `json:"locale"`
			IsBot    bool   `json:"is_bot"`
			Profile  struct {
				Display  string `json:"display_name"`
				RealName string `json:"real_name"`
			} `json:"profile"`
		} `json:"user"`
	}
	err := c.call(ctx, "users.info", params{"user": id, "include_locale": "true"}, &out)
	u := out.User
	switch {
	case err != nil && ok: // an old name is better than none
		p.until = now.Add(retryFor)
	case err != nil:
		c.log.Debug("a name cannot be looked up", "user", id, "error", err)
		p = person{name: id, until: now.Add(retryFor)}
	default:
		p = person{
			name:   first(u.Profile.Display, u.Profile.RealName, u.RealName, u.Name, id),
			handle: u.Name, locale: strings.ToLower(u.Locale), bot: u.IsBot, until: now.Add(nameFor),
		}
	}
	n.mu.Lock()
	if len(n.people) >= maxNames {
		clear(n.people)
	}
	n.people[id] = p
	n.mu.Unlock()
	return p
}

// title looks up the name of a channel; "" when it has none or cannot be seen.
func (c *Channel) title(ctx context.Context, id string) string {
	if isDM(id) {
		return ""
	}
	n, now := c.names, c.now()
	n.mu.Lock()
	v, ok := n.convs[id]
	n.mu.Unlock()
	if ok && now.Before(v.until) {
		return v.name
	}
	var out struct {
		Channel struct {
			Name string `json:"name"`
		} `json:"channel"`
	}
	err := c.call(ctx, "conversations.info", params{"channel": id}, &out)
	keep := nameFor
	if err != nil {
		out.Channel.Name = v.name
		if !refused(err, "missing_scope") { // a scope does not come by itself
			keep = retryFor
		}
	}
	n.mu.Lock()
	if len(n.convs) >= maxNames {
		clear(n.convs)
	}
	n.convs[id] = conversation{out.Channel.Name, now.Add(keep)}
	n.mu.Unlock()
	return out.Channel.Name
}

func (c *Channel) sender(ctx context.Context, id string) channels.Sender {
	p := c.person(ctx, id)
	return channels.Sender{ID: id, Name: p.name, Handle: p.handle, Locale: p.locale, Bot: p.bot}
}

func isDM(channel string) bool { return strings.HasPrefix(channel, "D") }

func first(list ...string) string {
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}
