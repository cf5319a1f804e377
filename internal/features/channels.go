package features

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/discord"
	"deerbot/channels/slack"
	"deerbot/channels/telegram"
	"deerbot/channels/web"
)

// ability is an optional interface of package channels; its words are its comment.
type ability struct {
	name string
	has  func(channels.Channel) bool
}

func is[T any](c channels.Channel) bool {
	_, ok := c.(T)
	return ok
}

var abilities = []ability{
	{"Typer", is[channels.Typer]},
	{"Deleter", is[channels.Deleter]},
	{"FileSender", is[channels.FileSender]},
	{"FileFetcher", is[channels.FileFetcher]},
	{"CommandRegistrar", is[channels.CommandRegistrar]},
	{"ActionAnswerer", is[channels.ActionAnswerer]},
	{"Finder", is[channels.Finder]},
	{"HealthReporter", is[channels.HealthReporter]},
}

// channelTable compares the channels. They are made as the daemon makes them and never run.
func channelTable(b *strings.Builder, d dirs) error {
	list, err := allChannels(d)
	if err != nil {
		return err
	}
	words, err := d.comments("channels")
	if err != nil {
		return err
	}
	b.WriteString("## Channels\n\n")
	head := []string{""}
	for _, c := range list {
		head = append(head, c.Name())
	}
	var rows [][]string
	add := func(what string, cell func(channels.Channel) string) {
		row := []string{what}
		for _, c := range list {
			row = append(row, cell(c))
		}
		rows = append(rows, row)
	}
	for _, a := range abilities {
		w := words[a.name]
		if w == "" {
			return fmt.Errorf("channels.%s has no comment", a.name)
		}
		add(w, func(c channels.Channel) string { return mark(a.has(c)) })
	}
	add("sent messages can be edited", func(c channels.Channel) string { return mark(c.Capabilities().Edits) })
	add("dialect of Markdown", func(c channels.Channel) string { return c.Capabilities().Dialect.Name() })
	add("a file out, at most", func(c channels.Channel) string { return bytesText(c.Capabilities().MaxFile) })
	add("calls in a private chat", func(c channels.Channel) string { return paceText(c, "1") })
	add("calls in a group", func(c channels.Channel) string { return paceText(c, "-1") })
	add("no call can be lost on the way", func(c channels.Channel) string { return mark(c.Capabilities().Loopback) })
	table(b, head, rows)
	return nil
}

// allChannels makes one of each kind, offline.
func allChannels(d dirs) ([]channels.Channel, error) {
	tg, err1 := telegram.New(telegram.Config{Token: "1:none", Dialect: cards.Telegram()})
	sl, err3 := slack.New(slack.Config{BotToken: "xoxb-none", AppToken: "xapp-none", Dialect: cards.Slack()})
	dc, err4 := discord.New(discord.Config{Token: "MQ.none.none", Dialect: cards.Discord()})
	w, err2 := web.New(web.Config{Log: struct{ web.Log }{}, FilesDir: d.scratch, Dialect: cards.Web()})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return []channels.Channel{w, tg, sl, dc}, nil
}

func mark(yes bool) string {
	if yes {
		return "yes"
	}
	return "–"
}

func bytesText(n int64) string {
	switch {
	case n == 0:
		return "no files"
	case n >= 1<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// paceText is the budget of a place. Telegram's groups have negative ids; where there is one kind of place it is the same.
func paceText(c channels.Channel, chat string) string {
	pace := c.Capabilities().Pace
	if pace == nil {
		return "unlimited"
	}
	p := pace(channels.Place{Channel: c.Name(), Chat: chat})
	var out []string
	if p.Gap > 0 {
		out = append(out, "one in "+p.Gap.Round(time.Millisecond).String())
	}
	if p.PerMinute > 0 {
		out = append(out, fmt.Sprintf("%d a minute", p.PerMinute))
	}
	if p.PerSecond > 0 {
		out = append(out, fmt.Sprintf("%.3g a second over all chats", p.PerSecond))
	}
	return strings.Join(out, ", ")
}
