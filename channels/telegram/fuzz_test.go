package telegram

import (
	"testing"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"

	"deerbot/cards"
)

// FuzzAddressing: whatever the entities say, there is no panic and valid text stays valid.
func FuzzAddressing(f *testing.F) {
	f.Add("👋 @mybot hi", 3, 6, 0, 2, uint8(0))
	f.Add("hi", 0, 100, -5, 1<<62, uint8(1))
	f.Add("👋👋", 1, 2, 0, 3, uint8(2))
	types := []models.MessageEntityType{
		models.MessageEntityTypeMention, models.MessageEntityTypeTextMention, models.MessageEntityTypeCode,
		models.MessageEntityTypeTextLink, models.MessageEntityTypeBotCommand,
	}
	f.Fuzz(func(t *testing.T, text string, o1, l1, o2, l2 int, kind uint8) {
		ents := []models.MessageEntity{
			{Type: types[int(kind)%len(types)], Offset: o1, Length: l1, URL: "https://x.org", User: &models.User{ID: 7}},
			{Type: types[int(kind/8)%len(types)], Offset: o2, Length: l2, User: &models.User{ID: 7}},
		}
		a := addressing(text, ents, account{id: 7, username: "mybot"})
		if utf8.ValidString(text) && !utf8.ValidString(a.text) {
			t.Errorf("text became invalid: %q", a.text)
		}
	})
}

// FuzzRead: whatever an update is, there is no panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"update_id":1,"message":{"message_id":1,"chat":{"id":1,"type":"private"},"text":"x","forward_origin":{"type":"y"}}}`))
	f.Add([]byte(`{"update_id":1,"callback_query":{"id":"1","data":"x","message":{"date":0}}}`))
	f.Add([]byte(`{"update_id":1,"edited_message":{"reply_to_message":{"forum_topic_created":{}}}}`))
	c, err := New(Config{Token: "1:a", Dialect: noDialect{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, raw []byte) { c.read(raw) })
}

type noDialect struct{ cards.Dialect }
