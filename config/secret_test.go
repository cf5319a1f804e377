package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestSecretNeverPrints prints a configuration full of secrets in every way there is and looks for them.
func TestSecretNeverPrints(t *testing.T) {
	const canary = "CANARY-0123456789"
	cfg := mustLoad(t, strings.ReplaceAll(`
server: {auth_token: KEY}
models:
- {name: a, api_key: KEY, headers: {Authorization: KEY}}
channels: {telegram: {token: "1:KEY", proxy: "http://u:KEY@h"}, slack: {bot_token: KEY, app_token: KEY}, discord: {token: KEY}, lark: {app_id: a, app_secret: KEY}}
agent: {web: {search: {provider: brave, api_key: KEY}}}
mcp: {servers: {s: {url: "https://h", headers: {A: KEY}, env: {B: KEY}}}}
store: {dsn: KEY}
stream: {url: KEY}
`, "KEY", canary), nil)

	s := NewSecret(canary)
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s"} {
		texts = append(texts, fmt.Sprintf(verb, s), fmt.Sprintf(verb, *cfg), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, cfg.Models), fmt.Sprintf(verb, []any{s}))
	}
	for _, v := range []any{s, cfg, map[string]Secret{"k": s}} {
		j, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		y, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(j), string(y))
	}
	var b strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(h).Info("x", "secret", s, "cfg", cfg, "model", cfg.Models[0])
	}
	texts = append(texts, b.String(), errors.Join(fmt.Errorf("x: %v", s)).Error(), fmt.Sprint(s))
	hex := fmt.Sprintf("%x", canary)
	for _, text := range texts {
		if strings.Contains(text, canary) || strings.Contains(strings.ToLower(text), hex) {
			t.Errorf("a secret is in %s", text)
		}
	}
	if s.Reveal() != canary || !s.IsSet() || Secret("").String() != "" {
		t.Error("the value itself is wrong")
	}
	if got := Secrets(cfg); len(got) != 3 || got[1] != canary {
		t.Errorf("Secrets: %d values", len(got))
	}
}

// TestC204_KeyWithCarriageReturn: a key from a file with CRLF line ends must not reach an HTTP header with its \r.
func TestC204_KeyWithCarriageReturn(t *testing.T) {
	const key = "sk-test-SECRET"
	cfg, err := Load(LoadOptions{Dir: t.TempDir(), Env: envOf(map[string]string{"OPENAI_API_KEY": key + "\r", "TELEGRAM_BOT_TOKEN": "\t1:a\r\n"})})
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Models[0].APIKey.Reveal(); got != key {
		t.Errorf("from the environment: %q", got)
	}
	if got := cfg.Channels.Telegram.Token.Reveal(); got != "1:a" {
		t.Errorf("token: %q", got)
	}
	cfg = mustLoad(t, "models:\r\n- name: a\r\n  api_key: \"${K}\"\r\n  base_url: ${U}\r\n", map[string]string{"K": key + "\r", "U": "http://h/v1\r"})
	if m := cfg.Models[0]; m.APIKey.Reveal() != key || m.BaseURL != "http://h/v1" {
		t.Errorf("from a variable: %q, %q", m.APIKey.Reveal(), m.BaseURL)
	}
	cfg = mustLoad(t, "models:\r\n- name: a\r\n  api_key: "+key+"\r\n", nil)
	if got := cfg.Models[0].APIKey.Reveal(); got != key {
		t.Errorf("from a CRLF file: %q", got)
	}

	// What cannot be trimmed is refused, by name and without the value.
	for _, text := range []string{
		"models:\n- {name: a, api_key: \"sk-test-\\r\\nSECRET\"}",
		"models:\n- {name: a, base_url: 'http://h', headers: {X: \"sk-test-\\nSECRET\"}}",
		"channels: {telegram: {token: \"sk-test- SECRET\"}}",
	} {
		_, err := load(t, text, nil)
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
