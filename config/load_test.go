package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// envOf makes an environment of the given variables and nothing else.
func envOf(kv map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := kv[name]; return v, ok }
}

func load(t *testing.T, text string, env map[string]string) (*Config, error) {
	t.Helper()
	return Load(LoadOptions{
		Path:     "config.yaml",
		Env:      envOf(env),
		ReadFile: func(string) ([]byte, error) { return []byte(text), nil },
	})
}

func mustLoad(t *testing.T, text string, env map[string]string) *Config {
	t.Helper()
	cfg, err := load(t, text, env)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return cfg
}

func TestLoadWholeTree(t *testing.T) {
	cfg := mustLoad(t, `
data_dir: /srv/deerbot
locale: zh
shutdown_grace: 5s
log: {level: debug, format: json}
server:
  listen: 0.0.0.0:80
  auth_token: hunter2hunter2
models:
  - name: main
    provider: openai
    model: m-1
    base_url: http://127.0.0.1:1/v1
    api_key: k
    context_window: 64_000
    price: {input: 1.5, cached_input: 0.15, output: 6}
    supports_vision: true
    headers: {X-Team: blue}
    extra: {reasoning: {effort: low}, seed: 7, stop: [a, b]}
  - name: other
    provider: anthropic
    api_key: "a"
channels:
  telegram: {enabled: true, token: "1:a", allow: [42, "-100777"], admins: ["42"], groups: all, while_running: queue, answer_new_after: 1m}
  slack: {bot_token: xoxb-1, app_token: xapp-1, allow: [U024BE7LH]}
  discord: {token: d, application_commands: "guild:99"}
  lark: {app_id: cli_1, app_secret: s, base_url: https://open.larksuite.com, allow: [ou_1, oc_2]}
  web: {enabled: false}
agent:
  max_steps: 7
  token_budget: 0
  subagents:
    custom:
      - {name: reader, description: reads, instructions: read, model: other}
  tools: {deny: [web_fetch], approve: ["bash:rm *"]}
  web: {allow: ["*.example.com"], search: {provider: tavily, api_key: t}}
sandbox: {memory: 512MB, cpu: 1.5, network: on}
mcp:
  servers:
    files: {command: npx, args: [-y, server], env: {TOKEN: s3cret}, autoApprove: [x]}
store: {path: /tmp/x.db}
schedule: {time_zone: Europe/Berlin}
`, nil)

	check := func(name string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	check("shutdown_grace", cfg.ShutdownGrace, 5*time.Second)
	check("models[0].context_window", cfg.Models[0].ContextWindow, 64000)
	check("models[0].stall_timeout is the default", cfg.Models[0].StallTimeout, 90*time.Second)
	check("models[0].extra", cfg.Models[0].Extra, map[string]any{
		"reasoning": map[string]any{"effort": "low"}, "seed": uint64(7), "stop": []any{"a", "b"},
	})
	check("header", cfg.Models[0].Headers["X-Team"].Reveal(), "blue")
	check("models[1].model is the default", cfg.Models[1].Model, DefaultAnthropicModel)
	check("telegram.allow", cfg.Channels.Telegram.Allow, []string{"42", "-100777"})
	check("telegram.answer_new_after", cfg.Channels.Telegram.AnswerNewAfter, time.Minute)
	check("telegram.stream is the default", cfg.Channels.Telegram.Stream, "auto")
	check("active", []bool{
		cfg.Channels.Active("telegram"), cfg.Channels.Active("slack"), cfg.Channels.Active("discord"),
		cfg.Channels.Active("lark"), cfg.Channels.Active("web"),
	}, []bool{true, true, true, true, false})
	check("token_budget", cfg.Agent.TokenBudget, int64(0))
	check("subagents.max_total is the default", cfg.Agent.Subagents.MaxTotal, 6)
	check("sandbox.memory", cfg.Sandbox.Memory, Size(512<<20))
	check("sandbox.network", cfg.Sandbox.Network, "on")
	check("mcp env", cfg.MCP.Servers["files"].Env["TOKEN"].Reveal(), "s3cret")
	check("mcp rest", cfg.MCP.Servers["files"].Other, map[string]any{"autoApprove": []any{"x"}})
	if !cfg.IsSet("agent.max_steps") || cfg.IsSet("agent.run_timeout") || cfg.Line("data_dir") != 2 {
		t.Errorf("IsSet or Line is wrong: %v", cfg.lines)
	}
}

// TestLoadFaults holds every kind of mistake to its message: key, line, what to do.
func TestLoadFaults(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		{"unknown key", "log:\n  lvel: debug", `config.yaml:2: unknown key "lvel" in log; the nearest known key is "level"`},
		{"unknown key at the top", "sever: {}", `config.yaml:1: unknown key "sever" at the top level; the nearest known key is "server"`},
		{"key of another section", "max_steps: 3", `config.yaml:1: unknown key "max_steps" at the top level; there is agent.max_steps`},
		{"nothing near", "log:\n  colour: red", `config.yaml:2: unknown key "colour" in log; known are level, format`},
		{"in a list", "models:\n- nam: x\n  api_key: k", `config.yaml:2: unknown key "nam" in models[0]; the nearest known key is "name"`},
		{"key twice", "locale: en\nlog: {}\nlocale: zh", `config.yaml:3: locale: the key is here twice, first on line 1`},
		{"enum", "\nlocale: de", `config.yaml:2: locale: must be auto, en or zh`},
		{"enum with empty", "agent: {web: {search: {provider: bing}}}", `config.yaml:1: agent.web.search.provider: must be "", tavily, brave, searxng or duckduckgo`},
		{"duration", "shutdown_grace: 20", `config.yaml:1: shutdown_grace: want a duration with its unit, such as 90s or 15m`},
		{"duration bounds", "shutdown_grace: 3h", `config.yaml:1: shutdown_grace: must be from 0s to 10m`},
		{"negative duration", "agent: {run_timeout: -5s}", `config.yaml:1: agent.run_timeout: must be at least 1s`},
		{"number", "agent: {max_steps: many}", `config.yaml:1: agent.max_steps: want a whole number`},
		{"quoted number", `agent: {max_steps: "5"}`, `config.yaml:1: agent.max_steps: want a whole number`},
		{"fraction", "agent: {max_steps: 1.5}", `config.yaml:1: agent.max_steps: want a whole number`},
		{"bounds", "agent: {max_steps: 0}", `config.yaml:1: agent.max_steps: must be from 1 to 100000`},
		{"not a number", "agent: {cost_budget: .nan}", `config.yaml:1: agent.cost_budget: want a number`},
		{"bool", "memory: {enabled: maybe}", `config.yaml:1: memory.enabled: want true or false`},
		{"bool for text", "data_dir: true", `config.yaml:1: data_dir: want text; put it in quotes`},
		{"size", "sandbox: {memory: lots}", `config.yaml:1: sandbox.memory: want a size such as 512MB or 2GB`},
		{"list", "skills: {dirs: ./skills}", `config.yaml:1: skills.dirs: want a list, such as [a, b]`},
		{"section", "log: info", `config.yaml:1: log: want keys and values here, each on its own line`},
		{"scalar for list item", "skills: {dirs: [{a: b}]}", `config.yaml:1: skills.dirs[0]: want text; put it in quotes`},
		{"empty item", "skills:\n  dirs:\n  - a\n  -\n", `config.yaml:4: skills.dirs[1]: is empty`},
		{"missing variable", "\nserver:\n  auth_token: ${NOPE}", `config.yaml:3: server.auth_token: environment variable NOPE is not set; set it, or write ${NOPE:-default}`},
		{"open variable", "data_dir: a${B", `config.yaml:1: data_dir: ${ has no closing }; write $$ for a plain $`},
		{"odd variable", "data_dir: ${a b}", `config.yaml:1: data_dir: ${…} wants the name of an environment variable; write $$ for a plain $`},
		{"empty data_dir", `data_dir: ""`, `config.yaml:1: data_dir: is empty; name a directory, such as ./data`},
		{"listen", "server: {listen: 8420}", `config.yaml:1: server.listen: want host:port, such as 127.0.0.1:8420`},
		{"port", "server: {listen: 'localhost:x'}", `config.yaml:1: server.listen: want a port from 0 to 65535 after the colon`},
		{"open to others", "server: {listen: ':80'}", `config.yaml:1: server.auth_token: is required because server.listen (:80) can be reached from other machines; set a long random text, or listen on 127.0.0.1`},
		{"model twice", "models:\n- {name: a, api_key: k}\n- {name: a, api_key: k}", `config.yaml:3: models[1].name: "a" is the name of models[0] too; names are unique`},
		{"model without name", "models:\n- {name: a, api_key: k}\n- {api_key: k}", `config.yaml:3: models[1].name: is missing; people choose a model by it`},
		{"model provider", "models:\n- {name: a, provider: azure}", `config.yaml:2: models[0].provider: must be openai, anthropic or rehearsal`},
		{"model without key", "models:\n- {name: a}", `config.yaml:2: models[0].api_key: is missing; set it or OPENAI_API_KEY, or name a base_url that needs none`},
		{"model url", "models:\n- {name: a, base_url: 'ftp://x'}", `config.yaml:2: models[0].base_url: want a URL that starts with http:// or https://`},
		{"model output", "models:\n- {name: a, api_key: k, context_window: 2000, max_output_tokens: 2000}", `config.yaml:2: models[0].max_output_tokens: must be less than context_window (2000)`},
		{"model reference", "agent: {goals: {model: judge}}", `config.yaml:1: agent.goals.model: "judge" is not the name of a model under models`},
		{"on without token", "channels:\n  telegram:\n    enabled: true", `config.yaml:2: channels.telegram.token: is missing, and channels.telegram.enabled is true; set it or TELEGRAM_BOT_TOKEN`},
		{"not a token", "channels: {telegram: {token: abc}}", `config.yaml:1: channels.telegram.token: is not a bot token; @BotFather gives one that begins with a number and a colon`},
		{"on with half the tokens", "channels: {slack: {enabled: true, bot_token: x}}", `config.yaml:1: channels.slack.app_token: is missing, and channels.slack.enabled is true; set it or SLACK_APP_TOKEN`},
		{"enabled", "channels: {telegram: {enabled: perhaps}}", `config.yaml:1: channels.telegram.enabled: must be auto, true or false`},
		{"proxy", "channels: {telegram: {proxy: 'me:pw@host'}}", `config.yaml:1: channels.telegram.proxy: want a URL that starts with http:// or https:// or socks5:// or socks5h://`},
		{"guild", "channels: {discord: {application_commands: 'guild:x'}}", `config.yaml:1: channels.discord.application_commands: must be global, guild:<id> or off`},
		{"time zone", "schedule: {time_zone: Mars/Olympus}", `config.yaml:1: schedule.time_zone: want Local, UTC or a name such as Europe/Berlin`},
		{"host pattern", "agent: {web: {allow: ['https://x.org/']}}", `config.yaml:1: agent.web.allow[0]: want a host such as example.com or *.example.com, without scheme, port or path`},
		{"mcp", "mcp: {servers: {a: {args: [x]}}}", `config.yaml:1: mcp.servers.a: has neither command nor url`},
		{"alias", "data_dir: *nowhere", `config.yaml:1: data_dir: the alias points to no anchor`},
		{"two documents", "locale: en\n---\nlocale: zh", `config.yaml:3: more than one YAML document; write one`},
		{"syntax", "log:\n  level: [info", `config.yaml:2: cannot be read as YAML: sequence end token ']' not found`},
		{"a list as the file", "- a", `config.yaml:1: want keys and values here, each on its own line`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.yaml, nil)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != tt.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, tt.want)
			}
			var f *Fault
			if !errors.As(err, &f) || f.Line == 0 {
				t.Errorf("no fault with a line in %#v", err)
			}
		})
	}
}

func TestLoadTellsAllFaultsAtOnce(t *testing.T) {
	_, err := load(t, "locale: de\nlog: {lvel: x}\nshutdown_grace: 5\nmodels:\n- {provider: x}\n", nil)
	var fs Faults
	if !errors.As(err, &fs) || len(fs) != 4 {
		t.Fatalf("want 4 faults, got:\n%v", err)
	}
}

// TestLoadNeverQuotesTheFile puts a key beside every mistake and looks for it in the error.
func TestLoadNeverQuotesTheFile(t *testing.T) {
	const canary = "sk-CANARY-0123456789"
	for _, text := range []string{
		"models:\n- {api_key: " + canary + ", nope: 1}",
		"server:\n  auth_token: " + canary + "\n  listen: [",
		"server:\n  auth_token: \"" + canary + "\n",
		"server:\n\tauth_token: " + canary + "\n",
		"server:\n  auth_token: " + canary + ": x: y\n",
		"server:\n  auth_token: " + canary + "\n nope: x\n",
		"server: {auth_token: " + canary + ", auth_token: " + canary + "}",
		"shutdown_grace: " + canary,
		"locale: " + canary,
		"channels: {telegram: {token: '" + canary + " x', api_url: " + canary + ", proxy: " + canary + ", allow: [" + canary + "]}}",
		"agent: {max_steps: " + canary + "}",
		"models:\n- {name: a, base_url: 'https://u:" + canary + "@'}",
		"store: {driver: " + canary + ", dsn: " + canary + "}",
		"? " + canary + "\n: x",
		"!!" + canary + " x",
		"a: &" + canary + " b\nb: *" + canary,
	} {
		_, err := load(t, text, nil)
		if err == nil {
			t.Errorf("no error for %q", text)
			continue
		}
		if strings.Contains(err.Error(), canary) && !strings.HasPrefix(text, "? ") { // an unknown key is named
			t.Errorf("the error quotes the key:\n%v", err)
		}
	}
}

func TestExpand(t *testing.T) {
	env := envOf(map[string]string{"HOST": "h", "EMPTY": "", "N": "9", "BOOL": "false", "D": "7s", "LIST": "a, b", "EVIL": "x\nlocale: zh"})
	for _, tt := range []struct{ in, want string }{
		{"plain", "plain"},
		{"${HOST}/x", "h/x"},
		{"${HOST}${HOST}", "hh"},
		{"${NOPE:-d e}", "d e"},
		{"${EMPTY:-d}", "d"},
		{"${EMPTY}", ""},
		{"${NOPE:-}", ""},
		{"$$HOST $${HOST}", "$HOST ${HOST}"},
		{"5$ $HOST $", "5$ $HOST $"},
		{"${EVIL}", "x\nlocale: zh"}, // a value, never structure
	} {
		got, err := expand(tt.in, env)
		if err != nil || got != tt.want {
			t.Errorf("expand(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
	cfg := mustLoad(t, `
agent: {max_steps: "${N}", instructions: "Ask ${HOST}"}
memory: {enabled: "${BOOL}"}
shutdown_grace: ${D}
skills: {dirs: ["${HOST}"]}
`, map[string]string{"HOST": "h", "N": "9", "BOOL": "false", "D": "7s"})
	if cfg.Agent.MaxSteps != 9 || cfg.Memory.Enabled || cfg.ShutdownGrace != 7*time.Second || cfg.Skills.Dirs[0] != "h" || cfg.Agent.Instructions != "Ask h" {
		t.Errorf("expanded values did not arrive: %+v", cfg.Agent)
	}
	if _, err := load(t, "${HOST}: x", map[string]string{"HOST": "locale"}); err == nil {
		t.Error("a key was expanded")
	}
}

func TestAnchorsAndMerge(t *testing.T) {
	cfg := mustLoad(t, `
channels:
  telegram: &common
    groups: all
    stream: edit
  discord:
    <<: *common
    stream: "off"
`, nil)
	d := cfg.Channels.Discord
	if d.Groups != "all" || d.Stream != "off" {
		t.Errorf("groups %q, stream %q", d.Groups, d.Stream)
	}
}

func TestAliasBombEnds(t *testing.T) {
	var b strings.Builder
	b.WriteString("models:\n- name: a\n  api_key: k\n  extra:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "    a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	if _, err := load(t, b.String(), nil); err == nil || !strings.Contains(err.Error(), "too many values") {
		t.Errorf("got %v", err)
	}
	if _, err := load(t, "agent: &a\n  tools: *a\n", nil); err == nil {
		t.Error("an alias to itself was taken")
	}
}

// TestHostileFilesEnd gives the loader files that occupy the YAML parser for minutes.
func TestHostileFilesEnd(t *testing.T) {
	var stairs strings.Builder
	for i := range 700 {
		stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for name, text := range map[string]string{
		"huge":     strings.Repeat("x", maxFile+1),
		"brackets": strings.Repeat("[", maxFile),
		"closed":   strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"braces":   strings.Repeat("{", maxFile),
		"maps":     strings.Repeat("{a: ", maxFile/4),
		"entries":  strings.Repeat("- ", maxFile/2),
		"keys":     strings.Repeat("? ", maxFile/2),
		"anchors":  strings.Repeat("&a ", maxFile/3),
		"tags":     strings.Repeat("!a ", maxFile/3),
		"lines":    strings.Repeat("a: b\n", maxFile/5),
		"stairs":   stairs.String(),
	} {
		began := time.Now()
		_, err := load(t, text, nil)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		if d := time.Since(began); d > 20*time.Second { // seconds where the machine is slow; minutes without the bounds
			t.Errorf("%s: took %s", name, d)
		}
	}
	_, err := load(t, strings.Repeat("a: b\n", 500), nil)
	var fs Faults
	if !errors.As(err, &fs) || len(fs) != maxFaults+1 {
		t.Errorf("%d faults", len(fs))
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "channels:\n  telegram:\nmodels:\nlog:\n  level:\n", "\xef\xbb\xbflocale: auto\n", "locale: auto\r\nlog:\r\n  level: info\r\n"} {
		cfg, err := load(t, text, nil)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want := Default()
		want.File = "config.yaml"
		if d := cmp.Diff(want, cfg, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".lines" }, cmp.Ignore())); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if got := (LoadOptions{Dir: dir, Env: envOf(nil)}).Find(); got != "" {
		t.Errorf("without anything: %q", got)
	}
	file := filepath.Join(dir, DefaultFile)
	if err := os.WriteFile(file, []byte("locale: zh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (LoadOptions{Dir: dir, Env: envOf(nil)}).Find(); got != file {
		t.Errorf("./config.yaml: %q", got)
	}
	env := envOf(map[string]string{"DEERBOT_CONFIG": " /etc/deerbot.yaml "})
	if got := (LoadOptions{Dir: dir, Env: env}).Find(); got != "/etc/deerbot.yaml" {
		t.Errorf("DEERBOT_CONFIG: %q", got)
	}
	if got := (LoadOptions{Dir: dir, Env: env, Path: "a.yaml"}).Find(); got != "a.yaml" {
		t.Errorf("--config: %q", got)
	}
	cfg, err := Load(LoadOptions{Dir: dir, Env: envOf(nil)})
	if err != nil || cfg.Locale != "zh" || cfg.File != file {
		t.Errorf("Load: %v, %+v", err, cfg)
	}
	_, err = Load(LoadOptions{Path: filepath.Join(dir, "none.yaml"), Env: envOf(nil)})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a named file that is not there: %v", err)
	}
}
