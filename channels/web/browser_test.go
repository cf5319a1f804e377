package web_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"deerbot/cards"
	"deerbot/channels"
)

// The page in a real browser, where there is one: it runs under its own policy, sends, shows, and presses buttons.
func TestPageInABrowser(t *testing.T) {
	tab := openBrowser(t, 1200, 800)
	f := start(t)
	ctx := context.Background()
	chat := uuid.NewString()
	tab.visit(f.srv.URL + "/#/" + chat)
	tab.until(`document.activeElement?.id === 'input' && !document.getElementById('empty').hidden`)

	// Shift+Enter makes a line, Enter sends; the person's text stays text.
	tab.typeText("hello <b>there</b>")
	tab.key("Enter", true)
	tab.typeText("second line")
	tab.key("Enter", false)
	tab.until(`document.querySelector('.user .body')?.textContent === 'hello <b>there</b>\nsecond line'`)
	tab.until(`document.querySelector('.user.sending') === null && document.getElementById('title').textContent === 'hello <b>there</b>'`)
	if got := f.inbox.Got(); len(got) != 1 || got[0].Text != "hello <b>there</b>\nsecond line" {
		t.Fatalf("inbox: %+v", got)
	}

	// The bot's HTML is shown and patched in place; nothing in it runs.
	card := func(text string) channels.Message {
		return channels.Message{Body: cards.Body{
			Text: text, Format: "html", Buttons: [][]cards.Button{{{Label: "Halt", Action: "stop:r1", Style: "danger"}}},
		}}
	}
	ref, err := f.ch.Send(ctx, channels.Place{Chat: chat}, card(`<p>one</p><pre><code class="language-go">x := 1
</code></pre><img src="x" onerror="window.broken = true"><img src="https://example.org/x.png">`), "k")
	if err != nil {
		t.Fatal(err)
	}
	tab.until(`document.querySelector('.bot pre') && !document.getElementById('stop').hidden`)
	tab.eval(`window.pre = document.querySelector('.bot pre'), window.para = document.querySelector('.bot p'), 0`)
	if err := f.ch.Edit(ctx, ref, card(`<p>two</p><pre><code class="language-go">x := 2
</code></pre>`)); err != nil {
		t.Fatal(err)
	}
	tab.until(`document.querySelector('.bot p').textContent === 'two'`)
	if got := tab.eval(`[window.pre.isConnected, window.para.isConnected, window.pre.textContent, document.querySelectorAll('.copy').length, window.broken === undefined]`); got != `[true,true,"x := 2\n",1,true]` {
		t.Errorf("after an edit: %s", got)
	}

	// Stop presses the button of the message.
	tab.eval(`document.getElementById('stop').click()`)
	tab.until(`document.querySelector('.buttons.pressed')`)
	if err := f.ch.Edit(ctx, ref, message("<p>stopped</p>")); err != nil {
		t.Fatal(err)
	}
	tab.until(`document.getElementById('stop').hidden && document.querySelector('.bot .body').textContent === 'stopped'`)
	if got := f.inbox.Got(); len(got) != 2 || got[1].Action == nil || got[1].Action.Data != "stop:r1" {
		t.Errorf("inbox: %+v", got)
	}

	// What the inbox refuses stays on the page and is sent again.
	f.inbox.Refuse(func(*channels.Inbound) error { return errors.New("full") })
	tab.eval(`document.getElementById('input').focus()`)
	tab.typeText("keep me")
	tab.key("Enter", false)
	tab.until(`[...document.querySelectorAll('.user.waiting')].some((el) => el.textContent.includes('keep me'))`)
	tab.visit("about:blank")
	f.inbox.Refuse(nil)
	tab.visit(f.srv.URL + "/#/" + chat)
	tab.until(`document.querySelectorAll('.user').length === 2 && !document.querySelector('.waiting, .sending')`)
	if got := f.inbox.Got(); len(got) != 3 || got[2].Text != "keep me" {
		t.Errorf("inbox: %+v", got)
	}

	// A new address of the server's life: streams end, the page comes back by itself and misses nothing.
	f.stop()
	tab.until(`!document.getElementById('banner').hidden`)
	f.run()
	f.send(chat, "<p>welcome back</p>", "k2")
	tab.until(`document.getElementById('banner').hidden && document.body.innerText.includes('welcome back')`)
}

func TestCompletionInABrowser(t *testing.T) {
	tab := openBrowser(t, 390, 844)
	f := start(t)
	err := f.ch.RegisterCommands(context.Background(), []channels.CommandInfo{
		{Name: "help", Description: map[string]string{"en": "What I can do", "zh": "帮助"}},
		{Name: "status", Description: map[string]string{"en": "What is going on"}},
		{Name: "schedule", Description: map[string]string{"en": "<i>Again</i>"}, Args: "<when> <what>"},
	})
	if err != nil {
		t.Fatal(err)
	}
	tab.visit(f.srv.URL)
	tab.until(`document.activeElement?.id === 'input' && !document.getElementById('empty').hidden`)
	tab.typeText("/s")
	tab.until(`document.querySelectorAll('[role=option]').length === 2`)
	if text := tab.eval(`document.getElementById('completion').textContent`); !strings.Contains(text, "\\u003ci\\u003eAgain") && !strings.Contains(text, "<i>Again") {
		t.Errorf("completion reads %s", text)
	}
	tab.key("Escape", false)
	tab.until(`document.getElementById('completion').hidden`)
	tab.typeText("c")
	tab.until(`document.querySelectorAll('[role=option]').length === 1`)
	tab.key("Enter", false)
	tab.until(`document.getElementById('input').value === '/schedule '`)
	if len(f.inbox.Got()) != 0 {
		t.Error("choosing a command sent it")
	}
	if w := tab.eval(`document.documentElement.scrollWidth`); w != "390" && w != "500" { // old headless has a least width
		t.Errorf("the page is %s wide", w)
	}
}

// What was said before this browser came is not news to it; what comes afterwards is. Spaces of a card's lines are kept.
func TestNewsInABrowser(t *testing.T) {
	tab := openBrowser(t, 1200, 800)
	f := start(t)
	old, open := uuid.NewString(), uuid.NewString()
	for _, chat := range []string{old, open} {
		if code, out := f.do("POST", api(chat, "/messages"), m{"client_id": uuid.NewString(), "text": "hi"}); code != 202 {
			t.Fatalf("posting: %d %v", code, out)
		}
	}
	f.send(old, "<p>said long ago</p>", "k1")
	f.send(open, "<p>one  two<br>\nthree</p>", "k2")
	tab.visit(f.srv.URL + "/#/" + open)
	tab.until(`document.querySelector('.bot p')?.innerText === 'one  two\nthree'`)
	tab.until(`document.querySelectorAll('.conversation').length === 2`)
	if n := tab.eval(`document.querySelectorAll('.unread').length`); n != "0" {
		t.Errorf("%s conversations are marked as news at the first visit", n)
	}
	f.send(old, "<p>said now</p>", "k3")
	tab.visit("about:blank")
	tab.visit(f.srv.URL + "/#/" + open)
	tab.until(`document.querySelectorAll('.unread').length === 1`)
}
