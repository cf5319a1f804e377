// Package bench measures the whole process: it starts this binary as a daemon between a wire-level Telegram and a
// wire-level model that answers at once, talks to it as people would, and prints what it took.
//
// The wire servers run in the measuring process and share the machine with the daemon, so the figures include what a
// client on the same two cores costs.
package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
)

// Options say how much to measure.
type Options struct {
	Binary  string // the daemon; "" is this executable
	Turns   int    // of the latency part
	Chats   int    // of the throughput part
	PerChat int    // turns of each chat there
	Live    int    // conversations for the memory part
	Threads int    // in the store for the second cold start
	Stream  time.Duration
	Only    []string // parts by name; empty is all
	JSON    bool
	Out     io.Writer
}

// Figure is one measured value with its bound.
type Figure struct {
	Part  string  `json:"part"`
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Bound string  `json:"bound,omitempty"`
}

// Run measures and prints.
func Run(ctx context.Context, o Options) error {
	if o.Binary == "" {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		o.Binary = exe
	}
	parts := []struct {
		name string
		run  func(context.Context, Options) ([]Figure, error)
	}{
		{"start", coldStart}, {"latency", latency}, {"throughput", throughput}, {"memory", memory}, {"stream", staleness},
	}
	var all []Figure
	for _, p := range parts {
		if len(o.Only) > 0 && !has(o.Only, p.name) {
			continue
		}
		figures, err := p.run(ctx, o)
		if err != nil {
			return fmt.Errorf("bench %s: %w", p.name, err)
		}
		for i := range figures {
			figures[i].Part = p.name
			f := figures[i]
			if !o.JSON {
				fmt.Fprintf(o.Out, "%-11s %-44s %10.2f %-8s %s\n", f.Part, f.Name, f.Value, f.Unit, f.Bound)
			}
		}
		all = append(all, figures...)
	}
	if o.JSON {
		enc := json.NewEncoder(o.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	}
	return nil
}

func has(list []string, s string) bool {
	return slices.Contains(list, s)
}

// rig is the servers and one daemon.
type rig struct {
	tg     *telegram.Server
	llm    *openai.Server
	dir    string
	binary string
	close  []func()
	cmd    *exec.Cmd
	url    string
}

func newRig(o Options, opts telegram.Options, respond script.Responder) (*rig, error) {
	r := &rig{tg: telegram.New(opts), llm: &openai.Server{Respond: respond}, binary: o.Binary}
	r.llm.Keep = -1
	dir, err := os.MkdirTemp("", "deerbot-bench")
	if err != nil {
		return nil, err
	}
	r.dir = dir
	r.close = append(r.close, func() { os.RemoveAll(dir) })
	tgURL, err := r.serve(r.tg)
	if err != nil {
		return nil, err
	}
	llmURL, err := r.serve(r.llm)
	if err != nil {
		return nil, err
	}
	conf := fmt.Sprintf(`data_dir: %s
log: {level: info}
server: {listen: "127.0.0.1:0"}
models: [{name: main, provider: openai, model: bench, base_url: %q, api_key: sk-bench}]
channels: {telegram: {token: %q, api_url: %q}}
limits: {inbound_per_minute: 1000000}
`, filepath.Join(dir, "data"), llmURL+"/v1", r.tg.Token(), tgURL)
	return r, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(conf), 0o600)
}

func (r *rig) serve(h http.Handler) (string, error) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(ln) }() // ends with Close below
	r.close = append(r.close, func() { _ = s.Close() })
	return "http://" + ln.Addr().String(), nil
}

var servingLine = regexp.MustCompile(`deerbot is up" web=(\S+)`)

// start runs the daemon and returns how long it took to be ready.
func (r *rig) start(ctx context.Context) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, r.binary, "run", "--config", filepath.Join(r.dir, "config.yaml"))
	cmd.Dir = r.dir
	out, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	r.cmd = cmd
	lines := bufio.NewReader(out)
	var log strings.Builder
	r.url = ""
	for r.url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("the daemon did not come up: %s", log.String())
		}
		log.WriteString(line)
		if m := servingLine.FindStringSubmatch(line); m != nil {
			r.url = m[1]
		}
	}
	go r.drain(lines)
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/readyz", nil)
		if err != nil {
			return 0, err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return time.Since(began), nil
			}
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// drain passes on what the daemon warns of, until it ends.
func (r *rig) drain(lines *bufio.Reader) {
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			fmt.Fprint(os.Stderr, line)
		}
		if err != nil {
			return
		}
	}
}

func (r *rig) stop() {
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		_ = r.cmd.Wait()
		r.cmd = nil
	}
}

func (r *rig) shut() {
	r.stop()
	r.tg.Cut()
	for _, f := range r.close {
		f()
	}
}

// cpu is the daemon's user and system time so far.
func (r *rig) cpu() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// rss is the daemon's resident memory in MB.
func (r *rig) rss() float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", r.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	return float64(pages*int64(os.Getpagesize())) / (1 << 20)
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func percentile(ds []time.Duration, p float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	slices.Sort(ds)
	return ds[min(len(ds)-1, int(float64(len(ds))*p))]
}

func coldStart(ctx context.Context, o Options) ([]Figure, error) {
	r, err := newRig(o, telegram.Options{CallLog: -1}, nil)
	if err != nil {
		return nil, err
	}
	defer r.shut()
	var empty, full []time.Duration
	for range 7 {
		os.RemoveAll(filepath.Join(r.dir, "data"))
		d, err := r.start(ctx)
		if err != nil {
			return nil, err
		}
		empty = append(empty, d)
		r.stop()
	}
	if err := fill(ctx, filepath.Join(r.dir, "data", "deerbot.db"), o.Threads); err != nil {
		return nil, err
	}
	for range 7 {
		d, err := r.start(ctx)
		if err != nil {
			return nil, err
		}
		full = append(full, d)
		r.stop()
	}
	return []Figure{
		{Name: "start to ready, empty store, median", Value: ms(percentile(empty, 0.5)), Unit: "ms", Bound: "< 60"},
		{Name: fmt.Sprintf("start to ready, %d threads, median", o.Threads), Value: ms(percentile(full, 0.5)), Unit: "ms", Bound: "< 150"},
	}, nil
}

func latency(ctx context.Context, o Options) ([]Figure, error) {
	var mu sync.Mutex
	var asked, answered time.Time
	r, err := newRig(o, telegram.Options{}, func(*script.Request) script.Script {
		mu.Lock()
		defer mu.Unlock()
		asked = time.Now()
		return script.Text("an answer")
	})
	if err != nil {
		return nil, err
	}
	defer r.shut()
	if _, err := r.start(ctx); err != nil {
		return nil, err
	}
	var (
		u       *telegram.User
		dm      *telegram.Chat
		in, out []time.Duration
	)
	for i := range o.Turns + 20 {
		if i%10 == 0 { // a conversation's length is not what is measured
			u = r.tg.Person(fmt.Sprint("Bench ", i), "")
			dm = r.tg.DM(u)
		}
		said := time.Now()
		m := dm.Say(u, fmt.Sprintf("message %d", i))
		if _, err := dm.Await(ctx, m.ID, func(m telegram.Message) bool { return m.Bot }); err != nil {
			return nil, err
		}
		seen := time.Now()
		mu.Lock()
		answered = asked
		mu.Unlock()
		if i >= 20 { // the first ones warm up
			in = append(in, answered.Sub(said))
			out = append(out, seen.Sub(answered))
		}
	}
	return []Figure{
		{Name: "inbound event to model request, p50", Value: ms(percentile(in, 0.5)), Unit: "ms", Bound: "< 2.5"},
		{Name: "inbound event to model request, p99", Value: ms(percentile(in, 0.99)), Unit: "ms", Bound: "< 15"},
		{Name: "model request to answer on the wire, p50", Value: ms(percentile(out, 0.5)), Unit: "ms", Bound: "< 2.5"},
		{Name: "model request to answer on the wire, p99", Value: ms(percentile(out, 0.99)), Unit: "ms", Bound: "< 15"},
	}, nil
}

func throughput(ctx context.Context, o Options) ([]Figure, error) {
	r, err := newRig(o, telegram.Options{CallLog: -1}, func(*script.Request) script.Script { return script.Text("an answer") })
	if err != nil {
		return nil, err
	}
	defer r.shut()
	if _, err := r.start(ctx); err != nil {
		return nil, err
	}
	run := func(chats, turns int, label string) ([]Figure, error) {
		before, began := r.cpu(), time.Now()
		var wg sync.WaitGroup
		errs := make(chan error, chats)
		for i := range chats {
			u := r.tg.Person(fmt.Sprintf("%s %d", label, i), "")
			dm := r.tg.DM(u)
			wg.Go(func() {
				for n := range turns {
					m := dm.Say(u, fmt.Sprintf("message %d", n))
					if _, err := dm.Await(ctx, m.ID, func(m telegram.Message) bool { return m.Bot }); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		wg.Wait()
		took := time.Since(began)
		select {
		case err := <-errs:
			return nil, err
		default:
		}
		total := float64(chats * turns)
		return []Figure{
			{Name: label + ", turns a second", Value: total / took.Seconds(), Unit: "turns/s"},
			{Name: label + ", processor time a turn", Value: ms(r.cpu()-before) / total, Unit: "ms"},
		}, nil
	}
	if _, err := run(20, 5, "warm up"); err != nil {
		return nil, err
	}
	small, err := run(20, 5, "20 chats x 5")
	if err != nil {
		return nil, err
	}
	small[0].Bound = "> 500"
	big, err := run(o.Chats, o.PerChat, fmt.Sprintf("%d chats x %d", o.Chats, o.PerChat))
	if err != nil {
		return nil, err
	}
	big[0].Bound, big[1].Bound = "> 1000", "< 3"
	return append(small, big...), nil
}

func memory(ctx context.Context, o Options) ([]Figure, error) {
	r, err := newRig(o, telegram.Options{CallLog: -1}, func(*script.Request) script.Script {
		return script.Text(strings.Repeat("Some words of an answer. ", 40))
	})
	if err != nil {
		return nil, err
	}
	defer r.shut()
	if _, err := r.start(ctx); err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second)
	idle := r.rss()
	var wg sync.WaitGroup
	sem := make(chan struct{}, 50)
	errs := make(chan error, o.Live)
	for i := range o.Live {
		u := r.tg.Person(fmt.Sprintf("Live %d", i), "")
		dm := r.tg.DM(u)
		sem <- struct{}{}
		wg.Go(func() {
			defer func() { <-sem }()
			for n := range 3 {
				m := dm.Say(u, fmt.Sprintf("message %d", n))
				if _, err := dm.Await(ctx, m.ID, func(m telegram.Message) bool { return m.Bot }); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return nil, err
	default:
	}
	return []Figure{
		{Name: "resident, idle", Value: idle, Unit: "MB", Bound: "< 35"},
		{Name: fmt.Sprintf("resident, after %d conversations of 3 turns", o.Live), Value: r.rss(), Unit: "MB", Bound: "< 120"},
	}, nil
}

// staleness streams 60 tokens a second into one private chat under Telegram's published limits and measures how old the
// visible text is, averaged over time. With one edit a second nothing can be fresher than half a second on average.
func staleness(ctx context.Context, o Options) ([]Figure, error) {
	const perSecond = 60
	tokens := int(o.Stream.Seconds() * perSecond)
	var text strings.Builder
	for i := range tokens {
		fmt.Fprintf(&text, "w%05d ", i) // seven characters a token
	}
	var began time.Time
	r, err := newRig(o, telegram.Options{Limits: telegram.RealLimits()}, func(*script.Request) script.Script {
		began = time.Now()
		return script.Script{Parts: []script.Part{{Text: text.String()}}, ChunkSize: 7, ChunkDelay: time.Second / perSecond}
	})
	if err != nil {
		return nil, err
	}
	defer r.shut()
	if _, err := r.start(ctx); err != nil {
		return nil, err
	}
	u := r.tg.Person("Bench", "bench")
	dm := r.tg.DM(u)
	m := dm.Say(u, "stream")
	var ended time.Time
	if err := r.tg.WaitFor(ctx, func() bool { n, _ := r.llm.Count(); return n > 0 }); err != nil {
		return nil, err
	}
	over := make(chan struct{})
	go func() { // ends with the model's answer
		defer close(over)
		r.llm.Wait()
		ended = time.Now()
	}()
	if _, err := dm.Await(ctx, m.ID, func(m telegram.Message) bool {
		return m.Bot && strings.Contains(m.Text, fmt.Sprintf("w%05d", tokens-1))
	}); err != nil {
		return nil, err
	}
	// The model's timers run late by a little each: a token was made when its share of the true length had passed.
	<-over
	length := ended.Sub(began)
	word := regexp.MustCompile(`w(\d{5})`)
	var last time.Time
	shown := -1
	var area, span float64
	for _, c := range r.tg.Calls("", dm.ID()) {
		if c.Code != 200 || (c.Method != "sendMessage" && c.Method != "editMessageText") {
			continue
		}
		if c.At.After(ended) {
			break // all is said: nothing can be stale any more
		}
		if shown >= 0 {
			// Age of the text shown from last until now: it grows from a to b.
			made := began.Add(time.Duration(float64(length) * float64(shown+1) / float64(tokens)))
			a, b := last.Sub(made).Seconds(), c.At.Sub(made).Seconds()
			area += (a + b) / 2 * c.At.Sub(last).Seconds()
			span += c.At.Sub(last).Seconds()
		}
		for _, w := range word.FindAllStringSubmatch(c.Params["text"], -1) {
			if n, err := strconv.Atoi(w[1]); err == nil {
				shown = max(shown, n)
			}
		}
		last = c.At
	}
	return []Figure{
		{Name: "mean age of visible text, one edit a second", Value: 1000 * area / span, Unit: "ms", Bound: "< 650 (1.3 x 500)"},
		{Name: "calls refused for rate", Value: float64(r.tg.Counts()["429"]), Unit: "calls", Bound: "0"},
	}, nil
}
