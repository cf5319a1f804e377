package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/discord"
	"deerbot/channels/slack"
	"deerbot/channels/telegram"
	"deerbot/channels/web"
	"deerbot/config"
	"deerbot/runtime/model"
	"deerbot/runtime/model/anthropic"
	"deerbot/runtime/model/openai"
	"deerbot/runtime/model/rehearsal"
	"deerbot/runtime/sandbox"
	"deerbot/runtime/tools"
	toolweb "deerbot/runtime/tools/web"
	"deerbot/store"
)

// models is the set of configured models, swapped as a whole.
type models struct{ set atomic.Pointer[modelSet] }

type modelSet struct {
	order  []model.Info
	byName map[string]model.Model
}

func (m *models) swap(other *models) { m.set.Store(other.set.Load()) }

// get returns the model of that configured name; a name that is gone, or "", is the default.
func (m *models) get(name string) (model.Model, error) {
	s := m.set.Load()
	if got, ok := s.byName[name]; ok {
		return got, nil
	}
	if len(s.order) == 0 {
		return nil, errors.New("no model is configured")
	}
	return s.byName[s.order[0].Name], nil
}

func (m *models) infos() []model.Info { return m.set.Load().order }

func (m *models) describe() string {
	var names []string
	for _, i := range m.infos() {
		names = append(names, i.Provider+":"+i.Model)
	}
	return strings.Join(names, ", ")
}

func buildModels(ctx context.Context, cfg *config.Config, env func(string) (string, bool), log *slog.Logger) (*models, error) {
	list := append([]config.Model(nil), cfg.Models...)
	if len(list) == 0 {
		list = config.DefaultModels(ctx, env, probe)
	}
	config.NameModels(ctx, list, func(ctx context.Context, m config.Model) (string, bool) {
		if m.Provider != "openai" || m.BaseURL == "" {
			return "", false
		}
		return firstModel(ctx, m.BaseURL, m.APIKey.Reveal())
	})
	set := &modelSet{byName: map[string]model.Model{}}
	for _, c := range list {
		m, err := buildModel(c)
		if err != nil {
			return nil, fmt.Errorf("models: %s: %w", c.Name, err)
		}
		set.byName[m.Info().Name] = m
		set.order = append(set.order, m.Info())
		if m.Info().Rehearsal && len(cfg.Models) == 0 {
			log.Info("no language model is configured: the built-in rehearsal answers, and says so",
				"cure", "set OPENAI_API_KEY or ANTHROPIC_API_KEY, or start Ollama")
		}
	}
	out := &models{}
	out.set.Store(set)
	return out, nil
}

func buildModel(c config.Model) (model.Model, error) {
	price := model.Price{Input: c.Price.Input, CachedInput: c.Price.CachedInput, Output: c.Price.Output}
	headers := map[string]string{}
	for k, v := range c.Headers {
		headers[k] = v.Reveal()
	}
	switch c.Provider {
	case "anthropic":
		return anthropic.New(anthropic.Config{
			Name: c.Name, Model: c.Model, BaseURL: c.BaseURL, APIKey: c.APIKey.Reveal(), Headers: headers, Extra: c.Extra,
			ContextWindow: c.ContextWindow, MaxOutputTokens: c.MaxOutputTokens, Vision: c.SupportsVision, Price: price,
			Timeout: c.Timeout, StallTimeout: c.StallTimeout,
		})
	case "rehearsal":
		return rehearsal.New(rehearsal.Config{Name: c.Name}), nil
	}
	return openai.New(openai.Config{
		Name: c.Name, Model: c.Model, BaseURL: c.BaseURL, APIKey: c.APIKey.Reveal(), Headers: headers, Extra: c.Extra,
		ContextWindow: c.ContextWindow, MaxOutputTokens: c.MaxOutputTokens, Vision: c.SupportsVision, Price: price,
		Timeout: c.Timeout, StallTimeout: c.StallTimeout,
	})
}

// probe asks for an Ollama on this machine.
func probe(ctx context.Context, url string) (string, bool) { return firstModel(ctx, url+"/v1", "") }

// firstModel asks an OpenAI-compatible server for the first model it lists.
func firstModel(ctx context.Context, base, key string) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base, "/")+"/models", nil)
	if err != nil {
		return "", false
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return "", false
	}
	defer res.Body.Close()
	defer client.CloseIdleConnections()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if res.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&list) != nil || len(list.Data) == 0 {
		return "", false
	}
	return list.Data[0].ID, true
}

// toolbox is the set of tools runs get, swapped as a whole.
type toolbox struct{ set atomic.Pointer[tools.Set] }

func (t *toolbox) get() *tools.Set     { return t.set.Load() }
func (t *toolbox) swap(other *toolbox) { t.set.Store(other.set.Load()) }

func buildTools(cfg *config.Config) (*toolbox, error) {
	list, err := tools.Builtin(tools.BuiltinConfig{Web: toolweb.Config{Allow: cfg.Agent.Web.Allow, Deny: cfg.Agent.Web.Deny}})
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	set, err := tools.NewSet(list...)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	set, unknown := set.Select(cfg.Agent.Tools.Allow, cfg.Agent.Tools.Deny)
	if len(unknown) > 0 {
		return nil, fmt.Errorf("agent.tools names no tool there is: %s", strings.Join(unknown, ", "))
	}
	t := &toolbox{}
	t.set.Store(set)
	return t, nil
}

// buildChannels makes the active channels. The web chat comes back separately too, to be mounted.
// wants tells whether a message will be answered.
func buildChannels(cfg *config.Config, s store.Store, wants func(*channels.Inbound) bool, log *slog.Logger, now func() time.Time) (list []channels.Channel, chat *web.Channel, err error) {
	if cfg.Channels.Telegram.Active() {
		t := cfg.Channels.Telegram
		ch, err := telegram.New(telegram.Config{
			Token: t.Token.Reveal(), APIURL: t.APIURL, Proxy: t.Proxy.Reveal(), Dialect: cards.Telegram(),
			Log: log.With("channel", "telegram"), Now: now,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("channels.telegram: %w", err)
		}
		list = append(list, ch)
	}
	if cfg.Channels.Slack.Active() {
		c := cfg.Channels.Slack
		ch, err := slack.New(slack.Config{
			BotToken: c.BotToken.Reveal(), AppToken: c.AppToken.Reveal(), APIURL: c.APIURL, Proxy: c.Proxy.Reveal(),
			Dialect: cards.Slack(), Log: log.With("channel", "slack"), Now: now,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("channels.slack: %w", err)
		}
		list = append(list, ch)
	}
	if cfg.Channels.Discord.Active() {
		c := cfg.Channels.Discord
		ch, err := discord.New(discord.Config{
			Token: c.Token.Reveal(), APIURL: c.APIURL, Proxy: c.Proxy.Reveal(), Dialect: cards.Discord(),
			ApplicationCommands: c.ApplicationCommands, Wants: wants, Log: log.With("channel", "discord"), Now: now,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("channels.discord: %w", err)
		}
		list = append(list, ch)
	}
	if cfg.Channels.Web.Active() {
		logout := ""
		if cfg.Server.AuthToken.IsSet() {
			logout = "/logout"
		}
		chat, err = web.New(web.Config{
			Log: s, FilesDir: filepath.Join(cfg.DataDir, "web", "files"), Dialect: cards.Web(),
			MaxUpload: int64(cfg.Limits.AttachmentMB) << 20, Lang: cfg.Locale, LogoutURL: logout,
			Logger: log.With("channel", "web"), Now: now,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("channels.web: %w", err)
		}
		list = append(list, chat)
	}
	return list, chat, nil
}

// files opens a thread's file tree.
func (d *Daemon) files(threadID string) (*sandbox.Files, error) {
	return sandbox.Open(filepath.Join(d.cfg.Load().DataDir, "threads", threadID))
}

// metrics is the registry of the daemon's own figures.
func (d *Daemon) metrics() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	gauge := func(name, help string, f func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "deerbot", Name: name, Help: help}, f))
	}
	gauge("runs_live", "Runs at work.", func() float64 { ids, _ := d.rt.Live(); return float64(len(ids)) })
	gauge("runs_waiting", "Runs that wait for a slot or their thread.", func() float64 { _, n := d.rt.Live(); return float64(n) })
	gauge("outbox_queued", "Outgoing messages not yet delivered.", func() float64 { return float64(d.bot.Unsent()) })
	gauge("resident_bytes", "Memory of the process.", func() float64 { return float64(residentBytes()) })
	reg.MustRegister(channelHealth{d})
	return reg
}

// channelHealth collects one gauge per channel.
type channelHealth struct{ d *Daemon }

var channelConnected = prometheus.NewDesc("deerbot_channel_connected", "1 while the channel is connected.", []string{"channel"}, nil)

// Describe implements prometheus.Collector.
func (channelHealth) Describe(ch chan<- *prometheus.Desc) { ch <- channelConnected }

// Collect implements prometheus.Collector.
func (c channelHealth) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.d.bot.Health() {
		v := 0.0
		if s.Health.Connected && s.Health.Trouble == "" {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(channelConnected, prometheus.GaugeValue, v, s.Name)
	}
}

// residentBytes is the process's memory, 0 where the system does not say.
func residentBytes() int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(raw)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
