package boltstore

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestKeys: different parts give different keys, keys sort like their parts, and only a prefix of parts is a prefix.
func TestKeys(t *testing.T) {
	part := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, '/', 'a', 0xFE, 0xFF}), 0, 5).Draw(t, "part"))
	})
	parts := rapid.SliceOfN(part, 1, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := parts.Draw(t, "a"), parts.Draw(t, "b")
		ka, kb := key(a...), key(b...)
		if got, want := bytes.Compare(ka, kb), slices.Compare(a, b); got != want {
			t.Fatalf("keys of %q and %q compare as %d, want %d", a, b, got, want)
		}
		isPrefix := len(a) <= len(b) && slices.Equal(a, b[:min(len(a), len(b))])
		if got := bytes.HasPrefix(kb, ka); got != isPrefix {
			t.Fatalf("key of %q begins with key of %q: %v", b, a, got)
		}
		rest := ka
		for i, want := range a {
			got, more, err := unkey(rest)
			if err != nil || got != want {
				t.Fatalf("part %d of %q is %q, %v", i, a, got, err)
			}
			rest = more
		}
		if len(rest) != 0 {
			t.Fatalf("%q is left of %q", rest, a)
		}
	})
}

func TestWhen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-1<<62, 1<<62)
		a, b := time.Unix(0, n.Draw(t, "a")).UTC(), time.Unix(0, n.Draw(t, "b")).UTC()
		if got := bytes.Compare(when(a), when(b)); got != a.Compare(b) {
			t.Fatalf("%v and %v compare as %d", a, b, got)
		}
		if got := timeOf(when(a)); !got.Equal(a) {
			t.Fatalf("%v became %v", a, got)
		}
	})
	if !timeOf(when(time.Time{})).IsZero() {
		t.Error("the zero time is lost")
	}
}

func FuzzUnseal(f *testing.F) {
	f.Add(seal([]byte("header"), []byte("body")))
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01})
	f.Fuzz(func(t *testing.T, v []byte) {
		if h, b, err := unseal(v); err == nil && len(h)+len(b) >= len(v) {
			t.Errorf("%d bytes of %d", len(h)+len(b), len(v))
		}
		_, _, _ = openEntry(v)
		_, _, _ = openOut(v)
		_, _, _ = unkey(v)
	})
}
