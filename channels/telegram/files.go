package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"

	"deerbot/channels"
)

// inline are the types Telegram shows as a photo.
var inline = map[string]bool{"image/jpeg": true, "image/png": true, "image/webp": true}

// SendFile implements channels.FileSender: an image goes as a photo, and as a document when Telegram does not take it so.
func (c *Channel) SendFile(ctx context.Context, to channels.Place, f channels.File, reply, _ string) (channels.Ref, error) {
	if f.Size > maxUpload {
		return channels.Ref{}, wrong("sendDocument", fmt.Sprintf("file of %d bytes: bots may send %d", f.Size, maxUpload))
	}
	if inline[f.MIME] && f.Size > 0 && f.Size <= maxPhoto {
		ref, err := c.upload(ctx, "sendPhoto", "photo", to, f, reply)
		if !refused(err, "PHOTO_", "IMAGE_PROCESS_FAILED", "too big for a photo") {
			return ref, err
		}
	}
	return c.upload(ctx, "sendDocument", "document", to, f, reply)
}

// upload streams f as one multipart request.
func (c *Channel) upload(ctx context.Context, method, field string, to channels.Place, f channels.File, reply string) (channels.Ref, error) {
	chat, topic, err := target(method, to)
	if err != nil {
		return channels.Ref{}, err
	}
	src, err := f.Open()
	if err != nil {
		return channels.Ref{}, &channels.Refused{Err: c.fail(method, fmt.Errorf("open %s: %w", f.Name, err))}
	}
	defer src.Close()

	pr, pw := io.Pipe()
	form := multipart.NewWriter(pw)
	written := make(chan error, 1)
	go func() {
		err := writeForm(form, field, f, src, map[string]string{
			"chat_id":           strconv.FormatInt(chat, 10),
			"message_thread_id": number(topic),
			"caption":           caption(f.Caption),
			"reply_parameters":  replyJSON(reply),
		})
		pw.CloseWithError(err)
		written <- err
	}()
	var out models.MessageID
	err = c.post(ctx, fileTimeout, method, form.FormDataContentType(), pr, &out)
	_ = pr.Close() // ends the writer when the request ended before
	if werr := <-written; err != nil && werr != nil && !errors.Is(werr, io.ErrClosedPipe) && ctx.Err() == nil {
		// The file itself could not be read: the request was never whole, and would not be again.
		return channels.Ref{}, &channels.Refused{Err: c.fail(method, werr)}
	}
	if err != nil {
		return channels.Ref{}, err
	}
	return channels.Ref{Place: to, ID: strconv.Itoa(out.ID)}, nil
}

var quoteName = strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", " ", "\n", " ")

func writeForm(form *multipart.Writer, field string, f channels.File, src io.Reader, params map[string]string) error {
	for k, v := range params {
		if v == "" {
			continue
		}
		if err := form.WriteField(k, v); err != nil {
			return err
		}
	}
	h := make(textproto.MIMEHeader)
	h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"; filename="%s"`, field, quoteName.Replace(f.Name)))
	h.Set("Content-Type", "application/octet-stream")
	if f.MIME != "" && !strings.ContainsAny(f.MIME, "\r\n") {
		h.Set("Content-Type", f.MIME)
	}
	part, err := form.CreatePart(h)
	if err != nil {
		return err
	}
	limit := int64(maxUpload)
	if f.Size > 0 {
		limit = f.Size
	}
	n, err := io.Copy(part, io.LimitReader(src, limit+1))
	if err != nil {
		return err
	}
	if n > limit {
		return fmt.Errorf("file is larger than the %d bytes it should have", limit)
	}
	return form.Close()
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func replyJSON(id string) string {
	if r := replyTo(id); r != nil {
		return fmt.Sprintf(`{"message_id":%d,"allow_sending_without_reply":true}`, r.MessageID)
	}
	return ""
}

// caption cuts s to what a caption holds, in UTF-16 units.
func caption(s string) string {
	units := 0
	for i, r := range s {
		units++
		if r > 0xFFFF {
			units++
		}
		if units > maxCaption {
			cut := s[:i]
			_, n := utf8.DecodeLastRuneInString(cut)
			return cut[:len(cut)-n] + "…"
		}
	}
	return s
}

// Fetch implements channels.FileFetcher. The address of a file holds the token and stays here.
func (c *Channel) Fetch(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	if a.Size > maxDownload {
		return nil, tooLarge(a.Size)
	}
	var f models.File
	err := c.call(ctx, "getFile", map[string]string{"file_id": a.ID}, &f)
	if refused(err, textFileTooBig) {
		return nil, tooLarge(a.Size)
	}
	if err != nil {
		return nil, err
	}
	if f.FilePath == "" || strings.HasPrefix(f.FilePath, "/") || path.Clean(f.FilePath) != f.FilePath || strings.HasPrefix(f.FilePath, "..") {
		// A Bot API server in local mode gives paths of its own disk.
		return nil, &channels.Refused{Err: &failure{method: "getFile", text: "the server gives no path to download from (is it in local mode?)"}}
	}
	return c.download(ctx, f.FilePath)
}

func (c *Channel) download(ctx context.Context, name string) (io.ReadCloser, error) {
	const method = "file"
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	u := c.address("file/bot", (&url.URL{Path: name}).EscapedPath())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		cancel()
		return nil, &channels.Refused{Err: c.fail(method, err)}
	}
	resp, err := c.client.Do(req)
	if err != nil {
		cancel()
		return nil, &channels.Transient{Err: c.fail(method, err)}
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		cancel()
		err := &refusal{method: method, code: resp.StatusCode, text: http.StatusText(resp.StatusCode)}
		if resp.StatusCode == http.StatusNotFound {
			return nil, &channels.Gone{What: "message", Err: err}
		}
		return nil, &channels.Transient{Err: err}
	}
	return &body{c: c, r: resp.Body, left: maxDownload, cancel: cancel}, nil
}

func tooLarge(size int64) error {
	text := fmt.Sprintf("file of %d bytes: bots may fetch %d", size, maxDownload)
	if size == 0 {
		text = fmt.Sprintf("file is larger than the %d bytes bots may fetch", maxDownload)
	}
	return &channels.TooLong{Err: &failure{method: "getFile", text: text}}
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
		return 0, tooLarge(0)
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
