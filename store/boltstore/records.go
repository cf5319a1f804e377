package boltstore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"deerbot/store"
)

// txn is a transaction that knows whether it was written to, so that a function that fails before it wrote anything can
// be taken out of a commit without running the others again.
type txn struct {
	*bolt.Tx
	dirty bool
}

// Bucket opens a bucket of the layout, all of which exist.
func (tx *txn) Bucket(name []byte) bucket {
	b := tx.Tx.Bucket(name)
	if appended[string(name)] {
		b.FillPercent = 0.9
	}
	return bucket{b, tx}
}

type bucket struct {
	*bolt.Bucket
	tx *txn
}

// Put keeps v until the transaction ends.
func (b bucket) Put(k, v []byte) error {
	if len(v) > store.MaxValue {
		return fmt.Errorf("%w: %d bytes, at most %d", store.ErrTooLarge, len(v), store.MaxValue)
	}
	b.tx.dirty = true
	return b.Bucket.Put(k, v)
}

func (b bucket) Delete(k []byte) error {
	b.tx.dirty = true
	return b.Bucket.Delete(k)
}

func (b bucket) NextSequence() (uint64, error) {
	b.tx.dirty = true
	return b.Bucket.NextSequence()
}

// encode makes the stored form of v. Writers call it before they ask for the transaction, so that the committer, of which
// there is one, has little to do.
func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(raw) > store.MaxValue {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", store.ErrTooLarge, len(raw), store.MaxValue)
	}
	return raw, nil
}

// put writes v as JSON.
func put(b bucket, k []byte, v any) error {
	raw, err := encode(v)
	if err != nil {
		return err
	}
	return b.Put(k, raw)
}

// get reads JSON. A missing key is ErrNotFound.
func get[T any](b bucket, k []byte, what string) (T, error) {
	var v T
	raw := b.Get(k)
	if raw == nil {
		return v, fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("%s: %w", what, err)
	}
	return v, nil
}

// seal puts a small header, which changes and is read often, before a body that is encoded once.
func seal(header, body []byte) []byte {
	out := make([]byte, 0, binary.MaxVarintLen32+len(header)+len(body))
	out = binary.AppendUvarint(out, uint64(len(header)))
	return append(append(out, header...), body...)
}

var errHeader = errors.New("record has a bad header")

// unseal takes apart what seal made. Both parts are the transaction's memory.
func unseal(v []byte) (header, body []byte, err error) {
	n, k := binary.Uvarint(v)
	if k <= 0 || n > uint64(len(v)-k) {
		return nil, nil, errHeader
	}
	return v[k : k+int(n)], v[k+int(n):], nil
}

// scan calls fn for the keys of b with the prefix, in order, until it returns false.
func scan(b bucket, prefix []byte, fn func(k, v []byte) (bool, error)) error {
	c := b.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if more, err := fn(k, v); err != nil || !more {
			return err
		}
	}
	return nil
}

// drop deletes keys that were collected before.
func drop(b bucket, keys [][]byte) error {
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
