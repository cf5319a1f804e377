package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deerbot/internal/wire/telegram"
)

// screen is an output that can be waited on.
type screen struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

func (s *screen) wait(t *testing.T, pattern string) []string {
	t.Helper()
	re, limit := regexp.MustCompile(pattern), time.After(10*time.Second)
	for {
		s.mu.Lock()
		m := re.FindStringSubmatch(s.b.String())
		s.mu.Unlock()
		if m != nil {
			return m
		}
		select {
		case <-s.more:
		case <-limit:
			t.Fatalf("%s did not come:\n%s", pattern, s.b.String())
		}
	}
}

func TestTerminal(t *testing.T) {
	defer goleak.VerifyNone(t)
	defer http.DefaultClient.CloseIdleConnections()
	in, typing := io.Pipe()
	out := &screen{more: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() {
		done <- run(context.Background(), cli{Listen: "127.0.0.1:0", Token: telegram.DefaultToken, Bot: "deer_bot"}, in, out)
	}()
	base := out.wait(t, `Serving on (http://\S+)\.`)[1]
	line := func(s string) { io.WriteString(typing, s+"\n") }
	bot := func(method, body string) {
		resp, err := http.Post(base+"/bot"+telegram.DefaultToken+"/"+method, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	line("hello")
	id := out.wait(t, `#(\d+) ann: hello`)[1]
	bot("sendMessage", `{"chat_id":1001,"text":"<b>hi</b> there\n<pre>x</pre>","parse_mode":"HTML","reply_parameters":{"message_id":`+id+`},
		"reply_markup":{"inline_keyboard":[[{"text":"Go","callback_data":"go"}]]}}`)
	m := out.wait(t, `#(\d+) Deer to #`+id+`:\n    \*\*hi\*\* there\n    `+"```"+`\n    x\n    `+"```"+`\n    \[Go\]`)[1]
	line(":press " + m + " Go")
	line(":delete " + m)
	out.wait(t, `#`+m+` was deleted`)
	line(":nonsense")
	out.wait(t, `! not understood`)
	line(":forum Team")
	line(":topic deploys")
	line("in the topic")
	out.wait(t, `ann in topic 2: in the topic`)
	resp, err := http.Post(base+"/openai/v1/chat/completions", "application/json", strings.NewReader("{}"))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the model server answers %v, %v", resp, err)
	}
	resp.Body.Close()
	line(":quit")
	if err := <-done; err != nil {
		t.Error(err)
	}
	typing.Close()
}
