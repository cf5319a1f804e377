package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// key joins parts so that different sequences never collide: a zero byte inside a part becomes 0x00 0xFF, and 0x00 0x01
// ends a part. The order of keys is the order of their parts.
func key(parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p) + 2
	}
	out := make([]byte, 0, n)
	for _, p := range parts {
		for i := range len(p) {
			out = append(out, p[i])
			if p[i] == 0 {
				out = append(out, 0xFF)
			}
		}
		out = append(out, 0, 1)
	}
	return out
}

// num is n as eight bytes that sort like numbers.
func num(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// when is t as eight bytes that sort by time.
func when(t time.Time) []byte {
	if t.IsZero() {
		return num(0)
	}
	return num(uint64(t.UnixNano()) ^ 1<<63)
}

// timeOf is the time of which when made k.
func timeOf(k []byte) time.Time {
	n := binary.BigEndian.Uint64(k)
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(n^1<<63)).UTC()
}

// unkey takes the first part off a key that key made.
func unkey(k []byte) (part string, rest []byte, err error) {
	var out []byte
	for i := 0; i < len(k); i++ {
		if k[i] != 0 {
			out = append(out, k[i])
			continue
		}
		i++
		switch {
		case i < len(k) && k[i] == 1:
			return string(out), k[i+1:], nil
		case i < len(k) && k[i] == 0xFF:
			out = append(out, 0)
		default:
			return "", nil, fmt.Errorf("key part %q: %w", k, errHeader)
		}
	}
	return "", nil, fmt.Errorf("key part %q has no end: %w", k, errHeader)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
