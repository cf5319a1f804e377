package e2e

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
	"deerbot/store/boltstore"
)

// binary is the daemon under test.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "deerbot-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "deerbot")
	args, cgo := []string{"build", "-tags", "crashtest", "-o", binary}, "CGO_ENABLED=0"
	if raced {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	build := exec.Command("go", append(args, "deerbot/cmd/deerbot")...)
	build.Env = append(os.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "12") // tests wait more than they work
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// patience is how long anything may take before a test gives up. Tests wait for events, not for this.
const patience = 45 * time.Second

// world is a Telegram, a model provider, a data directory and the daemon between them.
type world struct {
	t      testing.TB
	tg     *telegram.Server
	llm    *openai.Server
	tgNet  *httptest.Server
	tgURL  string
	llmURL string
	dir    string
	// What follows changes the configuration of the next start.
	models string // instead of the one model
	tgOpts string // more options of the Telegram channel: "groups: all, ..."
	limits string // instead of no limits
	level  string // of the log, instead of info
	extra  string // more YAML
	p      *process
	lives  []*process // all that were started
}

// newWorld starts the servers. respond is what the model says.
func newWorld(t testing.TB, opts telegram.Options, respond script.Responder) *world {
	t.Helper()
	w := &world{t: t, tg: telegram.New(opts), llm: &openai.Server{Respond: respond}, dir: t.TempDir()}
	llm := httptest.NewServer(w.llm)
	w.tgNet = httptest.NewServer(w.tg)
	w.tgURL, w.llmURL = w.tgNet.URL, llm.URL
	t.Cleanup(func() {
		for _, p := range w.lives {
			p.kill()
			if strings.Contains(p.log.String(), "DATA RACE") {
				t.Errorf("a data race in the daemon:\n%s", p.log)
			}
		}
		w.unplug()
		openGates(t)
		llm.CloseClientConnections()
		llm.Close()
	})
	return w
}

// unplug takes the platform off the network: connections are refused.
func (w *world) unplug() {
	if w.tgNet == nil {
		return
	}
	w.tg.Cut()
	w.tgNet.CloseClientConnections()
	w.tgNet.Close()
	w.tgNet = nil
}

// plug puts it back.
func (w *world) plug() {
	w.t.Helper()
	l, err := net.Listen("tcp", strings.TrimPrefix(w.tgURL, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.tgNet = httptest.NewUnstartedServer(w.tg)
	w.tgNet.Listener.Close()
	w.tgNet.Listener = l
	w.tgNet.Start()
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

// process is one life of the daemon.
type process struct {
	cmd  *exec.Cmd
	url  string
	log  *logBuffer
	done chan struct{}
	err  error
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var upLine = regexp.MustCompile(`deerbot is up" web=(\S+)`)

// start runs the daemon and returns once it is ready. env is added to its environment.
func (w *world) start(env ...string) *process {
	w.t.Helper()
	p := w.launch(env...)
	if p.url == "" {
		w.t.Fatalf("the daemon did not come up:\n%s", p.log)
	}
	deadline := time.Now().Add(patience)
	for {
		res, err := http.Get(p.url + "/readyz")
		if err == nil {
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return p
			}
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
		select {
		case <-p.done:
			w.t.Fatalf("the daemon ended: %v\n%s", p.err, p.log)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not ready: %v\n%s", err, p.log)
		}
	}
}

// launch runs the daemon and returns when it serves or has ended.
func (w *world) launch(env ...string) *process {
	w.t.Helper()
	w.configure()
	return w.exec(env...)
}

// model is the entry of a model that the wire server plays.
func (w *world) model(name string) string {
	return fmt.Sprintf("{name: %s, provider: openai, model: wire-%s, base_url: %q, api_key: %s}", name, name, w.llmURL+"/v1", modelKey)
}

// Secrets of the world, searched for in what must not show them.
const modelKey = "sk-e2e-SECRETKEYSECRETKEY"

func (w *world) file() string { return filepath.Join(w.dir, "config.yaml") }

func (w *world) data() string { return filepath.Join(w.dir, "data") }

// configure writes the configuration file as w says.
func (w *world) configure() {
	w.t.Helper()
	models, limits, opts, level := w.models, w.limits, w.tgOpts, w.level
	if level == "" {
		level = "info"
	}
	if models == "" {
		models = w.model("main")
	}
	if limits == "" {
		limits = "inbound_per_minute: 1000000"
	}
	if !strings.Contains(opts, "answer") {
		// A machine that stands still for a while must not turn an edit into a new message.
		opts = strings.TrimPrefix(opts+", answer_new_after: 10m", ", ")
	}
	opts = ", " + opts
	conf := fmt.Sprintf(`data_dir: %s
log: {level: %s}
server: {listen: "127.0.0.1:0"}
models: [%s]
channels:
  telegram: {token: %q, api_url: %q%s}
limits: {%s}
%s
`, w.data(), level, models, w.tg.Token(), w.tgURL, opts, limits, w.extra)
	if err := os.WriteFile(w.file()+".new", []byte(conf), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(w.file()+".new", w.file()); err != nil {
		w.t.Fatal(err)
	}
}

// exec runs the daemon with the file that is there.
func (w *world) exec(env ...string) *process {
	w.t.Helper()
	p := &process{cmd: exec.Command(binary, "run", "--config", w.file()), log: &logBuffer{}, done: make(chan struct{})}
	p.cmd.Env = append([]string{"HOME=" + w.dir, "PATH=" + os.Getenv("PATH"), "TZ=UTC"}, env...)
	p.cmd.Dir = w.dir
	r, pw := io.Pipe()
	p.cmd.Stderr = io.MultiWriter(p.log, pw)
	p.cmd.Stdout = p.log
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.p = p
	w.lives = append(w.lives, p)
	up := make(chan string, 1)
	go func() {
		s := bufio.NewScanner(r)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			if m := upLine.FindStringSubmatch(s.Text()); m != nil {
				select {
				case up <- m[1]:
				default:
				}
			}
		}
		_, _ = io.Copy(io.Discard, r)
	}()
	go func() {
		p.err = p.cmd.Wait()
		pw.Close()
		close(p.done)
	}()
	select {
	case p.url = <-up:
	case <-p.done:
	case <-time.After(patience):
	}
	return p
}

// kill ends the daemon as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// stop asks the daemon to end and checks that it does so in peace.
func (w *world) stop() {
	w.t.Helper()
	_ = w.p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.p.done:
	case <-time.After(patience):
		w.t.Fatalf("does not stop:\n%s", w.p.log)
	}
	if w.p.err != nil {
		w.t.Fatalf("stopped with %v:\n%s", w.p.err, w.p.log)
	}
}

// died waits for the daemon to be killed by a crash point.
func (w *world) died() {
	w.t.Helper()
	select {
	case <-w.p.done:
	case <-time.After(patience):
		w.t.Fatalf("the crash point was not reached:\n%s", w.p.log)
	}
}

// answer waits for a message of the bot whose text holds want.
func (w *world) answer(c *telegram.Chat, after int, want string) telegram.Message {
	w.t.Helper()
	m, err := c.Await(w.ctx(), after, func(m telegram.Message) bool { return m.Bot && strings.Contains(m.Text, want) })
	if err != nil {
		w.t.Fatalf("no answer with %q: %v\nchat: %s\nlog:\n%s", want, err, show(c), w.p.log)
	}
	return m
}

func show(c *telegram.Chat) string {
	var b strings.Builder
	for _, m := range c.Messages() {
		who := m.From.FirstName
		if m.Bot {
			who = "BOT"
		}
		text := m.Text
		if len(text) > 300 {
			text = text[:300] + "…"
		}
		fmt.Fprintf(&b, "\n  %d %s: %q", m.ID, who, text)
		for _, f := range m.Files {
			fmt.Fprintf(&b, " [%s %s]", f.Kind, f.Name)
		}
	}
	return b.String()
}

// echo answers "re: " and the user's words.
func echo(r *script.Request) script.Script { return script.Text("re: " + lastWords(r)) }

// lastWords is the last user message without context blocks.
func lastWords(r *script.Request) string {
	text := r.LastUser()
	if strings.HasPrefix(text, "<from ") {
		_, text, _ = strings.Cut(text, "\n")
	}
	if i := strings.Index(text, "\n<"); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSpace(text)
}

// said is what the bot shows now, oldest first.
func said(c *telegram.Chat) []string {
	var out []string
	for _, m := range c.BotMessages() {
		out = append(out, m.Text)
	}
	return out
}

// wait returns when ok is true, looking again after everything that happens on the platform.
func (w *world) wait(what string, ok func() bool) {
	w.t.Helper()
	if err := w.tg.WaitFor(w.ctx(), ok); err != nil {
		chats := ""
		for _, c := range w.tg.Chats() {
			chats += show(c)
		}
		w.t.Fatalf("%s: %v\nchats:%s\nlog:\n%s", what, err, chats, w.p.log)
	}
}

// waitLog returns when the log holds text.
func (w *world) waitLog(text string) {
	w.t.Helper()
	w.poll("the log says "+text, func() bool { return strings.Contains(w.p.log.String(), text) })
}

// poll is for what no event tells of.
func (w *world) poll(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %v: %s\nlog:\n%s", patience, what, w.p.log)
		}
	}
}

// legal checks that the model was never asked something illegal, and the platform neither but for faults made on purpose.
func (w *world) legal() {
	w.t.Helper()
	if _, refused := w.llm.Count(); refused != 0 {
		w.t.Errorf("%d illegal requests to the model", refused)
	}
}

// look opens the store of a daemon that has ended.
func (w *world) look(see func(s *boltstore.Store)) {
	w.t.Helper()
	s, err := boltstore.Open(filepath.Join(w.data(), "deerbot.db"), boltstore.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	see(s)
}

// gate holds requests of the model until it is opened.
type gate struct {
	once sync.Once
	ch   chan struct{}
}

// gates are those of the running tests: a world opens its test's before it waits for the model to be done.
var gates sync.Map

func newGate(t testing.TB) *gate {
	g := &gate{ch: make(chan struct{})}
	gates.Store(g, t)
	return g
}

func openGates(t testing.TB) {
	gates.Range(func(g, of any) bool {
		if of == t {
			g.(*gate).open()
			gates.Delete(g)
		}
		return true
	})
}

func (g *gate) open() { g.once.Do(func() { close(g.ch) }) }
