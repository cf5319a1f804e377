package slack

import (
	"strings"
)

// spoken is a text as a person wrote it.
type spoken struct {
	text        string
	mentioned   bool
	otherFirst  bool
	leadingCode bool
}

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// decode turns Slack's text into what was written: entities, links and names resolved, the bot's own mention removed.
// name resolves a user's id, channel a channel's.
func decode(s, me string, name, channel func(id string) string) spoken {
	var out spoken
	var b strings.Builder
	other := false // somebody else was mentioned before the bot
	for s != "" {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		j := strings.IndexByte(s[i:], '>')
		if j < 0 {
			break
		}
		b.WriteString(entities.Replace(s[:i]))
		token := s[i+1 : i+j]
		s = s[i+j+1:]
		if k := strings.LastIndexByte(token, '<'); k >= 0 { // a bare <
			b.WriteString("<" + token[:k])
			token = token[k+1:]
		}
		target, label, _ := strings.Cut(token, "|")
		switch {
		case me != "" && target == "@"+me:
			out.mentioned = true
			if strings.TrimSpace(b.String()) == "" { // "@deer: do it"
				s = strings.TrimLeft(s, " ")
				if len(s) > 1 && (s[0] == ':' || s[0] == ',') {
					s = s[1:]
				}
			}
			if str := b.String(); str == "" || strings.HasSuffix(str, " ") || strings.HasSuffix(str, "\n") {
				s = strings.TrimLeft(s, " ")
			}
		case strings.HasPrefix(target, "@") && len(target) > 1:
			if !out.mentioned {
				other = true
			}
			b.WriteString("@" + strings.TrimPrefix(name(target[1:]), "@"))
		case strings.HasPrefix(target, "!subteam^"):
			if !out.mentioned {
				other = true
			}
			if label == "" {
				label = strings.TrimPrefix(target, "!subteam^")
			}
			b.WriteString("@" + strings.TrimPrefix(entities.Replace(label), "@"))
		case strings.HasPrefix(target, "#") && len(target) > 1:
			if label == "" {
				label = first(channel(target[1:]), target[1:])
			}
			b.WriteString("#" + entities.Replace(label))
		case strings.HasPrefix(target, "!date^"):
			b.WriteString(entities.Replace(label))
		case target == "!channel", target == "!here", target == "!everyone":
			b.WriteString("@" + target[1:])
		case strings.HasPrefix(target, "!"):
			b.WriteString(entities.Replace(first(label, target[1:])))
		case strings.Contains(target, ":"):
			b.WriteString(readable(entities.Replace(target), entities.Replace(label)))
		default:
			b.WriteString("<" + entities.Replace(token) + ">")
		}
	}
	b.WriteString(entities.Replace(s))
	out.text = strings.TrimSpace(b.String())
	out.otherFirst = other
	out.leadingCode = strings.HasPrefix(out.text, "`") || strings.HasPrefix(out.text, ">")
	return out
}

// readable is a link as one reads it: its address, after its text where that differs.
func readable(target, label string) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(target, "mailto:"), "tel:"), "https://"), "http://")
	if label == "" || label == target || strings.TrimSuffix(label, "/") == strings.TrimSuffix(bare, "/") {
		if strings.HasPrefix(target, "mailto:") || strings.HasPrefix(target, "tel:") {
			return bare
		}
		if label == bare && label != target { // typed without a scheme
			return label
		}
		return target
	}
	return label + " (" + target + ")"
}
