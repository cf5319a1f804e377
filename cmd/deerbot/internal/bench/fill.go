package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"deerbot/runtime"
	"deerbot/runtime/model"
	"deerbot/runtime/run"
	"deerbot/store"
	"deerbot/store/boltstore"
)

// fill makes a store of n threads, each with a conversation, a finished run and its checkpoint.
func fill(ctx context.Context, path string, n int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	s, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make(chan error, n)
	sem := make(chan struct{}, 100)
	for i := range n {
		sem <- struct{}{}
		wg.Go(func() {
			defer func() { <-sem }()
			if err := fillOne(ctx, s, i); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		return err
	}
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

func fillOne(ctx context.Context, s store.Store, i int) error {
	now := time.Now()
	c := &store.Conversation{
		Key:      store.ConversationKey{Channel: "telegram", Chat: fmt.Sprint(100000 + i)},
		ThreadID: runtime.NewID(), CreatedAt: now, UpdatedAt: now,
	}
	if err := s.PutConversation(ctx, c); err != nil {
		return err
	}
	in, err := run.EncodeInput([]model.Message{model.Text("in", model.RoleUser, "a question")})
	if err != nil {
		return err
	}
	r, _, err := s.AdmitRun(ctx, &store.Run{
		ID: runtime.NewID(), ThreadID: c.ThreadID, State: store.RunRunning, Owner: "fill", Epoch: 1, LeaseUntil: now,
		Input: in, CreatedAt: now, StartedAt: now,
	}, store.StrategyReject)
	if err != nil {
		return err
	}
	return s.WriteRun(ctx, &store.RunWrite{
		RunID: r.ID, Epoch: r.Epoch, To: store.RunSuccess, At: now,
		Checkpoint: &store.Checkpoint{ID: runtime.NewID(), ThreadID: c.ThreadID, RunID: r.ID, CreatedAt: now},
	})
}
