package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Diff names the keys in which two configurations differ: those whose change applies at the next run, and those that
// need a restart. Lists and maps count as one key, models as one key each by position.
func Diff(old, new *Config) (live, restart []string) {
	walk(reflect.ValueOf(*old), reflect.ValueOf(*new), "", false, func(path string, a, b reflect.Value, r bool) {
		switch {
		case equal(a, b):
		case r:
			restart = append(restart, path)
		default:
			live = append(live, path)
		}
	})
	return live, restart
}

// Apply returns new with the values of old under every key that needs a restart: what a running daemon may go on with.
func Apply(old, new *Config) *Config {
	out := *new
	walk(reflect.ValueOf(*old), reflect.ValueOf(&out).Elem(), "", false, func(_ string, a, b reflect.Value, r bool) {
		if r && b.CanSet() {
			b.Set(a)
		}
	})
	return &out
}

// walk visits the leaves of two section values side by side, with whether a change needs a restart.
func walk(a, b reflect.Value, path string, restart bool, visit func(path string, a, b reflect.Value, restart bool)) {
	for _, f := range fieldsOf(a.Type()) {
		x, y := a.FieldByIndex(f.index), b.FieldByIndex(f.index)
		p, r := join(path, f.name), restart || f.restart
		switch {
		case f.rest:
			visit(path+".*", x, y, r)
		case isSection(f.typ):
			walk(x, y, p, r, visit)
		case f.typ == reflect.TypeFor[[]Model]():
			for i := range max(x.Len(), y.Len()) {
				visit(fmt.Sprintf("%s[%d]", p, i), elem(x, i), elem(y, i), r)
			}
		default:
			visit(p, x, y, r)
		}
	}
}

// walkValues visits the leaves of two section values side by side.
func walkValues(a, b reflect.Value, path string, visit func(path string, a, b reflect.Value)) {
	walk(a, b, path, false, func(path string, a, b reflect.Value, _ bool) { visit(path, a, b) })
}

// elem is element i of a list, the zero Value past its end.
func elem(list reflect.Value, i int) reflect.Value {
	if i < list.Len() {
		return list.Index(i)
	}
	return reflect.Value{}
}

// equal compares two values of one key; an empty list or map equals an absent one.
func equal(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() {
		return false
	}
	if !a.IsValid() {
		return true
	}
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// Secrets lists every secret value in cfg, for tests that look for them where they must not be.
func Secrets(cfg *Config) []string {
	seen := map[string]bool{}
	collect(reflect.ValueOf(*cfg), seen)
	return slices.Sorted(maps.Keys(seen))
}

func collect(v reflect.Value, into map[string]bool) {
	switch {
	case v.Type() == secretType:
		if v.Len() > 0 {
			into[v.String()] = true
		}
	case v.Kind() == reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			collect(v.FieldByIndex(f.index), into)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), into)
		}
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			collect(v.MapIndex(key), into)
		}
	}
}
