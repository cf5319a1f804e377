// Command demo shows the chat page with a scripted bot and nothing else, to look at and to click through by hand:
//
//	go run ./channels/web/internal/demo -listen 127.0.0.1:8421
//
// The bot answers "long" with a card and a streamed answer, "file" with files, "ask" with a question, "busy" with a card
// that works until it is stopped, and anything else with all of a message's shapes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/web"
	"deerbot/channels/web/internal/webtest"
)

func main() { os.Exit(run()) }

func run() int {
	listen := flag.String("listen", "127.0.0.1:8421", "address")
	pace := flag.Duration("pace", 120*time.Millisecond, "time between two edits")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *listen, *pace); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, listen string, pace time.Duration) error {
	dir, err := os.MkdirTemp("", "deerbot-demo-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ch, err := web.New(web.Config{
		Log: &webtest.Log{}, FilesDir: dir, Dialect: cards.Web(),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	bot := &script{ctx: ctx, ch: ch, web: cards.Web(), pace: pace, stops: map[string]chan struct{}{}}
	if err := ch.RegisterCommands(ctx, commands); err != nil {
		return err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", ln.Addr())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &http.Server{Handler: ch, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- ch.Run(ctx, &webtest.Inbox{On: bot.take}) }()
	go func() {
		<-ctx.Done()
		_ = srv.Close()
	}()
	err = srv.Serve(ln)
	cancel()
	stopped := <-ended
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return stopped
}

var commands = []channels.CommandInfo{
	{Name: "help", Description: map[string]string{"en": "What I can do", "zh": "我能做什么"}, Args: "[command]"},
	{Name: "new", Description: map[string]string{"en": "Start a fresh thread", "zh": "开始新的线程"}, Args: "[title]"},
	{Name: "stop", Description: map[string]string{"en": "Stop the run", "zh": "停止当前任务"}},
	{Name: "status", Description: map[string]string{"en": "What is going on", "zh": "当前状态"}},
	{Name: "schedule", Description: map[string]string{"en": "Do something again and again", "zh": "定时任务"}, Args: "<when> <what>"},
	{Name: "usage", Description: map[string]string{"en": "Tokens and cost", "zh": "用量与费用"}, Args: "[today|week|month]"},
}
