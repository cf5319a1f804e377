package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
	"deerbot/store/boltstore"
)

// held answers "work" when the gate is open, in a way that a live card shows, and repeats everything else.
func held(g *gate) script.Responder {
	return func(r *script.Request) script.Script {
		if lastWords(r) == "work" {
			return stages("I work.", g, " I am done.")
		}
		return echo(r)
	}
}

// recovery: ask ends a run that a restart cut and offers to go on; the button does, once.
func TestRecoveryAsk(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, held(g))
	w.extra = "agent: {recovery: ask}"
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	card := w.answer(dm, dm.Say(ann, "work").ID, "I work.")
	w.answer(dm, dm.Say(ann, "/status").ID, "Model") // by now the card's id is on disk
	w.p.kill()
	w.start()
	w.wait("the run is ended and offers to go on", func() bool {
		m, _ := dm.Message(card.ID)
		return len(m.Buttons) == 1 && m.Buttons[0][0].Text == "Resume"
	})
	w.answer(dm, dm.Say(ann, "hello").ID, "re: hello")
	if _, err := dm.Press(ann, card.ID, "Resume"); err != nil {
		t.Fatal(err)
	}
	w.wait("the model is asked to go on", func() bool {
		return w.llm.Last() != nil && strings.Contains(w.llm.Last().LastUser(), "cut off by a restart")
	})
	n := len(dm.BotMessages())
	p, err := dm.Press(ann, card.ID, "Resume")
	if err != nil {
		t.Fatal(err)
	}
	w.wait("the second press is answered", func() bool { return w.tg.PressState(p.ID).Answered })
	w.answer(dm, dm.Say(ann, "end").ID, "re: end")
	if got := len(dm.BotMessages()); got > n+2 {
		t.Errorf("the run was resumed twice: %s", show(dm))
	}
	w.legal()
}

// recovery: interrupt ends a run that a restart cut; the person sees that, and can go on.
func TestRecoveryInterrupt(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, held(g))
	w.extra = "agent: {recovery: interrupt}"
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	card := w.answer(dm, dm.Say(ann, "work").ID, "I work.")
	w.answer(dm, dm.Say(ann, "/status").ID, "Model") // by now the card's id is on disk
	w.p.kill()
	w.start()
	w.wait("the card says so", func() bool {
		m, _ := dm.Message(card.ID)
		return strings.Contains(m.Text, "process stopped while")
	})
	w.answer(dm, dm.Say(ann, "go on").ID, "re: go on")
	if !strings.Contains(string(w.llm.Last().Body), "work") {
		t.Error("what was asked is not in the history")
	}
	if n := w.asked("work"); n != 1 {
		t.Errorf("%d requests", n)
	}
	w.legal()
}

// Three unclean starts within minutes: nothing is resumed any more, so that a run that kills the process does not for ever.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, held(g))
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	card := w.answer(dm, dm.Say(ann, "work").ID, "I work.")
	w.answer(dm, dm.Say(ann, "/status").ID, "Model") // by now the card's id is on disk
	for range 2 {
		w.p.kill()
		n := w.asked("work")
		w.start()
		w.poll("the run is resumed", func() bool { return w.asked("work") > n })
	}
	w.p.kill()
	n := w.asked("work")
	w.start()
	if !strings.Contains(w.p.log.String(), "not resumed") {
		t.Errorf("the log does not say so:\n%s", w.p.log)
	}
	w.wait("the run has ended", func() bool {
		m, _ := dm.Message(card.ID)
		return !strings.Contains(fmt.Sprint(m.Buttons), "Stop") && strings.Contains(m.Text, "stopped")
	})
	w.answer(dm, dm.Say(ann, "hello").ID, "re: hello")
	if got := w.asked("work"); got != n {
		t.Errorf("the run was resumed in a crash loop")
	}
	w.stop()
	w.start() // a clean stop ends the loop
	w.answer(dm, dm.Say(ann, "again").ID, "re: again")
	w.legal()
}

// SIGTERM in the middle of a run: within the grace it ends; beyond, it is suspended and goes on at the next start.
func TestTerminatedDuringRun(t *testing.T) {
	t.Parallel()
	for _, grace := range []string{"10s", "50ms"} {
		t.Run(grace, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			w := newWorld(t, telegram.Options{}, held(g))
			w.extra = "shutdown_grace: " + grace
			w.start()
			ann := w.tg.Person("Ann", "ann")
			dm := w.tg.DM(ann)
			card := w.answer(dm, dm.Say(ann, "work").ID, "I work.")
			if err := w.p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			w.waitLog("stopping")
			if grace == "10s" {
				g.open()
			}
			w.died()
			if w.p.err != nil {
				t.Errorf("stopped with %v", w.p.err)
			}
			m, _ := dm.Message(card.ID)
			if done := strings.Contains(m.Text, "I am done."); done != (grace == "10s") {
				t.Errorf("left behind: %q", m.Text)
			}
			g.open()
			w.start()
			w.answer(dm, card.ID-1, "I am done.")
			w.answer(dm, dm.Say(ann, "end").ID, "re: end")
			if n := count(dm, "I am done."); n != 1 {
				t.Errorf("shown: %s", show(dm))
			}
			w.legal()
		})
	}
}

// Another poller, cut sockets, a gateway's pages: the bot is back by itself, nothing is lost or doubled.
func TestPollTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, echo)
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "one").ID, "re: one")
	for i, f := range []telegram.Fault{
		{Drop: telegram.DropAfter},
		{Drop: telegram.DropBefore},
		{Code: 502, Body: "<html>502</html>"},
		{Code: 429, RetryAfter: 1},
		{Code: 401 + 99, Description: "Internal Server Error"},
	} {
		f.Method = "getUpdates"
		w.tg.Fail(f)
		w.tg.Cut()
		words := fmt.Sprintf("after fault %d", i)
		w.answer(dm, dm.Say(ann, words).ID, "re: "+words)
		if n := count(dm, "re: "+words); n != 1 {
			t.Errorf("%d answers", n)
		}
	}
	w.tg.Fail(telegram.Fault{Method: "getUpdates", Code: 409, Description: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"})
	w.tg.Cut()
	w.waitLog("another process polls")
	w.answer(dm, dm.Say(ann, "after the conflict").ID, "re: after the conflict")
	w.legal()
}

// The user blocks the bot while it works: the answer is given up for good, its message settled, and the bot is there when
// the user is back.
func TestBlocked(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if lastWords(r) == "work" {
			<-g.ch
		}
		return echo(r)
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	dm.Say(ann, "work")
	w.wait("typing", func() bool { return len(dm.Actions()) > 0 })
	dm.SetState(telegram.Blocked)
	g.open()
	w.waitLog("a message cannot be delivered")
	tries := len(w.tg.Calls("sendMessage", dm.ID()))
	dm.SetState(telegram.Open)
	w.answer(dm, dm.Say(ann, "back").ID, "re: back")
	if tries != 1 {
		t.Errorf("%d tries", tries)
	}
	w.stop()
	w.look(func(s *boltstore.Store) {
		ctx := context.Background()
		unsent, err := s.UnsentOutgoing(ctx)
		if err != nil || len(unsent) != 0 {
			t.Errorf("unsent: %v %v", unsent, err)
		}
		left, err := s.UnsettledInbound(ctx)
		if err != nil || len(left) != 0 {
			t.Errorf("unsettled: %v %v", left, err)
		}
	})
}

// A changed file counts at the next run; a broken one changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script { return script.Text("I am " + r.Model) })
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "who").ID, "I am wire-main")
	w.models = w.model("fast")
	w.configure()
	w.waitLog("configuration reloaded")
	w.answer(dm, dm.Say(ann, "who").ID, "I am wire-fast")
	w.extra = "agent: {max_stepps: 3}"
	w.models = w.model("deep")
	w.configure()
	w.waitLog("is not valid; the old one stays")
	if !strings.Contains(w.p.log.String(), "max_stepps") {
		t.Error("the log does not name the key")
	}
	w.answer(dm, dm.Say(ann, "who").ID, "I am wire-fast")
	w.extra = "agent: {instructions: Say plum.}"
	w.configure()
	w.poll("reloaded again", func() bool { return strings.Count(w.p.log.String(), "configuration reloaded") == 2 })
	w.answer(dm, dm.Say(ann, "who").ID, "I am wire-deep")
	if !strings.Contains(w.llm.Last().System, "Say plum.") {
		t.Error("the instructions are not in the prompt")
	}
}

// A second daemon on the same data directory ends within two seconds and names what is held.
func TestC180SecondDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, telegram.Options{}, echo)
	first := w.start()
	began := time.Now()
	second := w.exec()
	select {
	case <-second.done:
	case <-time.After(10 * time.Second):
		t.Error("the second daemon does not end")
	}
	took := time.Since(began)
	w.p = first
	if second.err == nil || took > 3*time.Second {
		t.Errorf("it ended with %v after %v", second.err, took)
	}
	if log := second.log.String(); !strings.Contains(log, filepath.Join(w.data(), "deerbot.db")) || !strings.Contains(log, "another") {
		t.Errorf("it says %q", log)
	}
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "hello").ID, "re: hello")
}

// The disk is full: the log says so, what was accepted is kept, and when there is room everything is answered.
func TestC188DiskFull(t *testing.T) {
	w := newWorld(t, telegram.Options{}, echo)
	if err := os.MkdirAll(w.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", w.data(), "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if w.p != nil {
			w.p.kill()
		}
		if err := syscall.Unmount(w.data(), syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	w.answer(dm, dm.Say(ann, "before").ID, "re: before")
	fill := filepath.Join(w.data(), "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	for n := 64 << 10; n >= 512; {
		if _, err := f.Write(make([]byte, n)); err != nil {
			n /= 2
		}
	}
	f.Close()
	const many = 40
	big := strings.Repeat("many words to keep ", 150)
	for i := range many {
		dm.Say(ann, fmt.Sprintf("message %d %s", i, big))
	}
	w.waitLog("cannot be stored")
	if !strings.Contains(strings.ToLower(w.p.log.String()), "full") && !strings.Contains(w.p.log.String(), "no space") {
		t.Errorf("the log does not say why:\n%s", w.p.log)
	}
	select {
	case <-w.p.done:
		t.Fatalf("the daemon ended: %v\n%s", w.p.err, w.p.log)
	default:
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		w.answer(dm, 0, fmt.Sprintf("re: message %d many", i))
	}
	w.answer(dm, dm.Say(ann, "after").ID, "re: after")
	for i := range many {
		if n := count(dm, fmt.Sprintf("re: message %d many", i)); n != 1 {
			t.Errorf("%d answers to message %d", n, i)
		}
	}
	w.legal()
	w.stop()
}

// A restart ends a run of which nothing was shown yet: the person is told.
func TestRecoveryInterruptUnseen(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	w := newWorld(t, telegram.Options{}, func(r *script.Request) script.Script {
		if lastWords(r) == "work" {
			<-g.ch
		}
		return echo(r)
	})
	w.extra = "agent: {recovery: interrupt}"
	w.start()
	ann := w.tg.Person("Ann", "ann")
	dm := w.tg.DM(ann)
	asked := dm.Say(ann, "work")
	w.poll("the model is asked", func() bool { return w.asked("work") == 1 })
	w.p.kill()
	w.start()
	if m := w.answer(dm, asked.ID, "process stopped while"); len(m.Buttons) != 1 {
		t.Errorf("no way to go on: %q", m.Text)
	}
}
