package bot

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"deerbot/cards"
	"deerbot/cards/phrase"
	"deerbot/channels"
	"deerbot/runtime/sandbox"
	"deerbot/store"
)

// What the bot itself says.
var (
	textFull = phrase.New(
		"This message was not taken: %d messages of this chat are waiting already. Send it again when some of them are answered, or /stop.",
		"这条消息没有收下：本聊天已有 %d 条消息在等待。请等其中一些得到回答后再发，或发送 /stop。")
	textSlow = phrase.New(
		"More than %d messages a minute came from this chat. They are kept and answered one after another.",
		"本聊天每分钟超过 %d 条消息。它们都已保存，会逐条回答。")
	textBusy = phrase.New(
		"A run is active here, so this message was not taken. Wait for its answer, or send /stop first.",
		"这里有任务正在运行，这条消息没有收下。请等它回答，或先发送 /stop。")
	textGreeting    = phrase.New("Here. Write what you need, or /help.", "我在。请写下需要什么，或发送 /help。")
	textNothing     = phrase.New("The run ended without an answer. /retry runs the turn again.", "任务结束了，但没有给出回答。/retry 可以重新运行这一轮。")
	textAsFile      = phrase.New("%s\n\nThe whole answer is in the attached file `answer.md`.", "%s\n\n完整的回答在附件 `answer.md` 中。")
	textStopping    = phrase.New("Stopping.", "正在停止。")
	textAlreadyOver = phrase.New("This run is over.", "这个任务已经结束。")
	textNotYours    = phrase.New("Only who started this run, or an operator, can stop it.", "只有发起者或管理员可以停止这个任务。")
	textActionGone  = phrase.New("This button no longer does anything.", "这个按钮已失效。")
	textThreadLeft  = phrase.New("This chat has gone on to another thread. Nothing was resumed.", "本聊天已换到新的话题，没有继续。")
	textResuming    = phrase.New("Going on.", "继续。")
	textCopy        = phrase.New(
		"(Possibly a second copy: the connection broke before the first was confirmed.)",
		"（可能重复：上一条发送时连接中断，未收到确认。）")
	labelStop   = phrase.New("Stop", "停止")
	labelResume = phrase.New("Resume", "继续")
)

// resumeText is what the model is told when a person goes on with a run that a restart ended.
const resumeText = "The work above was cut off by a restart. Go on from where it stood. Check first whether calls whose outcome is unknown took effect."

// markSecondCopy says that a message may have been sent before.
func markSecondCopy(b cards.Body) cards.Body {
	en, zh := textCopy.Texts()
	mark := en
	if phrase.Guess(b.Plain) == phrase.ZH {
		mark = zh
	}
	b.Text, b.Plain = b.Text+"\n\n"+mark, b.Plain+"\n\n"+mark
	return b
}

// halve makes two plain bodies of one that the platform found too long, cut at a line or space where one is near. It
// returns nil when there is nothing to halve.
func halve(b cards.Body) []cards.Body {
	s := b.Plain
	if s == "" {
		s = b.Text
	}
	if utf8.RuneCountInString(s) < 2 {
		return nil
	}
	at := len(s) / 2
	for _, sep := range []string{"\n\n", "\n", " "} {
		if i := strings.LastIndex(s[:at], sep); i > len(s)/4 {
			at = i + len(sep)
			break
		}
	}
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	if at == 0 { // the first character reaches over the middle
		_, at = utf8.DecodeRuneInString(s)
	}
	first := cards.Body{Text: s[:at], Plain: s[:at], Format: "plain"}
	second := cards.Body{Text: s[at:], Plain: s[at:], Format: "plain", Buttons: b.Buttons}
	return []cards.Body{first, second}
}

// resume takes up a record that an earlier process left unsent.
func (o *outbox) resume(rec store.Outgoing) {
	if rec.Kind == outCard {
		return // its run's follower knows what to do with it
	}
	ch := o.b.channel(rec.Conversation.Channel)
	if ch != nil && !ch.Capabilities().Loopback && (rec.State == store.DeliverySending || rec.State == store.DeliveryUnknown) {
		for i := range rec.Parts {
			p := &rec.Parts[i]
			if p.State != store.DeliverySent && p.State != store.DeliveryPermanent && p.MessageID == "" {
				p.State = store.DeliveryUnknown // the call was, or may have been, made
				break
			}
		}
		rec.State = store.DeliveryUnknown
	}
	if _, mine := o.reserve(rec.Key); mine {
		o.enqueue(rec)
	}
}

// firstBlock is the beginning of a long Markdown text: whole lines up to some 1,500 characters, outside of a fence.
func firstBlock(md string) string {
	var out []string
	n := 0
	for line := range strings.SplitSeq(md, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") || n+len(line) > 1500 {
			break
		}
		out, n = append(out, line), n+len(line)+1
	}
	if len(out) == 0 {
		return "…"
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

func cleanName(name string) string { return strings.ReplaceAll(sandbox.Label(name), "`", "'") }

// size formats bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// seenTexts remembers the texts of recent messages, to tell a changed text from a changed decoration of one.
type seenTexts struct {
	mu    sync.Mutex
	texts map[seenKey]string
	order []seenKey
}

type seenKey struct {
	place channels.Place
	id    string
}

const seenMax = 2000

func newSeenTexts() *seenTexts { return &seenTexts{texts: map[seenKey]string{}} }

func (s *seenTexts) put(p channels.Place, id, text string) {
	if id == "" || len(text) > 16<<10 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := seenKey{p, id}
	if _, ok := s.texts[k]; !ok {
		s.order = append(s.order, k)
		if len(s.order) > seenMax {
			delete(s.texts, s.order[0])
			s.order = s.order[1:]
		}
	}
	s.texts[k] = text
}

func (s *seenTexts) get(p channels.Place, id string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.texts[seenKey{p, id}]
	return t, ok
}

// rateWatch counts handled messages per chat in a sliding minute.
type rateWatch struct {
	mu    sync.Mutex
	chats map[string]*chatRate
}

type chatRate struct {
	at   []time.Time
	told time.Time
}

func newRateWatch() *rateWatch { return &rateWatch{chats: map[string]*chatRate{}} }

// take books a message of a chat, or says how long to wait, and whether that is news for the chat.
func (r *rateWatch) take(scope string, limit int, now time.Time) (wait time.Duration, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.chats) > 4096 {
		for k, c := range r.chats {
			if len(c.at) == 0 || now.Sub(c.at[len(c.at)-1]) > time.Minute {
				delete(r.chats, k)
			}
		}
	}
	c := r.chats[scope]
	if c == nil {
		c = &chatRate{}
		r.chats[scope] = c
	}
	for len(c.at) > 0 && now.Sub(c.at[0]) >= time.Minute {
		c.at = c.at[1:]
	}
	if len(c.at) < limit {
		c.at = append(c.at, now)
		return 0, false
	}
	first = now.Sub(c.told) >= time.Minute
	if first {
		c.told = now
	}
	return time.Minute - now.Sub(c.at[0]), first
}
