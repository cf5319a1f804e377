package telegram

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"deerbot/channels"
)

func TestClassify(t *testing.T) {
	tests := []struct {
		method string
		code   int
		text   string
		want   error
	}{
		{"sendMessage", 400, "Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"b\"", &channels.BadFormat{}},
		{"sendMessage", 400, "Bad Request: message is too long", &channels.TooLong{}},
		{"sendMessage", 400, "Bad Request: text is too long", &channels.TooLong{}},
		{"editMessageText", 400, "Bad Request: MESSAGE_TOO_LONG", &channels.TooLong{}},
		{"sendPhoto", 400, "Bad Request: message caption is too long", &channels.TooLong{}},
		{"editMessageText", 400, "Bad Request: message to edit not found", &channels.Gone{What: "message"}},
		{"editMessageText", 400, "Bad Request: message can't be edited", &channels.Gone{What: "message"}},
		{"sendMessage", 400, "Bad Request: message thread not found", &channels.Gone{What: "topic"}},
		{"sendMessage", 400, "Bad Request: TOPIC_CLOSED", &channels.Forbidden{}},
		{"sendMessage", 400, "Bad Request: chat not found", &channels.Gone{What: "chat"}},
		{"sendMessage", 403, "Forbidden: the group chat was deleted", &channels.Gone{What: "chat"}},
		{"sendMessage", 403, "Forbidden: user is deactivated", &channels.Gone{What: "user"}},
		{"sendMessage", 403, "Forbidden: bot was blocked by the user", &channels.Forbidden{}},
		{"sendMessage", 403, "Forbidden: bot was kicked from the supergroup chat", &channels.Forbidden{}},
		{"sendMessage", 403, "Forbidden: bot can't initiate conversation with a user", &channels.Forbidden{}},
		{"sendMessage", 400, "Bad Request: not enough rights to send text messages to the chat", &channels.Forbidden{}},
		{"deleteMessage", 400, "Bad Request: message can't be deleted for everyone", &channels.Forbidden{}},
		{"sendMessage", 400, "Bad Request: message text is empty", &channels.Refused{}},
		{"sendMessage", 400, "Bad Request: BUTTON_DATA_INVALID", &channels.Refused{}},
		{"sendMessage", 404, "Not Found: method not found", &channels.Refused{}},
		{"sendMessage", 413, "Request Entity Too Large", &channels.Refused{}},
		{"sendMessage", 401, "Unauthorized", &channels.Fatal{}},
		{"getMe", 404, "Not Found", &channels.Fatal{}},
		{"getUpdates", 409, "Conflict: terminated by other getUpdates request", &channels.Transient{}},
		{"sendMessage", 500, "Internal Server Error", &channels.Transient{MaybeSent: true}},
		{"sendMessage", 429, "Too Many Requests: retry after 31", &channels.RateLimited{RetryAfter: 31 * time.Second}},
		{"setMyCommands", 429, "Too Many Requests: retry after 31", &channels.RateLimited{RetryAfter: 31 * time.Second, Account: true}},
		{"sendMessage", 429, "Too Many Requests", &channels.RateLimited{RetryAfter: 3 * time.Second}},
	}
	for _, tt := range tests {
		r := &refusal{method: tt.method, code: tt.code, text: tt.text}
		got := classify(r)
		if !errors.Is(got, error(r)) {
			t.Errorf("%s: the cause is lost", tt.text)
		}
		if a, b := bare(got), bare(tt.want); a != b {
			t.Errorf("%d %s: %s, want %s", tt.code, tt.text, a, b)
		}
	}
}

// bare prints an error without its cause.
func bare(err error) string {
	v := reflect.New(reflect.TypeOf(err).Elem()).Elem()
	v.Set(reflect.ValueOf(err).Elem())
	v.FieldByName("Err").SetZero()
	return fmt.Sprintf("%#v", v.Interface())
}

func TestPace(t *testing.T) {
	if p := pace(channels.Place{Chat: "5"}); p.Gap != 1080*time.Millisecond || p.PerMinute != 0 || p.PerSecond != 30 {
		t.Errorf("private: %+v", p)
	}
	if p := pace(channels.Place{Chat: "-5"}); p.Gap != 3100*time.Millisecond || p.PerMinute != 20 || p.PerSecond != 30 {
		t.Errorf("group: %+v", p)
	}
}

func TestCaptionIsCut(t *testing.T) {
	if got := caption("short"); got != "short" {
		t.Errorf("%q", got)
	}
	long := ""
	for range 600 {
		long += "👋" // two units each
	}
	got := []rune(caption(long))
	if len(got) != 512 || got[511] != '…' {
		t.Errorf("%d runes, last %q", len(got), got[len(got)-1])
	}
}
