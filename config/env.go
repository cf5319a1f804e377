package config

import (
	"context"
	"strings"
)

// Models that are used when OPENAI_MODEL or ANTHROPIC_MODEL does not name one.
const (
	DefaultOpenAIModel    = "gpt-5.4-mini"
	DefaultAnthropicModel = "claude-sonnet-5-5"
)

// OllamaURL is where Ollama listens unless told otherwise.
const OllamaURL = "http://127.0.0.1:11434"

// fillFromEnv completes cfg from the environment: credentials of channels that the file leaves empty, and models when
// the file has none. A key in the environment goes only to the endpoint the environment means.
func fillFromEnv(cfg *Config, lookup func(string) (string, bool)) {
	get := func(name string) string { v, _ := lookup(name); return strings.TrimSpace(v) }
	fill := func(s *Secret, name string) {
		if !s.IsSet() {
			*s = NewSecret(get(name))
		}
	}
	ch := &cfg.Channels
	fill(&ch.Telegram.Token, "TELEGRAM_BOT_TOKEN")
	fill(&ch.Slack.BotToken, "SLACK_BOT_TOKEN")
	fill(&ch.Slack.AppToken, "SLACK_APP_TOKEN")
	fill(&ch.Discord.Token, "DISCORD_BOT_TOKEN")
	fill(&ch.Lark.AppSecret, "LARK_APP_SECRET")
	if ch.Lark.AppID == "" {
		ch.Lark.AppID = get("LARK_APP_ID")
	}

	if len(cfg.Models) == 0 {
		cfg.Models = envModels(get)
		return
	}
	if cfg.Models[0].Name == "" {
		cfg.Models[0].Name = "main"
	}
	for i := range cfg.Models {
		m := &cfg.Models[i]
		prefix := strings.ToUpper(m.Provider)
		if m.Provider != "openai" && m.Provider != "anthropic" {
			continue
		}
		if m.BaseURL == "" { // else the environment's key would go to a server it was not meant for
			m.BaseURL = get(prefix + "_BASE_URL")
			fill(&m.APIKey, prefix+"_API_KEY")
			if m.Model == "" {
				m.Model = get(prefix + "_MODEL")
			}
		}
		if m.Model == "" && m.BaseURL == "" {
			m.Model = defaultModelID(m.Provider)
		}
	}
}

func envModels(get func(string) string) []Model {
	var out []Model
	for _, provider := range []string{"openai", "anthropic"} {
		prefix := strings.ToUpper(provider)
		key, base := get(prefix+"_API_KEY"), get(prefix+"_BASE_URL")
		if key == "" && base == "" {
			continue
		}
		m := DefaultModel(provider)
		m.Provider, m.APIKey, m.BaseURL, m.Model = provider, NewSecret(key), base, get(prefix+"_MODEL")
		if m.Model == "" && base == "" {
			m.Model = defaultModelID(provider)
		}
		out = append(out, m)
	}
	return out
}

func defaultModelID(provider string) string {
	if provider == "anthropic" {
		return DefaultAnthropicModel
	}
	return DefaultOpenAIModel
}

// Probe asks the server at url, which speaks the OpenAI dialect under /v1, for the first model it lists. ok is false
// when nothing answers there.
type Probe func(ctx context.Context, url string) (model string, ok bool)

// DefaultModels returns the models of a configuration that names none: those of the environment, else the Ollama on
// this machine if probe finds one, else the built-in rehearsal. probe may be nil. env nil is the empty environment.
func DefaultModels(ctx context.Context, env func(string) (string, bool), probe Probe) []Model {
	if env != nil {
		get := func(name string) string { v, _ := env(name); return strings.TrimSpace(v) }
		if m := envModels(get); len(m) > 0 {
			return m
		}
	}
	if probe != nil {
		if id, ok := probe(ctx, OllamaURL); ok {
			m := DefaultModel("ollama")
			m.Model, m.BaseURL = id, OllamaURL+"/v1"
			return []Model{m}
		}
	}
	m := DefaultModel("rehearsal")
	m.Provider, m.Model = "rehearsal", "rehearsal"
	return []Model{m}
}

// NameModels gives an id to every model that has an endpoint of its own and no id, by asking that endpoint for the first
// model it lists. What ask does not know stays empty, and the provider's default id is taken.
func NameModels(ctx context.Context, models []Model, ask func(ctx context.Context, m Model) (id string, ok bool)) {
	for i := range models {
		m := &models[i]
		if m.Model != "" || m.Provider == "rehearsal" {
			continue
		}
		if id, ok := ask(ctx, *m); ok && id != "" {
			m.Model = id
			continue
		}
		m.Model = defaultModelID(m.Provider)
	}
}
