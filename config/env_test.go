package config

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// names lists provider:model@base of every model.
func names(models []Model) []string {
	var out []string
	for _, m := range models {
		out = append(out, m.Name+"="+m.Provider+":"+m.Model+"@"+m.BaseURL+"#"+m.APIKey.Reveal())
	}
	return out
}

func TestModelsFromEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"nothing", nil, nil},
		{"openai key", map[string]string{"OPENAI_API_KEY": "k"}, []string{"openai=openai:" + DefaultOpenAIModel + "@#k"}},
		{"openai server without a key", map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, []string{"openai=openai:@http://127.0.0.1:9/v1#"}},
		{"openai model", map[string]string{"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"}, []string{"openai=openai:m@#k"}},
		{"anthropic", map[string]string{"ANTHROPIC_API_KEY": "a"}, []string{"anthropic=anthropic:" + DefaultAnthropicModel + "@#a"}},
		{"both", map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a", "ANTHROPIC_MODEL": "c"}, []string{"openai=openai:" + DefaultOpenAIModel + "@#k", "anthropic=anthropic:c@#a"}},
		{"a model without key or server is nothing", map[string]string{"OPENAI_MODEL": "m"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := Load(LoadOptions{Dir: t.TempDir(), Env: envOf(tt.env)})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, names(cfg.Models)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestEnvironmentFillsTheFile(t *testing.T) {
	env := map[string]string{
		"TELEGRAM_BOT_TOKEN": " 1:env ", "SLACK_BOT_TOKEN": "xoxb-env", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://h/v1",
		"LARK_APP_ID": "cli_1", "LARK_APP_SECRET": "s", "DISCORD_BOT_TOKEN": "d",
	}
	cfg := mustLoad(t, "channels: {telegram: {token: '2:file'}, discord: {enabled: false}}", env)
	if got := cfg.Channels.Telegram.Token.Reveal(); got != "2:file" {
		t.Errorf("the file's token gave way to the environment's: %q", got)
	}
	if cfg.Channels.Slack.Active() || !cfg.Channels.Lark.Active() || cfg.Channels.Discord.Active() {
		t.Error("active channels are wrong")
	}
	if got := names(cfg.Models); len(got) != 1 || got[0] != "openai=openai:@http://h/v1#k" {
		t.Errorf("a file without models: %v", got)
	}

	cfg = mustLoad(t, "models:\n- {name: mine}\n- {name: local, base_url: 'http://127.0.0.1:1/v1'}\n", env)
	want := []string{"mine=openai:@http://h/v1#k", "local=openai:@http://127.0.0.1:1/v1#"}
	if d := cmp.Diff(want, names(cfg.Models)); d != "" {
		t.Errorf("the environment's key belongs to its own server only (-want +got):\n%s", d)
	}
}

func TestDefaultModels(t *testing.T) {
	ctx := context.Background()
	asked := ""
	found := func(_ context.Context, url string) (string, bool) { asked = url; return "qwen3", true }
	missing := func(context.Context, string) (string, bool) { return "", false }

	if got := names(DefaultModels(ctx, envOf(map[string]string{"OPENAI_API_KEY": "k"}), found)); asked != "" || !strings.HasPrefix(got[0], "openai=") {
		t.Errorf("with a key: %v, asked %q", got, asked)
	}
	if got := names(DefaultModels(ctx, envOf(nil), found)); got[0] != "ollama=openai:qwen3@http://127.0.0.1:11434/v1#" || asked != OllamaURL {
		t.Errorf("with Ollama: %v", got)
	}
	for _, probe := range []Probe{missing, nil} {
		if got := names(DefaultModels(ctx, nil, probe)); got[0] != "rehearsal=rehearsal:rehearsal@#" {
			t.Errorf("with nothing: %v", got)
		}
	}
}

func TestNameModels(t *testing.T) {
	models := []Model{{Name: "a", Provider: "openai", BaseURL: "http://a"}, {Name: "b", Provider: "openai", Model: "set"}, {Name: "c", Provider: "anthropic", BaseURL: "http://c"}}
	NameModels(context.Background(), models, func(_ context.Context, m Model) (string, bool) { return "first", m.Name == "a" })
	if models[0].Model != "first" || models[1].Model != "set" || models[2].Model != DefaultAnthropicModel {
		t.Errorf("%v", names(models))
	}
}
