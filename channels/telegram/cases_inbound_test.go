package telegram_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deerbot/channels"
	"deerbot/channels/telegram"

	wire "deerbot/internal/wire/telegram"
)

// The offset follows the store: after a kill in the middle of a batch the next start gets the rest, and what it may get
// again has the same EventID.
func TestC070_OffsetFollowsTheStore(t *testing.T) {
	r := setup(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	for _, s := range []string{"500", "501", "502"} {
		ch.Say(ann, s)
	}
	r.in.refuse = func(in *channels.Inbound) error {
		if in.Text == "501" {
			return errors.New("killed")
		}
		return nil
	}
	r.run()
	first := r.next()
	r.eventually("trouble", func() bool { return r.c.Health().Trouble != "" })
	r.stop()
	if n := r.s.Pending(); n < 2 {
		t.Fatalf("%d updates are left, want at least the two that were not stored", n)
	}
	for _, c := range r.s.Calls("getUpdates", 0) {
		if off := num(c.Params["offset"]); off > 900_000_002 {
			t.Errorf("offset %d confirms what was not stored", off)
		}
	}
	r.in.refuse = nil
	r.c = r.channel(nothing)
	r.run()
	var texts []string
	for len(texts) == 0 || texts[len(texts)-1] != "502" {
		in := r.next()
		if in.Text == "500" && in.EventID != first.EventID {
			t.Errorf("redelivered as %q, was %q", in.EventID, first.EventID)
		}
		texts = append(texts, in.Text)
	}
	if got := slices.DeleteFunc(texts, func(s string) bool { return s == "500" }); !slices.Equal(got, []string{"501", "502"}) {
		t.Errorf("after the restart: %q", got)
	}
}

func TestC072_BotNameForCommands(t *testing.T) {
	r := start(t, wire.Options{Username: "My_Bot"})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Supergroup("Team")
	tests := []struct {
		say                   string
		mentioned, otherFirst bool
	}{
		{"/new@my_bot", true, false},
		{"/NEW@My_Bot hello", true, false},
		{"/new@OtherBot", false, true},
		{"/new@my_bot_2", false, true},
		{"/new", false, false},
	}
	for _, tt := range tests {
		ch.Say(ann, tt.say)
		in := r.next()
		if in.Text != tt.say || in.BotName != "My_Bot" || in.Mentioned != tt.mentioned || in.OtherFirst != tt.otherFirst {
			t.Errorf("%q: %+v", tt.say, in)
		}
	}
}

func TestC081_EntitiesAreUTF16(t *testing.T) {
	r := start(t, wire.Options{Username: "mybot"})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Supergroup("Team")
	mention := func(off, n int) wire.SayOption {
		return wire.WithEntities(wire.Entity{Type: "mention", Offset: off, Length: n})
	}
	tests := []struct {
		name, say string
		opts      []wire.SayOption
		mentioned bool
		want      string
	}{
		{"emoji", "👋 @mybot hi", []wire.SayOption{mention(3, 6)}, true, "👋 hi"},
		{"cjk", "你好 @mybot 请帮忙", []wire.SayOption{mention(3, 6)}, true, "你好 请帮忙"},
		{"case", "@MyBot hi", nil, true, "hi"},
		{"twice", "@mybot and @mybot", nil, true, "and"},
		{"caption", "👋 @mybot hi", []wire.SayOption{mention(3, 6), wire.Photo([]byte("x"))}, true, "👋 hi"},
		{"longer name", "@mybot2 hi", nil, false, "@mybot2 hi"},
		{"out of range", "hi", []wire.SayOption{mention(0, 100)}, false, "hi"},
		{"negative", "hi", []wire.SayOption{mention(-1, 2)}, false, "hi"},
		{"overflow", "hi", []wire.SayOption{mention(1, int(^uint(0)>>1))}, false, "hi"},
		{"empty", "hi", []wire.SayOption{mention(1, 0)}, false, "hi"},
		{"half a surrogate", "👋👋", []wire.SayOption{mention(1, 2)}, false, "👋👋"},
		{"overlapping", "@mybot hi", []wire.SayOption{wire.WithEntities(
			wire.Entity{Type: "mention", Offset: 0, Length: 6}, wire.Entity{Type: "mention", Offset: 0, Length: 6},
		)}, true, "hi"},
		{"in code no entity", "run `@mybot`", []wire.SayOption{wire.WithEntities()}, false, "run `@mybot`"},
		{"by id", "Deer hi", []wire.SayOption{wire.WithEntities(
			wire.Entity{Type: "text_mention", Length: 4, User: &wire.User{ID: 700001}},
		)}, true, "hi"},
		{"text mention without user", "Deer hi", []wire.SayOption{wire.WithEntities(
			wire.Entity{Type: "text_mention", Length: 4},
		)}, false, "Deer hi"},
		{"hidden link", "see here.", []wire.SayOption{wire.WithEntities(
			wire.Entity{Type: "text_link", Offset: 4, Length: 4, URL: "https://example.org/a"},
		)}, false, "see here (https://example.org/a)."},
	}
	for _, tt := range tests {
		ch.Say(ann, tt.say, tt.opts...)
		in := r.next()
		if in.Mentioned != tt.mentioned || in.Text != tt.want {
			t.Errorf("%s: mentioned %v, text %q, want %v, %q", tt.name, in.Mentioned, in.Text, tt.mentioned, tt.want)
		}
	}
}

func TestLeadingCode(t *testing.T) {
	r := start(t, wire.Options{Username: "mybot"})
	ann, ch := r.s.Person("Ann", "ann"), r.s.Supergroup("Team")
	tests := []struct {
		say  string
		ents []wire.Entity
		want bool
	}{
		{"/new", []wire.Entity{{Type: "code", Length: 4}}, true},
		{"  /new", []wire.Entity{{Type: "pre", Offset: 2, Length: 4}}, true},
		{"@mybot /new", []wire.Entity{{Type: "mention", Length: 6}, {Type: "code", Offset: 7, Length: 4}}, true},
		{"/new", []wire.Entity{{Type: "expandable_blockquote", Length: 4}}, true},
		{"run /new", []wire.Entity{{Type: "code", Offset: 4, Length: 4}}, false},
		{"/new", []wire.Entity{{Type: "bot_command", Length: 4}, {Type: "bold", Length: 4}}, false},
	}
	for _, tt := range tests {
		ch.Say(ann, tt.say, wire.WithEntities(tt.ents...))
		if in := r.next(); in.LeadingCode != tt.want {
			t.Errorf("%q: %v, want %v", tt.say, in.LeadingCode, tt.want)
		}
	}
}

func TestC083_EditsAreNeverNewMessages(t *testing.T) {
	r := start(t, wire.Options{})
	raw := `{"message_id":12,"from":{"id":5,"first_name":"A"},"chat":{"id":5,"type":"private"},"date":1700000000,"edit_date":1700009999,"text":"/restart"}`
	for range 2 {
		r.s.Inject("edited_message", json.RawMessage(raw))
		in := r.next()
		if in.Kind != channels.KindEdit || in.MessageID != "12" || !strings.HasPrefix(in.EventID, "edit:12:1700009999") {
			t.Errorf("event: %+v", in)
		}
	}
	if a, b := r.in.got[0], r.in.got[1]; a.EventID != b.EventID {
		t.Errorf("the same edit under a new update_id is %q, was %q", b.EventID, a.EventID)
	}
}

func TestC084_EditWhileRunning(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	m := ch.Say(ann, "write page")
	r.next()
	ch.Edit(m.ID, "write page and test it")
	in := r.next()
	if in.Kind != channels.KindEdit || in.Text != "write page and test it" || num(in.MessageID) != m.ID {
		t.Errorf("event: %+v", in)
	}
	for _, raw := range []string{`{}`, `{"message_id":"x"}`, `{"message_id":1,"chat":{}}`, `null`, `7`} {
		r.s.Inject("message", json.RawMessage(raw))
		r.s.Inject("edited_message", json.RawMessage(raw))
		r.s.Inject("callback_query", json.RawMessage(raw))
	}
	r.s.Inject("purchased_paid_media", json.RawMessage(`{}`))
	ch.Say(ann, "still there?")
	if in := r.next(); in.Text != "still there?" {
		t.Errorf("event: %+v", in)
	}
}

func TestC085_AlbumHasOneGroup(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	ch.Album(ann, wire.AlbumItem{Option: wire.Photo([]byte("1")), Caption: "before"},
		wire.AlbumItem{Option: wire.Photo([]byte("2"))}, wire.AlbumItem{Option: wire.Photo([]byte("3")), Caption: "after"})
	ch.Say(ann, "next")
	var groups, texts []string
	for range 4 {
		in := r.next()
		groups, texts = append(groups, in.GroupID), append(texts, in.Text)
	}
	if groups[0] == "" || groups[0] != groups[1] || groups[1] != groups[2] || groups[3] != "" {
		t.Errorf("groups: %q", groups)
	}
	if diff := cmp.Diff([]string{"before", "", "after", "next"}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestC087_PhotosHaveDifferentNames(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	big := bytes.Repeat([]byte("jpeg"), 100)
	ch.Say(ann, "one", wire.Photo(big))
	ch.Say(ann, "two", wire.Photo(big))
	a, b := r.next(), r.next()
	if a.Text != "one" || b.Text != "two" || len(a.Attachments) != 1 || len(b.Attachments) != 1 {
		t.Fatalf("events: %+v %+v", a, b)
	}
	x, y := a.Attachments[0], b.Attachments[0]
	if x.Name == y.Name || !strings.HasSuffix(x.Name, ".jpg") || x.Kind != "image" || x.MIME != "image/jpeg" {
		t.Errorf("attachments: %+v %+v", x, y)
	}
	if x.Size != int64(len(big)) {
		t.Errorf("size %d: not the largest size of the photo", x.Size)
	}
}

func TestC088_VoiceNotes(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	tests := []struct {
		opt              wire.SayOption
		kind, mime, name string
	}{
		{wire.Voice([]byte("OggS")), "voice", "audio/ogg", ".ogg"},
		{wire.VideoNote([]byte("mp4")), "video", "video/mp4", ".mp4"},
		{wire.Audio("song.mp3", []byte("ID3")), "audio", "audio/mpeg", "song.mp3"},
		{wire.Video("", []byte("mp4")), "video", "video/mp4", ".mp4"},
		{wire.Animation("fun.mp4", []byte("mp4")), "video", "video/mp4", "fun.mp4"},
		{wire.Document("scan.png", "image/png", []byte("png")), "image", "image/png", "scan.png"},
	}
	for _, tt := range tests {
		ch.Say(ann, "", tt.opt)
		in := r.next()
		if in.Text != "" || len(in.Attachments) != 1 {
			t.Errorf("%s: %+v", tt.kind, in)
			continue
		}
		a := in.Attachments[0]
		if a.Kind != tt.kind || a.MIME != tt.mime || !strings.HasSuffix(a.Name, tt.name) {
			t.Errorf("attachment %+v, want %s %s *%s", a, tt.kind, tt.mime, tt.name)
		}
		f, err := r.c.Fetch(r.ctx(), a)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(f); err != nil || len(data) == 0 {
			t.Errorf("%s: %d bytes, %v", tt.kind, len(data), err)
		}
		f.Close()
	}
	ch.Say(ann, "", wire.Sticker("😀"))
	if in := r.next(); in.Text != "" || len(in.Attachments) != 0 || in.Note != "a sticker was sent: 😀" {
		t.Errorf("sticker: %+v", in)
	}
}

func TestC089_Quotes(t *testing.T) {
	r := start(t, wire.Options{Username: "mybot"})
	ann, bob := r.s.Person("Ann", "ann"), r.s.Person("Bob", "bob_b")
	ch := r.s.Supergroup("Team")
	plan := ch.Say(bob, "deploy at 18:00")
	pic := ch.Say(bob, "the plan", wire.Photo([]byte("x")))
	where := ch.Say(bob, "", wire.Sticker("🚀"))
	for range 3 {
		r.next()
	}
	long := ch.Say(bob, strings.Repeat("字", 3000))
	r.next()
	tests := []struct {
		name string
		opts []wire.SayOption
		want channels.Quote
	}{
		{"reply", []wire.SayOption{wire.ReplyTo(plan.ID)}, channels.Quote{MessageID: fmt.Sprint(plan.ID), Author: "Bob", Text: "deploy at 18:00"}},
		{"part", []wire.SayOption{wire.ReplyTo(plan.ID), wire.Quoting("18:00")}, channels.Quote{MessageID: fmt.Sprint(plan.ID), Author: "Bob", Text: "18:00"}},
		{"sticker", []wire.SayOption{wire.ReplyTo(where.ID)}, channels.Quote{MessageID: fmt.Sprint(where.ID), Author: "Bob", Text: "[a sticker was sent: 🚀]"}},
		{"long", []wire.SayOption{wire.ReplyTo(long.ID)}, channels.Quote{MessageID: fmt.Sprint(long.ID), Author: "Bob", Text: strings.Repeat("字", 1999) + "…"}},
		{"other chat", []wire.SayOption{wire.ExternalReply(bob, `"message_id":5`), wire.Quoting("from there")}, channels.Quote{Author: "Bob", Text: "from there"}},
		{"other chat, media", []wire.SayOption{wire.ExternalReply(bob, `"location":{"latitude":1,"longitude":2}`)}, channels.Quote{Author: "Bob", Text: "[a location was sent: 1.000000 2.000000]"}},
	}
	for _, tt := range tests {
		ch.Say(ann, "@mybot what about this?", tt.opts...)
		in := r.next()
		if in.Text != "what about this?" || in.Quote == nil {
			t.Errorf("%s: %+v", tt.name, in)
		} else if diff := cmp.Diff(tt.want, *in.Quote); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	ch.Say(ann, "@mybot this?", wire.ReplyTo(pic.ID))
	q := r.next().Quote
	if q == nil || q.Text != "[photo] the plan" || len(q.Attachments) != 1 || q.Attachments[0].Kind != "image" {
		t.Errorf("photo: %+v", q)
	}
}

// Identity is the id; the name is what anybody may call themselves.
func TestC115_SenderIsAnID(t *testing.T) {
	r := start(t, wire.Options{})
	ann, evil := r.s.Person("Alice", "alice"), r.s.Person("Alice", "")
	r.s.DM(ann).Say(ann, "hi")
	r.s.DM(evil).Say(evil, "hi")
	a, b := r.next().Sender, r.next().Sender
	if a.ID != fmt.Sprint(ann.ID) { // between chats there is no order
		a, b = b, a
	}
	if a.ID == b.ID || a.Name != b.Name || a.ID != fmt.Sprint(ann.ID) {
		t.Errorf("senders: %+v %+v", a, b)
	}
}

func nothing(*telegram.Config) {}
