package channeltest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deerbot/channels"
)

// Run runs the suite; fresh makes a platform for each test and cleans it up with the test.
func Run(t *testing.T, fresh func(*testing.T) Platform) {
	tests := []struct {
		name string
		f    func(*bench)
	}{
		{"inbound/dm", testDM},
		{"inbound/group", testGroup},
		{"inbound/bots", testBots},
		{"inbound/quote", testQuote},
		{"inbound/edit", testEditIn},
		{"inbound/topic", testTopic},
		{"inbound/files", testFilesIn},
		{"inbound/order", testOrder},
		{"inbound/refused", testRefused},
		{"inbound/restart", testRestart},
		{"inbound/reconnect", testReconnect},
		{"outbound/send and edit", testSendEdit},
		{"outbound/reply", testReply},
		{"outbound/buttons", testButtons},
		{"outbound/files", testFilesOut},
		{"outbound/typing", testTyping},
		{"outbound/commands", testCommands},
		{"outbound/delete", testDelete},
		{"errors/too long", testTooLong},
		{"errors/format", testFormat},
		{"errors/gone", testGone},
		{"errors/classes", testClasses},
		{"errors/unreachable", testUnreachable},
		{"errors/cancelled", testCancelled},
		{"secrets", testSecrets},
		{"stop", testStop},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			leaks := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
			b := &bench{T: t, p: fresh(t), in: NewInbox(), log: &logBuffer{}}
			b.c = b.p.Channel(t, b.logger())
			tt.f(b)
		})
	}
}

// bench is one test: a platform, an adapter and an inbox.
type bench struct {
	*testing.T
	p   Platform
	c   channels.Channel
	in  *Inbox
	log *logBuffer
}

func (b *bench) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// start runs the adapter; the returned function stops it, as the end of the test does.
func (b *bench) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	c := b.c
	go func() { done <- c.Run(ctx, b.in) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("Run returned %v after its context ended", err)
		}
	})
	b.Cleanup(stop)
	return stop
}

func (b *bench) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.Cleanup(cancel)
	return ctx
}

func (b *bench) message(text, bold string) channels.Message {
	return channels.Message{Body: b.p.Body(text, bold)}
}

func (b *bench) send(p channels.Place, m channels.Message) channels.Ref {
	b.Helper()
	ref, err := b.c.Send(b.ctx(), p, m, "key")
	if err != nil {
		b.Fatalf("Send: %v", err)
	}
	if ref.Place != p || ref.ID == "" {
		b.Fatalf("Send returned ref %+v for %+v", ref, p)
	}
	return ref
}

// shown is the message of a ref as people see it.
func (b *bench) shown(ref channels.Ref) Shown {
	b.Helper()
	for _, s := range b.p.Shown(ref.Place) {
		if s.ID == ref.ID {
			return s
		}
	}
	b.Fatalf("message %s is not shown", ref.ID)
	return Shown{}
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// pause gives others the time to go on; it only paces looking at a state that has no event.
func pause() { <-time.After(time.Millisecond) }
