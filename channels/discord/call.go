package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"deerbot/channels"
)

// maxAnswer bounds what is read of an answer: a hundred messages of the largest kind are far below.
const maxAnswer = 16 << 20

// userAgent is what Discord asks for (docs.discord.com/developers/reference#user-agent).
const userAgent = "DiscordBot (https://github.com/deerbot/deerbot, 1.0)"

// newClient makes the HTTP client and the dialer of the gateway. HTTP/2 is off: one dead connection would stall every
// call of the bot at once.
func newClient(proxy string) (*http.Client, *websocket.Dialer, []string, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3, // a dead connection is found in 30 s
	}}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          200,
		MaxIdleConnsPerHost:   100,
		IdleConnTimeout:       50 * time.Second,
		Protocols:             new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	var secrets []string
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil || u.Host == "" {
			return nil, nil, nil, errors.New("proxy is not a URL")
		}
		switch u.Scheme {
		case "http", "https", "socks5", "socks5h":
		default:
			return nil, nil, nil, fmt.Errorf("proxy: scheme %q is not one of http, https, socks5, socks5h", u.Scheme)
		}
		if pw, ok := u.User.Password(); ok {
			secrets = append(secrets, pw)
		}
		t.Proxy = http.ProxyURL(u)
	}
	client := &http.Client{
		Transport: t,
		// The token goes to the configured host only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ws := &websocket.Dialer{
		Proxy: t.Proxy, NetDialContext: dialer.DialContext, HandshakeTimeout: 15 * time.Second, ReadBufferSize: 16 << 10,
	}
	return client, ws, secrets, nil
}

// newReplacer hides the token and what identifies it: its last part is the secret.
func newReplacer(token string, secrets []string) *strings.Replacer {
	pairs := []string{token, "***", url.QueryEscape(token), "***"}
	if i := strings.LastIndexByte(token, '.'); i >= 0 && len(token)-i > 8 {
		pairs = append(pairs, token[i+1:], "***")
	}
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, "***", url.QueryEscape(s), "***", url.PathEscape(s), "***")
		}
	}
	return strings.NewReplacer(pairs...)
}

func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "***"
	}
	return u.Redacted()
}

// failure is why a call failed, without secrets. It matches context errors and nothing else.
type failure struct {
	name string
	text string
	ctx  error
}

func (f *failure) Error() string { return f.name + ": " + f.text }

func (f *failure) Unwrap() error { return f.ctx }

// fail makes a failure out of err: its text without address and secrets. Addresses of interactions hold their token.
func (c *Channel) fail(name string, err error) *failure {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	f := &failure{name: name, text: c.hide.Replace(err.Error())}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.ctx = context.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		f.ctx = context.Canceled
	}
	return f
}

// sent watches how far a request got.
type sent struct{ headers, failed atomic.Bool }

// may reports whether the server may have the whole request.
func (s *sent) may() bool { return s.headers.Load() && !s.failed.Load() }

func (s *sent) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { s.headers.Store(false); s.failed.Store(false) },
		WroteHeaders: func() { s.headers.Store(true) },
		WroteRequest: func(i httptrace.WroteRequestInfo) { s.failed.Store(i.Err != nil) },
	}
}

// api is one call: name for errors, method and path, the body as JSON or a form.
type api struct {
	name   string
	method string
	path   string
	body   any       // JSON, nil for none
	form   io.Reader // instead of body
	kind   string    // content type of form
	open   bool      // without the token: the address is the credential
	limit  time.Duration
}

// call makes one call and decodes its result. Errors are those of package channels.
func (c *Channel) call(ctx context.Context, a api, result any) error {
	body := a.form
	kind := a.kind
	if a.body != nil {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(a.body); err != nil {
			return &channels.Refused{Err: c.fail(a.name, err)}
		}
		body, kind = &buf, "application/json"
	}
	if a.limit == 0 {
		a.limit = callTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	if c.stopped.Load() {
		defer c.client.CloseIdleConnections()
	}
	var s sent
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, s.trace()), a.method, c.base+a.path, body)
	if err != nil {
		return &channels.Refused{Err: c.fail(a.name, err)}
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("User-Agent", userAgent)
	if !a.open {
		req.Header.Set("Authorization", "Bot "+c.token())
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return &channels.Transient{MaybeSent: s.may(), Err: c.fail(a.name, err)}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &channels.Transient{MaybeSent: true, Err: c.fail(a.name, err)}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(raw, result); err != nil {
			return &channels.Transient{MaybeSent: true, Err: &failure{name: a.name, text: "the answer is not Discord's; is api_url right?"}}
		}
		return nil
	}
	return classify(c.refusal(a.name, resp, raw))
}

// refusal reads an error answer.
func (c *Channel) refusal(name string, resp *http.Response, raw []byte) *refusal {
	r := &refusal{name: name, status: resp.StatusCode}
	var e struct {
		Code       int             `json:"code"`
		Message    string          `json:"message"`
		RetryAfter float64         `json:"retry_after"`
		Global     bool            `json:"global"`
		Errors     json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(raw, &e) != nil || e.Message == "" {
		r.foreign = true
		r.text = "an answer that is not Discord's; is api_url right?"
	} else {
		r.code, r.text, r.fields = e.Code, c.hide.Replace(e.Message), flatten(e.Errors)
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		r.wait = time.Duration(e.RetryAfter * float64(time.Second))
		if n, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && r.wait == 0 {
			r.wait = time.Duration(n * float64(time.Second))
		}
		// Without a JSON body it is Cloudflare's ban of the address.
		r.global = e.Global || resp.Header.Get("X-RateLimit-Global") == "true" || r.foreign
	}
	return r
}

// flatten makes lines of the nested errors of a 50035: "content: BASE_TYPE_MAX_LENGTH Must be …".
func flatten(raw json.RawMessage) []field {
	var out []field
	var walk func(at string, raw json.RawMessage, depth int)
	walk = func(at string, raw json.RawMessage, depth int) {
		var m map[string]json.RawMessage
		if depth > 8 || len(out) > 8 || json.Unmarshal(raw, &m) != nil {
			return
		}
		for k, v := range m {
			if k == "_errors" {
				var es []struct{ Code, Message string }
				if json.Unmarshal(v, &es) == nil {
					for _, e := range es {
						out = append(out, field{at, e.Code, e.Message})
					}
				}
				continue
			}
			walk(strings.TrimPrefix(at+"."+k, "."), v, depth+1)
		}
	}
	walk("", raw, 0)
	return out
}
