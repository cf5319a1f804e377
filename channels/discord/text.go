package discord

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/bwmarrin/discordgo"
)

// addressed is a text with what its mentions say about whom it is for.
type addressed struct {
	text        string // without the bot's own mentions, trimmed
	mentioned   bool
	otherFirst  bool
	leadingCode bool
}

// token is what Discord reads in a text: a mention, a custom emoji, a time, a command. Code is found first, as nothing is
// read in it.
var token = regexp.MustCompile("(?s)```.*?```|``.*?``|`[^`\n]*`|" +
	`<@!?(\d{1,20})>|<@&(\d{1,20})>|<#(\d{1,20})>|<a?(:\w{1,64}:)\d{1,20}>|<(/[^<>\n:]{1,100}):\d{1,20}>`)

// addressing reads the mentions of m, which are ids; names are looked up for those who read.
func (c *Channel) addressing(m *message) addressed {
	var me account
	if a := c.me.Load(); a != nil {
		me = *a
	}
	s := m.Content
	var a addressed
	var b strings.Builder
	first, at := true, 0
	for _, x := range token.FindAllStringSubmatchIndex(s, -1) {
		group := func(i int) string {
			if x[2*i] < 0 {
				return ""
			}
			return s[x[2*i]:x[2*i+1]]
		}
		user, roleID, ch, emoji, cmd := group(1), group(2), group(3), group(4), group(5)
		if user == "" && roleID == "" && ch == "" && emoji == "" && cmd == "" {
			continue // code
		}
		b.WriteString(s[at:x[0]])
		at = x[1]
		mine, other, show := false, false, ""
		switch {
		case user != "":
			mine, other, show = user == me.id, user != me.id, "@"+nameOf(m.Mentions, user)
		case roleID != "":
			r, _ := c.names.role(roleID)
			// The role that Discord makes for the bot has its name, and people pick it for the bot.
			mine = r.Tags.BotID != "" && r.Tags.BotID == me.id
			other, show = !mine, "@"+or(r.Name, "role "+roleID)
		case ch != "":
			name := ch
			if r := c.names.room(ch); r != nil && r.Name != "" {
				name = r.Name
			}
			show = "#" + name
		default:
			show = emoji + cmd
		}
		if !mine {
			b.WriteString(show)
			a.otherFirst = a.otherFirst || first && other
			first = first && !other
			continue
		}
		a.mentioned, first = true, false
		// One of the two spaces around goes with the mention.
		if (b.Len() == 0 || blankEnd(b.String())) && at < len(s) && (s[at] == ' ' || s[at] == '\n') {
			at++
		}
	}
	b.WriteString(s[at:])
	a.text = strings.TrimSpace(b.String())
	a.leadingCode = strings.HasPrefix(a.text, "`") || strings.HasPrefix(a.text, "> ") || strings.HasPrefix(a.text, ">>> ")
	return a
}

func blankEnd(s string) bool { return s != "" && unicode.IsSpace(rune(s[len(s)-1])) }

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func nameOf(users []*mention, id string) string {
	for _, u := range users {
		if u != nil && u.ID == id {
			return displayName(&u.User, u.Member)
		}
	}
	return id
}

// displayName is what people see: the name in the guild, the account's, the handle.
func displayName(u *discordgo.User, m *member) string {
	if m != nil && m.Nick != "" {
		return m.Nick
	}
	return or(u.GlobalName, u.Username)
}
