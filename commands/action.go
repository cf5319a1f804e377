package commands

import "strings"

// actionPrefix marks button actions that stand for a command.
const actionPrefix = "cmd:"

// maxAction is the longest action of a button, in bytes (Telegram's callback_data).
const maxAction = 64

// Action returns the action of a button that does what typing c does; ok is false when it is too long for a button.
func Action(c Command) (action string, ok bool) {
	action = actionPrefix + c.Name
	if c.Args != "" {
		action += " " + c.Args
	}
	return action, len(action) <= maxAction
}

// ParseAction returns the command behind a pressed button, if there is one.
func ParseAction(action string) (Command, bool) {
	text, ok := strings.CutPrefix(action, actionPrefix)
	if !ok {
		return Command{}, false
	}
	name, args, _ := strings.Cut(text, " ")
	spec, ok := Lookup(name)
	return Command{Name: spec.Name, Args: args}, ok
}
