package config

import (
	"reflect"
	"strings"
	"sync"
	"time"
)

// field is one key of a configuration struct, read from its tags:
//
//	yaml  the key; ",inline" for an embedded struct, ",rest" for a map that takes unknown keys
//	doc   what it does, for the schema, the example and the docs
//	enum  allowed values, separated by commas
//	min, max  bounds of a number or duration
//	live  "no": a change needs a restart; inherited by what is below
type field struct {
	name     string
	doc      string
	enum     []string
	min, max string
	restart  bool
	rest     bool
	index    []int
	typ      reflect.Type
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	sizeType     = reflect.TypeFor[Size]()
	switchType   = reflect.TypeFor[Switch]()

	fieldCache sync.Map // reflect.Type -> []field
)

// fieldsOf lists the keys of struct type t in order, embedded structs flattened.
func fieldsOf(t reflect.Type) []field {
	if f, ok := fieldCache.Load(t); ok {
		return f.([]field)
	}
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		tag, ok := sf.Tag.Lookup("yaml")
		if !ok || tag == "-" {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		if option == "inline" {
			for _, f := range fieldsOf(sf.Type) {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
			continue
		}
		f := field{
			name: name, doc: sf.Tag.Get("doc"), min: sf.Tag.Get("min"), max: sf.Tag.Get("max"),
			restart: sf.Tag.Get("live") == "no", rest: option == "rest", index: []int{i}, typ: sf.Type,
		}
		if enum, ok := sf.Tag.Lookup("enum"); ok {
			f.enum = strings.Split(enum, ",")
		}
		out = append(out, f)
	}
	fieldCache.Store(t, out)
	return out
}

// isSection reports whether t is a struct of keys.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct }

// newElem makes an element of a list or map with its defaults.
func newElem(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	if t == reflect.TypeFor[Model]() {
		v.Set(reflect.ValueOf(DefaultModel("")))
	}
	return v
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
