package model

import (
	"bytes"
	"encoding/json"
)

// Canonical is args with sorted keys and no insignificant space, so that equal arguments compare equal. Numbers keep
// their spelling. Text that is not one JSON value is returned as it is.
func Canonical(args json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return args
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil { // maps are encoded in key order
		return args
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}
