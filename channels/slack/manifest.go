package slack

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"deerbot/channels"
)

// Scopes of the bot token: what each is for is in docs/slack.md.
var scopes = []string{
	"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "files:read", "files:write",
	"groups:history", "groups:read", "im:history", "im:read", "im:write", "metadata.message:read", "mpim:history", "mpim:read",
	"reactions:read", "reactions:write", "users:read",
}

// Events of the bot.
var events = []string{
	"app_mention", "message.channels", "message.groups", "message.im", "message.mpim",
}

// slashCommands are those of the manifest beside /deer itself, with their usage.
var slashCommands = []struct{ name, text, usage string }{
	{"new", "A fresh conversation", "[title]"},
	{"stop", "Stop what is running", ""},
	{"status", "What is running, and how far", ""},
	{"goal", "Show, set or clear the goal", "[text | clear]"},
	{"model", "Show or choose the model", "[name]"},
	{"usage", "Tokens and cost", "[today | week | month]"},
	{"help", "What deerbot can do here", "[command]"},
}

// Limits of the manifest.
const (
	maxAppName     = 35
	maxCommands    = 50
	maxDescription = 2000
	maxUsage       = 1000
)

type object = map[string]any

// Manifest is the app manifest as JSON, to paste at api.slack.com/apps under "From a manifest". name is the bot's name,
// "" is deer. More commands than the usual ones can be given.
func Manifest(name string, more ...channels.CommandInfo) []byte {
	if name = strings.TrimSpace(name); name == "" {
		name = "deer"
	}
	name = cut(name, maxAppName)
	commands := []object{{"command": "/deer", "description": "Ask deerbot", "usage_hint": "what to do", "should_escape": false}}
	known := map[string]bool{}
	add := func(name, text, usage string) {
		if known[name] || len(commands) == maxCommands || !commandName(name) {
			return
		}
		known[name] = true
		cmd := object{"command": "/deer-" + name, "description": cut(first(text, name), maxDescription), "should_escape": false}
		if usage != "" {
			cmd["usage_hint"] = cut(usage, maxUsage)
		}
		commands = append(commands, cmd)
	}
	for _, c := range slashCommands {
		add(c.name, c.text, c.usage)
	}
	for _, c := range more {
		add(c.Name, c.Description["en"], c.Args)
	}
	m := object{
		"display_information": object{"name": name, "description": "An agent for long work, in your channels"},
		"features": object{
			"app_home":       object{"home_tab_enabled": false, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false},
			"bot_user":       object{"display_name": name, "always_online": true},
			"assistant_view": object{"assistant_description": "Works on what you ask, for as long as it takes"},
			"slash_commands": commands,
		},
		"oauth_config": object{"scopes": object{"bot": slices.Clone(scopes)}},
		"settings": object{
			"event_subscriptions":    object{"bot_events": slices.Clone(events)},
			"interactivity":          object{"is_enabled": true},
			"org_deploy_enabled":     false,
			"socket_mode_enabled":    true,
			"token_rotation_enabled": false,
		},
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil
	}
	return buf.Bytes()
}

// commandName reports whether Slack takes name in a command.
func commandName(name string) bool {
	if name == "" || len(name) > 26 {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
