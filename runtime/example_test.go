package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"deerbot/runtime"
	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/middleware"
	"deerbot/runtime/model"
	"deerbot/runtime/model/rehearsal"
	"deerbot/runtime/run"
	"deerbot/runtime/sandbox"
	"deerbot/runtime/tools"
	"deerbot/store"
	"deerbot/store/boltstore"
)

// The runtime alone: a store, a model, tools, and one run that is followed to its end. Nothing of it knows a chat.
func Example() {
	dir, err := os.MkdirTemp("", "deerbot-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	// What it works with. rehearsal is the stand-in that needs no key; runtime/model has the real ones.
	db, err := boltstore.Open(filepath.Join(dir, "deerbot.db"), boltstore.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	list, err := tools.Builtin(tools.BuiltinConfig{})
	if err != nil {
		panic(err)
	}
	set, err := tools.NewSet(list...)
	if err != nil {
		panic(err)
	}
	log := slog.New(slog.DiscardHandler)
	chain, err := agent.NewChain(log, middleware.Default(middleware.Config{})...)
	if err != nil {
		panic(err)
	}
	rt, err := runtime.New(runtime.Config{
		Store: db, Loop: &agent.Loop{Chain: chain, Log: log}, Log: log,
		Setup: func(_ context.Context, r store.Run) (run.Setup, error) {
			files, err := sandbox.Open(filepath.Join(dir, "threads", r.ThreadID))
			if err != nil {
				return run.Setup{}, err
			}
			return run.Setup{
				Model: rehearsal.New(rehearsal.Config{ChunkDelay: -1}), Tools: set, Files: files,
				System: agent.Prompt{Now: time.Now()}.String(),
			}, nil
		},
	})
	if err != nil {
		panic(err)
	}

	// Run keeps what belongs to this process alive; Recover takes up what an earlier one left.
	life, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = rt.Run(life) })
	if _, err := rt.Recover(ctx, true); err != nil {
		panic(err)
	}

	// One thread, one run.
	thread := runtime.NewID()
	if err := db.PutThread(ctx, &store.Thread{ID: thread, CreatedAt: time.Now()}); err != nil {
		panic(err)
	}
	r, _, err := rt.Start(ctx, runtime.Request{
		ThreadID: thread, Origin: "example",
		Input: []model.Message{model.Text("", model.RoleUser, "Write a short report about tea.")},
	})
	if err != nil {
		panic(err)
	}
	for e, err := range rt.Subscribe(ctx, r.ID, 0) {
		if err != nil {
			panic(err)
		}
		switch b := e.Body.(type) {
		case event.ToolStarted:
			fmt.Println("tool", b.Name)
		case event.ArtifactPresented:
			fmt.Println("file", b.Artifact.Name)
		case event.End:
			fmt.Println("ended:", b.State)
		}
	}

	rt.Close(ctx) // waits for the steps under way; the rest goes on after the next start
	stop()
	wg.Wait()
	// Output:
	// tool todo
	// tool write_file
	// tool present_files
	// file rehearsal.md
	// ended: success
}
