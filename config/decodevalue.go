package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// value fills v, whose key is path, from n.
func (d *decoder) value(n ast.Node, v reflect.Value, f field, path string, line, depth int) {
	if isSection(v.Type()) {
		d.section(n, v, path, depth)
		return
	}
	if n = d.resolve(n, path); n == nil {
		return // no value: the default stands
	}
	if l := lineOf(n); l > 0 {
		line = l
	}
	switch v.Kind() {
	case reflect.Slice:
		d.list(n, v, path, line, depth)
	case reflect.Map:
		d.mapping(n, v, path, line, depth)
	default:
		d.scalar(n, v, f, path, line)
	}
}

func (d *decoder) list(n ast.Node, v reflect.Value, path string, line, depth int) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(line, path, "want a list, such as [a, b]")
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	for i, item := range seq.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		elem := newElem(v.Type().Elem())
		itemLine := lineOf(item)
		if d.resolve(item, at) == nil {
			d.fault(max(itemLine, line), at, "is empty")
			continue
		}
		d.lines[at] = itemLine
		d.value(item, elem, field{}, at, itemLine, depth+1)
		out = reflect.Append(out, elem)
	}
	v.Set(out)
}

func (d *decoder) mapping(n ast.Node, v reflect.Value, path string, line, depth int) {
	if depth > maxDepth {
		d.fault(line, path, "nested too deeply")
		return
	}
	if v.Type().Elem().Kind() == reflect.Interface {
		if m, ok := d.any(n, path, depth).(map[string]any); ok {
			v.Set(reflect.ValueOf(m))
		} else {
			d.fault(line, path, "want keys and values here")
		}
		return
	}
	pairs, ok := d.pairs(n, path, depth)
	if !ok {
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, p := range pairs {
		elem := newElem(v.Type().Elem())
		d.lines[join(path, p.key)] = p.line
		d.value(p.value, elem, field{}, join(path, p.key), p.line, depth+1)
		out.SetMapIndex(reflect.ValueOf(p.key), elem)
	}
	v.Set(out)
}

// scalar parses the text of n as v's type. Variables are expanded first, so ${PORT} can be a number.
func (d *decoder) scalar(n ast.Node, v reflect.Value, f field, path string, line int) {
	text, quoted, ok := scalarText(n)
	if !ok {
		d.fault(line, path, "want %s", kindText(v.Type(), f))
		return
	}
	expanded, err := expand(text, d.env)
	if err != nil {
		d.fault(line, path, "%v", err)
		return
	}
	literal := quoted && expanded == text
	if err := setScalar(v, n, expanded, literal); err != nil {
		d.fault(line, path, "want %s", kindText(v.Type(), f))
		return
	}
	if text := check(v, f); text != "" {
		d.fault(line, path, "%s", text)
	}
}

// setScalar sets v from text. literal says that the file has it in quotes.
func setScalar(v reflect.Value, n ast.Node, text string, literal bool) error {
	trimmed := strings.TrimSpace(text)
	switch v.Type() {
	case secretType:
		v.SetString(trimmed)
		return nil
	case switchType:
		v.SetString(strings.ToLower(trimmed))
		return nil
	case durationType:
		dur, err := time.ParseDuration(trimmed)
		if err != nil {
			return err
		}
		v.SetInt(int64(dur))
		return nil
	case sizeType:
		size, err := ParseSize(trimmed)
		if err != nil {
			return err
		}
		v.SetInt(int64(size))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		if _, isBool := n.(*ast.BoolNode); isBool {
			return strconv.ErrSyntax
		}
		v.SetString(trimmed)
	case reflect.Bool:
		b, err := strconv.ParseBool(trimmed)
		if err != nil || literal || len(trimmed) == 1 {
			return strconv.ErrSyntax
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(trimmed, "_", ""), 10, 64)
		if err != nil || literal {
			return strconv.ErrSyntax
		}
		v.SetInt(i)
	case reflect.Float64:
		x, err := strconv.ParseFloat(strings.ReplaceAll(trimmed, "_", ""), 64)
		if err != nil || literal || math.IsNaN(x) || math.IsInf(x, 0) {
			return strconv.ErrSyntax
		}
		v.SetFloat(x)
	default:
		return fmt.Errorf("a %s cannot be configured", v.Type())
	}
	return nil
}

// check holds v against the enum and the bounds of its tags and returns what is wrong, "" if nothing is.
func check(v reflect.Value, f field) string {
	if f.enum != nil && !slices.Contains(f.enum, v.String()) {
		return "must be " + orList(f.enum)
	}
	below, above := false, false
	switch {
	case v.Type() == durationType:
		lo, hi := mustDuration(f.min), mustDuration(f.max)
		below, above = f.min != "" && v.Int() < int64(lo), f.max != "" && v.Int() > int64(hi)
	case v.CanInt():
		below, above = f.min != "" && float64(v.Int()) < mustFloat(f.min), f.max != "" && float64(v.Int()) > mustFloat(f.max)
	case v.CanFloat():
		below, above = f.min != "" && v.Float() < mustFloat(f.min), f.max != "" && v.Float() > mustFloat(f.max)
	}
	switch {
	case (below || above) && f.min != "" && f.max != "":
		return fmt.Sprintf("must be from %s to %s", f.min, f.max)
	case below:
		return "must be at least " + f.min
	case above:
		return "must be at most " + f.max
	}
	return ""
}

// The bounds stand in struct tags; a test parses them all.
func mustDuration(s string) time.Duration { d, _ := time.ParseDuration(s); return d }
func mustFloat(s string) float64          { x, _ := strconv.ParseFloat(s, 64); return x }

// scalarText returns the text of a scalar as it stands in the file: 00123 stays 00123.
func scalarText(n ast.Node) (text string, quoted, ok bool) {
	switch t := n.(type) {
	case *ast.StringNode:
		tk := t.GetToken()
		quoted = tk != nil && (strings.HasPrefix(tk.Origin, `"`) || strings.HasPrefix(tk.Origin, "'") ||
			tk.Type.String() == "DoubleQuote" || tk.Type.String() == "SingleQuote")
		return t.Value, quoted, true
	case *ast.LiteralNode:
		return t.Value.Value, true, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(n.GetToken().Value), false, true
	}
	return "", false, false
}

// any decodes a free-form value.
func (d *decoder) any(n ast.Node, path string, depth int) any {
	if n = d.resolve(n, path); n == nil {
		return nil
	}
	if depth > maxDepth {
		d.fault(lineOf(n), path, "nested too deeply")
		return nil
	}
	switch t := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		out := map[string]any{}
		pairs, _ := d.pairs(n, path, depth)
		for _, p := range pairs {
			out[p.key] = d.any(p.value, join(path, p.key), depth+1)
		}
		return out
	case *ast.SequenceNode:
		out := make([]any, 0, len(t.Values))
		for i, item := range t.Values {
			out = append(out, d.any(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
		return out
	case *ast.BoolNode:
		return t.Value
	case *ast.IntegerNode:
		return t.Value
	case *ast.FloatNode:
		return t.Value
	}
	text, _, ok := scalarText(n)
	if !ok {
		d.fault(lineOf(n), path, "cannot be understood")
		return nil
	}
	expanded, err := expand(text, d.env)
	if err != nil {
		d.fault(lineOf(n), path, "%v", err)
		return nil
	}
	return expanded
}

// kindText says what a type wants, for people.
func kindText(t reflect.Type, f field) string {
	switch {
	case f.enum != nil:
		return orList(f.enum)
	case t == durationType:
		return "a duration with its unit, such as 90s or 15m"
	case t == sizeType:
		return "a size such as 512MB or 2GB"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "text; put it in quotes"
}

// orList joins values for people: "a, b or c".
func orList(values []string) string {
	named := make([]string, len(values))
	for i, v := range values {
		if named[i] = v; v == "" {
			named[i] = `""`
		}
	}
	if len(named) == 1 {
		return named[0]
	}
	return strings.Join(named[:len(named)-1], ", ") + " or " + named[len(named)-1]
}
