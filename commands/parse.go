package commands

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deerbot/config/nearest"
)

// Input is one inbound text with what the adapter knows about it.
type Input struct {
	Text string
	// BotName is the bot's own name on the platform, without @; "" where there is none.
	BotName string
	// LeadingCode says that Text begins inside code or a quote, where nothing is a command.
	LeadingCode bool
	// Mentioned says that the bot was mentioned in the text (the mention may be removed already).
	Mentioned bool
}

// Kind is what a text turned out to be.
type Kind string

// Kinds of texts.
const (
	KindMessage  Kind = "message"   // for the model
	KindCommand  Kind = "command"   // Command is set
	KindOtherBot Kind = "other_bot" // a command for another bot: no reply, no run
	KindUnknown  Kind = "unknown"   // meant as a command, but there is none of that name: Command.Name is what was typed
)

// Parsed is the result of [Parse].
type Parsed struct {
	Kind    Kind
	Command Command // of KindCommand; of KindUnknown with the name as typed
	Nearest string  // of KindUnknown: the command probably meant, "" when none is near
	// Addressed says that the text names this bot, by a mention or as /command@bot.
	Addressed bool
	// Text is the input without leading mentions of the bot and outer white space.
	Text string
}

// Command is one invocation.
type Command struct {
	Name string // canonical: lower case, aliases resolved
	Args string // everything after the name, outer white space removed, otherwise byte for byte
}

// Parse tells whether a text is a command. The grammar:
//
//	text    = { "@" BotName } command
//	command = ( "/" | "／" ) name [ "@" BotName ] [ white space args ]
//	        | ( "!" | "！" ) name [ "@" BotName ] [ white space args ]      known names only
//
// Case does not matter. White space is Unicode's, so a line break or a full-width space ends the name. A text that
// begins with a path (/usr/lib, //x, /tmp) is a message, and so is an unknown /word with more text after it, unless it is
// one slip away from a command. An unknown /word alone is reported as unknown, with the nearest command.
func Parse(in Input) Parsed {
	text, named := cutMentions(trim(in.Text), in.BotName)
	p := Parsed{Kind: KindMessage, Text: text, Addressed: in.Mentioned || named}
	if in.LeadingCode {
		return p
	}
	mark, size := utf8.DecodeRuneInString(text)
	bang := mark == '!' || mark == '！'
	if mark != '/' && mark != '／' && !bang {
		return p
	}
	word, args := text[size:], ""
	if i := strings.IndexFunc(word, isSpace); i >= 0 {
		word, args = word[:i], trim(word[i:])
	}

	name, bot, hasBot := strings.Cut(word, "@")
	if hasBot {
		if in.BotName == "" || !isWord(name) || !isWord(bot) {
			return p
		}
		if !strings.EqualFold(bot, strings.TrimPrefix(in.BotName, "@")) {
			if !bang {
				p.Kind = KindOtherBot
			}
			return p
		}
		p.Addressed = true
	}
	if spec, ok := Lookup(name); ok {
		p.Kind, p.Command = KindCommand, Command{Name: spec.Name, Args: args}
		return p
	}
	if bang {
		return p
	}
	bare := strings.TrimRightFunc(name, unicode.IsPunct) // "/stop." is a slip too
	if strings.Contains(name, "/") || !isWord(bare) || isPath(bare) {
		return p
	}
	near, distance := nearest.Word(bare, names())
	slip := near != "" && distance <= 1 && len(bare) > 3
	if args != "" && !slip {
		return p
	}
	p.Kind, p.Command, p.Nearest = KindUnknown, Command{Name: name, Args: args}, near
	return p
}

// cutMentions removes leading mentions of the bot.
func cutMentions(s, bot string) (rest string, named bool) {
	bot = strings.TrimPrefix(bot, "@")
	for bot != "" && len(s) > len(bot) && s[0] == '@' && strings.EqualFold(s[1:1+len(bot)], bot) {
		after := s[1+len(bot):]
		r, _ := utf8.DecodeRuneInString(after)
		if after != "" && !isSpace(r) && !strings.ContainsRune("/／!！,:，：", r) {
			break
		}
		s, named = trim(strings.TrimLeft(after, ",:，：")), true
	}
	return s, named
}

// commonPaths are directories people name alone; lower case.
var commonPaths = []string{
	"applications", "app", "bin", "boot", "data", "dev", "etc", "home", "lib", "lib64", "library", "media", "mnt", "opt",
	"private", "proc", "root", "run", "sbin", "snap", "srv", "sys", "system", "tmp", "users", "usr", "var", "volumes",
}

func isPath(name string) bool { return slices.Contains(commonPaths, strings.ToLower(name)) }

// isWord reports whether s could be the name of a command or a bot.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// isSpace is Unicode white space and the marks without width that editors and phones leave behind.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff' || r == '\u2060'
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }
