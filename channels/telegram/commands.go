package telegram

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/go-telegram/bot/models"

	"deerbot/channels"
)

// commandName is what Telegram takes (core.telegram.org/bots/api#botcommand).
var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

// maxDescription is in characters (core.telegram.org/bots/api#botcommand).
const maxDescription = 256

// scopes get the same commands, so that a list set for one of them by another program does not hide ours.
var scopes = []string{"default", "all_private_chats", "all_group_chats"}

// RegisterCommands implements channels.CommandRegistrar. The English texts are those of every language but Chinese.
// Commands whose names Telegram does not take are left out; they work when typed.
func (c *Channel) RegisterCommands(ctx context.Context, cmds []channels.CommandInfo) error {
	type scope struct {
		Type string `json:"type"`
	}
	for _, s := range scopes {
		for _, lang := range []string{"", "zh"} {
			list := c.commandList(cmds, lang)
			if len(list) == 0 {
				continue
			}
			err := c.call(ctx, "setMyCommands", struct {
				Commands []models.BotCommand `json:"commands"`
				Scope    scope               `json:"scope"`
				Language string              `json:"language_code,omitempty"`
			}{list, scope{s}, lang}, nil)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Channel) commandList(cmds []channels.CommandInfo, lang string) []models.BotCommand {
	var list []models.BotCommand
	for _, cmd := range cmds {
		taken := slices.ContainsFunc(list, func(b models.BotCommand) bool { return b.Command == cmd.Name })
		text := strings.TrimSpace(cmd.Description[lang])
		if text == "" {
			text = strings.TrimSpace(cmd.Description["en"])
		}
		if !commandName.MatchString(cmd.Name) || taken || text == "" {
			c.log.Debug("a command is not registered", "command", cmd.Name)
			continue
		}
		if len(list) == maxCommands {
			c.log.Debug("too many commands to register", "first_left_out", cmd.Name)
			break
		}
		list = append(list, models.BotCommand{Command: cmd.Name, Description: shorten(text, maxDescription)})
	}
	return list
}
