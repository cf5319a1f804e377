package commands

import (
	"context"
	"fmt"
	"strings"

	"deerbot/cards/phrase"
	"deerbot/config/nearest"
)

func handleHelp(_ context.Context, s Session, args string) (Reply, error) {
	if args == "" {
		return Reply{Markdown: helpList(s.Lang(), s.Who().Role)}, nil
	}
	l := s.Lang()
	name := strings.TrimLeft(strings.Fields(args)[0], "/／!！")
	spec, ok := Lookup(name)
	if !ok {
		near, _ := nearest.Word(name, names())
		return Unknown(l, name, near), nil
	}
	return Reply{Markdown: helpOne(l, spec)}, nil
}

// helpList lists the commands that role may use, by group.
func helpList(l phrase.Lang, role string) string {
	var b strings.Builder
	b.WriteString(msgHelpIntro.In(l) + "\n")
	for _, g := range []Group{GroupConversation, GroupRun, GroupModel, GroupAbout} {
		fmt.Fprintf(&b, "\n**%s**\n\n", groupTitles[g].In(l))
		for _, spec := range registry {
			if spec.Group == g && allowed(spec.Role, role) {
				fmt.Fprintf(&b, "- `%s` %s\n", spec.Usage(), spec.Short.In(l))
			}
		}
	}
	b.WriteString("\n" + msgHelpMore.In(l))
	return b.String()
}

// helpOne explains one command.
func helpOne(l phrase.Lang, spec Spec) string {
	parts := []string{"`" + spec.Usage() + "` · " + spec.Short.In(l), spec.Long.In(l)}
	last := msgAfterRun.In(l)
	if spec.DuringRun {
		last = msgDuringRun.In(l)
	}
	if len(spec.Aliases) > 0 {
		last = sentences(l, last, msgAliases.In(l, "`/"+strings.Join(spec.Aliases, "`, `/")+"`"))
	}
	return strings.Join(append(parts, last), "\n\n")
}
