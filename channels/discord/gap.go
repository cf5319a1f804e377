package discord

import (
	"context"
	"encoding/json"
	"slices"

	"deerbot/channels"
)

// Bounds of what is fetched after a gap.
const (
	gapPage  = 100 // messages a call, the most Discord gives
	gapPages = 10  // of a channel
)

// catchUp reads the channels and threads of a guild in which something was written since the gap began. The guild tells
// the newest message of each, so channels never seen before are found too, and quiet ones cost nothing.
func (l *life) catchUp(ctx context.Context, g *guild) error {
	if l.missed == "" {
		return nil
	}
	var late []*room
	for _, r := range append(slices.Clone(g.Channels), g.Threads...) {
		if r.LastID != "" && newer(r.LastID, l.c.track.after(r.ID, l.missed, l.c.now())) {
			late = append(late, r)
		}
	}
	slices.SortFunc(late, func(a, b *room) int { return order(a.LastID, b.LastID) })
	if n := len(late) - maxSeen; n > 0 {
		l.c.log.Warn("more channels than can be read have messages from while discord was away", "left_out", n)
		late = late[n:]
	}
	for _, r := range late {
		if err := l.fetch(ctx, r.ID, g.ID); err != nil {
			return err
		}
	}
	return nil
}

// fetch reads what was written in a channel after the last message seen there, oldest first, and delivers it as if it
// came now. What cannot be read is left.
func (l *life) fetch(ctx context.Context, channel, guildID string) error {
	for page := range gapPages {
		after := l.c.track.after(channel, or(l.missed, "0"), l.c.now())
		var list []json.RawMessage
		err := l.try(ctx, "missed messages cannot be fetched: ", func() error {
			err := l.c.call(ctx, api{
				name: "list messages", method: "GET", path: "/channels/" + channel + "/messages?limit=100&after=" + after,
			}, &list)
			if err != nil && !passing(err) && !channels.IsFatal(err) {
				l.c.log.Info("missed messages are not fetched", "channel", channel, "error", err.Error())
				l.c.track.forget(channel)
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		slices.Reverse(list)
		for _, raw := range list {
			if guildID != "" { // lists do not say it
				var m map[string]json.RawMessage
				if json.Unmarshal(raw, &m) == nil {
					m["guild_id"], _ = json.Marshal(guildID)
					raw, _ = json.Marshal(m)
				}
			}
			if err := l.deliver(ctx, "MESSAGE_CREATE", raw); err != nil {
				return err
			}
		}
		if len(list) > 0 {
			l.c.log.Info("missed messages were fetched", "channel", channel, "messages", len(list))
		}
		if len(list) < gapPage {
			return nil
		}
		if page == gapPages-1 {
			l.c.log.Warn("more messages were missed than are fetched", "channel", channel)
		}
	}
	return nil
}
