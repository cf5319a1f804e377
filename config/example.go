package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// exampleHead stands before the keys of the example file.
const exampleHead = `# yaml-language-server: $schema=` + SchemaURL + `
#
# Every key of deerbot's configuration with its default. Write your own config.yaml with only the keys you change;
# "deerbot config check" tells what is wrong with it. The line above lets editors complete and check keys; beside a
# file of your own, write the schema with "deerbot config schema > config.schema.json" and name that.
#
# ${NAME} and ${NAME:-default} in a value stand for an environment variable, $$ for a dollar sign.
# Durations have a unit: 90s, 15m, 2h. Keys marked (restart) take effect at the next start, all others at the next run.
# Keys marked (not there yet) are checked, and reported when they are set, but do nothing in this version.
`

// Example returns config.example.yaml.
func Example() []byte {
	var b strings.Builder
	b.WriteString(exampleHead)
	writeSection(&b, reflect.ValueOf(*Default()), "", "", false)
	return []byte(b.String())
}

// writeSection writes the keys of v with their comments. The options that all channels take are explained once, under the
// first one.
func writeSection(b *strings.Builder, v reflect.Value, path, indent string, restart bool) {
	again := strings.HasPrefix(path, "channels.") && path != "channels.telegram"
	for _, f := range fieldsOf(v.Type()) {
		if again && isShared(f.name) {
			if f.name == "allow" {
				writeComment(b, indent, "What follows is as under telegram.")
			}
			fmt.Fprintf(b, "%s%s: %s\n", indent, f.name, valueText(v.FieldByIndex(f.index)))
			continue
		}
		if f.rest {
			continue
		}
		x, p, r := v.FieldByIndex(f.index), join(path, f.name), restart || f.restart
		if path == "" {
			b.WriteByte('\n')
		}
		var note string
		if f.restart && !restart {
			note += " (restart)"
		}
		if n := notYetNote(p); n != "" && notYetNote(path) == "" {
			note += " (" + n + ")"
		}
		switch {
		case p == "models":
			writeComment(b, indent, f.doc+note)
			writeModels(b)
		case isSection(f.typ):
			writeComment(b, indent, f.doc+note)
			fmt.Fprintf(b, "%s%s:\n", indent, f.name)
			writeSection(b, x, p, indent+"  ", r)
		default:
			writeComment(b, indent, f.doc+enumNote(f)+note)
			fmt.Fprintf(b, "%s%s: %s\n", indent, f.name, valueText(x))
		}
	}
}

// writeModels writes the list of models, empty by default, and one entry as a comment.
func writeModels(b *strings.Builder) {
	var entry strings.Builder
	writeSection(&entry, reflect.ValueOf(DefaultModel("main")), "models[]", "    ", false)
	b.WriteString("models: []\n#\n# models:\n")
	for line := range strings.Lines(entry.String()) {
		if rest, ok := strings.CutPrefix(line, "    name:"); ok {
			line = "  - name:" + rest
		}
		b.WriteString("# " + line)
	}
}

// enumNote lists the allowed values of a key, unless they are those of a switch, which its text tells.
func enumNote(f field) string {
	if f.enum == nil || f.typ == switchType {
		return ""
	}
	return " One of " + orList(f.enum) + "."
}

// writeComment writes text as a comment, wrapped at 110 columns.
func writeComment(b *strings.Builder, indent, text string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line))+1+len([]rune(word)) > 110 {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// valueText writes a default as YAML.
func valueText(v reflect.Value) string {
	switch x := plain(v).(type) {
	case string:
		return scalarYAML(x)
	case []any:
		parts := make([]string, len(x))
		for i, e := range x {
			parts[i] = scalarYAML(fmt.Sprint(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any, map[string]Secret, map[string]MCPServer:
		return "{}"
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	default:
		return fmt.Sprint(x)
	}
}

// scalarYAML writes a text, in quotes only where it needs them.
func scalarYAML(s string) string {
	safe := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-", r)
	})
	switch {
	case safe && s != "off" && s != "on" && s != "true" && s != "false" && !strings.HasSuffix(s, ":"):
		return s
	case safe && (s == "off" || s == "on"):
		return s // text in YAML 1.2, and this parser's
	}
	quoted, _ := json.Marshal(s)
	return string(quoted)
}
