package call

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Client returns the HTTP client that models share. It has no total timeout: an answer may stream for an hour, and the
// call's own clocks bound it. Redirects are not followed, because a request body full of private text must not travel
// to a place nobody configured.
var Client = sync.OnceValue(func() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
			ForceAttemptHTTP2:     true,
			MaxIdleConns:          100,
			MaxIdleConnsPerHost:   32,
			IdleConnTimeout:       90 * time.Second,
			HTTP2:                 &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		},
	}
})

// Key returns key without surrounding white space (files with CRLF ends leave a CR), or an error that does not show it.
func Key(key string) (string, error) {
	key = strings.TrimSpace(key)
	for _, r := range key {
		if r < 0x21 || r > 0x7e {
			return "", errors.New("api key: holds a space, a control character or a non-ASCII character")
		}
	}
	return key, nil
}

// Headers returns a checked copy of headers, with canonical names, or an error that shows no value.
func Headers(headers map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(headers))
	for name, value := range headers {
		value = strings.TrimSpace(value)
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= 0x20 || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
			return nil, fmt.Errorf("headers: %q is not a header name", name)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return (r < 0x20 && r != '\t') || r == 0x7f }) {
			return nil, fmt.Errorf("headers: the value of %s holds a control character", name)
		}
		out[http.CanonicalHeaderKey(name)] = value
	}
	return out, nil
}

// BaseURL checks base and returns it with the values in it that must not show. The error does not show the URL.
func BaseURL(base string) (*url.URL, []string, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, nil, errors.New("base url: want http(s)://host[:port][/path]")
	}
	if u.Fragment != "" {
		return nil, nil, errors.New("base url: has a fragment")
	}
	var secrets []string
	if pw, ok := u.User.Password(); ok {
		secrets = append(secrets, pw)
	}
	for _, values := range u.Query() {
		secrets = append(secrets, values...)
	}
	return u, secrets, nil
}

// SecretHeaders returns the values of headers that look like credentials.
func SecretHeaders(headers map[string]string) []string {
	var out []string
	for name, value := range headers {
		n := strings.ToLower(name)
		for _, mark := range []string{"auth", "key", "token", "secret", "cookie", "password"} {
			if strings.Contains(n, mark) {
				out = append(out, value)
				if _, credential, ok := strings.Cut(value, " "); ok {
					out = append(out, credential)
				}
				break
			}
		}
	}
	return out
}
