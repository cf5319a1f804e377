package slack

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
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"deerbot/channels"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 32 << 20

// dialer opens sockets. It is a type of its own so that prints of a Channel do not look into it.
type dialer struct{ websocket.Dialer }

// newClient makes the HTTP client and the socket's dialer. HTTP/2 is off: one dead connection would stall every call at
// once.
func newClient(proxy string) (*http.Client, *dialer, []string, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3, // a dead connection is found in 30 s
	}}
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         d.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        200,
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     50 * time.Second,
		Protocols:           new(http.Protocols),
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
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client, &dialer{websocket.Dialer{
		Proxy: t.Proxy, NetDialContext: d.DialContext, HandshakeTimeout: 15 * time.Second,
	}}, secrets, nil
}

func newReplacer(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		pairs = append(pairs, s, "***", url.QueryEscape(s), "***", url.PathEscape(s), "***")
		if i := strings.LastIndexByte(s, '-'); i >= 0 && len(s)-i > 8 {
			pairs = append(pairs, s[i+1:], "***")
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

// addresses are cut out of errors: those of sockets, uploads and answers are secrets themselves.
var addresses = regexp.MustCompile(`(?:https?|wss?)://[^\s"']+`)

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
	f := &failure{method: method, text: c.clean(err.Error())}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.ctx = context.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		f.ctx = context.Canceled
	}
	return f
}

func (c *Channel) clean(s string) string {
	return c.hide.Replace(addresses.ReplaceAllString(s, "<address>"))
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

// params are the fields of a call; empty ones are left out.
type params map[string]string

func (p params) encode() string {
	v := url.Values{}
	for k, s := range p {
		if s != "" {
			v.Set(k, s)
		}
	}
	return v.Encode()
}

// encoded is v as JSON for a field.
func encoded(v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSpace(buf.String())
}

// call makes one call with the bot's token and decodes its answer. Errors are those of package channels.
func (c *Channel) call(ctx context.Context, method string, p params, result any) error {
	return c.callAs(ctx, false, method, p, result)
}

func (c *Channel) callAs(ctx context.Context, app bool, method string, p params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if c.stopped.Load() {
		defer c.client.CloseIdleConnections()
	}
	var s sent
	u := c.api.JoinPath(method).String()
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, s.trace()), http.MethodPost, u, strings.NewReader(p.encode()))
	if err != nil {
		return &channels.Refused{Err: c.fail(method, err)}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	req.Header.Set("Authorization", "Bearer "+c.bearer(app))
	resp, err := c.client.Do(req)
	if err != nil {
		return &channels.Transient{MaybeSent: s.may(), Err: c.fail(method, err)}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &channels.Transient{MaybeSent: true, Err: c.fail(method, err)}
	}
	var a struct {
		OK       *bool  `json:"ok"`
		Error    string `json:"error"`
		Needed   string `json:"needed"`
		Provided string `json:"provided"`
		Meta     struct {
			Messages []string `json:"messages"`
		} `json:"response_metadata"`
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.OK == nil {
		return foreign(method, resp)
	}
	if *a.OK {
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(raw, result); err != nil {
			return &channels.Transient{MaybeSent: true, Err: c.fail(method, err)}
		}
		return nil
	}
	r := &refusal{
		method: method, code: c.clean(a.Error), needed: a.Needed, provided: a.Provided, detail: c.clean(strings.Join(a.Meta.Messages, "; ")),
		retryAfter: retryAfter(resp), channel: p["channel"], app: app,
	}
	err = classify(r)
	if channels.IsFatal(err) {
		c.trouble(err.Error())
	}
	return err
}

func retryAfter(resp *http.Response) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(resp.Header.Get("Retry-After")))
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(n) * time.Second
}
