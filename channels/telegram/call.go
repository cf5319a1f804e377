package telegram

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

	"deerbot/channels"
)

// maxAnswer bounds what is read of an answer: a hundred updates of the largest kind are far below.
const maxAnswer = 64 << 20

// newClient makes the HTTP client. HTTP/2 is off: one dead connection would stall every call of the bot at once.
func newClient(proxy string) (*http.Client, []string, error) {
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
		IdleConnTimeout:       50 * time.Second, // before the server closes it: a call on a closing connection may be lost
		Protocols:             new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	var secrets []string
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil || u.Host == "" {
			return nil, nil, errors.New("proxy is not a URL")
		}
		switch u.Scheme {
		case "http", "https", "socks5", "socks5h":
		default:
			return nil, nil, fmt.Errorf("proxy: scheme %q is not one of http, https, socks5, socks5h", u.Scheme)
		}
		if pw, ok := u.User.Password(); ok {
			secrets = append(secrets, pw)
		}
		t.Proxy = http.ProxyURL(u)
	}
	return &http.Client{
		Transport: t,
		// The token is in the URL: it goes to the configured host only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, secrets, nil
}

func newReplacer(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		pairs = append(pairs, s, "***", url.QueryEscape(s), "***", url.PathEscape(s), "***")
		if _, tail, ok := strings.Cut(s, ":"); ok && len(tail) > 8 {
			pairs = append(pairs, tail, "***")
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
	method string
	text   string
	ctx    error
}

func (f *failure) Error() string { return f.method + ": " + f.text }

func (f *failure) Unwrap() error { return f.ctx }

// fail makes a failure out of err: its text without URL and secrets.
func (c *Channel) fail(method string, err error) *failure {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	f := &failure{method: method, text: c.hide.Replace(err.Error())}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.ctx = context.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		f.ctx = context.Canceled
	}
	return f
}

// refusal is an answer of the Bot API that is not ok.
type refusal struct {
	method     string
	code       int
	text       string
	retryAfter int
	migrateTo  int64
}

func (r *refusal) Error() string { return fmt.Sprintf("%s: %d %s", r.method, r.code, r.text) }

type apiAnswer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// call makes one call with params as JSON and decodes its result. Errors are those of package channels.
func (c *Channel) call(ctx context.Context, method string, params, result any) error {
	return c.callFor(ctx, callTimeout, method, params, result)
}

func (c *Channel) callFor(ctx context.Context, limit time.Duration, method string, params, result any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(params); err != nil {
		return &channels.Refused{Err: c.fail(method, err)}
	}
	return c.post(ctx, limit, method, "application/json", &body, result)
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

func (c *Channel) post(ctx context.Context, limit time.Duration, method, kind string, body io.Reader, result any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if c.stopped.Load() {
		defer c.client.CloseIdleConnections()
	}
	var s sent
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, s.trace()), http.MethodPost, c.address("bot", method), body)
	if err != nil {
		return &channels.Refused{Err: c.fail(method, err)}
	}
	req.Header.Set("Content-Type", kind)
	resp, err := c.client.Do(req)
	if err != nil {
		return &channels.Transient{MaybeSent: s.may(), Err: c.fail(method, err)}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &channels.Transient{MaybeSent: true, Err: c.fail(method, err)}
	}
	var a apiAnswer
	if err := json.Unmarshal(raw, &a); err != nil || !a.OK && a.ErrorCode == 0 {
		return foreign(method, resp)
	}
	if !a.OK {
		r := &refusal{
			method: method, code: a.ErrorCode, text: c.hide.Replace(a.Description),
			retryAfter: a.Parameters.RetryAfter, migrateTo: a.Parameters.MigrateTo,
		}
		if r.retryAfter == 0 {
			r.retryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After"))
		}
		return classify(r)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return &channels.Transient{MaybeSent: true, Err: c.fail(method, err)}
	}
	return nil
}
