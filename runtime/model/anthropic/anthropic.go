// Package anthropic speaks the messages dialect to Anthropic and to servers that imitate it.
//
// Requests are built and sent by the official SDK; answers are read by this package, in the order of their blocks,
// because thinking, text and tool calls must go back in the order they came, with signatures untouched. The SDK names
// the API version 2026-10-21; a header in Config can name another for an endpoint that needs it.
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"deerbot/runtime/model"
	"deerbot/runtime/model/internal/call"
)

// Provider is the name of this dialect in [model.Info] and in messages.
const Provider = "anthropic"

// DefaultBaseURL is used when Config.BaseURL is empty.
const DefaultBaseURL = "https://api.anthropic.com"

// defaultMaxTokens is sent when neither the request nor Config has a limit: the field is required.
const defaultMaxTokens = 8192

// Config describes one model behind one endpoint.
type Config struct {
	Name    string // configured name; Model when empty
	Model   string
	BaseURL string // with or without /v1
	APIKey  string // sent as x-api-key; left out when Headers has Authorization
	Headers map[string]string
	// Extra are further fields of the request body, such as thinking or output_config. API version 2026-10-21 refuses
	// temperature, top_p and top_k.
	Extra           map[string]any
	ContextWindow   int
	MaxOutputTokens int
	Vision          bool
	NoCache         bool // set no cache breakpoints
	Price           model.Price
	Timeout         time.Duration // whole call, 0: none
	StallTimeout    time.Duration // longest silence, 0: none
	HTTPClient      *http.Client  // nil: a shared one without total timeout
}

// Model is a model behind a messages endpoint. It is safe for concurrent use.
type Model struct {
	info   model.Info
	cfg    Config
	calls  call.Config
	client anthropic.Client
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
	for _, field := range []string{"messages", "model", "stream", "system", "tools", "max_tokens"} {
		if _, ok := cfg.Extra[field]; ok {
			errs = append(errs, fmt.Errorf("extra: %s cannot be set", field))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("anthropic model %s: %w", cfg.Name, err)
	}
	cfg.Headers, cfg.APIKey = headers, key
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = call.Client()
	}
	return &Model{
		cfg: cfg,
		info: model.Info{
			Name: cfg.Name, Provider: Provider, Model: cfg.Model, ContextWindow: cfg.ContextWindow,
			MaxOutputTokens: cfg.MaxOutputTokens, Vision: cfg.Vision, Price: cfg.Price,
		},
		calls: call.Config{
			Provider: Provider, Model: cfg.Model, Timeout: cfg.Timeout, Stall: cfg.StallTimeout,
			Secrets: append(append(secrets, call.SecretHeaders(headers)...), key),
		},
		client: anthropic.NewClient(options(cfg, base, key)...),
	}, nil
}

func options(cfg Config, base *url.URL, key string) []option.RequestOption {
	bare := *base
	bare.RawQuery = ""
	bare.Path = strings.TrimSuffix(strings.TrimSuffix(bare.Path, "/"), "/v1")
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithBaseURL(bare.String()),
		option.WithHTTPClient(cfg.HTTPClient),
		option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "deerbot"),
		option.WithHeader("Accept", "text/event-stream"),
	}
	for _, h := range []string{"Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"} {
		opts = append(opts, option.WithHeaderDel("X-Stainless-"+h))
	}
	// The SDK's WithAPIKey sends the key as a bearer token. The API documents x-api-key, and imitators know only that.
	if _, ok := cfg.Headers["Authorization"]; key != "" && !ok {
		opts = append(opts, option.WithHeader("X-Api-Key", key))
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

// Info describes the model.
func (m *Model) Info() model.Info { return m.info }

// Stream sends req and yields the answer's chunks; see [model.Model].
func (m *Model) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		c := call.Begin(ctx, m.calls)
		done := false
		defer func() { c.Close(done) }()
		params, err := m.params(req)
		if err != nil {
			yield(model.Chunk{}, c.Unsendable(err))
			return
		}
		var res *http.Response
		if err := m.client.Post(c.Context(), "v1/messages", params, &res, option.WithMiddleware(c.RoundTrip)); err != nil {
			yield(model.Chunk{}, c.Fail(err))
			return
		}
		a := &answer{req: req, yield: yield}
		err = read(c, res.Body, a)
		switch {
		case a.stopped:
		case err != nil:
			yield(model.Chunk{}, c.Fail(err))
		default:
			done = true
			yield(model.Chunk{Kind: model.ChunkDone, Response: a.response(m.cfg.Model)}, nil)
		}
	}
}
