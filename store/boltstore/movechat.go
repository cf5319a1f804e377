package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"deerbot/store"
)

// MoveChat implements store.Conversations. What the new chat has already is newer and stays. Dedupe keys do not move: the
// new chat counts its messages anew, and an old number must not hide a new message.
func (s *Store) MoveChat(ctx context.Context, channel, workspace, oldChat, newChat string) error {
	if oldChat == newChat {
		return nil
	}
	m := move{
		from: store.ConversationKey{Channel: channel, Workspace: workspace, Chat: oldChat}, chat: newChat,
		old: key(channel, workspace, oldChat), new: key(channel, workspace, newChat),
	}
	return s.update(ctx, "move chat", func(tx *txn) error {
		for _, step := range []func(*txn) error{m.conversations, m.messages, m.inbox, m.outbox, m.schedules} {
			if err := step(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// move is a chat on its way to another id.
type move struct {
	from     store.ConversationKey // Topic is empty
	chat     string
	old, new []byte // prefixes of keys
}

// key gives the new key of a place in the moved chat.
func (m *move) key(k store.ConversationKey) (store.ConversationKey, bool) {
	if k.Channel != m.from.Channel || k.Workspace != m.from.Workspace || k.Chat != m.from.Chat {
		return k, false
	}
	k.Chat = m.chat
	return k, true
}

type pair struct{ k, v []byte }

// collect copies the records below a prefix, so that they can be changed.
func collect(b bucket, prefix []byte) (all []pair, err error) {
	err = scan(b, prefix, func(k, v []byte) (bool, error) {
		all = append(all, pair{bytes.Clone(k), bytes.Clone(v)})
		return true, nil
	})
	return all, err
}

// rekey moves the records below the old prefix. It calls each, if set, with the old and new key of every one, and whether
// the new key was free.
func (m *move) rekey(b bucket, each func(old, new, v []byte, free bool) error) error {
	all, err := collect(b, m.old)
	if err != nil {
		return err
	}
	for _, p := range all {
		k := join(m.new, p.k[len(m.old):])
		free := b.Get(k) == nil
		if free {
			if err := b.Put(k, p.v); err != nil {
				return err
			}
		}
		if err := b.Delete(p.k); err != nil {
			return err
		}
		if each != nil {
			if err := each(p.k, k, p.v, free); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *move) conversations(tx *txn) error {
	b := tx.Bucket(bConv)
	return m.rekey(b, func(_, k, v []byte, free bool) error {
		if !free {
			return nil
		}
		var c store.Conversation
		if err := json.Unmarshal(v, &c); err != nil {
			return err
		}
		c.Key, _ = m.key(c.Key)
		return put(b, k, &c)
	})
}

// messages moves the index of messages, whose values do not name the chat, and the queue of the inbox.
func (m *move) messages(tx *txn) error {
	if err := m.rekey(tx.Bucket(bConvMsg), nil); err != nil {
		return err
	}
	return m.rekey(tx.Bucket(bInboxQueue), nil)
}

func (m *move) inbox(tx *txn) error {
	b := tx.Bucket(bInbox)
	all, err := collect(b, nil)
	if err != nil {
		return err
	}
	for _, p := range all {
		h, _, err := openEntry(p.v)
		if err != nil {
			return fmt.Errorf("entry %s: %w", p.k, err)
		}
		if !bytes.HasPrefix(h.conv, m.old) {
			continue
		}
		e, err := decodeEntry(p.v)
		if err != nil {
			return err
		}
		e.Conversation, _ = m.key(e.Conversation)
		body, err := encodeEntry(e)
		if err != nil {
			return err
		}
		h.conv = convKey(e.Conversation)
		if err := b.Put(p.k, seal(h.append(), body)); err != nil {
			return err
		}
	}
	return nil
}

func (m *move) outbox(tx *txn) error {
	b := tx.Bucket(bOut)
	var moved []pair
	if err := scan(b, nil, func(k, v []byte) (bool, error) {
		header, body, err := unseal(v)
		if err != nil {
			return false, err
		}
		var o struct {
			Conversation store.ConversationKey `json:"conversation"`
		}
		if err := json.Unmarshal(body, &o); err != nil {
			return false, err
		}
		if _, ok := m.key(o.Conversation); !ok {
			return true, nil
		}
		var rec store.Outgoing
		if err := json.Unmarshal(body, &rec); err != nil {
			return false, err
		}
		rec.Conversation, _ = m.key(rec.Conversation)
		if body, err = encode(&rec); err != nil {
			return false, err
		}
		moved = append(moved, pair{bytes.Clone(k), seal(header, body)})
		return true, nil
	}); err != nil {
		return err
	}
	for _, p := range moved {
		if err := b.Put(p.k, p.v); err != nil {
			return err
		}
	}
	return nil
}

func (m *move) schedules(tx *txn) error {
	b := tx.Bucket(bSchedule)
	all, err := collect(b, nil)
	if err != nil {
		return err
	}
	for _, p := range all {
		var sc store.Schedule
		if err := json.Unmarshal(p.v, &sc); err != nil {
			return err
		}
		k, ok := m.key(sc.Conversation)
		if !ok {
			continue
		}
		sc.Conversation = k
		if err := put(b, p.k, &sc); err != nil {
			return err
		}
	}
	return nil
}
