package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"deerbot/cmd/deerbot/internal/bench"
	"deerbot/runtime/agent"
	"deerbot/runtime/middleware"
)

// benchTree are the options of bench.
type benchTree struct {
	Only    []string      `placeholder:"PART" help:"Only these parts: start, latency, throughput, memory, stream."`
	Turns   int           `default:"500" help:"Turns of the latency part."`
	Chats   int           `default:"200" help:"Chats at once in the throughput part."`
	PerChat int           `default:"20" help:"Turns of each of them."`
	Live    int           `default:"1000" help:"Conversations of the memory part."`
	Threads int           `default:"10000" help:"Threads in the store for the second cold start."`
	Stream  time.Duration `default:"30s" help:"Length of the streamed answer."`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// runBench measures and prints.
func runBench(b benchTree, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := bench.Run(ctx, bench.Options{
		Only: b.Only, Turns: b.Turns, Chats: b.Chats, PerChat: b.PerChat, Live: b.Live, Threads: b.Threads,
		Stream: b.Stream, JSON: b.JSON, Out: stdout,
	})
	if err != nil {
		fmt.Fprintf(stderr, "deerbot: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// printMiddleware prints the chain in the order in which it wraps, outermost first.
func printMiddleware(stdout, stderr io.Writer) int {
	chain, err := agent.NewChain(slog.New(slog.DiscardHandler), middleware.Default(middleware.Config{Now: time.Now})...)
	if err != nil {
		fmt.Fprintf(stderr, "deerbot: %v\n", err)
		return exitFailed
	}
	var out strings.Builder
	if err := agent.Print(&out, chain.Describe()); err != nil {
		fmt.Fprintf(stderr, "deerbot: %v\n", err)
		return exitFailed
	}
	return write(stdout, stderr, []byte(out.String()))
}
