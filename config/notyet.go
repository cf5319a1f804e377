package config

import (
	"fmt"
	"reflect"
	"strings"
)

type notYetRow struct {
	key, text string
	partial   bool
}

// Notice tells the operator something about a key that is no fault.
type Notice struct {
	Key  string
	Line int // in the file, 0 when the key came from the environment or is not set
	Text string
}

// String writes the notice as key: text.
func (n Notice) String() string { return n.Key + ": " + n.Text }

// notYet lists keys whose feature is not there. A row covers the key and everything below it, and speaks when something
// under it differs from its default. The part that builds the feature deletes its row. partial says that the key works,
// but only with its default value.
var notYet = []notYetRow{
	{key: "channels.lark", text: "the Lark channel is not there yet; it stays off."},
	{key: "agent.cost_budget", text: "budgets in money are not there yet; agent.token_budget bounds every run."},
	{key: "agent.subagents", text: "subagents are not there yet; the agent does everything itself."},
	{key: "agent.compaction", text: "compaction is not there yet; a conversation that outgrows the window ends with a reason, and /new starts afresh."},
	{key: "agent.goals", text: "goals are not there yet."},
	{key: "agent.tools.approve", text: "approvals are not there yet; to keep a tool from being used, put it under agent.tools.deny."},
	{key: "agent.web.search", text: "web search is not there yet; web_fetch is."},
	{key: "sandbox.provider", text: "only the local provider is there yet; the agent's tools act on files of its workspace.", partial: true},
	{key: "sandbox.shell", text: "the shell tool is not there yet; the agent runs no commands."},
	{key: "sandbox.network", text: "the shell tool is not there yet, so there is nothing to give a network to."},
	{key: "sandbox.timeout", text: "the shell tool is not there yet, so there is nothing to bound."},
	{key: "sandbox.cpu", text: "the shell tool is not there yet, so there is nothing to bound."},
	{key: "sandbox.memory", text: "the shell tool is not there yet, so there is nothing to bound."},
	{key: "skills", text: "skills are not there yet."},
	{key: "mcp", text: "MCP servers are not there yet; none is started."},
	{key: "memory", text: "memory is not there yet; nothing is remembered between conversations."},
	{key: "limits.daily_tokens_per_user", text: "budgets of a person are not there yet; agent.token_budget bounds every run."},
	{key: "limits.daily_cost_per_user", text: "budgets of a person are not there yet; agent.token_budget bounds every run."},
	{key: "schedule", text: "schedules are not there yet."},
	{key: "store.driver", text: "only the bolt store is there yet; it is used.", partial: true},
	{key: "store.dsn", text: "the postgres store is not there yet; the bolt store is used."},
	{key: "stream.driver", text: "only the memory stream is there yet; it is used.", partial: true},
	{key: "stream.url", text: "the redis stream is not there yet; the memory stream is used."},
	{key: "telemetry.otlp_endpoint", text: "OpenTelemetry export is not there yet; /metrics is."},
}

// NotYet names the keys that cfg sets to something but their default although their feature is not there.
func NotYet(cfg *Config) []Notice {
	def := reflect.ValueOf(*Default())
	got := reflect.ValueOf(*cfg)
	changed := map[string][]string{} // row -> keys below it
	walkValues(got, def, "", func(path string, a, b reflect.Value) {
		if equal(a, b) {
			return
		}
		for _, row := range notYet {
			if covers(row.key, path) {
				changed[row.key] = append(changed[row.key], path)
			}
		}
	})
	var out []Notice
	for _, row := range notYet {
		keys := changed[row.key]
		if len(keys) == 0 {
			continue
		}
		key := row.key
		if len(keys) == 1 {
			key = keys[0]
		}
		out = append(out, Notice{Key: key, Line: cfg.Line(keys[0]), Text: row.text})
	}
	// Steering is the default, so only a file that asks for it by name is told.
	for _, name := range cfg.Channels.Names() {
		key := "channels." + name + ".while_running"
		if !cfg.Channels.Active(name) {
			continue
		}
		if o, _ := cfg.Channels.Options(name); o.WhileRunning == "steer" && cfg.IsSet(key) {
			out = append(out, Notice{Key: key, Line: cfg.Line(key), Text: "steering is not there yet; a message sent during a run waits for its end, as with queue."})
		}
	}
	return out
}

// covers reports whether row is path or a section around it.
func covers(row, path string) bool { return path == row || strings.HasPrefix(path, row+".") }

// notYetNote returns what the docs say about a key whose feature is not there, "" when it is there.
func notYetNote(path string) string {
	if strings.HasSuffix(path, ".while_running") {
		return "steer is not there yet and acts as queue"
	}
	for _, row := range notYet {
		switch {
		case covers(row.key, path) && row.partial:
			return "only the default is there yet"
		case covers(row.key, path):
			return "not there yet"
		}
	}
	return ""
}

// Warnings names what is allowed but probably not meant.
func Warnings(cfg *Config) []Notice {
	var out []Notice
	warn := func(key, format string, args ...any) {
		out = append(out, Notice{Key: key, Line: cfg.Line(key), Text: fmt.Sprintf(format, args...)})
	}
	ch := &cfg.Channels
	half := func(at string, on Switch, a, b string, haveA, haveB bool) {
		if on != Auto || haveA == haveB {
			return
		}
		have, missing := a, b
		if haveB {
			have, missing = b, a
		}
		warn(at+"."+missing, "is missing while %s is set; the channel stays off until both are there.", have)
	}
	half("channels.slack", ch.Slack.Enabled, "bot_token", "app_token", ch.Slack.BotToken.IsSet(), ch.Slack.AppToken.IsSet())
	half("channels.lark", ch.Lark.Enabled, "app_id", "app_secret", ch.Lark.AppID != "", ch.Lark.AppSecret.IsSet())
	for _, name := range ch.Names() {
		o, _ := ch.Options(name)
		if name != "web" && ch.Active(name) && len(o.Allow) == 0 {
			warn("channels."+name+".allow", "is empty: everyone who finds the bot may use it, at your cost. List the ids that may; /whoami tells them.")
		}
	}
	if ch.Web.Proxy.IsSet() {
		warn("channels.web.proxy", "has no effect: the web chat is served by this daemon and calls nobody.")
	}
	return out
}
