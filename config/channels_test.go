package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestC115_AllowListsHoldIDs: names can be changed and taken over, so only ids are accepted.
func TestC115_AllowListsHoldIDs(t *testing.T) {
	for _, tt := range []struct {
		channel string
		good    []string
		bad     []string
	}{
		{"telegram", []string{"999", "-1001234567890"}, []string{"Alice", "@alice", "alice", "0", "12a", "1.5", "+49170", "１２"}},
		{"slack", []string{"U024BE7LH", "W012A3CDE", "C024BE91L", "U1"}, []string{"Alice", "@alice", "alice", "#general", "u024be7lh"}},
		{"discord", []string{"80351110224678912"}, []string{"Alice", "alice#1234", "<@80351110224678912>"}},
		{"lark", []string{"ou_7d8a6e6df7621556ce0d21922b676706", "oc_1", "on_2"}, []string{"Alice", "cli_1", "ou_"}},
		{"web", []string{"anyone"}, []string{"two words"}},
	} {
		for _, id := range tt.good {
			if _, err := load(t, fmt.Sprintf("channels: {%s: {allow: [%q]}}", tt.channel, id), nil); err != nil {
				t.Errorf("%s: %s is refused: %v", tt.channel, id, err)
			}
		}
		for _, id := range tt.bad {
			for _, list := range []string{"allow", "admins"} {
				_, err := load(t, fmt.Sprintf("channels:\n  %s:\n    %s: [%q]", tt.channel, list, id), nil)
				want := fmt.Sprintf("config.yaml:3: channels.%s.%s[0]: is not an id; want ", tt.channel, list)
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s.%s: %q: got %v", tt.channel, list, id, err)
				}
			}
		}
	}
	// A chat is no person.
	if _, err := load(t, `channels: {telegram: {admins: ["-100123"]}}`, nil); err == nil {
		t.Error("a chat became an admin")
	}
}

// TestC209_EmptyAllowList: an absent list and an empty one mean the same and are warned of; an empty entry is a mistake,
// and numbers are ids as well as texts are.
func TestC209_EmptyAllowList(t *testing.T) {
	const token = "channels: {telegram: {token: '1:a'%s}}"
	for _, list := range []string{"", ", allow: []", ", allow: "} {
		cfg := mustLoad(t, fmt.Sprintf(token, list), nil)
		if len(cfg.Channels.Telegram.Allow) != 0 {
			t.Errorf("%q: %v", list, cfg.Channels.Telegram.Allow)
		}
		w := Warnings(cfg)
		if len(w) != 1 || w[0].Key != "channels.telegram.allow" {
			t.Errorf("%q: no warning that everyone may talk to the bot: %v", list, w)
		}
	}
	for _, list := range []string{`[""]`, `[" "]`, `[null]`, `[~, "1"]`, `["${EMPTY}"]`} {
		_, err := load(t, fmt.Sprintf(token, ", allow: "+list), map[string]string{"EMPTY": ""})
		if err == nil || !strings.Contains(err.Error(), "channels.telegram.allow[0]: is empty") {
			t.Errorf("allow %s: %v", list, err)
		}
	}
	cfg := mustLoad(t, fmt.Sprintf(token, `, allow: [123, "456", '${ID}']`), map[string]string{"ID": "789"})
	if d := cmp.Diff([]string{"123", "456", "789"}, cfg.Channels.Telegram.Allow); d != "" {
		t.Error(d)
	}
	if w := Warnings(cfg); len(w) != 0 {
		t.Errorf("warned of a list that is there: %v", w)
	}
}

// TestC106_NothingIsOverridden: what a file sets is what the program sees, option by option, and a combination that
// cannot be had is refused rather than changed.
func TestC106_NothingIsOverridden(t *testing.T) {
	for _, groups := range []string{"mention", "all", "off"} {
		for _, running := range []string{"steer", "queue", "interrupt", "reject"} {
			for _, answer := range []string{"auto", "edit", "new"} {
				cfg := mustLoad(t, fmt.Sprintf("channels: {web: {groups: %s, while_running: %s, answer: %s}}", groups, running, answer), nil)
				o := cfg.Channels.Web.ChannelOptions
				if o.Groups != groups || o.WhileRunning != running || o.Answer != answer {
					t.Errorf("%s, %s, %s became %+v", groups, running, answer, o)
				}
			}
		}
	}
	for _, text := range []string{
		"channels: {telegram: {enabled: true}}",
		"server: {listen: '0.0.0.0:80'}",
		"store: {driver: postgres}",
		"models:\n- {name: a, api_key: k, context_window: 4096, max_output_tokens: 8192}",
	} {
		if _, err := load(t, text, nil); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}

func TestWarnings(t *testing.T) {
	cfg := mustLoad(t, "channels: {slack: {bot_token: x}, lark: {app_secret: y}, web: {proxy: 'http://p'}}", nil)
	got := []string{}
	for _, n := range Warnings(cfg) {
		got = append(got, n.String())
	}
	want := []string{
		"channels.slack.app_token: is missing while bot_token is set; the channel stays off until both are there.",
		"channels.lark.app_id: is missing while app_secret is set; the channel stays off until both are there.",
		"channels.web.proxy: has no effect: the web chat is served by this daemon and calls nobody.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestNotYet(t *testing.T) {
	if got := NotYet(Default()); len(got) != 0 {
		t.Errorf("the defaults: %v", got)
	}
	cfg := mustLoad(t, `
channels: {lark: {app_id: x, app_secret: y}, web: {while_running: steer}, telegram: {while_running: steer}}
agent:
  subagents: {max_total: 9, queue: 3}
  tools: {approve: [web_fetch]}
  max_steps: 3
sandbox: {provider: docker}
mcp: {servers: {a: {command: x}}}
store: {path: x.db}
`, nil)
	var got []string
	for _, n := range NotYet(cfg) {
		got = append(got, fmt.Sprintf("%s@%d", n.Key, n.Line))
	}
	want := []string{
		"channels.lark@2", "agent.subagents@4", "agent.tools.approve@5", "sandbox.provider@7", "mcp.servers@8",
		"channels.web.while_running@2",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// Every row names something that exists, and says one sentence.
	known := map[string]bool{}
	walkKeys(typeOfConfig, "", func(path string, _ field) { known[path] = true })
	for _, row := range notYet {
		if !known[row.key] || !strings.HasSuffix(row.text, ".") {
			t.Errorf("row %+v", row)
		}
	}
}
