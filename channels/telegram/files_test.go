package telegram_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"deerbot/channels"

	wire "deerbot/internal/wire/telegram"
)

func TestImagesGoAsPhotosWhenTelegramTakesThem(t *testing.T) {
	r, ch := dm(t)
	broken := pngFile(5, 5, "broken")
	broken.Size = int64(len("not a picture"))
	broken.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("not a picture")), nil }
	big := pngFile(5, 5, "big")
	big.Size = 11 << 20
	svg := pngFile(5, 5, "svg")
	svg.MIME = "image/svg+xml"
	for _, tt := range []struct {
		f    channels.File
		want string
	}{
		{pngFile(40, 30, "photo"), "photo"},
		{pngFile(4000, 10, "too wide"), "document"},
		{broken, "document"},
		{big, "document"},
		{svg, "document"},
	} {
		ref, err := r.c.SendFile(r.ctx(), at(ch, ""), tt.f, "", "")
		if err != nil {
			t.Errorf("%s: %v", tt.f.Caption, err)
			continue
		}
		m, _ := ch.Message(num(ref.ID))
		if m.Text != tt.f.Caption || len(m.Files) != 1 || m.Files[0].Kind != tt.want {
			t.Errorf("%s: %+v", tt.f.Caption, m)
		}
	}
	if n := len(ch.Messages()); n != 5 {
		t.Errorf("%d messages, want 5", n)
	}
}

func TestFileThatCannotBeReadIsRefused(t *testing.T) {
	r, ch := dm(t)
	f := channels.File{Name: "a.bin", Size: 100, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("half"), badReader{})), nil
	}}
	if _, err := r.c.SendFile(r.ctx(), at(ch, ""), f, "", ""); !is[*channels.Refused](err) {
		t.Errorf("SendFile: %v", err)
	}
	f.Open = func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeros{}, 1<<20)), nil } // more than it said
	if _, err := r.c.SendFile(r.ctx(), at(ch, ""), f, "", ""); !is[*channels.Refused](err) {
		t.Errorf("SendFile of a file that is larger than declared: %v", err)
	}
	if n := len(ch.Messages()); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestUploadErrorsAreClassified(t *testing.T) {
	r, ch := dm(t)
	f := pngFile(5, 5, "")
	f.MIME = "text/plain"
	send := func() error {
		_, err := r.c.SendFile(r.ctx(), at(ch, ""), f, "", "")
		return err
	}
	r.s.Fail(wire.Fault{Method: "sendDocument", Code: 429, RetryAfter: 5})
	if err := send(); !is[*channels.RateLimited](err) {
		t.Errorf("429: %v", err)
	}
	r.s.Fail(wire.Fault{Method: "sendDocument", Code: 413, Body: "<h1>413 Request Entity Too Large</h1>"})
	if err := send(); !is[*channels.Refused](err) {
		t.Errorf("413: %v", err)
	}
	r.s.Fail(wire.Fault{Method: "sendDocument", Drop: wire.DropAfter})
	var tr *channels.Transient
	if err := send(); !errors.As(err, &tr) || !tr.MaybeSent {
		t.Errorf("lost answer: %v", err)
	}
}

func TestFetchLimits(t *testing.T) {
	r := start(t, wire.Options{})
	ann := r.s.Person("Ann", "ann")
	ch := r.s.DM(ann)
	ch.Say(ann, "", wire.Document("big.bin", "", []byte("x")))
	a := r.next().Attachments[0]
	r.s.Pretend(a.ID, 21<<20)
	if _, err := r.c.Fetch(r.ctx(), a); !is[*channels.TooLong](err) {
		t.Errorf("too large on the server: %v", err)
	}
	n := len(r.s.Calls("getFile", 0))
	a.Size = 21 << 20
	if _, err := r.c.Fetch(r.ctx(), a); !is[*channels.TooLong](err) || len(r.s.Calls("getFile", 0)) != n {
		t.Errorf("declared too large: %v", err)
	}
	ch.Say(ann, "", wire.Document("liar.bin", "", bytes.Repeat([]byte("x"), 21<<20)))
	liar := r.next().Attachments[0]
	liar.Size = 0
	r.s.Pretend(liar.ID, 5)
	f, err := r.c.Fetch(r.ctx(), liar)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, f); !is[*channels.TooLong](err) || n > 20<<20 {
		t.Errorf("read %d bytes, %v", n, err)
	}
	f.Close()
	r.s.Fail(wire.Fault{Method: "file", Code: 404, Description: "Not Found"})
	ch.Say(ann, "", wire.Document("a.bin", "", []byte("x")))
	if _, err := r.c.Fetch(r.ctx(), r.next().Attachments[0]); !is[*channels.Gone](err) {
		t.Errorf("expired: %v", err)
	}
	for _, path := range []string{"/etc/passwd", "../x", "a/../../b", ""} {
		r.s.Fail(wire.Fault{Method: "getFile", Code: 200, Body: fmt.Sprintf(`{"ok":true,"result":{"file_id":"1","file_path":%q}}`, path)})
		if _, err := r.c.Fetch(r.ctx(), channels.Attachment{ID: "1"}); !is[*channels.Refused](err) {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

func TestCommandsByScopeAndLanguage(t *testing.T) {
	r, _ := dm(t)
	cmds := []channels.CommandInfo{
		{Name: "new", Description: map[string]string{"en": "fresh thread", "zh": "新会话"}},
		{Name: "my-skill", Description: map[string]string{"en": "no"}},
		{Name: "New", Description: map[string]string{"en": "no"}},
		{Name: "new", Description: map[string]string{"en": "twice"}},
		{Name: "empty", Description: map[string]string{}},
		{Name: "stop", Description: map[string]string{"en": "stop"}},
	}
	for i := range 120 {
		cmds = append(cmds, channels.CommandInfo{Name: fmt.Sprint("c", i), Description: map[string]string{"en": "x"}})
	}
	if err := r.c.RegisterCommands(r.ctx(), cmds); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []string{"default", "all_private_chats", "all_group_chats"} {
		en, zh := r.s.Commands(scope, ""), r.s.Commands(scope, "zh")
		if len(en) != 100 || !slices.Equal(en[:2], []wire.Command{{Command: "new", Description: "fresh thread"}, {Command: "stop", Description: "stop"}}) {
			t.Errorf("%s: %+v", scope, en)
		}
		if len(zh) != 100 || zh[0].Description != "新会话" || zh[1].Description != "stop" {
			t.Errorf("%s in Chinese: %+v", scope, zh)
		}
	}
}

type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, errors.New("disk error") }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
