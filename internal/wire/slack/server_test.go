package slack_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"go.uber.org/goleak"

	wire "deerbot/internal/wire/slack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve is a server and a client of the SDK, which is a second opinion on what Slack is like.
func serve(t *testing.T, o wire.Options) (*wire.Server, *sdk.Client, string) {
	t.Helper()
	s := wire.New(o)
	ts := httptest.NewServer(s)
	client := ts.Client()
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
		ts.Close()
	})
	bot, app := s.Tokens()
	return s, sdk.New(bot, sdk.OptionAppLevelToken(app), sdk.OptionAPIURL(ts.URL+"/api/"), sdk.OptionHTTPClient(client),
		sdk.OptionLog(log.New(io.Discard, "", 0))), ts.URL
}

func TestSDKSpeaksWithTheServer(t *testing.T) {
	s, c, _ := serve(t, wire.Options{})
	ann, ch := s.Person("Ann", "ann"), s.Public("team")
	who, err := c.AuthTest()
	if err != nil || who.UserID != wire.BotUser {
		t.Fatalf("%+v %v", who, err)
	}
	_, ts, err := c.PostMessage(ch.ID(), sdk.MsgOptionText("*hello*", false), sdk.MsgOptionMetadata(sdk.SlackMetadata{
		EventType: "x", EventPayload: map[string]any{"key": "k1"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.UpdateMessage(ch.ID(), ts, sdk.MsgOptionText("*bye*", false)); err != nil {
		t.Error(err)
	}
	m := ch.Messages()[0]
	if m.Text != "bye" || len(m.Bold) != 1 || m.Edits != 1 || m.Key != "k1" {
		t.Errorf("%+v", m)
	}
	h, err := c.GetConversationHistory(&sdk.GetConversationHistoryParameters{ChannelID: ch.ID(), IncludeAllMetadata: true})
	if err != nil || len(h.Messages) != 1 || h.Messages[0].Metadata.EventPayload["key"] != "k1" {
		t.Errorf("%+v %v", h, err)
	}
	if u, err := c.GetUserInfo(ann.ID); err != nil || u.RealName != "Ann" {
		t.Errorf("%+v %v", u, err)
	}
	if _, err := c.UploadFile(sdk.UploadFileParameters{Filename: "a.txt", FileSize: 3, Reader: strings.NewReader("abc"), Channel: ch.ID()}); err != nil {
		t.Error(err)
	}
	if err := c.AddReaction("eyes", sdk.NewRefToMessage(ch.ID(), ts)); err != nil {
		t.Error(err)
	}
	if _, _, err := c.DeleteMessage(ch.ID(), ts); err != nil {
		t.Error(err)
	}
	_, _, _, err = c.UpdateMessage(ch.ID(), ts, sdk.MsgOptionText("x", false))
	var refused sdk.SlackErrorResponse
	if !errors.As(err, &refused) || refused.Err != "message_not_found" {
		t.Errorf("%v", err)
	}
}

func TestSDKSocketMode(t *testing.T) {
	s, c, _ := serve(t, wire.Options{AckTimeout: time.Minute})
	ann, ch := s.Person("Ann", "ann"), s.Public("team")
	sm := socketmode.New(c, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = sm.RunContext(ctx)
	}()
	ch.Say(ann, "one")
	for {
		var ev socketmode.Event
		select {
		case ev = <-sm.Events:
		case <-ctx.Done():
			t.Fatal("no event came")
		}
		if ev.Type != socketmode.EventTypeEventsAPI {
			continue
		}
		inner, _ := ev.Data.(slackevents.EventsAPIEvent)
		if m, ok := inner.InnerEvent.Data.(*slackevents.MessageEvent); !ok || m.Text != "one" || m.User != ann.ID {
			t.Errorf("%+v", inner.InnerEvent)
		}
		if s.Unacked() != 1 {
			t.Errorf("%d are not acknowledged before", s.Unacked())
		}
		if err := sm.Ack(*ev.Request); err != nil {
			t.Error(err)
		}
		break
	}
	if err := s.WaitFor(ctx, func() bool { return s.Unacked() == 0 }); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
}

func TestRefusals(t *testing.T) {
	s, c, url := serve(t, wire.Options{Scopes: []string{"chat:write"}, Limits: wire.RealLimits()})
	ch := s.Public("team")
	post := func(opts ...sdk.MsgOption) string {
		_, _, err := c.PostMessage(ch.ID(), opts...)
		var refused sdk.SlackErrorResponse
		var limited *sdk.RateLimitedError
		switch {
		case err == nil:
			return ""
		case errors.As(err, &limited):
			return "ratelimited"
		case errors.As(err, &refused):
			return refused.Err
		}
		return err.Error()
	}
	section := func(n int) sdk.MsgOption {
		return sdk.MsgOptionBlocks(sdk.NewSectionBlock(sdk.NewTextBlockObject("mrkdwn", strings.Repeat("x", n), false, false), nil, nil))
	}
	for i, tt := range []struct {
		opts []sdk.MsgOption
		want string
	}{
		{[]sdk.MsgOption{sdk.MsgOptionText("x", false)}, ""},
		{[]sdk.MsgOption{section(3000)}, ""},
		{[]sdk.MsgOption{section(10)}, "ratelimited"}, // a burst of two passes
	} {
		if got := post(tt.opts...); got != tt.want {
			t.Errorf("%d: %q, want %q", i, got, tt.want)
		}
	}
	if _, err := c.GetUserInfo("U1"); err == nil || err.Error() != "missing_scope" {
		t.Errorf("%v", err)
	}
	if _, err := sdk.New("xoxb-other", sdk.OptionAPIURL(url+"/api/")).AuthTest(); err == nil || err.Error() != "invalid_auth" {
		t.Errorf("%v", err)
	}
	ch.Kick()
	if _, _, err := c.DeleteMessage(ch.ID(), "1.1"); err == nil || err.Error() != "not_in_channel" {
		t.Errorf("%v", err)
	}
}

func TestReadMrkdwn(t *testing.T) {
	for in, want := range map[string]string{
		"*b* _i_ ~s~ `c`": "b i s c", "a*b*c": "a*b*c", "<https://x.y|l> &amp; &lt;": "l & <", "```\na\n```\nb": "a\nb",
		"<!date^00000000^{_}|*>x": "*x", "> q": "q", "a\u200b*b*": "ab",
	} {
		if got, err := wire.ReadMrkdwn(in); err != nil || got.Text != want {
			t.Errorf("%q: %q %v", in, got.Text, err)
		}
	}
	for _, in := range []string{"a < b", "a & b", "a > b", "<x>", "<https://x y>", "&gt; q"} {
		if got, err := wire.ReadMrkdwn(in); err == nil {
			t.Errorf("%q is taken as %q", in, got.Text)
		}
	}
	if got, _ := wire.ReadMrkdwn("<!channel> <@U1>"); len(got.Notifies) != 2 {
		t.Errorf("%q", got.Notifies)
	}
}
