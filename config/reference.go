package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Reference returns docs/configuration.md: how a configuration is found and read, and a table of every key.
func Reference() []byte {
	var b strings.Builder
	b.WriteString(referenceHead)
	def := reflect.ValueOf(*Default())
	fmt.Fprintf(&b, "\n## Top level\n\n%s", tableHead)
	for _, f := range fieldsOf(def.Type()) {
		if !isSection(f.typ) && f.name != "models" {
			row(&b, f.name, def.FieldByIndex(f.index), f, f.restart)
		}
	}
	for _, f := range fieldsOf(def.Type()) {
		switch {
		case f.name == "models":
			fmt.Fprintf(&b, "\n## models\n\n%s\n\n%s", f.doc, tableHead)
			table(&b, reflect.ValueOf(DefaultModel("main")), "models[]", false)
		case isSection(f.typ):
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", f.name, f.doc, tableHead)
			table(&b, def.FieldByIndex(f.index), f.name, f.restart)
		}
	}
	return []byte(b.String())
}

const tableHead = "| key | default | values | changes | what it does |\n|---|---|---|---|---|\n"

// table writes a row for every key of a section and below; the options that all channels share are written once, under
// channels.<name>.
func table(b *strings.Builder, v reflect.Value, path string, restart bool) {
	for _, f := range fieldsOf(v.Type()) {
		p, r := join(path, f.name), restart || f.restart
		switch {
		case f.rest:
		case strings.HasPrefix(path, "channels.") && isShared(f.name):
		case isSection(f.typ):
			table(b, v.FieldByIndex(f.index), p, r)
		default:
			row(b, p, v.FieldByIndex(f.index), f, r)
			if f.typ.Kind() == reflect.Slice && isSection(f.typ.Elem()) {
				table(b, newElem(f.typ.Elem()), p+"[]", r)
			}
			if f.typ.Kind() == reflect.Map && isSection(f.typ.Elem()) {
				table(b, newElem(f.typ.Elem()), p+".<name>", r)
			}
		}
	}
	if path == "channels" {
		options := reflect.ValueOf(Default().Channels.Web.ChannelOptions)
		for _, f := range fieldsOf(options.Type()) {
			row(b, "channels.<any>."+f.name, options.FieldByIndex(f.index), f, restart || f.restart)
		}
	}
}

// isShared reports whether every channel has the key with the same default.
func isShared(name string) bool {
	for _, f := range fieldsOf(reflect.TypeFor[ChannelOptions]()) {
		if f.name == name {
			return true
		}
	}
	return false
}

func row(b *strings.Builder, path string, v reflect.Value, f field, restart bool) {
	values := kindWord(f)
	if f.min != "" || f.max != "" {
		if f.max == "" {
			values += ", from " + f.min
		} else {
			values += fmt.Sprintf(", %s to %s", f.min, f.max)
		}
	}
	when := "live"
	if restart {
		when = "restart"
	}
	doc := f.doc
	if n := notYetNote(path); n != "" {
		doc += " *" + strings.ToUpper(n[:1]) + n[1:] + ".*"
	}
	fmt.Fprintf(b, "| `%s` | `%s` | %s | %s | %s |\n", path,
		valueText(v), values, when, strings.ReplaceAll(doc, "|", "\\|"))
}

// kindWord says what a key takes, in short.
func kindWord(f field) string {
	switch {
	case f.typ == switchType:
		return "auto, true, false"
	case f.enum != nil:
		return strings.ReplaceAll(orList(f.enum), " or ", ", ")
	case f.typ == durationType:
		return "duration"
	case f.typ == sizeType:
		return "size"
	case f.typ == secretType:
		return "secret"
	}
	switch f.typ.Kind() {
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "map"
	case reflect.Bool:
		return "true, false"
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	return "text"
}

const referenceHead = `# Configuration

<!-- Made from the Go types in package config by "go test ./config -update". Do not edit. -->

Where it comes from: the file named by ` + "`--config`" + `, else the one in ` + "`$DEERBOT_CONFIG`" + `, else ` + "`./config.yaml`" + ` if there is one, else the environment alone. ` + "`deerbot config check`" + ` tells everything that is wrong with it, each with key and line; ` + "`deerbot config schema`" + ` prints its JSON Schema, ` + "`deerbot config example`" + ` a file with every key.

- YAML. An unknown key is an error that names the nearest known one.
- ` + "`${NAME}`" + ` and ` + "`${NAME:-default}`" + ` in a value stand for an environment variable; a missing one is an error. ` + "`$$`" + ` is a dollar sign.
- Durations have a unit (` + "`90s`, `15m`" + `), sizes may have one (` + "`512MB`" + `).
- The file is watched. Keys marked *live* take effect at the next run; keys marked *restart* are reported as waiting for one. A file with a fault changes nothing and is reported.
- Secrets are shown as ` + "`***`" + ` wherever the configuration is printed or logged.
- A key marked *not there yet* is checked, and reported when it is set, but does nothing in this version.

## Environment

| variable | fills |
|---|---|
| ` + "`TELEGRAM_BOT_TOKEN`" + ` | ` + "`channels.telegram.token`" + ` |
| ` + "`SLACK_BOT_TOKEN`, `SLACK_APP_TOKEN`" + ` | ` + "`channels.slack.bot_token`, `channels.slack.app_token`" + ` |
| ` + "`DISCORD_BOT_TOKEN`" + ` | ` + "`channels.discord.token`" + ` |
| ` + "`LARK_APP_ID`, `LARK_APP_SECRET`" + ` | ` + "`channels.lark.app_id`, `channels.lark.app_secret`" + ` |
| ` + "`OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_MODEL`" + ` | a model named ` + "`openai`" + ` when the file has no models; else the empty keys of its openai models without a ` + "`base_url`" + ` |
| ` + "`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `ANTHROPIC_MODEL`" + ` | likewise, named ` + "`anthropic`" + ` |

A value in the file stands before the environment's. ` + "`OPENAI_BASE_URL`" + ` without a key is enough for servers that want none. Without ` + "`OPENAI_MODEL`" + ` the model is ` + "`" + DefaultOpenAIModel + "`" + `, and at a base URL of your own the first one that the server lists; without ` + "`ANTHROPIC_MODEL`" + ` it is ` + "`" + DefaultAnthropicModel + "`" + `. With no model at all, an Ollama at ` + "`127.0.0.1:11434`" + ` is used when it answers, and otherwise the built-in rehearsal, which is no language model and says so.
`
