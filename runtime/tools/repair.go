package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"deerbot/runtime/sandbox"
)

// repair mends what models get wrong in one way only: a number, truth value, list or object sent as its own text, a
// whole number written with a point, a single text where a list of texts is wanted. Anything else is left for the check.
func repair(t string, s *jsonschema.Schema, v any) any {
	text, isText := v.(string)
	switch t {
	case "integer":
		n, ok := v.(json.Number)
		if isText {
			n, ok = number(text)
		}
		if whole, good := integer(n); ok && good {
			return whole
		}
	case "number":
		if n, ok := number(text); isText && ok {
			return n
		}
	case "boolean":
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true":
			return true
		case "false":
			return false
		}
	case "array":
		if !isText {
			return v
		}
		if l, ok := parseText(text).([]any); ok {
			return l
		}
		if item, _ := plainType(s.Items); item == "string" && text != "" {
			return []any{text}
		}
	case "object":
		if m, ok := parseText(text).(map[string]any); isText && ok {
			return m
		}
	}
	return v
}

// number reads a JSON number.
func number(s string) (json.Number, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 40 || !json.Valid([]byte(s)) || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return "", false
	}
	return json.Number(s), true
}

// integer writes 3.0 and 3e0 as 3, which Go's decoder would refuse for an int.
func integer(n json.Number) (json.Number, bool) {
	if _, err := n.Int64(); err == nil {
		return n, true
	}
	if f, err := strconv.ParseFloat(string(n), 64); err != nil || f > 1e15 || f < -1e15 {
		return "", false
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return "", false
	}
	return json.Number(r.Num().String()), true
}

func isInteger(n json.Number) bool {
	_, err := n.Int64()
	return err == nil
}

func parseText(s string) any {
	dec := json.NewDecoder(bytes.NewReader([]byte(s)))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return nil
	}
	return v
}

// kind names the JSON type of v.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case json.Number, float64:
		return "a number"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	}
	return "an object"
}

// show names the type of v and a little of it.
func show(v any) string {
	switch x := v.(type) {
	case string:
		return "the string " + strconv.Quote(clean(x, 60))
	case json.Number, bool:
		return fmt.Sprintf("%s (%v)", kind(v), x)
	}
	return kind(v)
}

func article(t string) string {
	switch t {
	case "integer":
		return "a whole number"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "":
		return "any value"
	}
	return "a " + t
}

// clean makes one line of at most n runes for people and the model.
func clean(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.In(r, unicode.Cf, unicode.Co):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return sandbox.Middle(strings.Join(strings.Fields(s), " "), n)
}

// nearest finds the candidate that s was most likely meant to be: at most two letters of five differ, or one contains
// the other. "" when none is near.
func nearest(s string, candidates []string) string {
	norm := strings.NewReplacer("_", "", "-", "", " ", "")
	key := norm.Replace(strings.ToLower(s))
	if key == "" || len(key) > 64 {
		return ""
	}
	best, bestDist := "", 1<<30
	for _, c := range candidates {
		k := norm.Replace(strings.ToLower(c))
		d := distance(key, k)
		if 5*d <= 2*max(len(key), len(k)) || len(key) > 2 && (strings.Contains(k, key) || strings.Contains(key, k)) {
			if d < bestDist {
				best, bestDist = c, d
			}
		}
	}
	return best
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
