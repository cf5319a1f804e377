package slack

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"deerbot/channels"
)

// refusal is an answer of the Web API that is not ok.
type refusal struct {
	method           string
	code             string
	needed, provided string
	detail           string
	retryAfter       time.Duration
	channel          string
	app              bool
}

func (r *refusal) Error() string {
	s := r.method + ": " + r.code
	if r.needed != "" {
		s += fmt.Sprintf(" (the app needs the scope %s; it has %s)", r.needed, r.provided)
	}
	if r.detail != "" {
		s += " (" + r.detail + ")"
	}
	return s
}

// Codes by which refusals are told apart, docs.slack.dev/reference/methods.
var (
	limitCodes = []string{"ratelimited", "rate_limited", "message_limit_exceeded"}
	fatalCodes = map[string]string{
		"not_authed":                "slack got no token",
		"invalid_auth":              "slack refuses the token (it was revoked or mistyped)",
		"account_inactive":          "the token's app or account was removed from the workspace",
		"token_revoked":             "the token was revoked; install the app again",
		"token_expired":             "the token has expired; switch token rotation off for the app or install it again",
		"not_allowed_token_type":    "the token is of the wrong kind: bot_token is xoxb-…, app_token is xapp-…",
		"org_login_required":        "the workspace is moving to an organisation",
		"ekm_access_denied":         "the organisation's administrators have suspended access",
		"team_access_not_granted":   "the token has no access to the workspace; install the app there",
		"app_uninstalled":           "the app was uninstalled",
		"two_factor_setup_required": "the account must set up two-factor authentication first",
		"forbidden_team":            "the app may not be used in this workspace",
	}
	transientCodes = []string{
		"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org",
		"accesslimited", "failed_for_some_accounts", "external_channel_migrating", "file_update_failed",
	}
	goneMessage = []string{
		"message_not_found", "cant_update_message", "edit_window_closed", "cant_delete_message", "is_inactive",
		"file_not_found", "file_deleted", "compliance_exports_prevent_deletion", "cant_edit", "streaming_state_conflict",
	}
	goneTopic = []string{"thread_not_found", "cannot_reply_to_message"}
	goneChat  = []string{"channel_not_found", "is_archived", "channel_is_archived", "channel_type_not_supported", "team_not_found"}
	goneUser  = []string{"user_not_found", "user_disabled", "users_not_found", "user_not_visible"}
	forbidden = []string{
		"not_in_channel", "missing_scope", "no_permission", "access_denied", "messages_tab_disabled",
		"as_user_not_supported", "ekm_access_denied", "user_not_in_channel", "cannot_dm_bot", "method_not_supported_for_channel_type",
		"not_allowed", "file_upload_size_restricted", "file_uploads_disabled", "file_uploads_except_images_disabled",
	}
	badFormat = []string{
		"invalid_blocks", "invalid_blocks_format", "invalid_attachments", "block_mismatch", "msg_blocks_too_many",
		"msg_blocks_too_long", "slack_connect_canvas_sharing_blocked", "markdown_text_conflict",
	}
	tooLong = []string{"msg_too_long", "too_long", "metadata_too_large"}
)

// classify turns a refusal into the class the outbox decides by.
func classify(r *refusal) error {
	code := r.code
	hint, fatal := fatalCodes[code]
	in := func(list []string) bool { return slices.Contains(list, code) }
	switch {
	case in(limitCodes):
		wait := r.retryAfter
		if wait == 0 {
			wait = 30 * time.Second
		}
		// Limits are per method over the workspace, but for messages, which count in their channel.
		return &channels.RateLimited{RetryAfter: wait, Account: r.method != "chat.postMessage", Err: r}
	case fatal:
		which := "bot_token"
		if r.app {
			which = "app_token"
		}
		return &channels.Fatal{Err: fmt.Errorf("%s: %s: %w", which, hint, r)}
	case code == "missing_scope" && r.app:
		return &channels.Fatal{Err: fmt.Errorf("app_token: it needs the scope connections:write: %w", r)}
	case in(goneMessage):
		return &channels.Gone{What: "message", Err: r}
	case in(goneTopic):
		return &channels.Gone{What: "topic", Err: r}
	case in(goneChat):
		return &channels.Gone{What: "chat", Err: r}
	case in(goneUser):
		return &channels.Gone{What: "user", Err: r}
	case in(badFormat):
		return &channels.BadFormat{Err: r}
	case in(tooLong):
		return &channels.TooLong{Err: r}
	case in(forbidden), strings.HasPrefix(code, "restricted_action"):
		return &channels.Forbidden{Err: r}
	case in(transientCodes):
		return &channels.Transient{MaybeSent: true, Err: r}
	}
	return &channels.Refused{Err: r}
}

// refused reports whether err is a refusal with one of the codes.
func refused(err error, codes ...string) bool {
	var r *refusal
	return errors.As(err, &r) && slices.Contains(codes, r.code)
}

// wrong is a call that needs no server to be refused.
func wrong(method, text string) error {
	return &channels.Refused{Err: &failure{method: method, text: text}}
}

// foreign is an answer that is not the Web API's: a gateway's page, a redirect, a wrong api_url.
func foreign(method string, resp *http.Response) error {
	err := &failure{method: method, text: fmt.Sprintf("HTTP %d without an answer of Slack; is api_url right?", resp.StatusCode)}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		return classify(&refusal{method: method, code: "ratelimited", retryAfter: retryAfter(resp)})
	case code == http.StatusRequestEntityTooLarge:
		return &channels.TooLong{Err: err}
	case code >= 300 && code < 400:
		err.text = fmt.Sprintf("HTTP %d: a redirect is not followed, the token would leave api_url", code)
		return &channels.Transient{Err: err}
	case code >= 400 && code < 500:
		return &channels.Transient{Err: err}
	}
	return &channels.Transient{MaybeSent: true, Err: err}
}
