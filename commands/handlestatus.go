package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deerbot/cards/phrase"
)

// now is replaced in tests.
var now = time.Now

func handleStatus(ctx context.Context, s Session, _ string) (Reply, error) {
	st, err := s.Status(ctx)
	if err != nil {
		return Reply{}, fmt.Errorf("status: %w", err)
	}
	l := s.Lang()
	var b strings.Builder
	b.WriteString(runLine(l, st))
	b.WriteString("\n")
	item := func(text string) { b.WriteString("\n- " + text) }
	approx := ""
	if st.Estimated {
		approx = "~"
	}
	if st.Tokens > 0 {
		item(msgStatusSpent.In(l, approx+count(st.Tokens)))
	}
	if st.CostUSD > 0 {
		item(msgStatusCost.In(l, approx+money(st.CostUSD)))
	}
	if st.Queue > 0 {
		item(msgStatusQueue.In(l, st.Queue))
	}
	if st.Model != "" {
		item(msgStatusModel.In(l, sanitize(st.Model)))
	}
	if st.Title != "" {
		item(msgStatusTitle.In(l, escape(cut(sanitize(st.Title), 80)), st.ThreadID))
	} else if st.ThreadID != "" {
		item(msgStatusThread.In(l, st.ThreadID))
	}
	if p, ok := groupModes[st.Groups]; ok {
		item(msgStatusGroups.In(l, p.In(l)))
	}
	for _, c := range st.Channels {
		item(channelLine(l, c))
	}
	if st.RSS > 0 {
		item(msgStatusMemory.In(l, bytesText(st.RSS)))
	}
	item(msgStatusDaemon.In(l, st.Version, span(st.Uptime)))
	return Reply{Markdown: b.String()}, nil
}

func runLine(l phrase.Lang, st Status) string {
	switch st.Phase {
	case PhaseQueued:
		return msgStatusQueued.In(l, st.Position)
	case PhaseRunning:
		return msgStatusRunning.In(l, st.Step, span(st.Elapsed))
	case PhaseStopping:
		return msgStatusStopping.In(l)
	}
	return msgStatusIdle.In(l)
}

func channelLine(l phrase.Lang, c ChannelStatus) string {
	h := c.Health
	since := "?"
	if !h.Since.IsZero() {
		since = span(now().Sub(h.Since))
	}
	switch {
	case h.Trouble != "":
		return msgStatusTrouble.In(l, c.Name, since, escape(cut(sanitize(h.Trouble), 120)))
	case !h.Connected:
		return msgStatusDown.In(l, c.Name)
	case h.Since.IsZero():
		return msgStatusChannel.In(l, c.Name)
	}
	return msgStatusSince.In(l, c.Name, since)
}
