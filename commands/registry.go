package commands

import (
	"context"
	"slices"
	"strings"

	"deerbot/cards/phrase"
	"deerbot/channels"
)

// Group sorts commands in /help.
type Group string

// Groups, in the order of /help.
const (
	GroupConversation Group = "conversation"
	GroupRun          Group = "run"
	GroupModel        Group = "model"
	GroupAbout        Group = "about"
)

// Spec is one command of the registry.
type Spec struct {
	Name    string
	Aliases []string
	Args    string // usage of the arguments, "" for none: <needed> [optional]
	Group   Group
	Short   phrase.Phrase // one line
	Long    phrase.Phrase // what /help <name> adds
	// DuringRun says that the command does something while a run is active. Every other one then says why it does not.
	DuringRun bool
	// Role is the least role that may use it; "" is everybody the gate lets in.
	Role string

	handle func(ctx context.Context, s Session, args string) (Reply, error)
}

// Usage is how the command is typed.
func (s Spec) Usage() string {
	if s.Args == "" {
		return "/" + s.Name
	}
	return "/" + s.Name + " " + s.Args
}

// registry is filled in init, because /help, one of its entries, reads it.
var registry []Spec

func init() {
	registry = []Spec{
		{Name: "new", Args: "[title]", Group: GroupConversation, Short: shortNew, Long: longNew, DuringRun: true, handle: handleNew},
		{Name: "retry", Group: GroupConversation, Short: shortRetry, Long: longRetry, handle: handleRetry},
		{Name: "files", Args: "[number]", Group: GroupConversation, Short: shortFiles, Long: longFiles, DuringRun: true, handle: handleFiles},
		{Name: "stop", Aliases: []string{"cancel"}, Group: GroupRun, Short: shortStop, Long: longStop, DuringRun: true, handle: handleStop},
		{Name: "status", Group: GroupRun, Short: shortStatus, Long: longStatus, DuringRun: true, handle: handleStatus},
		{Name: "models", Group: GroupModel, Short: shortModels, Long: longModels, DuringRun: true, handle: handleModels},
		{Name: "model", Args: "[name]", Group: GroupModel, Short: shortModel, Long: longModel, DuringRun: true, handle: handleModel},
		{Name: "whoami", Group: GroupAbout, Short: shortWhoami, Long: longWhoami, DuringRun: true, handle: handleWhoami},
		{Name: "help", Aliases: []string{"start"}, Args: "[command]", Group: GroupAbout, Short: shortHelp, Long: longHelp, DuringRun: true, handle: handleHelp},
	}
}

// Commands lists the registry in the order of /help.
func Commands() []Spec { return append([]Spec(nil), registry...) }

// Lookup finds a command by name or alias, whatever the case.
func Lookup(name string) (Spec, bool) {
	name = strings.ToLower(name)
	for _, s := range registry {
		if s.Name == name || slices.Contains(s.Aliases, name) {
			return s, true
		}
	}
	return Spec{}, false
}

// names lists names and aliases.
func names() []string {
	var out []string
	for _, s := range registry {
		out = append(append(out, s.Name), s.Aliases...)
	}
	return out
}

// Infos lists the commands for native registration on a platform.
func Infos() []channels.CommandInfo {
	out := make([]channels.CommandInfo, 0, len(registry))
	for _, s := range registry {
		en, zh := s.Short.Texts()
		out = append(out, channels.CommandInfo{
			Name: s.Name, Args: s.Args, Description: map[string]string{string(phrase.EN): en, string(phrase.ZH): zh},
		})
	}
	return out
}

// Handle carries out c on s. The error is for the log; the reply then says in words what happened.
func Handle(ctx context.Context, s Session, c Command) (Reply, error) {
	spec, ok := Lookup(c.Name)
	if !ok {
		return Unknown(s.Lang(), c.Name, ""), nil
	}
	if !allowed(spec.Role, s.Who().Role) {
		return Reply{Markdown: msgNotAllowed.In(s.Lang(), spec.Name), Private: true}, nil
	}
	r, err := spec.handle(ctx, s, c.Args)
	if err != nil && r.Markdown == "" {
		r.Markdown = msgFailed.In(s.Lang(), spec.Name)
	}
	return r, err
}

// allowed reports whether a sender of role have may use what needs role need.
func allowed(need, have string) bool {
	rank := map[string]int{RoleOperator: 3, RoleOwner: 2, RoleMember: 1}
	return rank[have] >= rank[need]
}

// Unknown answers a command that does not exist. near is the one that was probably meant, "" for none.
func Unknown(l phrase.Lang, typed, near string) Reply {
	typed = cut(sanitize(typed), 40)
	if near != "" {
		return Reply{Markdown: msgUnknownNear.In(l, typed, near)}
	}
	return Reply{Markdown: msgUnknown.In(l, typed)}
}
