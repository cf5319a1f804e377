package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deerbot/channels"
)

// file is a file as Slack tells it.
type file struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	MIME     string `json:"mimetype"`
	Size     int64  `json:"size"`
	Mode     string `json:"mode"`
	Subtype  string `json:"subtype"`
	External bool   `json:"is_external"`
	URL      string `json:"url_private"`
	Download string `json:"url_private_download"`
	Shares   struct {
		Public  map[string][]shared `json:"public"`
		Private map[string][]shared `json:"private"`
	} `json:"shares"`
}

type shared struct {
	TS     string `json:"ts"`
	Thread string `json:"thread_ts"`
}

const (
	filePrefix    = "file:" // of a Ref to a file whose message is not known
	maxDownload   = 1 << 30
	unknownBuffer = 64 << 20 // of a file whose size is not known
)

// attachments are the files of a message, and a note of those that cannot be fetched.
func attachments(files []file) ([]channels.Attachment, string) {
	var out []channels.Attachment
	var notes []string
	for _, f := range files {
		switch {
		case f.Mode == "tombstone" || f.Mode == "hidden_by_limit":
			notes = append(notes, "a file that Slack no longer has was attached")
		case f.External:
			notes = append(notes, fmt.Sprintf("a file elsewhere was linked: %s %s", first(f.Title, f.Name), f.URL))
		case f.ID != "":
			out = append(out, channels.Attachment{ID: f.ID, Kind: kindOf(f), Name: first(f.Name, f.Title), MIME: f.MIME, Size: f.Size})
		}
	}
	return out, strings.Join(notes, "; ")
}

func kindOf(f file) string {
	kind, _, _ := strings.Cut(f.MIME, "/")
	switch {
	case f.Subtype == "slack_audio":
		return "voice"
	case f.Subtype == "slack_video":
		return "video"
	case kind == "image" || kind == "audio" || kind == "video":
		return kind
	}
	return "document"
}

// Fetch implements channels.FileFetcher. The token goes to Slack's hosts only.
func (c *Channel) Fetch(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	var out struct {
		File file `json:"file"`
	}
	if err := c.call(ctx, "files.info", params{"file": a.ID}, &out); err != nil {
		return nil, err
	}
	if out.File.Size > maxDownload {
		return nil, &channels.TooLong{Err: &failure{method: "file", text: fmt.Sprintf("file of %d bytes", out.File.Size)}}
	}
	return c.download(ctx, first(out.File.Download, out.File.URL), out.File.MIME)
}

func (c *Channel) download(ctx context.Context, address, mime string) (io.ReadCloser, error) {
	const method = "file"
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	give := func(err error) (io.ReadCloser, error) {
		cancel()
		return nil, err
	}
	for range 5 {
		u, err := url.Parse(address)
		if err != nil || !c.trusted(u) {
			return give(wrong(method, "the file is not on a host of Slack; the token would leave it"))
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return give(&channels.Refused{Err: c.fail(method, err)})
		}
		req.Header.Set("Authorization", "Bearer "+c.bearer(false))
		resp, err := c.client.Do(req)
		if err != nil {
			return give(&channels.Transient{Err: c.fail(method, err)})
		}
		switch code := resp.StatusCode; {
		case code == http.StatusOK:
			if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && !strings.HasPrefix(mime, "text/html") {
				resp.Body.Close() // the sign-in page
				return give(&channels.Forbidden{Err: &failure{method: method, text: "slack shows its sign-in page; the app needs the scope files:read"}})
			}
			return &body{c: c, r: resp.Body, left: maxDownload, cancel: cancel}, nil
		case code >= 300 && code < 400:
			next, err := u.Parse(resp.Header.Get("Location"))
			resp.Body.Close()
			if err != nil {
				return give(wrong(method, "a redirect to nowhere"))
			}
			address = next.String()
		default:
			wait := retryAfter(resp)
			resp.Body.Close()
			err := &failure{method: method, text: "HTTP " + strconv.Itoa(code)}
			switch code {
			case http.StatusTooManyRequests:
				return give(&channels.RateLimited{RetryAfter: max(wait, time.Second), Account: true, Err: err})
			case http.StatusNotFound, http.StatusGone:
				return give(&channels.Gone{What: "message", Err: err})
			case http.StatusForbidden, http.StatusUnauthorized:
				return give(&channels.Forbidden{Err: err})
			}
			return give(&channels.Transient{Err: err})
		}
	}
	return give(wrong(method, "too many redirects"))
}

// body is a download that is bounded and whose errors hold no address.
type body struct {
	c      *Channel
	r      io.ReadCloser
	left   int64
	cancel func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &channels.TooLong{Err: &failure{method: "file", text: "larger than 1 GB"}}
	}
	if err != nil && err != io.EOF {
		return n, &channels.Transient{Err: b.c.fail("file", err)}
	}
	return n, err
}

func (b *body) Close() error {
	err := b.r.Close()
	b.cancel()
	if b.c.stopped.Load() {
		b.c.client.CloseIdleConnections()
	}
	if err != nil {
		return b.c.fail("file", err)
	}
	return nil
}

// SendFile implements channels.FileSender with the external upload flow. Slack makes the message by itself some moments
// later; when it does not show in time the Ref names the file.
func (c *Channel) SendFile(ctx context.Context, to channels.Place, f channels.File, _, _ string) (channels.Ref, error) {
	const method = "files.completeUploadExternal"
	if f.Size > maxUpload {
		return channels.Ref{}, wrong(method, fmt.Sprintf("file of %d bytes: Slack takes %d", f.Size, maxUpload))
	}
	src, err := f.Open()
	if err != nil {
		return channels.Ref{}, &channels.Refused{Err: c.fail(method, fmt.Errorf("open %s: %w", f.Name, err))}
	}
	defer src.Close()
	var data io.Reader = src
	size := f.Size
	if size <= 0 { // Slack wants to know it before
		raw, err := io.ReadAll(io.LimitReader(src, unknownBuffer+1))
		if err != nil {
			return channels.Ref{}, &channels.Refused{Err: c.fail(method, err)}
		}
		if len(raw) == 0 || len(raw) > unknownBuffer {
			return channels.Ref{}, wrong(method, fmt.Sprintf("%s: a file of unknown size must have 1 to %d bytes", f.Name, unknownBuffer))
		}
		data, size = bytes.NewReader(raw), int64(len(raw))
	}
	var slot struct {
		URL string `json:"upload_url"`
		ID  string `json:"file_id"`
	}
	if err := c.call(ctx, "files.getUploadURLExternal", params{"filename": first(f.Name, "file"), "length": strconv.FormatInt(size, 10)}, &slot); err != nil {
		return channels.Ref{}, unsent(err)
	}
	if err := c.upload(ctx, slot.URL, data, size); err != nil {
		return channels.Ref{}, err
	}
	err = c.call(ctx, method, params{
		"files":           encoded([]map[string]string{{"id": slot.ID, "title": first(f.Name, "file")}}),
		"channel_id":      to.Chat,
		"thread_ts":       to.Topic,
		"initial_comment": escape(cut(f.Caption, maxText-500)),
	}, nil)
	if err != nil {
		return channels.Ref{}, err
	}
	return channels.Ref{Place: to, ID: c.shareOf(ctx, slot.ID, to.Chat)}, nil
}

// unsent is err of a call that leaves nothing to see, whether it was carried out or not.
func unsent(err error) error {
	if t, ok := errors.AsType[*channels.Transient](err); ok {
		return &channels.Transient{Err: t.Err}
	}
	return err
}

func (c *Channel) upload(ctx context.Context, address string, data io.Reader, size int64) error {
	const method = "upload"
	u, err := url.Parse(address)
	if err != nil || !c.trusted(u) {
		return wrong(method, "the address is not Slack's")
	}
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	src := &counted{r: data, left: size}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, src)
	if err != nil {
		return &channels.Refused{Err: c.fail(method, err)}
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.client.Do(req)
	if src.err != nil && ctx.Err() == nil {
		// The file itself could not be read: the request was never whole, and would not be again.
		if err == nil {
			resp.Body.Close()
		}
		return &channels.Refused{Err: c.fail(method, src.err)}
	}
	if err != nil {
		return &channels.Transient{Err: c.fail(method, err)}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusTooManyRequests:
		return &channels.RateLimited{RetryAfter: max(retryAfter(resp), time.Second), Account: true, Err: &failure{method: method, text: "HTTP 429"}}
	case code >= 400 && code < 500:
		return &channels.Refused{Err: &failure{method: method, text: "HTTP " + strconv.Itoa(code)}}
	default:
		return &channels.Transient{Err: &failure{method: method, text: "HTTP " + strconv.Itoa(code)}}
	}
}

// counted reads exactly as many bytes as were announced, else it fails.
type counted struct {
	r    io.Reader
	left int64
	err  error
}

func (s *counted) Read(p []byte) (int, error) {
	if s.left == 0 {
		if n, _ := s.r.Read(make([]byte, 1)); n > 0 {
			s.err = errors.New("the file is larger than its size")
			return 0, s.err
		}
		return 0, io.EOF
	}
	if int64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.r.Read(p)
	s.left -= int64(n)
	if errors.Is(err, io.EOF) && s.left > 0 {
		err = errors.New("the file is shorter than its size")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// shareOf waits for the message that shows a file.
func (c *Channel) shareOf(ctx context.Context, id, chat string) string {
	wait := min(c.retryMin, 500*time.Millisecond)
	for range 6 {
		var out struct {
			File file `json:"file"`
		}
		if err := c.call(ctx, "files.info", params{"file": id}, &out); err != nil && ctx.Err() != nil {
			break
		}
		for _, all := range []map[string][]shared{out.File.Shares.Public, out.File.Shares.Private} {
			if s := all[chat]; len(s) > 0 {
				return s[0].TS
			}
		}
		if sleep(ctx, wait) != nil {
			break
		}
		wait *= 2
	}
	return filePrefix + id
}
