// Command deerbot is a daemon that puts a long-horizon agent into the chats where teams work.
//
//	deerbot [run] [--config FILE]     run the daemon
//	deerbot config check              validate the configuration
//	deerbot config schema | example   print its JSON Schema, or a file with every key
//	deerbot slack manifest            print the app manifest to paste at Slack
//	deerbot middleware                print the agent's middleware chain
//	deerbot bench                     measure the whole process against wire-level servers
//	deerbot version
//
// It exits with 0 when it was asked to stop, 1 when it failed, 2 when it was called or configured wrongly. The log goes to
// standard error; standard output carries only what a command was asked to print.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // schedule.time_zone works on systems without a zone database

	"github.com/alecthomas/kong"

	"deerbot/channels/slack"
	"deerbot/cmd/deerbot/internal/daemon"
	"deerbot/config"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// cli is the command line.
type cli struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration file. Without it: $$DEERBOT_CONFIG, else ./config.yaml, else the environment alone."`

	Run        struct{}   `cmd:"" default:"1" help:"Run the daemon. The default."`
	Conf       configTree `cmd:"" name:"config" help:"Look at the configuration."`
	Slack      slackTree  `cmd:"" help:"What Slack needs."`
	Middleware struct{}   `cmd:"" help:"Print the agent's middleware chain: order, edges, surfaces, failure policies."`
	Bench      benchTree  `cmd:"" help:"Measure this machine: start daemons between wire-level servers and print the figures."`
	Version    struct{}   `cmd:"" help:"Print the version."`
}

type configTree struct {
	Check   struct{} `cmd:"" help:"Validate the configuration and tell what is wrong with it."`
	Schema  struct{} `cmd:"" help:"Print the JSON Schema of the configuration file."`
	Example struct{} `cmd:"" help:"Print a configuration file with every key and its default."`
}

type slackTree struct {
	Manifest struct {
		Name string `help:"The bot's name." default:"deer"`
	} `cmd:"" help:"Print the app manifest to paste at api.slack.com/apps."`
}

// run is the program without its process: arguments in, exit code out.
func run(args []string, stdout, stderr io.Writer) int {
	var c cli
	parser, err := kong.New(&c, kong.Name("deerbot"), kong.Writers(stdout, stderr),
		kong.Description("A daemon that puts a long-horizon agent into the chats where teams work."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintf(stderr, "deerbot: %v\n", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "deerbot: %v\n\n", err)
		if pe, ok := errors.AsType[*kong.ParseError](err); ok {
			_ = printUsage(pe.Context, stderr)
		}
		return exitUsage
	}
	load := config.LoadOptions{Path: c.Config}
	switch parsed.Command() {
	case "config check":
		return check(load, stdout, stderr)
	case "config schema":
		return write(stdout, stderr, config.Schema())
	case "config example":
		return write(stdout, stderr, config.Example())
	case "slack manifest":
		return write(stdout, stderr, slack.Manifest(c.Slack.Manifest.Name))
	case "middleware":
		return printMiddleware(stdout, stderr)
	case "bench":
		return runBench(c.Bench, stdout, stderr)
	case "version":
		return write(stdout, stderr, []byte("deerbot "+version()+"\n"))
	}
	return serve(load, stderr)
}

// printUsage writes the help of the command that was called wrongly to w.
func printUsage(ctx *kong.Context, w io.Writer) error {
	ctx.Kong.Stdout = w
	return ctx.PrintUsage(false)
}

func write(stdout, stderr io.Writer, data []byte) int {
	if _, err := stdout.Write(data); err != nil {
		fmt.Fprintf(stderr, "deerbot: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// serve runs the daemon until it is told to stop.
func serve(load config.LoadOptions, stderr io.Writer) int {
	cfg, err := config.Load(load)
	if err != nil {
		fmt.Fprintf(stderr, "deerbot: the configuration cannot be used\n%v\n", err)
		return exitUsage
	}
	load.Path = cfg.File // a file that appears later is not taken for this one
	level := new(slog.LevelVar)
	level.Set(daemon.LevelOf(cfg.Log.Level))
	log := logger(cfg.Log.Format, level, stderr)
	for _, w := range config.Warnings(cfg) {
		log.Warn("this setting is probably not meant so", "key", w.Key, "why", w.Text)
	}

	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, stop := untilSignal(context.Background(), signals, func() { os.Exit(exitFailed) })
	defer stop()

	d, err := daemon.New(ctx, cfg, daemon.Options{Version: version(), Log: log, Level: level, Load: load})
	if err != nil {
		log.Error("deerbot cannot start", "err", err)
		return exitFailed
	}
	if err := d.Run(ctx); err != nil {
		log.Error("deerbot failed", "err", err)
		return exitFailed
	}
	return exitOK
}

// untilSignal returns a context that ends at the first signal. The second one calls now.
func untilSignal(parent context.Context, signals <-chan os.Signal, now func()) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	done := make(chan struct{})
	go func() { // ends with the returned function
		for range 2 {
			select {
			case <-signals:
				if ctx.Err() != nil {
					now()
					return
				}
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { cancel(); close(done) }
}

// logger writes to w in the configured format.
func logger(format string, level slog.Leveler, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
