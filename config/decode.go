package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"deerbot/config/nearest"
)

// Bounds on what is read. No honest file comes near them; they keep a file that is none, or one made to harm, from
// occupying the parser, whose time grows with the square of tokens and depth.
const (
	maxFile   = 256 << 10 // bytes
	maxTokens = 30_000
	maxDepth  = 32      // of nesting, aliases included
	maxNodes  = 100_000 // values visited, aliases followed
	maxFaults = 50      // told at once
)

// decoder fills a Config from a parsed file. It goes on after a fault, so that one look at the output shows them all.
//
// It walks the syntax tree itself, rather than letting the YAML package fill the structs, because that one stops at the
// first fault and its errors quote the lines around it, keys included.
type decoder struct {
	file    string
	env     func(string) (string, bool)
	faults  Faults
	lines   map[string]int
	anchors map[string]ast.Node
	nodes   int
}

func (d *decoder) fault(line int, key, format string, args ...any) {
	switch n := len(d.faults); {
	case n < maxFaults:
		d.faults = append(d.faults, &Fault{File: d.file, Line: line, Key: key, Text: fmt.Sprintf(format, args...)})
	case n == maxFaults:
		d.faults = append(d.faults, &Fault{File: d.file, Text: "there is more; correct these first"})
	}
}

// decode parses data into cfg.
func (d *decoder) decode(data []byte, cfg *Config) {
	if len(data) > maxFile {
		d.fault(0, "", "the file is larger than %d bytes, which no configuration is", maxFile)
		return
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // editors on Windows leave a mark
	file, err := parseYAML(data)
	if err != nil {
		line, text := yamlError(err)
		d.fault(line, "", "cannot be read as YAML: %s", text)
		return
	}
	var docs []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType && doc.Body.Type() != ast.DirectiveType {
			docs = append(docs, doc.Body)
		}
	}
	switch {
	case len(docs) == 0:
		return // an empty file sets nothing
	case len(docs) > 1:
		d.fault(lineOf(docs[1]), "", "more than one YAML document; write one")
		return
	}
	for _, n := range ast.Filter(ast.AnchorType, docs[0]) {
		a := n.(*ast.AnchorNode)
		d.anchors[a.Name.GetToken().Value] = a.Value
	}
	d.section(docs[0], reflect.ValueOf(cfg).Elem(), "", 0)
}

// parseYAML parses data; a panic of the parser is an error as any other.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, errors.New("the file cannot be parsed")
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if len(tokens) > maxTokens {
		return nil, errors.New("the file is too long for a configuration")
	}
	depth, line, entries := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position.Line != line {
			line, entries = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			entries++
		}
		if depth > maxDepth || entries > maxDepth*maxDepth {
			return nil, errors.New("values are nested too deeply")
		}
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// yamlError takes line and message out of an error of the YAML package, whose own text quotes the source.
func yamlError(err error) (line int, text string) {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return 0, err.Error() // one of ours
	}
	if tk := ye.GetToken(); tk != nil && tk.Position != nil {
		line = tk.Position.Line
	}
	text = ye.GetMessage()
	if before, _, quoted := strings.Cut(text, `"`); quoted { // what is quoted is from the file
		text = strings.TrimSpace(before)
	}
	return line, text
}

// resolve follows anchors, aliases and tags to the node that holds the value; nil stands for an absent value.
func (d *decoder) resolve(n ast.Node, path string) ast.Node {
	for range maxDepth {
		switch t := n.(type) {
		case nil:
			return nil
		case *ast.NullNode:
			return nil
		case *ast.AnchorNode:
			n = t.Value
		case *ast.TagNode:
			n = t.Value
		case *ast.AliasNode:
			name := t.Value.GetToken().Value
			target, ok := d.anchors[name]
			if !ok {
				d.fault(lineOf(t), path, "the alias points to no anchor")
				return nil
			}
			n = target
		default:
			if d.nodes++; d.nodes > maxNodes {
				if d.nodes == maxNodes+1 {
					d.fault(lineOf(n), path, "the file has too many values; are aliases nested in aliases?")
				}
				return nil
			}
			return n
		}
	}
	d.fault(lineOf(n), path, "aliases are nested too deeply")
	return nil
}

// pair is one key of a mapping with its value.
type pair struct {
	key   string
	line  int
	value ast.Node
}

// pairs lists a mapping's keys, those merged in by << first, and reports keys written twice.
func (d *decoder) pairs(n ast.Node, path string, depth int) ([]pair, bool) {
	var values []*ast.MappingValueNode
	switch t := n.(type) {
	case *ast.MappingNode:
		values = t.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{t}
	default:
		d.fault(lineOf(n), path, "want keys and values here, each on its own line")
		return nil, false
	}
	var merged, own []pair
	seen := map[string]int{}
	for _, v := range values {
		line := lineOf(v.Key)
		if _, ok := v.Key.(*ast.MergeKeyNode); ok {
			from := d.resolve(v.Value, path)
			if from != nil && depth < maxDepth {
				more, _ := d.pairs(from, path, depth+1)
				merged = append(merged, more...)
			}
			continue
		}
		key, ok := keyText(v.Key)
		if !ok {
			d.fault(line, path, "a key must be plain text")
			continue
		}
		if first, twice := seen[key]; twice {
			d.fault(line, join(path, key), "the key is here twice, first on line %d", first)
			continue
		}
		seen[key] = line
		own = append(own, pair{key: key, line: line, value: v.Value})
	}
	out := make([]pair, 0, len(merged)+len(own))
	for _, p := range merged {
		if _, overridden := seen[p.key]; !overridden {
			out = append(out, p)
		}
	}
	return append(out, own...), true
}

// section fills the struct v from mapping n.
func (d *decoder) section(n ast.Node, v reflect.Value, path string, depth int) {
	if n = d.resolve(n, path); n == nil {
		return
	}
	if depth > maxDepth {
		d.fault(lineOf(n), path, "nested too deeply")
		return
	}
	pairs, ok := d.pairs(n, path, depth)
	if !ok {
		return
	}
	fields := fieldsOf(v.Type())
	for _, p := range pairs {
		var known, rest *field
		for i := range fields {
			if fields[i].rest {
				rest = &fields[i]
			} else if fields[i].name == p.key {
				known = &fields[i]
			}
		}
		key := join(path, p.key)
		switch {
		case known != nil:
			if len(d.lines) < maxNodes {
				d.lines[key] = p.line
			}
			d.value(p.value, v.FieldByIndex(known.index), *known, key, p.line, depth+1)
		case rest != nil:
			m := v.FieldByIndex(rest.index)
			if m.IsNil() {
				m.Set(reflect.MakeMap(m.Type()))
			}
			if x := d.any(p.value, key, depth+1); x != nil {
				m.SetMapIndex(reflect.ValueOf(p.key), reflect.ValueOf(x))
			}
		default:
			d.unknown(p, path, fields)
		}
	}
}

// unknown reports a key that does not exist, with the one that was probably meant: one of the same section, else one of
// that name elsewhere in the tree.
func (d *decoder) unknown(p pair, path string, fields []field) {
	where := "at the top level"
	if path != "" {
		where = "in " + path
	}
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		names = append(names, f.name)
	}
	key := cutText(p.key, 60)
	if best, _ := nearest.Word(p.key, names); best != "" {
		d.fault(p.line, "", "unknown key %q %s; the nearest known key is %q", key, where, best)
		return
	}
	if other := keyElsewhere(p.key); other != "" {
		d.fault(p.line, "", "unknown key %q %s; there is %s", key, where, other)
		return
	}
	d.fault(p.line, "", "unknown key %q %s; known are %s", key, where, strings.Join(names, ", "))
}

// keyElsewhere finds the path of a key of this name anywhere in the tree.
func keyElsewhere(name string) string {
	var found string
	walkKeys(reflect.TypeFor[Config](), "", func(path string, f field) {
		if found == "" && f.name == name {
			found = path
		}
	})
	return found
}

// walkKeys visits every key of a section type and of those below it, in order. Elements of lists and maps are visited
// under path[] and path.<name>.
func walkKeys(t reflect.Type, path string, visit func(path string, f field)) {
	for _, f := range fieldsOf(t) {
		if f.rest {
			continue
		}
		p := join(path, f.name)
		visit(p, f)
		switch {
		case isSection(f.typ):
			walkKeys(f.typ, p, visit)
		case f.typ.Kind() == reflect.Slice && isSection(f.typ.Elem()):
			walkKeys(f.typ.Elem(), p+"[]", visit)
		case f.typ.Kind() == reflect.Map && isSection(f.typ.Elem()):
			walkKeys(f.typ.Elem(), p+".<name>", visit)
		}
	}
}

func keyText(n ast.MapKeyNode) (string, bool) {
	switch t := n.(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.MappingKeyNode:
		return "", false
	}
	if tk := n.GetToken(); tk != nil {
		return strings.TrimSpace(tk.Value), true
	}
	return "", false
}

func lineOf(n ast.Node) int {
	if n == nil {
		return 0
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line
	}
	return 0
}

func cutText(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}
