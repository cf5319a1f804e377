// Command wire plays the platforms: a Telegram Bot API server and two model servers on one address, and a terminal in
// which one types as the people of a chat and sees what they see.
//
//	go run ./internal/wire/cmd/wire
//
// It prints what deerbot needs to be told to talk to it. Type :help for what the terminal understands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"deerbot/internal/wire/anthropic"
	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/telegram"
)

type cli struct {
	Listen  string `default:"127.0.0.1:8081" help:"Address of all servers."`
	Token   string `default:"${token}" help:"The bot's token."`
	Bot     string `default:"deer_bot" help:"The bot's username."`
	Limits  bool   `help:"Enforce Telegram's rates."`
	Privacy bool   `help:"Privacy mode: in groups the bot gets commands, mentions and replies only."`
}

func main() {
	var c cli
	kong.Parse(&c, kong.Vars{"token": telegram.DefaultToken},
		kong.Description("Plays Telegram and the model providers for a deerbot, with a terminal to chat in."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "wire: %v\n", err)
		os.Exit(1)
	}
}

// run serves until ctx ends or the terminal is left with :quit; the end of in only ends the typing.
func run(ctx context.Context, c cli, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := telegram.Options{Token: c.Token, Username: c.Bot, Privacy: c.Privacy}
	if c.Limits {
		o.Limits = telegram.RealLimits()
	}
	tg := telegram.New(o)
	mux := http.NewServeMux()
	mux.Handle("/openai/", &openai.Server{})
	mux.Handle("/anthropic/", &anthropic.Server{})
	mux.Handle("/", tg)

	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	greet(out, "http://"+l.Addr().String(), c.Token)

	t := newTerminal(tg, out)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		t.watch(ctx)
	}()
	typed := make(chan struct{})
	go func() { // may stay in a read of standard input when the process ends
		defer close(typed)
		if t.read(ctx, in) {
			cancel()
		}
	}()

	select {
	case <-ctx.Done():
	case err = <-served:
	}
	cancel()
	tg.Cut()
	down, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if srv.Shutdown(down) != nil {
		_ = srv.Close()
	}
	<-watched
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// greet prints how to point deerbot here.
func greet(out io.Writer, base, token string) {
	fmt.Fprintf(out, `Serving on %[1]s. For a deerbot that talks to it:

export TELEGRAM_BOT_TOKEN=%[2]s
export OPENAI_BASE_URL=%[1]s/openai/v1 OPENAI_API_KEY=wire OPENAI_MODEL=wire
# or: export ANTHROPIC_BASE_URL=%[1]s/anthropic ANTHROPIC_API_KEY=wire ANTHROPIC_MODEL=wire

and in config.yaml:

channels: {telegram: {api_url: "%[1]s"}}

By hand: curl %[1]s/control/chats. The model repeats what you say and follows lines such as
"!text WORDS", "!tool NAME {json}", "!delay 50ms". Type to talk, :help for more.

`, base, token)
}
