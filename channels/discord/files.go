package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/bwmarrin/discordgo"

	"deerbot/channels"
)

// SendFile implements channels.FileSender.
func (c *Channel) SendFile(ctx context.Context, to channels.Place, f channels.File, reply, key string) (channels.Ref, error) {
	const name = "send file"
	if f.Size > maxUpload {
		return channels.Ref{}, wrong(name, fmt.Sprintf("file of %d bytes: bots may send %d", f.Size, maxUpload))
	}
	src, err := f.Open()
	if err != nil {
		return channels.Ref{}, &channels.Refused{Err: c.fail(name, fmt.Errorf("open %s: %w", f.Name, err))}
	}
	// The file is small: in memory it can be sent again without its reply, and its length is known.
	data, err := io.ReadAll(io.LimitReader(src, maxUpload+1))
	if err = errors.Join(err, src.Close()); err != nil {
		return channels.Ref{}, &channels.Refused{Err: c.fail(name, err)}
	}
	if len(data) > maxUpload || f.Size > 0 && int64(len(data)) > f.Size {
		return channels.Ref{}, wrong(name, "the file is larger than it should be")
	}
	body := create{
		Content: caption(f.Caption), Nonce: nonceOf(to, key), EnforceNonce: key != "", AllowedMentions: nobody,
		Reference: replyTo(to, reply), Attachments: []part{{Filename: f.Name}}, Flags: flags(false),
	}
	var failed error
	ref, err := c.post(ctx, to, body, func(b create) api {
		pr, kind, err := form(b, f, data)
		failed = err
		return api{name: name, method: "POST", form: pr, kind: kind, limit: fileTimeout}
	})
	if failed != nil {
		return channels.Ref{}, &channels.Refused{Err: c.fail(name, failed)}
	}
	return ref, err
}

var quoteName = strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", " ", "\n", " ")

func form(body create, f channels.File, data []byte) (io.Reader, string, error) {
	var b strings.Builder
	w := multipart.NewWriter(&b)
	payload, err := json.Marshal(body)
	if err != nil {
		return nil, "", err
	}
	h := make(textproto.MIMEHeader)
	h.Set("Content-Disposition", `form-data; name="payload_json"`)
	h.Set("Content-Type", "application/json")
	p, err := w.CreatePart(h)
	if err == nil {
		_, err = p.Write(payload)
	}
	if err != nil {
		return nil, "", err
	}
	h = make(textproto.MIMEHeader)
	h.Set("Content-Disposition", `form-data; name="files[0]"; filename="`+quoteName.Replace(f.Name)+`"`)
	h.Set("Content-Type", "application/octet-stream")
	if f.MIME != "" && !strings.ContainsAny(f.MIME, "\r\n") {
		h.Set("Content-Type", f.MIME)
	}
	if p, err = w.CreatePart(h); err == nil {
		_, err = p.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, "", err
	}
	return strings.NewReader(b.String()), w.FormDataContentType(), nil
}

// caption cuts s to what a message holds.
func caption(s string) string {
	for utf16Len(s) > maxContent {
		s = shorten(s, min(len([]rune(s))-1, maxContent))
	}
	return s
}

// attachmentID names a file by where it is, since its address is signed and expires.
func attachmentID(channel, message, id string) string { return channel + "/" + message + "/" + id }

// Fetch implements channels.FileFetcher: it asks for the message again, because addresses of files expire.
func (c *Channel) Fetch(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	const name = "fetch file"
	p := strings.Split(a.ID, "/")
	if len(p) != 3 || !snowflake(p[0]) || !snowflake(p[1]) || !snowflake(p[2]) {
		return nil, wrong(name, "not the id of a Discord file")
	}
	if a.Size > maxDownload {
		return nil, tooLarge(a.Size)
	}
	var m message
	if err := c.call(ctx, api{name: name, method: "GET", path: "/channels/" + p[0] + "/messages/" + p[1]}, &m); err != nil {
		return nil, err
	}
	files := m.Attachments
	for _, s := range m.Snapshots {
		files = append(files, s.Message.Attachments...)
	}
	for _, f := range files {
		if f.ID == p[2] {
			return c.download(ctx, f)
		}
	}
	return nil, &channels.Gone{What: "message", Err: &failure{name: name, text: "the file is not in its message any more"}}
}

func tooLarge(size int64) error {
	return &channels.TooLong{Err: &failure{name: "fetch file", text: fmt.Sprintf("file of %d bytes", size)}}
}

// download gets a file from the CDN. Its address is its credential: the token does not go there.
func (c *Channel) download(ctx context.Context, f *discordgo.MessageAttachment) (io.ReadCloser, error) {
	const name = "download"
	u, err := url.Parse(f.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return nil, wrong(name, "the file has no address")
	}
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel()
		return nil, &channels.Refused{Err: c.fail(name, err)}
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := c.client.Do(req)
	if err != nil {
		cancel()
		return nil, &channels.Transient{Err: c.fail(name, err)}
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		cancel()
		err := &refusal{name: name, status: resp.StatusCode, text: http.StatusText(resp.StatusCode)}
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusForbidden {
			return nil, &channels.Gone{What: "message", Err: err}
		}
		return nil, &channels.Transient{Err: err}
	}
	return &body{c: c, r: resp.Body, left: maxDownload, cancel: cancel}, nil
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
		return 0, tooLarge(maxDownload)
	}
	if err != nil && err != io.EOF {
		return n, &channels.Transient{Err: b.c.fail("download", err)}
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
		return b.c.fail("download", err)
	}
	return nil
}
