package telegram_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-telegram/bot"

	"deerbot/cards"
	"deerbot/channels"
	"deerbot/channels/telegram"

	wire "deerbot/internal/wire/telegram"
)

// bench is an adapter and a chat on a server that keeps no log.
func bench(b *testing.B) (*telegram.Channel, *wire.Chat, string) {
	s := wire.New(wire.Options{CallLog: -1})
	ts := httptest.NewServer(s)
	b.Cleanup(ts.Close)
	c, err := telegram.New(telegram.Config{Token: s.Token(), APIURL: ts.URL, Dialect: plain{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Run(cancelled(), nil) })
	b.ReportAllocs()
	return c, s.DM(s.Person("Ann", "ann")), ts.URL
}

var body = strings.Repeat("some <b>answer</b> text of a usual length. ", 30)

func BenchmarkSend(b *testing.B) {
	c, ch, _ := bench(b)
	p, m := at(ch, ""), channels.Message{Body: cards.Body{Text: body, Format: "html"}}
	for b.Loop() {
		if _, err := c.Send(context.Background(), p, m, ""); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEdit(b *testing.B) {
	c, ch, _ := bench(b)
	ref, err := c.Send(context.Background(), at(ch, ""), text("x"), "")
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i++
		m := channels.Message{Body: cards.Body{Text: fmt.Sprint(body, i), Format: "html"}}
		if err := c.Edit(context.Background(), ref, m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSDKSend is the same call through the SDK, for comparison.
func BenchmarkSDKSend(b *testing.B) {
	_, ch, url := bench(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	sdk, err := bot.New(wire.DefaultToken, bot.WithServerURL(url), bot.WithSkipGetMe(), bot.WithHTTPClient(0, client))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := sdk.SendMessage(context.Background(), &bot.SendMessageParams{ChatID: ch.ID(), Text: body, ParseMode: "HTML"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkServer is the wire server's share of a send.
func BenchmarkServer(b *testing.B) {
	s := wire.New(wire.Options{CallLog: -1})
	ch := s.DM(s.Person("Ann", "ann"))
	raw := fmt.Sprintf(`{"chat_id":%d,"text":%q,"parse_mode":"HTML","link_preview_options":{"is_disabled":true}}`, ch.ID(), body)
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequest(http.MethodPost, "/bot"+s.Token()+"/sendMessage", strings.NewReader(raw))
		req.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, req)
		if rec.Code != http.StatusOK {
			b.Fatal(rec.Body)
		}
	}
}

// BenchmarkTurn is a whole turn on both sides: a person writes, the adapter delivers, answers and edits once.
func BenchmarkTurn(b *testing.B) {
	c, ch, _ := bench(b)
	ann := &wire.User{ID: ch.ID(), FirstName: "Ann"}
	ctx, cancel := context.WithCancel(context.Background())
	turns := make(chan struct{}, 32) // turns at a time
	for range cap(turns) {
		turns <- struct{}{}
	}
	in := acceptFunc(func(in *channels.Inbound) {
		go func() {
			ref, err := c.Send(ctx, in.Place, channels.Message{Body: cards.Body{Text: "working", Format: "html"}}, "")
			if err == nil {
				err = c.Edit(ctx, ref, channels.Message{Body: cards.Body{Text: body, Format: "html"}})
			}
			if err != nil && ctx.Err() == nil {
				b.Error(err)
			}
			turns <- struct{}{}
		}()
	})
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, in) }()
	for b.Loop() {
		<-turns
		ch.Say(ann, "what is new?")
	}
	for range cap(turns) {
		<-turns
	}
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}

type acceptFunc func(*channels.Inbound)

func (f acceptFunc) Accept(_ context.Context, in *channels.Inbound) error { f(in); return nil }
