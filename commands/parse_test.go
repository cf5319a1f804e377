package commands

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const bot = "My_Bot"

func command(name, args string) Parsed {
	return Parsed{Kind: KindCommand, Command: Command{Name: name, Args: args}}
}

func unknown(name, near string) Parsed {
	return Parsed{Kind: KindUnknown, Command: Command{Name: name}, Nearest: near}
}

var message = Parsed{Kind: KindMessage}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Parsed
	}{
		{"/new", command("new", "")},
		{"/NEW", command("new", "")},
		{"  /new  ", command("new", "")},
		{"/new a b", command("new", "a b")},
		{"/cancel", command("stop", "")},
		{"/start", command("help", "")},
		{"／new", command("new", "")},
		{"／NEW　标题", command("new", "标题")},
		{"!new x", command("new", "x")},
		{"！stop", command("stop", "")},
		{"\ufeff/new", command("new", "")},
		{"/new\u200b", command("new", "")},
		{"/model GPT-Large", command("model", "GPT-Large")},

		{"", message},
		{" ", message},
		{"/", message},
		{"!", message},
		{"//", message},
		{"/ new", message},
		{"new", message},
		{"see /new", message},
		{"!important", message},
		{"!important do it", message},
		{"!!", message},
		{"! new", message},
		{"/new/x", message},
		{"/new: start", message},
		{"/1+1", message},
		{"`/new`", message},
		{"> /new", message},
		{"/usr/lib", message},
		{"/usr", message},
		{"/HOME", message},
		{"/opt/", message},
		{"/translate this for me", message}, // perhaps a word of the person's own
		{"/net income of 2025", message},    // three letters are near too much

		{"/stopp", unknown("stopp", "stop")},
		{"/stop.", unknown("stop.", "stop")},
		{"/stop!", unknown("stop!", "stop")},
		{"/sotp", unknown("sotp", "stop")},
		{"/STATU", unknown("STATU", "status")},
		{"/translate", unknown("translate", "")},
		{"/停止", unknown("停止", "")},
		{"/stopp now", Parsed{Kind: KindUnknown, Command: Command{Name: "stopp", Args: "now"}, Nearest: "stop"}},
		{"/modle x", Parsed{Kind: KindUnknown, Command: Command{Name: "modle", Args: "x"}, Nearest: "model"}},
	} {
		got := Parse(Input{Text: tt.text, BotName: bot})
		got.Text = ""
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, d)
		}
	}
}

// TestC072_CommandWithBotName: /cmd@bot is ours whatever the case, and another bot's is nobody's business.
func TestC072_CommandWithBotName(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Parsed
	}{
		{"/new@my_bot", command("new", "")},
		{"/NEW@My_Bot hello", command("new", "hello")},
		{"/new@OtherBot", Parsed{Kind: KindOtherBot}},
		{"/new@my_bot_2", Parsed{Kind: KindOtherBot}},
		{"/anything@OtherBot with text", Parsed{Kind: KindOtherBot}},
		{"/stopp@my_bot", unknown("stopp", "stop")},
		{"!new@my_bot", command("new", "")},
		{"!new@OtherBot", message},
		{"/new@", message},
		{"/@my_bot", message},
		{"/home@host:/tmp is gone", message},
	} {
		got := Parse(Input{Text: tt.text, BotName: bot})
		if wantAddressed := tt.want.Kind != KindOtherBot && strings.Contains(strings.ToLower(tt.text), "@my_bot") && tt.want.Kind != KindMessage; got.Addressed != wantAddressed {
			t.Errorf("%q: addressed %v", tt.text, got.Addressed)
		}
		got.Text, got.Addressed = "", false
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, d)
		}
	}
	if got := Parse(Input{Text: "/new@somebody"}); got.Kind != KindMessage {
		t.Errorf("where bots have no names: %v", got.Kind)
	}
}

// TestC074_AnyWhiteSpaceSeparates: one function finds the end of the name and the start of the arguments.
func TestC074_AnyWhiteSpaceSeparates(t *testing.T) {
	for text, want := range map[string]Parsed{
		"/new\nQuarterly plan":      command("new", "Quarterly plan"),
		"/help\tstop":               command("help", "stop"),
		"/model\u00a0model-x":       command("model", "model-x"),
		"/model\u3000model-x":       command("model", "model-x"),
		"/model\u2003\r\nmodel-x":   command("model", "model-x"),
		"/model\u2028model-x\u00a0": command("model", "model-x"),
	} {
		got := Parse(Input{Text: text})
		got.Text = ""
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

// TestC075_MultiLineArguments: everything after the name arrives byte for byte.
func TestC075_MultiLineArguments(t *testing.T) {
	for text, want := range map[string]string{
		"/new line1\nline2\n\nline4": "line1\nline2\n\nline4",
		"/new\n - a\n - b":           "- a\n - b",
		"/new a  b\t\xffc\n":         "a  b\t\xffc",
	} {
		if got := Parse(Input{Text: text}); got.Kind != KindCommand || got.Command.Args != want {
			t.Errorf("%q: %q", text, got.Command.Args)
		}
	}
}

// TestC076_MessageThatBeginsWithAPath: paths go to the model, a slip of a command is not carried out.
func TestC076_MessageThatBeginsWithAPath(t *testing.T) {
	for _, text := range []string{"/etc/hosts is missing, why?", "/Users/me/a.md:45-46 fix", "/tmp", "// comment", "/tmp is full", "/etc", "/dev/null"} {
		if got := Parse(Input{Text: text}); got.Kind != KindMessage || got.Text != text {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := Parse(Input{Text: "/stopp"}); got.Kind != KindUnknown || got.Nearest != "stop" {
		t.Errorf("/stopp: %+v", got)
	}
}

// TestC078_MentionBeforeTheCommand: a leading mention of the bot, which an adapter removes or leaves as its name, hides
// no command. TestC079 is the same for rich text: adapters give one text for both.
func TestC078_MentionBeforeTheCommand(t *testing.T) {
	for text, want := range map[string]Parsed{
		"@My_Bot /new":               command("new", ""),
		"@my_bot/model x":            command("model", "x"),
		"  @My_Bot   /new  ":         command("new", ""),
		"@My_Bot, /new":              command("new", ""),
		"@My_Bot @My_Bot\n／new":      command("new", ""),
		"@My_Bot：/new":               command("new", ""),
		"@My_Bot":                    message,
		"@My_Bot what does /new do?": message,
		"@My_Bot_2 /new":             message,
		"@Other /new":                message,
	} {
		got := Parse(Input{Text: text, BotName: bot})
		if got.Addressed != (strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "@my_bot") && !strings.Contains(text, "_2")) {
			t.Errorf("%q: addressed %v", text, got.Addressed)
		}
		got.Text, got.Addressed = "", false
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
	if got := Parse(Input{Text: "@My_Bot what does /new do?", BotName: bot}); got.Text != "what does /new do?" {
		t.Errorf("text for the model: %q", got.Text)
	}
	if got := Parse(Input{Text: "hello", Mentioned: true}); !got.Addressed {
		t.Error("a removed mention was forgotten")
	}
}

func TestC079_RichTextMention(t *testing.T) {
	if got := Parse(Input{Text: " /new demo", Mentioned: true}); got.Kind != KindCommand || got.Command != (Command{"new", "demo"}) || !got.Addressed {
		t.Errorf("%+v", got)
	}
}

func TestParseLeadingCode(t *testing.T) {
	if got := Parse(Input{Text: "/new", LeadingCode: true}); got.Kind != KindMessage || got.Text != "/new" {
		t.Errorf("%+v", got)
	}
}

// checkParse holds what is true of every result.
func checkParse(t interface{ Fatalf(string, ...any) }, in Input) {
	p := Parse(in)
	if !strings.Contains(in.Text, p.Command.Args) || !strings.Contains(in.Text, p.Text) {
		t.Fatalf("%q: args %q or text %q are not in it", in.Text, p.Command.Args, p.Text)
	}
	if p.Command.Args != trim(p.Command.Args) || p.Text != trim(p.Text) {
		t.Fatalf("%q: not trimmed", in.Text)
	}
	switch p.Kind {
	case KindCommand:
		if spec, ok := Lookup(p.Command.Name); !ok || spec.Name != p.Command.Name {
			t.Fatalf("%q: command %q is not in the registry", in.Text, p.Command.Name)
		}
	case KindUnknown:
		if _, ok := Lookup(p.Command.Name); ok || !strings.Contains(in.Text, p.Command.Name) {
			t.Fatalf("%q: unknown %q", in.Text, p.Command.Name)
		}
	case KindMessage, KindOtherBot:
		if p.Command != (Command{}) {
			t.Fatalf("%q: %+v", in.Text, p)
		}
	default:
		t.Fatalf("%q: kind %q", in.Text, p.Kind)
	}
	if in.LeadingCode && p.Kind != KindMessage {
		t.Fatalf("%q: a command in code", in.Text)
	}
	// The text that is left says the same again.
	again := Parse(Input{Text: p.Text, BotName: in.BotName, LeadingCode: in.LeadingCode, Mentioned: p.Addressed})
	if again != p {
		t.Fatalf("%q: %+v, and again %+v", in.Text, p, again)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"/new@my_bot x", "@my_bot, /stop", "／help　stop", "!model\nx", "/stopp", "/etc/hosts", "//", "/\xff", "@", "/a@b@c"} {
		f.Add(s, bot, false)
	}
	f.Fuzz(func(t *testing.T, text, name string, code bool) {
		checkParse(t, Input{Text: text, BotName: name, LeadingCode: code})
	})
}

// TestParseProperty builds texts from the grammar's own pieces, which a fuzzer seldom hits.
func TestParseProperty(t *testing.T) {
	piece := rapid.SampledFrom([]string{"/", "／", "!", "！", "@", bot, "my_bot", "Other", "new", "STOP", "stopp", "etc", " ", "\n", "\u3000", "\u200b", ",", ":", "x", "帮助", "`", ".", "-"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		checkParse(t, Input{Text: text, BotName: rapid.SampledFrom([]string{"", bot, "@" + bot}).Draw(t, "bot")})
	})
	rapid.Check(t, func(t *rapid.T) {
		// Whatever follows a known command is its argument, byte for byte.
		spec := rapid.SampledFrom(Commands()).Draw(t, "spec")
		args := trim(rapid.String().Draw(t, "args"))
		sep := rapid.SampledFrom([]string{" ", "\n", "\t", "\u00a0", "\u3000", " \n "}).Draw(t, "sep")
		p := Parse(Input{Text: "/" + spec.Name + sep + args})
		if p.Kind != KindCommand || p.Command != (Command{spec.Name, args}) || !utf8.ValidString(p.Command.Args) {
			t.Fatalf("%+v", p)
		}
	})
}
