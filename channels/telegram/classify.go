package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"deerbot/channels"
)

// Descriptions by which refusals are told apart. The texts are those of github.com/tdlib/telegram-bot-api
// (telegram-bot-api/Client.cpp) and of the errors of Telegram's servers it passes on in capitals.
var (
	formatTexts = []string{
		"can't parse entities", "can't parse message text", "can't parse caption", "unsupported parse_mode",
		"ENTITY_BOUNDS_INVALID", "ENTITIES_TOO_LONG",
	}
	longTexts = []string{
		"message is too long", "text is too long", "caption is too long", "MESSAGE_TOO_LONG",
		"MEDIA_CAPTION_TOO_LONG",
	}
	goneMessageTexts = []string{
		"message to edit not found", "message can't be edited", "message to delete not found",
		"message to react not found", "message to be replied not found", "message identifier is not specified",
		"MESSAGE_ID_INVALID", "MESSAGE_EDIT_TIME_EXPIRED",
	}
	goneTopicTexts = []string{"message thread not found", "TOPIC_DELETED", "TOPIC_ID_INVALID"}
	goneChatTexts  = []string{
		"chat not found", "PEER_ID_INVALID", "CHANNEL_INVALID", "CHAT_ID_INVALID", "group chat was deleted",
		"group chat was deactivated",
	}
	goneUserTexts  = []string{"user not found", "USER_ID_INVALID", "user is deactivated", "INPUT_USER_DEACTIVATED"}
	forbiddenTexts = []string{
		"not enough rights", "have no rights", "need administrator rights", "CHAT_WRITE_FORBIDDEN",
		"CHAT_ADMIN_REQUIRED", "CHAT_RESTRICTED", "CHAT_SEND_", "TOPIC_CLOSED", "bot is not a member", "USER_IS_BLOCKED",
		"message can't be deleted", "CHAT_FORBIDDEN", "USER_BANNED_IN_CHANNEL",
	}
)

const (
	textNotModified = "message is not modified"
	textNoText      = "there is no text in the message to edit"
	textNoCaption   = "there is no caption in the message to edit"
	textOldQuery    = "query is too old"
	textWebhook     = "can't use getUpdates method while webhook is active"
	textFileTooBig  = "file is too big"
)

// classify turns a refusal into the class the outbox decides by.
func classify(r *refusal) error {
	switch {
	case r.code == http.StatusTooManyRequests:
		// Telegram does not say whether the chat or the account is meant; calls without a chat can only mean the account.
		return &channels.RateLimited{RetryAfter: r.wait(), Account: !chatMethod(r.method), Err: r}
	case r.migrateTo != 0:
		return &channels.Moved{To: strconv.FormatInt(r.migrateTo, 10), Err: r}
	case r.code == http.StatusUnauthorized:
		return &channels.Fatal{Err: fmt.Errorf("telegram refuses the bot token (it was revoked or mistyped): %w", r)}
	case r.code == http.StatusNotFound && r.method == "getMe":
		return &channels.Fatal{Err: fmt.Errorf("telegram does not know this bot token: %w", r)}
	case r.code == http.StatusConflict:
		return &channels.Transient{Err: r}
	case r.code >= 500:
		return &channels.Transient{MaybeSent: true, Err: r}
	case r.has(goneUserTexts...):
		return &channels.Gone{What: "user", Err: r}
	case r.has(goneChatTexts...):
		return &channels.Gone{What: "chat", Err: r}
	case r.code == http.StatusForbidden, r.has(forbiddenTexts...):
		return &channels.Forbidden{Err: r}
	case r.has(formatTexts...):
		return &channels.BadFormat{Err: r}
	case r.has(longTexts...):
		return &channels.TooLong{Err: r}
	case r.has(goneMessageTexts...):
		return &channels.Gone{What: "message", Err: r}
	case r.has(goneTopicTexts...):
		return &channels.Gone{What: "topic", Err: r}
	}
	return &channels.Refused{Err: r}
}

func (r *refusal) has(texts ...string) bool {
	for _, t := range texts {
		if strings.Contains(r.text, t) {
			return true
		}
	}
	return false
}

// wait is how long a 429 wants; one without a number is taken as a short one.
func (r *refusal) wait() time.Duration {
	if r.retryAfter > 0 {
		return time.Duration(r.retryAfter) * time.Second
	}
	if _, tail, ok := strings.Cut(r.text, "retry after "); ok {
		if n, err := strconv.Atoi(strings.TrimSpace(tail)); err == nil && n > 0 {
			return time.Duration(n) * time.Second
		}
	}
	return 3 * time.Second
}

func chatMethod(m string) bool {
	return strings.HasPrefix(m, "send") || strings.HasPrefix(m, "edit") || m == "deleteMessage"
}

// foreign is an answer that is not the Bot API's: a gateway's page, a redirect, a wrong api_url.
func foreign(method string, resp *http.Response) error {
	err := &failure{method: method, text: fmt.Sprintf("HTTP %d without an answer of the Bot API; is api_url right?", resp.StatusCode)}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		n, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		r := &refusal{method: method, code: code, text: "Too Many Requests", retryAfter: n}
		return classify(r)
	case code == http.StatusRequestEntityTooLarge:
		return &channels.Refused{Err: err}
	case code >= 300 && code < 400:
		err.text = fmt.Sprintf("HTTP %d: a redirect is not followed, the token would leave api_url", code)
		return &channels.Transient{Err: err}
	case code >= 400 && code < 500:
		return &channels.Transient{Err: err}
	}
	return &channels.Transient{MaybeSent: true, Err: err}
}

// refused reports whether err is a refusal with one of the texts.
func refused(err error, texts ...string) bool {
	var r *refusal
	return errors.As(err, &r) && r.has(texts...)
}
