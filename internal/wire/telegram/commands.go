package telegram

import (
	"encoding/json"
	"regexp"
	"slices"
	"unicode/utf8"
)

// Command is a registered command.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func scopeKey(c *request) (string, *apiError) {
	scope := struct {
		Type string `json:"type"`
	}{Type: "default"}
	if raw := c.text("scope"); raw != "" && (json.Unmarshal([]byte(raw), &scope) != nil || scope.Type == "") {
		return "", bad("can't parse BotCommandScope")
	}
	known := []string{"default", "all_private_chats", "all_group_chats", "all_chat_administrators"}
	if !slices.Contains(known, scope.Type) {
		return "", bad("can't parse BotCommandScope: unsupported type specified")
	}
	return scope.Type + "/" + c.text("language_code"), nil
}

// setCommands checks as core.telegram.org/bots/api#setmycommands says.
func (s *Server) setCommands(c *request) (any, *apiError) {
	key, e := scopeKey(c)
	if e != nil {
		return nil, e
	}
	var cmds []Command
	if json.Unmarshal([]byte(c.text("commands")), &cmds) != nil {
		return nil, bad("can't parse commands JSON object")
	}
	if len(cmds) > 100 {
		return nil, bad("BOT_COMMANDS_TOO_MUCH")
	}
	for _, cmd := range cmds {
		n := utf8.RuneCountInString(cmd.Description)
		switch {
		case !commandName.MatchString(cmd.Command):
			return nil, bad("BOT_COMMAND_INVALID")
		case n < 1 || n > 256:
			return nil, bad("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[key] = cmds
	s.changed.fire()
	return true, nil
}

func (s *Server) getCommands(c *request) (any, *apiError) {
	key, e := scopeKey(c)
	if e != nil {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cmds := s.commands[key]; cmds != nil {
		return cmds, nil
	}
	return []Command{}, nil
}

// Commands are the commands registered for a scope (default, all_private_chats …) and language ("" for all).
func (s *Server) Commands(scope, language string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands[scope+"/"+language])
}
