package daemon

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deerbot/config"
	"deerbot/internal/wire/discord"
	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/script"
	"deerbot/internal/wire/slack"
)

// runWith runs the true daemon with the given channels block and an echoing model until the test ends.
func runWith(t *testing.T, channels string) {
	t.Helper()
	llm := httptest.NewServer(&openai.Server{Respond: func(r *script.Request) script.Script {
		words := r.LastUser()
		if i := strings.LastIndex(words, "/>\n"); i >= 0 {
			words = words[i+3:]
		}
		return script.Text("**re:** " + words)
	}})
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	conf := fmt.Sprintf("data_dir: %s\nserver: {listen: \"127.0.0.1:0\"}\nmodels: [{name: main, provider: openai, model: wire, base_url: %q, api_key: sk-test}]\nchannels:\n%s\n",
		filepath.Join(dir, "data"), llm.URL+"/v1", channels)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	load := config.LoadOptions{Path: file}
	cfg, err := config.Load(load)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(context.Background(), cfg, Options{Version: "test", Load: load})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for giveUp := time.After(time.Minute); !d.readiness().Ready(); { // what is said before is nobody's on some platforms
		select {
		case <-tick.C:
		case <-giveUp:
			t.Fatalf("not ready: %+v", d.readiness())
		}
	}
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		llm.CloseClientConnections()
		llm.Close()
	})
}

// A mention in a Slack channel is answered in its thread, a direct message where it is.
func TestSlackThroughTheDaemon(t *testing.T) {
	s := slack.New(slack.Options{Limits: slack.RealLimits()})
	ts := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); ts.Close() })
	bot, app := s.Tokens()
	ann := s.Person("Ann Lee", "ann")
	general, dm := s.Public("general"), s.DM(ann)
	runWith(t, fmt.Sprintf("  slack: {bot_token: %q, app_token: %q, api_url: %q}", bot, app, ts.URL+"/api/"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dm.Say(ann, "hello there")
	root := general.Say(ann, "<@"+slack.BotUser+"> what is up")
	answered := func(c *slack.Channel, thread, text string) func() bool {
		return func() bool {
			for _, m := range c.Messages() {
				if m.Bot && m.Thread == thread && strings.Contains(m.Text, text) && m.Complaint == "" {
					return true
				}
			}
			return false
		}
	}
	if err := s.WaitFor(ctx, answered(dm, "", "hello there")); err != nil {
		t.Errorf("direct message: %v, %+v", err, dm.Messages())
	}
	if err := s.WaitFor(ctx, answered(general, root, "what is up")); err != nil {
		t.Errorf("channel: %v, %+v", err, general.Messages())
	}
}

// A direct message on Discord is answered where it is.
func TestDiscordThroughTheDaemon(t *testing.T) {
	s := discord.New(discord.Options{})
	ts := httptest.NewServer(s)
	t.Cleanup(func() { s.Cut(); ts.Close() })
	s.SetHost(strings.TrimPrefix(ts.URL, "http://"))
	ann := s.Person("Ann", "ann")
	dm := s.DM(ann)
	runWith(t, fmt.Sprintf("  discord: {token: %q, api_url: %q}", s.Token(), ts.URL))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dm.Say(ann, "hello there")
	if err := s.WaitFor(ctx, func() bool {
		for _, m := range dm.Messages() {
			if m.Bot && m.Content == "**re:** hello there" {
				return true
			}
		}
		return false
	}); err != nil {
		t.Errorf("direct message: %v, %+v", err, dm.Messages())
	}
}
