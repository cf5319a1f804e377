package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"deerbot/channels"
	"deerbot/channels/web"
	"deerbot/channels/web/internal/webtest"
	"deerbot/store"
)

// A page that loses its connection at any point and comes back with the last revision it saw ends up with exactly what the
// log holds, and is never told the same twice.
func TestStreamResumesWithoutLossOrDoubles(t *testing.T) {
	f := start(t)
	rapid.Check(t, func(rt *rapid.T) {
		chat := uuid.NewString()
		ctx := context.Background()
		place := channels.Place{Channel: "web", Chat: chat}
		f.do("POST", api(chat, "/messages"), m{"client_id": "client-0", "text": "first"})
		var refs []channels.Ref
		view := map[string]string{} // what the page shows
		last := uint64(0)
		var s *stream
		// read takes events until the page has seen rev.
		read := func(rev uint64) {
			for last < rev {
				ev, ok := s.next()
				if !ok {
					rt.Fatalf("the stream ended at revision %d, waiting for %d", last, rev)
				}
				if ev.name != "message" {
					continue
				}
				id, _ := strconv.ParseUint(ev.id, 10, 64)
				if id <= last {
					rt.Fatalf("revision %d came after %d", id, last)
				}
				last = id
				var w struct{ ID, Text, HTML string }
				if err := json.Unmarshal([]byte(ev.data), &w); err != nil {
					rt.Fatal(err)
				}
				view[w.ID] = w.Text + w.HTML
			}
		}
		reopen := func() {
			if s != nil {
				s.close()
			}
			after := strconv.FormatUint(last, 10)
			if rapid.Bool().Draw(rt, "by header") {
				s = f.listen(chat, "", after)
			} else {
				s = f.listen(chat, after, "")
			}
		}
		reopen()
		defer func() { s.close() }()
		n := 0
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				n++
				ref, err := f.ch.Send(ctx, place, message(fmt.Sprint("sent ", n)), fmt.Sprint(chat, n))
				if err != nil {
					rt.Fatal(err)
				}
				refs = append(refs, ref)
			},
			"send again": func(rt *rapid.T) {
				if n == 0 {
					return
				}
				k := rapid.IntRange(1, n).Draw(rt, "which")
				if ref, err := f.ch.Send(ctx, place, message("other"), fmt.Sprint(chat, k)); err != nil || ref != refs[k-1] {
					rt.Fatalf("Send with a known key: %v, %v", ref, err)
				}
			},
			"edit": func(rt *rapid.T) {
				if len(refs) == 0 {
					return
				}
				n := rapid.IntRange(0, 3).Draw(rt, "text")
				err := f.ch.Edit(ctx, rapid.SampledFrom(refs).Draw(rt, "ref"), message(fmt.Sprint("edited ", n)))
				var gone *channels.Gone
				if err != nil && !errors.As(err, &gone) {
					rt.Fatal(err)
				}
			},
			"delete": func(rt *rapid.T) {
				if len(refs) == 0 {
					return
				}
				if err := f.ch.Delete(ctx, rapid.SampledFrom(refs).Draw(rt, "ref")); err != nil {
					rt.Fatal(err)
				}
			},
			"post": func(rt *rapid.T) {
				id := fmt.Sprint("client-", rapid.IntRange(0, 5).Draw(rt, "id"))
				f.do("POST", api(chat, "/messages"), m{"client_id": id, "text": id})
			},
			"typing": func(*rapid.T) { _ = f.ch.Typing(ctx, place) },
			"lose":   func(*rapid.T) { reopen() },
			"read": func(rt *rapid.T) {
				rev := f.rev(chat)
				read(last + rapid.Uint64Range(0, rev-min(rev, last)).Draw(rt, "some"))
			},
		})
		read(f.rev(chat))
		want := map[string]string{}
		for _, e := range f.stored(chat) {
			want[e.ID] = e.text
		}
		if diff := cmp.Diff(want, view); diff != "" {
			rt.Fatalf("the page shows something else than the log holds (-log +page):\n%s", diff)
		}
	})
}

type storedText struct{ ID, text string }

func (f *fixture) stored(chat string) []storedText {
	msgs, err := f.log.ChatMessages(context.Background(), chat, 0, 1<<20)
	if err != nil {
		f.t.Fatal(err)
	}
	var out []storedText
	for _, msg := range msgs {
		var b struct{ Text string }
		_ = json.Unmarshal(msg.Body, &b)
		out = append(out, storedText{msg.ID, b.Text})
	}
	return out
}

func (f *fixture) rev(chat string) uint64 {
	msgs, err := f.log.ChatMessages(context.Background(), chat, 0, 1<<20)
	if err != nil {
		f.t.Fatal(err)
	}
	var rev uint64
	for _, msg := range msgs {
		rev = max(rev, msg.Rev)
	}
	return rev
}

// A page that takes nothing is dropped, the bot is never held up by it, and when it comes back it misses nothing.
func TestSlowPageIsDroppedAndCatchesUp(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	f.do("POST", api(chat, "/messages"), m{"client_id": "client-0", "text": "first"})
	ref := f.send(chat, "x", "k")
	s := f.listen(chat, "0", "")
	defer s.close()
	big := strings.Repeat("x", 64<<10)
	const edits = 250 // more than the queue and the buffers of a socket hold
	done := make(chan error, 1)
	go func() {
		for i := range edits {
			if err := f.ch.Edit(context.Background(), ref, message(fmt.Sprint(i, " ", big))); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a slow page holds up the bot")
	}
	last := ""
	for {
		ev, ok := s.next()
		if !ok {
			break
		}
		if ev.id != "" {
			last = ev.id
		}
	}
	if last == strconv.FormatUint(f.rev(chat), 10) {
		t.Fatal("the page was not dropped; the test proves nothing")
	}
	again := f.listen(chat, "", last)
	defer again.close()
	ev, ok := again.next()
	if !ok || ev.id != strconv.FormatUint(f.rev(chat), 10) || !strings.Contains(ev.data[:400], fmt.Sprint(edits-1, " x")) {
		t.Errorf("after coming back: %v %s %.80s", ok, ev.id, ev.data)
	}
}

func TestStreamsEndWithRun(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	f.do("POST", api(chat, "/messages"), m{"client_id": "client-0", "text": "first"})
	s := f.listen(chat, "999", "")
	defer s.close()
	f.stop()
	for {
		if _, ok := s.next(); !ok {
			return
		}
	}
}

func TestDeletedAndRenamedAreTold(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	f.do("POST", api(chat, "/messages"), m{"client_id": "client-0", "text": "first"})
	s := f.listen(chat, "999", "")
	defer s.close()
	if status, out := f.do("PATCH", api(chat, ""), m{"title": " New\nname\u202e "}); status != 200 || out["title"] != "New name" {
		t.Errorf("rename: %d %v", status, out)
	}
	if ev, _ := s.next(); ev.name != "chat" || !strings.Contains(ev.data, `"New name"`) {
		t.Errorf("event %v", ev)
	}
	f.do("DELETE", api(chat, ""), nil)
	if ev, _ := s.next(); ev.name != "gone" {
		t.Errorf("event %v", ev)
	}
	if status, _ := f.do("PATCH", api(chat, ""), m{"title": "x"}); status != 404 {
		t.Errorf("rename of a deleted conversation: %d", status)
	}
	if status, _ := f.do("DELETE", api(chat, ""), nil); status != 204 {
		t.Errorf("delete again: %d", status)
	}
}

func TestLoadingInPages(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	f.do("POST", api(chat, "/messages"), m{"client_id": "client-0", "text": "first"})
	for i := range 300 {
		f.send(chat, strconv.Itoa(i), fmt.Sprint("k", i))
	}
	check := func(query string, n int, first, last float64, more bool) {
		t.Helper()
		_, out := f.do("GET", api(chat, "/messages")+query, nil)
		msgs := out["messages"].([]any)
		if len(msgs) != n || out["more"] != more || out["rev"] != float64(301) {
			t.Fatalf("%s: %d messages, more %v, rev %v", query, len(msgs), out["more"], out["rev"])
		}
		if a, b := msgs[0].(map[string]any)["seq"], msgs[n-1].(map[string]any)["seq"]; a != first || b != last {
			t.Errorf("%s: messages %v to %v, want %v to %v", query, a, b, first, last)
		}
	}
	check("", 100, 202, 301, true)
	check("?before=202", 100, 102, 201, true)
	check("?before=102&limit=500", 101, 1, 101, false)
	check("?after=0&limit=10", 10, 1, 10, true)
	check("?after=295", 6, 296, 301, false)
	if status, _ := f.do("GET", api(chat, "/messages")+"?after=-1", nil); status != 400 {
		t.Errorf("negative number: %d", status)
	}
}

// What a crash caught between the log and the inbox reaches the inbox at the next start; what the inbox had does not twice.
func TestRunHandsOverWhatACrashLeft(t *testing.T) {
	f := start(t)
	chat := uuid.NewString()
	f.do("POST", api(chat, "/messages"), m{"client_id": "client-0", "text": "taken"})
	f.send(chat, "answer", "k")
	f.stop()
	lost := store.ChatMessage{Chat: chat, ID: "client-1", Body: json.RawMessage(`{"from":"user","text":"lost","locale":"en"}`)}
	if err := f.log.PutChatMessage(context.Background(), &lost); err != nil {
		t.Fatal(err)
	}
	f.run()
	f.stop()
	f.run()
	var texts []string
	for _, in := range f.inbox.Got() {
		texts = append(texts, in.Text)
	}
	if diff := cmp.Diff([]string{"taken", "lost"}, texts); diff != "" {
		t.Errorf("inbox (-want +got):\n%s", diff)
	}
}

// Messages older than the inbox remembers are left alone.
func TestRunLeavesOldMessagesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, inbox := &webtest.Log{}, &webtest.Inbox{}
		old := store.ChatMessage{Chat: "c", ID: "client-1", Body: json.RawMessage(`{"from":"user","text":"old"}`)}
		if err := log.PutChatMessage(t.Context(), &old); err != nil {
			t.Fatal(err)
		}
		time.Sleep(13 * time.Hour)
		ch, err := web.New(web.Config{Log: log, FilesDir: t.TempDir(), Dialect: webtest.Dialect{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- ch.Run(ctx, inbox) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil || len(inbox.Got()) != 0 {
			t.Errorf("Run: %v, inbox %v", err, inbox.Got())
		}
	})
}
