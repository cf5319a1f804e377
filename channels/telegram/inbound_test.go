package telegram_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"deerbot/channels"

	wire "deerbot/internal/wire/telegram"
)

func TestThreadOfAReplyIsNoTopic(t *testing.T) {
	r := start(t, wire.Options{})
	r.s.Inject("message", json.RawMessage(`{"message_id":9,"message_thread_id":7,"from":{"id":5,"first_name":"A"},
		"chat":{"id":-1001,"type":"supergroup","title":"T"},"date":1700000000,"text":"hi",
		"reply_to_message":{"message_id":7,"from":{"id":6,"first_name":"B"},"chat":{"id":-1001,"type":"supergroup"},"date":1,"text":"yo"}}`))
	in := r.next()
	if in.Place.Topic != "" || in.Quote == nil || in.Quote.Text != "yo" {
		t.Errorf("event: %+v", in)
	}
}

func TestWhoSpeaks(t *testing.T) {
	r := start(t, wire.Options{})
	ann, robot := r.s.Person("Ann", "ann"), r.s.Robot("R2", "r2_bot")
	ch := r.s.Supergroup("Team")
	ch.Say(robot, "beep")
	if in := r.next(); !in.Sender.Bot {
		t.Errorf("robot: %+v", in.Sender)
	}
	ch.Say(ann, "anonymous", wire.AsChat(ch))
	if in := r.next(); !in.Sender.Bot || in.Sender.ID != ch.Key() {
		t.Errorf("anonymous administrator: %+v", in.Sender)
	}
	ch.Say(ann, "look", wire.Forwarded(robot))
	if in := r.next(); in.Note != "forwarded from R2" || in.Sender.ID != strconv.FormatInt(ann.ID, 10) || in.Sender.Bot {
		t.Errorf("forward: %+v", in)
	}
}

func TestNotes(t *testing.T) {
	r := start(t, wire.Options{})
	for fields, want := range map[string]string{
		`"location":{"latitude":52.5,"longitude":13.4}`: "a location was sent: 52.500000 13.400000",
		`"venue":{"location":{"latitude":1,"longitude":2},"title":"Bar","address":"Street 1"},"location":{"latitude":1,"longitude":2}`: "a place was sent: Bar, 1.000000 2.000000",
		`"contact":{"phone_number":"+49","first_name":"Bob"}`:                                                                          "a contact was sent: Bob, +49",
		`"poll":{"id":"1","question":"Lunch?","options":[{"text":"yes"},{"text":"no"}]}`:                                               "a poll was sent: Lunch? (yes / no)",
		`"dice":{"emoji":"🎲","value":4}`:                                                                                               "a dice was sent: 🎲 4",
		`"story":{"id":1,"chat":{"id":1,"type":"private"}}`:                                                                            "a story was sent, which cannot be read",
	} {
		r.s.Inject("message", json.RawMessage(`{"message_id":9,"from":{"id":5,"first_name":"A"},"chat":{"id":5,"type":"private"},"date":1,`+fields+`}`))
		if in := r.next(); in.Note != want || in.Text != "" {
			t.Errorf("note %q, want %q", in.Note, want)
		}
	}
}

func TestIgnored(t *testing.T) {
	r := start(t, wire.Options{})
	head := `{"message_id":9,"from":{"id":5,"first_name":"A"},"chat":{"id":-5,"type":"group"},"date":1,`
	for _, raw := range []string{
		head + `"new_chat_members":[{"id":6,"first_name":"B"}]}`, head + `"pinned_message":{"message_id":1,"chat":{"id":-5,"type":"group"},"date":1,"text":"x"}}`,
		head + `"new_chat_title":"T"}`, head + `"group_chat_created":true}`,
		`{"message_id":9,"chat":{"id":-100,"type":"channel"},"date":1,"text":"post"}`,
	} {
		r.s.Inject("message", json.RawMessage(raw))
	}
	r.s.Inject("my_chat_member", json.RawMessage(`{"chat":{"id":-5,"type":"group"},"from":{"id":5,"first_name":"A"},"date":1,
		"old_chat_member":{"status":"member","user":{"id":1}},"new_chat_member":{"status":"left","user":{"id":1}}}`))
	r.s.Inject("callback_query", json.RawMessage(`{"id":"1","from":{"id":5,"first_name":"A"},"inline_message_id":"x","data":"d"}`))
	r.s.Inject("callback_query", json.RawMessage(`{"id":"2","from":{"id":5,"first_name":"A"},"data":"old:1",
		"message":{"message_id":3,"date":0,"chat":{"id":5,"type":"private"}}}`))
	in := r.next() // the message is too old for Telegram, the press still counts
	if in.Kind != channels.KindAction || in.MessageID != "3" || in.Action.Data != "old:1" || in.EventID != "cb:2" || in.ChatKind != "dm" {
		t.Errorf("event: %+v", in)
	}
}

// The SDK refuses updates with kinds of origins it does not know; what people wrote must come all the same.
func TestUnknownKindsKeepTheText(t *testing.T) {
	r := start(t, wire.Options{})
	raw := `{"message_id":9,"from":{"id":5,"first_name":"A"},"chat":{"id":5,"type":"private"},"date":1,"text":"read this",
		"forward_origin":{"type":"hologram","date":1}}`
	r.s.Inject("message", json.RawMessage(raw))
	if in := r.next(); in.Text != "read this" || in.EventID != "9" {
		t.Errorf("event: %+v", in)
	}
	r.s.Inject("edited_message", json.RawMessage(strings.Replace(raw, "read this", "read that", 1)))
	if in := r.next(); in.Text != "read that" || in.Kind != channels.KindEdit {
		t.Errorf("event: %+v", in)
	}
}

func TestStartPayloadIsText(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	r.s.DM(ann).Say(ann, "/start connect-4711")
	if in := r.next(); in.Text != "/start connect-4711" {
		t.Errorf("event: %+v", in)
	}
}
