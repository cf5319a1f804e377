package commands

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deerbot/cards/phrase"
	"deerbot/channels"
	"deerbot/runtime/model"
	"deerbot/store"
)

var update = flag.Bool("update", false, "rewrite golden files")

var testTime = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// fake is a Session that remembers what was done.
type fake struct {
	lang     phrase.Lang
	who      Who
	running  bool
	queued   []string
	retry    bool
	files    []store.Artifact
	models   []model.Info
	model    string
	status   Status
	err      error
	did      []string
	newTitle string
}

func (f *fake) Lang() phrase.Lang     { return f.lang }
func (f *fake) Who() Who              { return f.who }
func (f *fake) Place() channels.Place { return channels.Place{Channel: "telegram", Chat: "1"} }
func (f *fake) ThreadID() string      { return "t1" }

func (f *fake) New(_ context.Context, title string) (bool, error) {
	f.did, f.newTitle = append(f.did, "new"), title
	return f.running, f.err
}

func (f *fake) Stop(context.Context) (Stopped, error) {
	f.did = append(f.did, "stop")
	return Stopped{Running: f.running, Queued: f.queued}, f.err
}
func (f *fake) Status(context.Context) (Status, error) { return f.status, f.err }

func (f *fake) Retry(context.Context) (bool, error) {
	f.did = append(f.did, "retry")
	return f.retry, f.err
}
func (f *fake) Files(context.Context) ([]store.Artifact, error) { return f.files, nil }

func (f *fake) SendFile(_ context.Context, a store.Artifact) error {
	f.did = append(f.did, "send "+a.Name)
	return f.err
}
func (f *fake) Models() []model.Info { return f.models }
func (f *fake) Model() string        { return f.model }

func (f *fake) SetModel(_ context.Context, name string) error {
	f.did = append(f.did, "model "+name)
	return f.err
}

func newFake() *fake {
	return &fake{
		who: Who{ID: "42", Name: "Ann *Bold* `x`\u202e", Channel: "telegram", Role: RoleMember},
		models: []model.Info{
			{Name: "main", Provider: "openai", Model: "gpt_x"},
			{Name: "Fast", Provider: "anthropic", Model: "claude"},
			{Name: "rehearsal", Provider: "rehearsal", Model: "rehearsal", Rehearsal: true},
		},
		model: "main",
		files: []store.Artifact{{ID: "a", Name: "report.md", Size: 12_400}, {ID: "b", Name: "odd`name\n.csv", Size: 812}, {ID: "c", Name: "film.mp4", Size: 3_500_000}},
		status: Status{
			Phase: PhaseRunning, Step: 3, Elapsed: 252 * time.Second, Tokens: 182_345, CostUSD: 0.41, Estimated: true, Queue: 2,
			ThreadID: "0193", Title: "wasm *outside*", Model: "main", Groups: "mention",
			Channels: []ChannelStatus{
				{"telegram", channels.Health{Connected: true, Since: testTime.Add(-3 * time.Hour)}},
				{"web", channels.Health{Connected: true}},
				{"slack", channels.Health{Connected: true, Since: testTime.Add(-90 * time.Second), Trouble: "no event since the `hello`"}},
				{"discord", channels.Health{}},
			},
			Version: "v0.1.0", Uptime: 50 * time.Hour, RSS: 34 << 20,
		},
	}
}

// TestReplies compares every reply in both languages with testdata/replies.<lang>.md.
func TestReplies(t *testing.T) {
	now = func() time.Time { return testTime }
	t.Cleanup(func() { now = time.Now })
	scenes := []struct {
		title  string
		typed  string
		adjust func(*fake)
	}{
		{"", "/help", nil},
		{"", "/help stop", nil},
		{"", "/help /CANCEL", nil},
		{"", "/help retry", nil},
		{"", "/help stpo", nil},
		{"", "/help quux", nil},
		{"", "/new", nil},
		{"a run was active", "/new Q4 _plan_\nsecond line", func(f *fake) { f.running = true }},
		{"the store fails", "/new", func(f *fake) { f.err = errors.New("disk on fire at /srv/secret") }},
		{"nothing runs", "/stop", nil},
		{"a run is active", "/stop", func(f *fake) { f.running = true }},
		{"messages wait", "/stop", func(f *fake) {
			f.running, f.queued = true, []string{"and *then* this", strings.Repeat("long ", 40), "第三条"}
		}},
		{"many wait", "/stop", func(f *fake) { f.queued = strings.Split(strings.Repeat("m ", 12), " ")[:12] }},
		{"", "/status", nil},
		{"idle, in a DM, no cost", "/status", func(f *fake) {
			f.status = Status{Phase: PhaseIdle, ThreadID: "0193", Model: "main", Version: "dev", Uptime: 45 * time.Second, RSS: 31 << 20}
		}},
		{"queued", "/status", func(f *fake) { f.status.Phase, f.status.Position, f.status.Channels = PhaseQueued, 2, nil }},
		{"stopping", "/status", func(f *fake) { f.status.Phase, f.status.Channels, f.status.Title = PhaseStopping, nil, "" }},
		{"it fails", "/status", func(f *fake) { f.err = errors.New("closed") }},
		{"", "/retry", func(f *fake) { f.retry = true }},
		{"a run is active", "/retry", nil},
		{"nothing to retry", "/retry", func(f *fake) { f.status.Phase = PhaseIdle }},
		{"with text", "/retry that please", nil},
		{"", "/files", nil},
		{"many", "/files", func(f *fake) { f.files = slices.Repeat(f.files[:1], 33) }},
		{"none", "/files", func(f *fake) { f.files = nil }},
		{"one again", "/files 2", nil},
		{"no such number", "/files 4", nil},
		{"no number", "/files report", nil},
		{"it cannot be sent", "/files #1", func(f *fake) { f.err = errors.New("gone") }},
		{"", "/whoami", nil},
		{"connected", "/whoami", func(f *fake) {
			f.who = Who{ID: "U1", Channel: "slack", Workspace: "T1", Role: RoleOperator, UserID: "0194"}
		}},
		{"", "/model", nil},
		{"only one", "/model", func(f *fake) { f.models = f.models[:1] }},
		{"choose", "/model fast", nil},
		{"the same", "/model MAIN", nil},
		{"nearly", "/model fsat", nil},
		{"unknown", "/model gpt-9000", nil},
		{"none configured", "/model x", func(f *fake) { f.models = nil }},
		{"", "/models", nil},
		{"none configured", "/models", func(f *fake) { f.models = nil }},
		{"unknown", "/stopp", nil},
		{"unknown, nothing near", "/quux", nil},
	}
	for _, lang := range []phrase.Lang{phrase.EN, phrase.ZH} {
		var b strings.Builder
		for _, sc := range scenes {
			f := newFake()
			f.lang = lang
			if sc.adjust != nil {
				sc.adjust(f)
			}
			p := Parse(Input{Text: sc.typed})
			var r Reply
			var err error
			if p.Kind == KindUnknown {
				r = Unknown(lang, p.Command.Name, p.Nearest)
			} else {
				r, err = Handle(context.Background(), f, p.Command)
			}
			fmt.Fprintf(&b, "===== %s", strings.ReplaceAll(sc.typed, "\n", "⏎"))
			if sc.title != "" {
				fmt.Fprintf(&b, " (%s)", sc.title)
			}
			if len(f.did) > 0 {
				fmt.Fprintf(&b, " -> %s", strings.ReplaceAll(strings.Join(f.did, ", "), "\n", "⏎"))
			}
			if r.Private {
				b.WriteString(" [private]")
			}
			fmt.Fprintf(&b, "\n%s\n", r.Markdown)
			for _, row := range r.Buttons {
				for _, button := range row {
					fmt.Fprintf(&b, "[%s: %s] ", button.Label, button.Action)
				}
				b.WriteByte('\n')
			}
			b.WriteByte('\n')
			if r.Markdown == "" || (f.err != nil) != (err != nil) {
				t.Errorf("%s (%s): reply %q, error %v", sc.typed, sc.title, r.Markdown, err)
			}
			if f.err != nil && strings.Contains(r.Markdown, f.err.Error()) {
				t.Errorf("%s: the error is in the reply", sc.typed)
			}
		}
		golden(t, fmt.Sprintf("replies.%s.md", lang), b.String())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// TestRights: who has too little a role is told so and nothing is done.
func TestRights(t *testing.T) {
	old := registry
	t.Cleanup(func() { registry = old })
	registry = append(Commands(), Spec{Name: "secret", Group: GroupAbout, Role: RoleOwner, handle: func(context.Context, Session, string) (Reply, error) {
		return Reply{Markdown: "done"}, nil
	}})
	for role, want := range map[string]bool{RoleOperator: true, RoleOwner: true, RoleMember: false, "": false, "god": false} {
		f := newFake()
		f.who.Role = role
		r, err := Handle(context.Background(), f, Command{Name: "secret"})
		if err != nil || (r.Markdown == "done") != want {
			t.Errorf("%s: %+v, %v", role, r, err)
		}
		help, _ := Handle(context.Background(), f, Command{Name: "help"})
		if strings.Contains(help.Markdown, "/secret") != want {
			t.Errorf("%s: help is wrong", role)
		}
	}
}

// TestRegistry holds the registry to what platforms and people need.
func TestRegistry(t *testing.T) {
	want := []string{"new", "retry", "files", "stop", "status", "models", "model", "whoami", "help"}
	var got []string
	seen := map[string]bool{}
	telegramName := regexp.MustCompile(`^[a-z0-9_]{1,32}$`) // Bot API, BotCommand
	for _, s := range Commands() {
		got = append(got, s.Name)
		for _, n := range append([]string{s.Name}, s.Aliases...) {
			if seen[n] || !telegramName.MatchString(n) {
				t.Errorf("name %q", n)
			}
			seen[n] = true
		}
		for _, p := range []phrase.Phrase{s.Short, s.Long} {
			en, zh := p.Texts()
			if en == "" || zh == "" || phrase.Guess(zh) != phrase.ZH {
				t.Errorf("/%s has no help in both languages", s.Name)
			}
		}
		if _, ok := groupTitles[s.Group]; !ok || s.handle == nil {
			t.Errorf("/%s is not complete", s.Name)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	infos := Infos()
	if len(infos) != len(want) || infos[0].Description["zh"] == "" || infos[0].Args != "[title]" {
		t.Errorf("infos: %+v", infos[0])
	}
}

// TestVoice: no exclamation marks, and both languages take the same arguments.
func TestVoice(t *testing.T) {
	verbs := regexp.MustCompile(`%[a-z]`)
	for _, p := range phrase.All() {
		en, zh := p.Texts()
		if d := cmp.Diff(verbs.FindAllString(en, -1), verbs.FindAllString(zh, -1)); d != "" {
			t.Errorf("%q and %q take different arguments", en, zh)
		}
		if strings.ContainsAny(en+zh, "!！") {
			t.Errorf("%q exclaims", en)
		}
	}
}

func TestAction(t *testing.T) {
	action, ok := Action(Command{Name: "model", Args: "main"})
	if c, isCommand := ParseAction(action); !ok || !isCommand || c != (Command{"model", "main"}) {
		t.Errorf("%q, %v", action, ok)
	}
	if _, ok := Action(Command{Name: "model", Args: strings.Repeat("x", 60)}); ok {
		t.Error("an action longer than a button can carry")
	}
	for _, a := range []string{"", "stop:1", "cmd:", "cmd:quux", "cmd:new\nx"} {
		if _, ok := ParseAction(a); ok {
			t.Errorf("%q is no command", a)
		}
	}
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		span(-5): "0s", span(59 * time.Second): "59s", span(252 * time.Second): "4m12s", span(3*time.Hour + 5*time.Minute): "3h05m", span(52 * time.Hour): "2d4h",
		count(950): "950", count(48_230): "48.2k", count(1_300_000): "1.3M", count(999_960): "1.0M",
		money(0.41): "$0.41", money(0.0031): "$0.0031", money(0): "$0.00",
		bytesText(812): "812 B", bytesText(12_400): "12 KB", bytesText(3_565_158): "3.4 MB",
		cut("abc", 3): "abc", cut("abcd", 3): "ab…",
		sanitize("a\u202eb\r\n c`d\x00"): "ab c'd", escape("*x* <@U1> @all"): `\*x\* \<\@U1\> \@all`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
