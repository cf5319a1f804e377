package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
)

func isBot(m telegram.Message) bool { return m.Bot }

// General has no thread id in calls, and is a conversation beside the topics.
func TestC096GeneralTopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		s := echo(r)
		s.FirstDelay = 400 * time.Millisecond
		return s
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	f := w.tg.Forum("Forum")
	topic := f.Topic(ann, "Plans")
	w.answer(f, f.Say(ann, "@deer_bot the word is plum", telegram.InTopic(1)).ID, "re: the word is plum")
	w.answer(f, f.Say(ann, "@deer_bot what is it", telegram.InTopic(topic)).ID, "re: what is it")
	if strings.Contains(string(w.request("what is it").Body), "plum") {
		t.Error("the topic knows what was said in General")
	}
	w.answer(f, f.Say(ann, "@deer_bot and here", telegram.InTopic(1)).ID, "re: and here")
	if !strings.Contains(string(w.request("and here").Body), "plum") {
		t.Error("General forgot")
	}
	for _, c := range w.tg.Calls("", f.ID()) {
		if c.Code != 200 {
			t.Errorf("%s: %s", c.Method, c.Description)
		}
	}
	for _, m := range f.BotMessages() {
		if want := strings.Contains(m.Text, "what is it"); want != (m.Topic == topic) {
			t.Errorf("%q is in topic %d", m.Text, m.Topic)
		}
	}
}

// Every call that something in a topic causes names the topic: answers, parts, files, signs, notices, replies.
func TestC098TopicKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		switch words := lastWords(r); {
		case words == "file" && len(r.LastResults()) == 0:
			return script.Tool("c1", "write_file", map[string]any{"path": "/mnt/user-data/outputs/out.txt", "content": "made"})
		case words == "fail":
			return script.Fail(400, "no")
		case words == "slow":
			return slow("a slow answer that is written word by word", 4, 300*time.Millisecond)
		case words == "long":
			return script.Text(strings.Repeat("Many words of a long answer.\n\n", 300) + "the end")
		default:
			return echo(r)
		}
	})
	w.limits = "inbound_per_minute: 6"
	w.start()
	ann := w.tg.Person("Ann", "ann")
	f := w.tg.Forum("Forum")
	topic := f.Topic(ann, "Plans")
	say := func(text string) int { return f.Say(ann, text, telegram.InTopic(topic)).ID }
	w.answer(f, say("@deer_bot hello"), "re: hello")
	for _, c := range []string{"/status", "/help", "/whoami", "/models", "/frob", "/files", "/retry x"} {
		if _, err := f.Await(w.ctx(), say(c), isBot); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
	w.answer(f, say("slow"), "word by word")
	w.answer(f, say("long"), "the end")
	asked := say("file")
	if _, err := f.Await(w.ctx(), asked, func(m telegram.Message) bool { return m.Bot && len(m.Files) > 0 }); err != nil {
		t.Fatalf("no file: %v %s", err, show(f))
	}
	w.tg.Fail(telegram.Fault{Method: "sendDocument", Code: 400, Description: "Bad Request: FILE_REFERENCE_EMPTY"})
	w.answer(f, say("/files 1"), "was not sent")
	if _, err := f.Await(w.ctx(), say("fail"), isBot); err != nil {
		t.Fatalf("nothing was said of a failure: %v", err)
	}
	w.answer(f, say("one"), "re: one")
	w.answer(f, say("too many"), "More than 6 messages")
	n := 0
	for _, c := range w.tg.Calls("", f.ID()) {
		if strings.HasPrefix(c.Method, "edit") {
			continue // an edit names its message
		}
		n++
		if c.Params["message_thread_id"] != strconv.Itoa(topic) {
			t.Errorf("%s %q went to thread %q", c.Method, c.Params["text"], c.Params["message_thread_id"])
		}
	}
	if n < 15 {
		t.Errorf("only %d calls", n)
	}
}

// What is said in a group is in no request of a private chat, nor the other way round.
func TestC103GroupAndPrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, echo)
	w.tgOpts = "groups: all"
	w.start()
	ann, bob := w.tg.Person("Ann", "ann"), w.tg.Person("Bob", "bob")
	g := w.tg.Supergroup("Payroll circle")
	w.answer(g, g.Say(ann, "our salary table is 7341").ID, "salary")
	dm := w.tg.DM(bob)
	w.answer(dm, dm.Say(bob, "summarise recent talk").ID, "re: summarise")
	body := string(w.request("summarise").Body)
	for _, secret := range []string{"salary", "7341", "Payroll", "Ann", strconv.FormatInt(g.ID(), 10)} {
		if strings.Contains(body, secret) {
			t.Errorf("the private request holds %q", secret)
		}
	}
	w.answer(dm, dm.Say(bob, "my own secret is 9182").ID, "9182")
	w.answer(g, g.Say(ann, "summarise here").ID, "summarise here")
	if strings.Contains(string(w.request("summarise here").Body), "9182") {
		t.Error("the group's request holds what was said in private")
	}
}

// Two people in one group: the second waits, and cannot end the first one's run by button, /stop, /new or during its
// preparation; the first and an operator can.
func TestC104WhoMayStop(t *testing.T) {
	t.Parallel()
	held := map[string]*gate{"first": newGate(t), "second": newGate(t), "third": newGate(t), "fourth": newGate(t)}
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		words := lastWords(r)
		if g := held[words]; g != nil {
			return stages("working on "+words+".", g, " done with "+words)
		}
		return echo(r)
	})
	ann, bob, eve := w.tg.Person("Ann", "ann"), w.tg.Person("Bob", "bob"), w.tg.Person("Eve", "eve")
	w.tgOpts = "groups: all, admins: [" + strconv.FormatInt(eve.ID, 10) + "]"
	w.start()
	g := w.tg.Supergroup("Team")
	card := w.answer(g, g.Say(ann, "first").ID, "working on first")
	queued := g.Say(bob, "hi")
	refused := func(u *telegram.User, text string) {
		t.Helper()
		if m, err := g.Await(w.ctx(), g.Say(u, text).ID, isBot); err != nil || !strings.Contains(m.Text, "Only who started") {
			t.Errorf("%s says %q %v", text, m.Text, err)
		}
	}
	press := func(u *telegram.User) string {
		t.Helper()
		p, err := g.Press(u, card.ID, "Stop")
		if err != nil {
			t.Fatalf("%v: %s", err, show(g))
		}
		w.wait("the press is answered", func() bool { return w.tg.PressState(p.ID).Answered })
		return w.tg.PressState(p.ID).Notice
	}
	if n := press(bob); !strings.Contains(n, "Only who started") {
		t.Errorf("the button says %q", n)
	}
	refused(bob, "/stop")
	refused(bob, "/new")
	held["first"].open()
	w.answer(g, card.ID-1, "done with first")
	w.answer(g, queued.ID, "re: hi")

	g = w.tg.Supergroup("Team 2") // the budget of edits is a chat's
	card = w.answer(g, g.Say(ann, "second").ID, "working on second")
	if n := press(eve); n != "Stopping." {
		t.Errorf("the button says %q to an operator", n)
	}
	w.wait("the run stops", func() bool {
		m, _ := g.Message(card.ID)
		return strings.Contains(m.Text, "topped") && len(m.Buttons) == 0
	})
	g = w.tg.Supergroup("Team 3")
	card = w.answer(g, g.Say(bob, "third").ID, "working on third")
	if n := press(bob); n != "Stopping." {
		t.Errorf("the button says %q to the starter", n)
	}
	w.answer(g, g.Say(bob, "fourth").ID, "working on fourth")
	w.answer(g, g.Say(bob, "/stop").ID, "topped")

	g = w.tg.Supergroup("Team 4")
	files := newGate(t)
	w.tg.Fail(telegram.Fault{Method: "getFile", Hold: files.ch})
	asked := g.Say(ann, "look", telegram.Document("a.txt", "text/plain", []byte("x")))
	w.wait("taken", func() bool { return w.tg.Pending() == 0 })
	g.Say(bob, "/stop")
	w.wait("taken", func() bool { return w.tg.Pending() == 0 })
	files.open()
	w.answer(g, asked.ID, "re: look")
	w.legal()
}

// A group becomes a supergroup: on the announcement and on a refused send the conversation moves along, once.
func TestC113Migration(t *testing.T) {
	t.Parallel()
	hold := newGate(t)
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if lastWords(r) == "slow" {
			<-hold.ch
		}
		return echo(r)
	})
	w.tgOpts = "groups: all"
	w.start()
	ann := w.tg.Person("Ann", "ann")
	g := w.tg.Group("Team")
	w.answer(g, g.Say(ann, "the word is plum").ID, "re: the word is plum")
	g.Say(ann, "slow")
	w.wait("typing", func() bool { return len(g.Actions()) > 0 })
	super := g.Upgrade(ann)
	w.wait("the move is taken", func() bool { return w.tg.Pending() == 0 })
	hold.open()
	w.answer(super, 0, "re: slow")
	w.answer(super, super.Say(ann, "what is it").ID, "re: what is it")
	if !strings.Contains(string(w.request("what is it").Body), "plum") {
		t.Error("the supergroup is another conversation")
	}
	for _, words := range []string{"re: slow", "re: what is it"} {
		if n := count(super, words); n != 1 {
			t.Errorf("%d times %q: %s", n, words, show(super))
		}
	}
	w.p.kill()
	w.start()
	w.answer(super, super.Say(ann, "still").ID, "re: still")
	if !strings.Contains(string(w.request("still").Body), "plum") {
		t.Error("the move is forgotten after a restart")
	}
}

// Who may talk to the bot is told by ids; names and user names that look the same are nobody.
func TestC115AllowList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, echo)
	ann := w.tg.Person("Ann", "ann")
	eve := w.tg.Person("Ann", "Ann_"+strconv.FormatInt(ann.ID, 10))
	num := w.tg.Person(strconv.FormatInt(ann.ID, 10), "")
	ops := w.tg.Person("Ops", "ops")
	open := w.tg.Supergroup("Open")
	w.tgOpts = "groups: all, admins: [" + strconv.FormatInt(ops.ID, 10) + "], allow: [" + strconv.FormatInt(ann.ID, 10) + ", '" + strconv.FormatInt(open.ID(), 10) + "']"
	w.start()
	for _, u := range []*telegram.User{eve, num} {
		w.tg.DM(u).Say(u, "let me in")
		w.tg.DM(u).Say(u, "/status")
	}
	closed := w.tg.Supergroup("Closed")
	closed.Say(eve, "@deer_bot let me in")
	a := w.tg.DM(ann)
	w.answer(a, a.Say(ann, "hello").ID, "re: hello")
	o := w.tg.DM(ops)
	w.answer(o, o.Say(ops, "hello too").ID, "re: hello too")
	w.answer(open, open.Say(eve, "in the open").ID, "re: in the open")
	w.answer(closed, closed.Say(ann, "in the closed").ID, "re: in the closed")
	if n := len(w.tg.DM(eve).BotMessages()) + len(w.tg.DM(num).BotMessages()); n != 0 {
		t.Errorf("%d messages to strangers", n)
	}
	if n := len(closed.BotMessages()); n != 1 {
		t.Errorf("shown: %s", show(closed))
	}
	// A name in the list is refused at the start.
	w.stop()
	w.tgOpts = "allow: [Ann]"
	p := w.launch()
	<-p.done
	if p.err == nil || !strings.Contains(p.log.String(), "allow") {
		t.Errorf("a name in the allow list: %v\n%s", p.err, p.log)
	}
}

// groups: mention. What is for the bot is answered, what is for others is not.
func TestGroupsMention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, echo)
	w.start()
	ann, bob := w.tg.Person("Ann", "ann"), w.tg.Person("Bob", "bob")
	g, f := w.tg.Supergroup("Team"), w.tg.Forum("Forum")
	topic, other := f.Topic(ann, "Plans"), f.Topic(ann, "Other")
	in := telegram.InTopic(topic)
	mine := w.answer(g, g.Say(ann, "tell us @deer_bot please").ID, "re: tell us")
	w.answer(f, f.Say(ann, "@deer_bot start", in).ID, "re: start")
	for _, c := range []struct {
		where *telegram.Chat
		text  string
		opts  []telegram.SayOption
		want  string
	}{
		{g, "just talking", nil, ""},
		{g, "@bob what do you think", nil, ""},
		{g, "@deer_bot_2 hello", nil, ""},
		{g, "write to deer_bot@example.com", nil, ""},
		{g, "/new@other_bot", nil, ""},
		{g, "/frobnicate", nil, ""},
		{g, "/usr/bin/env is a path", nil, ""},
		{g, "and at the end @deer_bot", nil, "re: and at the end"},
		{g, "@bob and @deer_bot both", nil, "both"},
		{g, "yes do", []telegram.SayOption{telegram.ReplyTo(mine.ID)}, "re: yes do"},
		{g, "/status", nil, "Tokens"},
		{g, "@deer_bot", nil, "/help"},
		{f, "in the topic", []telegram.SayOption{in}, "re: in the topic"},
		{f, "@bob in the topic", []telegram.SayOption{in}, ""},
		{f, "in another", []telegram.SayOption{telegram.InTopic(other)}, ""},
		{f, "in general", nil, ""},
	} {
		before := len(c.where.BotMessages())
		m := c.where.Say(ann, c.text, c.opts...)
		if c.want != "" {
			w.answer(c.where, m.ID, c.want)
			before++
		} else {
			w.wait("taken", func() bool { return w.tg.Pending() == 0 })
		}
		if n := len(c.where.BotMessages()); n != before {
			t.Errorf("%q: %d messages, want %d", c.text, n, before)
		}
	}
	w.answer(g, g.Say(bob, "@deer_bot end").ID, "re: end")
	w.answer(f, f.Say(bob, "end", in).ID, "re: end")
	for _, r := range w.llm.Requests() {
		for _, never := range []string{"just talking", "what do you think", "in another", "in general", "a path"} {
			if strings.Contains(string(r.Body), never) {
				t.Errorf("the model was told %q", never)
			}
		}
	}
	// Who speaks is said by name and id, and two people are told apart.
	if text := w.request("end").LastUser(); !strings.Contains(text, `name="Bob"`) {
		t.Errorf("who speaks? %q", text)
	}
}

// groups: off answers nothing in groups, groups: all everything that is not for another bot; a reload switches.
func TestGroupsOffAndAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, echo)
	w.tgOpts = "groups: off"
	w.start()
	ann := w.tg.Person("Ann", "ann")
	g, dm := w.tg.Supergroup("Team"), w.tg.DM(ann)
	g.Say(ann, "@deer_bot hello")
	g.Say(ann, "/status@deer_bot")
	w.answer(dm, dm.Say(ann, "hello").ID, "re: hello")
	if n := len(g.BotMessages()); n != 0 {
		t.Errorf("shown: %s", show(g))
	}
	w.tgOpts = "groups: all"
	w.configure()
	w.waitLog("configuration reloaded")
	w.answer(g, g.Say(ann, "anyone there").ID, "re: anyone there")
	g.Say(ann, "/new@other_bot")
	w.answer(g, g.Say(ann, "and now").ID, "re: and now")
	if n := len(g.BotMessages()); n != 2 {
		t.Errorf("shown: %s", show(g))
	}
}
