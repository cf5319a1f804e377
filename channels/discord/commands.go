package discord

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"deerbot/channels"
)

// commandName is what Discord takes of ours (docs.discord.com/developers/interactions/application-commands).
var commandName = regexp.MustCompile(`^[-_a-z0-9]{1,32}$`)

const maxDescription = 100

// argsOption is the one option of a command that takes arguments: what follows the name in a typed command.
const argsOption = "args"

var argsText = map[string]string{"en": "what to give the command", "zh": "命令的参数"}

type command struct {
	Name             string            `json:"name"`
	Description      string            `json:"description"`
	DescriptionLocal map[string]string `json:"description_localizations,omitempty"`
	Type             int               `json:"type"`
	Options          []option          `json:"options,omitempty"`
}

type option struct {
	Type             int               `json:"type"`
	Name             string            `json:"name"`
	Description      string            `json:"description"`
	DescriptionLocal map[string]string `json:"description_localizations,omitempty"`
	Required         bool              `json:"required,omitempty"`
}

// RegisterCommands implements channels.CommandRegistrar. Discord is told only when its list differs: it allows 200 new
// commands a day. Commands whose names it does not take are left out; they work when typed.
func (c *Channel) RegisterCommands(ctx context.Context, cmds []channels.CommandInfo) error {
	if c.scope == "off" {
		return nil
	}
	app, err := c.application(ctx)
	if err != nil {
		return err
	}
	want := c.commandList(cmds)
	text, err := json.Marshal(want)
	if err != nil {
		return wrong("register commands", err.Error())
	}
	c.cmu.Lock()
	defer c.cmu.Unlock()
	if c.registered == string(text) {
		return nil
	}
	path := "/applications/" + app + "/commands"
	if c.scope != "" {
		path = "/applications/" + app + "/guilds/" + c.scope + "/commands"
	}
	var have []command
	if err := c.call(ctx, api{name: "list commands", method: "GET", path: path + "?with_localizations=true"}, &have); err != nil {
		return err
	}
	if !same(have, want) {
		if err := c.call(ctx, api{name: "register commands", method: "PUT", path: path, body: want}, nil); err != nil {
			return err
		}
		c.log.Info("commands are registered with discord", "commands", len(want), "guild", c.scope)
	}
	c.registered = string(text)
	return nil
}

// same compares lists without their order.
func same(a, b []command) bool {
	text := func(list []command) string {
		list = slices.SortedFunc(slices.Values(list), func(x, y command) int { return strings.Compare(x.Name, y.Name) })
		b, _ := json.Marshal(list)
		return string(b)
	}
	return text(a) == text(b)
}

// application is the id of the bot's application.
func (c *Channel) application(ctx context.Context) (string, error) {
	if me := c.me.Load(); me != nil && me.app != "" {
		return me.app, nil
	}
	var a struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, api{name: "get application", method: "GET", path: "/applications/@me"}, &a); err != nil {
		return "", err
	}
	return a.ID, validID("get application", a.ID)
}

func (c *Channel) commandList(cmds []channels.CommandInfo) []command {
	list := []command{}
	for _, cmd := range cmds {
		taken := slices.ContainsFunc(list, func(o command) bool { return o.Name == cmd.Name })
		text, local := described(cmd.Description)
		if !commandName.MatchString(cmd.Name) || taken || text == "" {
			c.log.Debug("a command is not registered", "command", cmd.Name)
			continue
		}
		if len(list) == maxCommands {
			c.log.Debug("too many commands to register", "first_left_out", cmd.Name)
			break
		}
		k := command{Name: cmd.Name, Description: text, DescriptionLocal: local, Type: int(discordgo.ChatApplicationCommand)}
		if cmd.Args != "" {
			text, local := described(argsText)
			if usage := shorten(cmd.Args, maxDescription); usage != "" {
				text = usage
				local = nil
			}
			k.Options = []option{{
				Type: int(discordgo.ApplicationCommandOptionString), Name: argsOption, Description: text, DescriptionLocal: local,
				Required: strings.HasPrefix(cmd.Args, "<"),
			}}
		}
		list = append(list, k)
	}
	return list
}

// described is the English text and the Chinese ones, cut to what Discord takes.
func described(m map[string]string) (string, map[string]string) {
	text := shorten(strings.TrimSpace(m["en"]), maxDescription)
	zh := shorten(strings.TrimSpace(m["zh"]), maxDescription)
	if zh == "" {
		return text, nil
	}
	if text == "" {
		text = zh
	}
	return text, map[string]string{string(discordgo.ChineseCN): zh, string(discordgo.ChineseTW): zh}
}
