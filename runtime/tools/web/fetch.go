package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Page is what a URL gave.
type Page struct {
	URL    *url.URL // the last one, after redirects
	Status int
	Type   string // Content-Type as sent; "" when none was
	Name   string // file name that the server proposes, not checked; "" when none
	Body   []byte // decompressed
}

// StatusError says that the server answered with another status than success.
type StatusError struct {
	URL    *url.URL
	Status int
}

// Error implements error.
func (e *StatusError) Error() string {
	text := http.StatusText(e.Status)
	hint := ""
	switch {
	case e.Status == http.StatusTooManyRequests:
		hint = "; the site limits requests, try another source or later"
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		hint = "; the site does not let this page be read without a browser or an account, try another source"
	case e.Status == http.StatusNotFound || e.Status == http.StatusGone:
		hint = "; the page is not there, check the address or search for it"
	case e.Status >= 500:
		hint = "; the site has a fault, try later or another source"
	}
	return strings.TrimSpace(fmt.Sprintf("%s answered %d %s", short(e.URL), e.Status, text)) + hint
}

// Get fetches a URL: checks, redirects, decompression, all within the limits of this package. Errors are for the model
// to read; those that wrap [ErrRefused] will not change by trying again.
func (c *Client) Get(ctx context.Context, raw string) (*Page, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	u, err := c.Check(raw)
	if err != nil {
		return nil, err
	}
	for range MaxRedirects + 1 {
		page, next, err := c.once(ctx, u)
		if err != nil {
			return nil, c.explain(ctx, u, err)
		}
		if next == "" {
			return page, nil
		}
		ref, err := u.Parse(next)
		if err != nil {
			return nil, refuse("%s redirects to a url that cannot be read", short(u))
		}
		target, err := c.Check(ref.String())
		if err != nil {
			return nil, fmt.Errorf("%s redirects to a place that is not allowed: %w", short(u), err)
		}
		u = target
	}
	return nil, fmt.Errorf("more than %d redirects", MaxRedirects)
}

// once makes one request. next is where a redirect points.
func (c *Client) once(ctx context.Context, u *url.URL) (page *Page, next string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, "", refuse("the url cannot be requested")
	}
	// The headers are made anew for each hop: there is nothing in them to leak.
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,application/json;q=0.9,text/plain;q=0.9,*/*;q=0.5")
	req.Header.Set("Accept-Language", "en,*;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip, deflate")
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if loc := resp.Header.Get("Location"); loc != "" {
			return nil, loc, nil
		}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, "", &StatusError{URL: u, Status: resp.StatusCode}
	}
	if resp.ContentLength > MaxBody {
		return nil, "", errTooLarge
	}
	body, err := decode(resp.Body, resp.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, "", err
	}
	page = &Page{URL: u, Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Body: body}
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
		page.Name = params["filename"]
	}
	return page, "", nil
}

// explain turns an error of the transport into words without addresses of this host.
func (c *Client) explain(ctx context.Context, u *url.URL, err error) error {
	var (
		status   *StatusError
		cert     *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		record   tls.RecordHeaderError
		op       *net.OpError
		lookup   *lookupError
	)
	switch {
	case errors.As(err, &status), errors.Is(err, errTooLarge), errors.Is(err, errEncoding):
		return err
	case errors.Is(err, ErrRefused):
		// The wrapping of the dialer names local addresses; the refusal itself does not.
		if errors.As(err, &op) {
			err = op.Err
		}
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return fmt.Errorf("%s did not answer in time", short(u))
	case errors.As(err, &cert), errors.As(err, &unknown), errors.As(err, &hostname):
		return fmt.Errorf("the certificate of %s cannot be trusted", u.Hostname())
	case errors.As(err, &record):
		return fmt.Errorf("%s does not speak https on this port", u.Hostname())
	case errors.As(err, &op):
		return fmt.Errorf("no connection to %s (%s)", u.Hostname(), op.Op)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%s closed the connection before the page was complete", u.Hostname())
	case errors.As(err, &lookup):
		return lookup
	}
	return fmt.Errorf("the answer of %s cannot be read", u.Hostname())
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// short is a URL for an error: without query, at most 120 bytes.
func short(u *url.URL) string {
	s := u.Scheme + "://" + u.Host + u.EscapedPath()
	if len(s) > 120 {
		s = s[:120] + "…"
	}
	return s
}
