package boltstore

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"deerbot/store"
)

// PutUser implements store.Users.
func (s *Store) PutUser(ctx context.Context, u *store.User) error {
	rec := *u
	return s.update(ctx, "put user", func(tx *txn) error { return put(tx.Bucket(bUser), []byte(rec.ID), &rec) })
}

// User implements store.Users.
func (s *Store) User(ctx context.Context, id string) (u store.User, err error) {
	err = s.view(ctx, "user", func(tx *txn) error {
		u, err = get[store.User](tx.Bucket(bUser), []byte(id), "user "+id)
		return err
	})
	return u, err
}

// PutConnection implements store.Users.
func (s *Store) PutConnection(ctx context.Context, c *store.Connection) (prev string, err error) {
	rec := *c
	err = s.update(ctx, "put connection", func(tx *txn) error {
		prev = ""
		k := key(rec.Channel, rec.Workspace, rec.Account)
		if tx.Bucket(bConn).Get(k) != nil {
			old, err := get[store.Connection](tx.Bucket(bConn), k, "connection")
			if err != nil {
				return err
			}
			if old.UserID != rec.UserID {
				prev = old.UserID
			}
			if err := tx.Bucket(bConnUser).Delete(join(key(old.UserID), k)); err != nil {
				return err
			}
		}
		if err := tx.Bucket(bConnUser).Put(join(key(rec.UserID), k), nil); err != nil {
			return err
		}
		return put(tx.Bucket(bConn), k, &rec)
	})
	return prev, err
}

// ConnectionOf implements store.Users.
func (s *Store) ConnectionOf(ctx context.Context, channel, workspace, account string) (c store.Connection, err error) {
	err = s.view(ctx, "connection", func(tx *txn) error {
		c, err = get[store.Connection](tx.Bucket(bConn), key(channel, workspace, account), "connection")
		return err
	})
	return c, err
}

// DeleteConnection implements store.Users. Deleting what is not there is fine.
func (s *Store) DeleteConnection(ctx context.Context, channel, workspace, account string) error {
	return s.update(ctx, "delete connection", func(tx *txn) error {
		k := key(channel, workspace, account)
		if tx.Bucket(bConn).Get(k) == nil {
			return nil
		}
		old, err := get[store.Connection](tx.Bucket(bConn), k, "connection")
		if err != nil {
			return err
		}
		if err := tx.Bucket(bConnUser).Delete(join(key(old.UserID), k)); err != nil {
			return err
		}
		return tx.Bucket(bConn).Delete(k)
	})
}

// UserConnections implements store.Users.
func (s *Store) UserConnections(ctx context.Context, userID string) (out []store.Connection, err error) {
	err = s.view(ctx, "connections of user", func(tx *txn) error {
		prefix := key(userID)
		return scan(tx.Bucket(bConnUser), prefix, func(k, _ []byte) (bool, error) {
			c, err := get[store.Connection](tx.Bucket(bConn), k[len(prefix):], "connection")
			out = append(out, c)
			return true, err
		})
	})
	return out, err
}

func dueKey(sc *store.Schedule) []byte { return append(when(sc.Next), sc.ID...) }

// undue takes a schedule's present entry off the list of due ones.
func undue(tx *txn, id string) error {
	if tx.Bucket(bSchedule).Get([]byte(id)) == nil {
		return nil
	}
	old, err := get[store.Schedule](tx.Bucket(bSchedule), []byte(id), "schedule "+id)
	if err != nil {
		return err
	}
	return tx.Bucket(bSchedDue).Delete(dueKey(&old))
}

// PutSchedule implements store.Schedules.
func (s *Store) PutSchedule(ctx context.Context, in *store.Schedule) error {
	rec := *in
	return s.update(ctx, "put schedule", func(tx *txn) error {
		if err := undue(tx, rec.ID); err != nil {
			return err
		}
		if rec.Active && !rec.Next.IsZero() {
			if err := tx.Bucket(bSchedDue).Put(dueKey(&rec), nil); err != nil {
				return err
			}
		}
		return put(tx.Bucket(bSchedule), []byte(rec.ID), &rec)
	})
}

// Schedule implements store.Schedules.
func (s *Store) Schedule(ctx context.Context, id string) (sc store.Schedule, err error) {
	err = s.view(ctx, "schedule", func(tx *txn) error {
		sc, err = get[store.Schedule](tx.Bucket(bSchedule), []byte(id), "schedule "+id)
		return err
	})
	return sc, err
}

// DeleteSchedule implements store.Schedules. Deleting what is not there is fine.
func (s *Store) DeleteSchedule(ctx context.Context, id string) error {
	return s.update(ctx, "delete schedule", func(tx *txn) error {
		if err := undue(tx, id); err != nil {
			return err
		}
		return tx.Bucket(bSchedule).Delete([]byte(id))
	})
}

// Schedules implements store.Schedules.
func (s *Store) Schedules(ctx context.Context, c store.ConversationKey) (out []store.Schedule, err error) {
	err = s.view(ctx, "schedules", func(tx *txn) error {
		return scan(tx.Bucket(bSchedule), nil, func(_, v []byte) (bool, error) {
			var sc store.Schedule
			if err := json.Unmarshal(v, &sc); err != nil {
				return false, err
			}
			if sc.Conversation == c {
				out = append(out, sc)
			}
			return true, nil
		})
	})
	return out, err
}

// DueSchedules implements store.Schedules.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, limit int) (out []store.Schedule, err error) {
	err = s.view(ctx, "due schedules", func(tx *txn) error {
		end := when(now)
		c := tx.Bucket(bSchedDue).Cursor()
		for k, _ := c.First(); k != nil && bytes.Compare(k[:8], end) <= 0 && len(out) < limit; k, _ = c.Next() {
			sc, err := get[store.Schedule](tx.Bucket(bSchedule), k[8:], "schedule")
			if err != nil {
				return err
			}
			out = append(out, sc)
		}
		return nil
	})
	return out, err
}
