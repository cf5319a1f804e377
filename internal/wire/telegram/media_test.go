package telegram

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

func picture() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 20)))
	return b.Bytes()
}

// upload posts fields and files as multipart.
func (c *caller) upload(method string, fields map[string]string, files map[string][]byte) got {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for k, v := range fields {
		_ = w.WriteField(k, v)
	}
	for k, v := range files {
		p, _ := w.CreateFormFile(k, k+".png")
		_, _ = p.Write(v)
	}
	w.Close()
	return c.read(http.Post(c.base+method, w.FormDataContentType(), &b))
}

func TestAlbumsReactionsAndFiles(t *testing.T) {
	c := serve(t, Options{})
	ann := c.s.Person("Ann", "")
	dm := c.s.DM(ann)
	media := `[{"type":"photo","media":"attach://a","caption":"<b>one</b>","parse_mode":"HTML"},{"type":"photo","media":"attach://b"}]`
	g := c.upload("sendMediaGroup", map[string]string{"chat_id": dm.Key(), "media": media}, map[string][]byte{"a": picture(), "b": picture()})
	var sent []struct {
		ID    int    `json:"message_id"`
		Group string `json:"media_group_id"`
		Photo []struct {
			ID     string `json:"file_id"`
			Width  int
			Height int
		}
	}
	if err := json.Unmarshal(g.Result, &sent); err != nil || len(sent) != 2 || sent[0].Group == "" || sent[0].Group != sent[1].Group {
		t.Fatalf("album: %+v", g)
	}
	if p := sent[0].Photo[len(sent[0].Photo)-1]; p.Width != 30 || p.Height != 20 {
		t.Errorf("photo: %+v", p)
	}
	if g := c.upload("sendMediaGroup", map[string]string{"chat_id": dm.Key(), "media": `[]`}, nil); g.OK {
		t.Error("an album of nothing was sent")
	}
	if g := c.call("setMessageReaction", map[string]any{"chat_id": dm.ID(), "message_id": sent[0].ID, "reaction": []any{map[string]string{"type": "emoji", "emoji": "👍"}}}); !g.OK {
		t.Errorf("reaction: %+v", g)
	}
	if g := c.call("editMessageCaption", map[string]any{"chat_id": dm.ID(), "message_id": sent[0].ID, "caption": "two"}); !g.OK {
		t.Errorf("caption: %+v", g)
	}
	if g := c.call("editMessageText", map[string]any{"chat_id": dm.ID(), "message_id": sent[0].ID, "text": "two"}); g.Description != "Bad Request: there is no text in the message to edit" {
		t.Errorf("text of a photo: %+v", g)
	}
	markup := map[string]any{"inline_keyboard": [][]map[string]string{{{"text": "x", "callback_data": "x"}}}}
	if g := c.call("editMessageReplyMarkup", map[string]any{"chat_id": dm.ID(), "message_id": sent[0].ID, "reply_markup": markup}); !g.OK {
		t.Errorf("markup: %+v", g)
	}
	m, _ := dm.Message(sent[0].ID)
	if m.Reaction != "👍" || m.Text != "two" || len(m.Buttons) != 1 || m.Edits != 2 || len(m.Files) != 1 {
		t.Errorf("message: %+v", m)
	}

	var f struct {
		Path string `json:"file_path"`
	}
	_ = json.Unmarshal(c.call("getFile", map[string]any{"file_id": sent[0].Photo[1].ID}).Result, &f)
	resp, err := http.Get(strings.Replace(c.base, "/bot", "/file/bot", 1) + f.Path)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !bytes.Equal(data, picture()) {
		t.Errorf("%s: %d bytes", f.Path, len(data))
	}
	for method, want := range map[string]string{
		"sendPhoto":    "Bad Request: IMAGE_PROCESS_FAILED",
		"sendDocument": "Bad Request: there is no document in the request",
	} {
		if g := c.upload(method, map[string]string{"chat_id": dm.Key()}, map[string][]byte{"photo": []byte("no picture")}); g.Description != want {
			t.Errorf("%s: %s", method, g.Description)
		}
	}
}
