package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"deerbot/cards"
	"deerbot/channels"
)

// eventType marks the metadata of messages we sent.
const eventType = "deerbot_message"

// Send implements channels.Channel. Slack does not dedupe: the key goes into the message's metadata, where [Channel.Find]
// looks for it. What a message answers shows by its thread alone.
func (c *Channel) Send(ctx context.Context, to channels.Place, m channels.Message, key string) (channels.Ref, error) {
	const method = "chat.postMessage"
	p, err := c.body(method, to, m.Body)
	if err != nil {
		return channels.Ref{}, err
	}
	p["thread_ts"] = to.Topic
	p["unfurl_links"], p["unfurl_media"] = "false", "false"
	if key != "" {
		p["metadata"] = encoded(map[string]any{"event_type": eventType, "event_payload": map[string]string{"key": key}})
	}
	var out struct {
		TS string `json:"ts"`
	}
	if err := c.call(ctx, method, p, &out); err != nil {
		return channels.Ref{}, err
	}
	if out.TS == "" {
		return channels.Ref{}, &channels.Transient{MaybeSent: true, Err: &failure{method: method, text: "no ts in the answer"}}
	}
	return channels.Ref{Place: to, ID: out.TS}, nil
}

// Edit implements channels.Channel. An edit without buttons takes them away.
func (c *Channel) Edit(ctx context.Context, ref channels.Ref, m channels.Message) error {
	const method = "chat.update"
	p, err := c.body(method, ref.Place, m.Body)
	if err != nil {
		return err
	}
	if !isTS(ref.ID) {
		return wrong(method, fmt.Sprintf("%q is not the ts of a message", ref.ID))
	}
	p["ts"] = ref.ID
	if p["blocks"] == "" {
		p["blocks"] = "[]"
	}
	return c.call(ctx, method, p, nil)
}

// body are the fields of a text. Texts that could not be edited later are refused here: Slack would cut the longest ones
// without a word.
func (c *Channel) body(method string, to channels.Place, b cards.Body) (params, error) {
	if to.Chat == "" || to.Topic != "" && !isTS(to.Topic) {
		return nil, wrong(method, fmt.Sprintf("%q, %q is not a channel and a ts", to.Chat, to.Topic))
	}
	p := params{"channel": to.Chat}
	switch {
	case len(b.Buttons) > 0:
		p["blocks"] = string(cards.SlackBlocks(b))
	case len(b.Data) > 0:
		p["blocks"] = string(b.Data)
	}
	if b.Format == "mrkdwn" {
		p["text"] = b.Text
	} else {
		p["text"], p["mrkdwn"] = escape(b.Text), "false"
	}
	if n := utf8.RuneCountInString(p["text"]); n > maxText {
		return nil, &channels.TooLong{Err: &failure{method: method, text: fmt.Sprintf("%d characters: a text that can be edited has %d", n, maxText)}}
	}
	return p, nil
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape makes plain text of s.
func escape(s string) string { return escaper.Replace(s) }

// isTS reports whether s is a message's ts.
func isTS(s string) bool {
	sec, frac, ok := strings.Cut(s, ".")
	_, err1 := strconv.ParseUint(sec, 10, 64)
	_, err2 := strconv.ParseUint(frac, 10, 64)
	return ok && err1 == nil && err2 == nil
}

// Delete implements channels.Deleter. A message that is not there any more is success.
func (c *Channel) Delete(ctx context.Context, ref channels.Ref) error {
	if id, ok := strings.CutPrefix(ref.ID, filePrefix); ok {
		err := c.call(ctx, "files.delete", params{"file": id}, nil)
		if refused(err, "file_not_found", "file_deleted") {
			return nil
		}
		return err
	}
	if !isTS(ref.ID) {
		return wrong("chat.delete", fmt.Sprintf("%q is not the ts of a message", ref.ID))
	}
	err := c.call(ctx, "chat.delete", params{"channel": ref.Place.Chat, "ts": ref.ID}, nil)
	if refused(err, "message_not_found") {
		return nil
	}
	return err
}

// Find looks for the message that was sent to a place under key within the last quarter of an hour: after a send whose
// answer was lost it tells whether to send again.
func (c *Channel) Find(ctx context.Context, to channels.Place, key string) (channels.Ref, bool, error) {
	if key == "" {
		return channels.Ref{}, false, nil
	}
	since := c.now().Add(-15 * time.Minute)
	p := params{"channel": to.Chat, "include_all_metadata": "true", "limit": "200", "oldest": fmt.Sprintf("%d.000000", since.Unix())}
	method := "conversations.history"
	if to.Topic != "" {
		method, p["ts"] = "conversations.replies", to.Topic
	}
	for range 5 { // pages
		var out page
		if err := c.call(ctx, method, p, &out); err != nil {
			return channels.Ref{}, false, err
		}
		for i := range out.Messages {
			if m := &out.Messages[i]; m.Metadata.Type == eventType && m.Metadata.Payload.Key == key && c.mine(m) {
				return channels.Ref{Place: to, ID: m.TS}, true, nil
			}
		}
		if p["cursor"] = out.Meta.Next; !out.More || out.Meta.Next == "" {
			break
		}
	}
	return channels.Ref{}, false, nil
}

// mine reports whether the bot wrote m, as far as is known before the first connection.
func (c *Channel) mine(m *event) bool { return c.me.Load() == nil || c.own(m) }

// Typing implements channels.Typer. Slack shows a working sign in threads only, until the next message there.
func (c *Channel) Typing(ctx context.Context, to channels.Place) error {
	if to.Topic == "" || c.noStatus.Load() {
		return nil
	}
	err := c.call(ctx, "assistant.threads.setStatus", params{
		"channel_id": to.Chat, "thread_ts": to.Topic, "status": "is working…",
	}, nil)
	if refused(err, "missing_scope", "unknown_method", "feature_not_enabled", "not_allowed_token_type") {
		c.noStatus.Store(true)
		c.log.Info("slack shows no working sign for this app", "error", err)
		return nil
	}
	var r *refusal
	if errors.As(err, &r) && !channels.IsFatal(err) {
		if _, ok := errors.AsType[*channels.RateLimited](err); !ok {
			return nil // not in this conversation
		}
	}
	return err
}

// actions remembers where presses are answered. The addresses are secrets, so they are not in ids, which are stored.
type actions struct {
	mu  sync.Mutex
	url map[string]answer
}

type answer struct {
	url   string
	until time.Time
}

func newActions() *actions { return &actions{url: map[string]answer{}} }

const (
	answerFor  = 30 * time.Minute
	maxAnswers = 5000
)

func (a *actions) keep(channel, user, thread, ts, address string, now time.Time) (id string) {
	id = strings.Join([]string{channel, user, thread, ts}, "|")
	if address == "" {
		return id
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.url) >= maxAnswers {
		for k, v := range a.url {
			if now.After(v.until) || len(a.url) >= maxAnswers {
				delete(a.url, k)
			}
		}
	}
	a.url[id] = answer{address, now.Add(answerFor)}
	return id
}

func (a *actions) take(id string, now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.url[id]
	delete(a.url, id)
	if now.After(v.until) {
		return ""
	}
	return v.url
}

// AnswerAction implements channels.ActionAnswerer: the presser alone sees the notice. Slack needs no answer, so none is
// given for "". An answer that comes too late is dropped.
func (c *Channel) AnswerAction(ctx context.Context, id, notice string) error {
	if notice == "" {
		return nil
	}
	if address := c.actions.take(id, c.now()); address != "" {
		if err := c.respond(ctx, address, notice); err == nil || ctx.Err() != nil {
			return err
		}
	}
	part := strings.Split(id, "|")
	if len(part) != 4 || part[0] == "" || part[1] == "" {
		return nil
	}
	err := c.call(ctx, "chat.postEphemeral", params{"channel": part[0], "user": part[1], "thread_ts": part[2], "text": escape(notice)}, nil)
	var gone *channels.Gone
	var no *channels.Forbidden
	if errors.As(err, &gone) || errors.As(err, &no) {
		return nil
	}
	return err
}

// respond posts to a response_url, which needs no token.
func (c *Channel) respond(ctx context.Context, address, notice string) error {
	const method = "response_url"
	u, err := url.Parse(address)
	if err != nil || !c.trusted(u) {
		return wrong(method, "the address is not Slack's")
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"response_type": "ephemeral", "replace_original": false, "text": escape(notice)})
	if err != nil {
		return wrong(method, "the notice cannot be encoded")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &channels.Refused{Err: c.fail(method, err)}
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := c.client.Do(req)
	if err != nil {
		return &channels.Transient{Err: c.fail(method, err)}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	if resp.StatusCode != http.StatusOK {
		return &channels.Gone{What: "message", Err: &failure{method: method, text: "HTTP " + strconv.Itoa(resp.StatusCode)}}
	}
	return nil
}

// trusted reports whether u is Slack's: the API's own host, or one of slack.com over https when the API is there.
func (c *Channel) trusted(u *url.URL) bool {
	if u.Scheme == c.api.Scheme && u.Host == c.api.Host {
		return true
	}
	host := u.Hostname()
	return u.Scheme == "https" && u.User == nil && (u.Port() == "" || u.Port() == "443") &&
		(host == "slack.com" || strings.HasSuffix(host, ".slack.com"))
}
