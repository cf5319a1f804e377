// Package openai speaks the chat completions dialect to OpenAI and to the many servers that imitate it.
//
// Requests are built, authorised and sent by the official SDK. Answers are read by this package, because the imitators
// differ exactly there: tool calls without index or id, usage without choices, reasoning under vendor field names, error
// objects inside a good stream, line ends of all kinds. The SDK's decoder also hides whether the end mark came, and a
// cut stream must never look complete.
//
// Three things are learned from refusals, once per model and before anything was yielded: that the server knows no
// stream_options, which name it wants for the output limit, and that it demands reasoning_content on old messages.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"deerbot/runtime/model"
	"deerbot/runtime/model/internal/call"
)

// Provider is the name of this dialect in [model.Info] and in messages.
const Provider = "openai"

// DefaultBaseURL is used when Config.BaseURL is empty.
const DefaultBaseURL = "https://api.openai.com/v1"

// Replay says what is done with the reasoning of old assistant messages.
type Replay string

// Replay modes.
const (
	// ReplaySame sends back what this provider and model gave, in the field it came in. The default.
	ReplaySame Replay = ""
	// ReplayAlways also sends an empty reasoning_content on messages that have none, for servers that demand the field.
	ReplayAlways Replay = "always"
	// ReplayNever drops reasoning, for servers that refuse unknown fields.
	ReplayNever Replay = "never"
)

// Config describes one model behind one endpoint.
type Config struct {
	Name            string // configured name; Model when empty
	Model           string
	BaseURL         string
	APIKey          string // empty for servers without keys
	Headers         map[string]string
	Extra           map[string]any // further fields of the request body
	ContextWindow   int
	MaxOutputTokens int
	// MaxTokensField is max_tokens or max_completion_tokens. When empty it follows from the host and is corrected by a
	// refusal.
	MaxTokensField string
	Vision         bool
	Replay         Replay
	Price          model.Price
	Timeout        time.Duration // whole call, 0: none
	StallTimeout   time.Duration // longest silence, 0: none
	HTTPClient     *http.Client  // nil: a shared one without total timeout
}

// Model is a model behind a chat completions endpoint. It is safe for concurrent use.
type Model struct {
	info  model.Info
	cfg   Config
	calls call.Config
	chat  openai.ChatCompletionService

	noStreamOptions atomic.Bool
	otherLimitField atomic.Bool
	alwaysReasoning atomic.Bool
}

var _ model.Model = (*Model)(nil)

// New checks cfg. The error names every wrong field and shows no secret.
func New(cfg Config) (*Model, error) {
	var errs []error
	if cfg.Model == "" {
		errs = append(errs, errors.New("model: required"))
	}
	if cfg.Name == "" {
		cfg.Name = cfg.Model
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	base, secrets, err := call.BaseURL(cfg.BaseURL)
	errs = append(errs, err)
	key, err := call.Key(cfg.APIKey)
	errs = append(errs, err)
	headers, err := call.Headers(cfg.Headers)
	errs = append(errs, err)
	for _, field := range []string{"messages", "model", "stream", "tools"} {
		if _, ok := cfg.Extra[field]; ok {
			errs = append(errs, fmt.Errorf("extra: %s cannot be set", field))
		}
	}
	switch cfg.MaxTokensField {
	case "", "max_tokens", "max_completion_tokens":
	default:
		errs = append(errs, fmt.Errorf("max tokens field: %q is neither max_tokens nor max_completion_tokens", cfg.MaxTokensField))
	}
	switch cfg.Replay {
	case ReplaySame, ReplayAlways, ReplayNever:
	default:
		errs = append(errs, fmt.Errorf("replay: %q is not a mode", cfg.Replay))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("openai model %s: %w", cfg.Name, err)
	}
	if cfg.MaxTokensField == "" {
		cfg.MaxTokensField = limitField(base)
	}
	cfg.Headers, cfg.APIKey = headers, key
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = call.Client()
	}
	m := &Model{
		cfg: cfg,
		info: model.Info{
			Name: cfg.Name, Provider: Provider, Model: cfg.Model, ContextWindow: cfg.ContextWindow,
			MaxOutputTokens: cfg.MaxOutputTokens, Vision: cfg.Vision, Price: cfg.Price,
		},
		calls: call.Config{
			Provider: Provider, Model: cfg.Model, Timeout: cfg.Timeout, Stall: cfg.StallTimeout,
			Secrets: append(append(secrets, call.SecretHeaders(headers)...), key),
		},
		// Not openai.NewClient: it would take headers, organisation and base URL from the environment.
		chat: openai.NewChatCompletionService(options(cfg, base, key)...),
	}
	m.alwaysReasoning.Store(cfg.Replay == ReplayAlways)
	return m, nil
}

func options(cfg Config, base *url.URL, key string) []option.RequestOption {
	bare := *base
	bare.RawQuery = ""
	opts := []option.RequestOption{
		option.WithBaseURL(bare.String()),
		option.WithHTTPClient(cfg.HTTPClient),
		option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "deerbot"),
		option.WithHeader("Accept", "text/event-stream"),
	}
	for _, h := range []string{"Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"} {
		opts = append(opts, option.WithHeaderDel("X-Stainless-"+h))
	}
	if key != "" {
		opts = append(opts, option.WithAPIKey(key))
	}
	for name, value := range cfg.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	for name, values := range base.Query() {
		for _, v := range values {
			opts = append(opts, option.WithQueryAdd(name, v))
		}
	}
	return opts
}

// limitField: OpenAI's own newer models refuse max_tokens, most imitators know nothing else.
func limitField(base *url.URL) string {
	host := base.Hostname()
	if host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com") {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// Info describes the model.
func (m *Model) Info() model.Info { return m.info }

// Stream sends req and yields the answer's chunks; see [model.Model].
func (m *Model) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		c := call.Begin(ctx, m.calls)
		drain := false
		defer func() { c.Close(drain) }()
		res, err := m.open(c, req) //nolint:bodyclose // Close of the call closes it
		if err != nil {
			yield(model.Chunk{}, c.Fail(err))
			return
		}
		a := newAnswer(req, yield)
		done, err := m.read(c, res.Body, a)
		switch {
		case a.stopped:
		case err != nil:
			yield(model.Chunk{}, c.Fail(err))
		default:
			drain = done
			yield(model.Chunk{Kind: model.ChunkDone, Response: a.response(Provider, m.cfg.Model)}, nil)
		}
	}
}

// open sends the request, and once more for each thing learned from a refusal.
func (m *Model) open(c *call.Call, req *model.Request) (*http.Response, error) {
	for range 4 {
		params, err := m.params(req)
		if err != nil {
			return nil, c.Unsendable(err)
		}
		var res *http.Response
		_, err = m.chat.New(c.Context(), params, option.WithMiddleware(c.RoundTrip), option.WithResponseBodyInto(&res))
		if err == nil {
			return res, nil
		}
		if !m.learn(err) {
			return nil, err
		}
	}
	return nil, c.Protocol("the server refuses every form of the request")
}

// learn reports whether err asks for another form of the request that was not tried yet.
func (m *Model) learn(err error) bool {
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.ClassBadRequest {
		return false
	}
	said := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(e.Message), w) })
	}
	switch {
	case said("stream_options", "include_usage"):
		return m.noStreamOptions.CompareAndSwap(false, true)
	case said("max_tokens", "max_completion_tokens") && said("support", "recogni", "unknown", "unexpected", "permitted", "instead"):
		return m.otherLimitField.CompareAndSwap(false, true)
	case said("reasoning_content") && said("passed back", "missing", "must", "required"):
		return m.cfg.Replay != ReplayNever && m.alwaysReasoning.CompareAndSwap(false, true)
	}
	return false
}

// encode is JSON without HTML escapes.
func encode(v any) (json.RawMessage, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), err
}
