package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/middleware"
	"deerbot/runtime/middleware/middlewaretest"
	"deerbot/runtime/model"
	"deerbot/runtime/sandbox"
	"deerbot/runtime/stream"
	"deerbot/runtime/thread"
	"deerbot/runtime/tools"
	"deerbot/store"
	"deerbot/store/boltstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second // for what must happen; reaching it is a failure

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// failer is a test, or a rapid one.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// play is a scripted model. It is called for each model call, sees the request and streams by say.
type play func(ctx context.Context, req *model.Request, say func(string)) (*model.Response, error)

// actor is the model of one run. It refuses requests that a strict provider would.
type actor struct {
	t    failer
	play play
}

func (a *actor) Info() model.Info {
	return model.Info{Name: "m", Provider: "openai", Model: "x", ContextWindow: 100_000}
}

func (a *actor) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if err := middlewaretest.Strict(req); err != nil {
			a.t.Errorf("a strict provider refuses the request: %v", err)
		}
		open := true
		resp, err := a.play(ctx, req, func(text string) {
			open = open && yield(model.Chunk{Kind: model.ChunkText, Text: text}, nil)
		})
		switch {
		case !open:
		case err != nil:
			yield(model.Chunk{}, err)
		default:
			yield(model.Chunk{Kind: model.ChunkDone, Response: resp}, nil)
		}
	}
}

func fault(c model.Class) error {
	return &model.Error{Class: c, Provider: "openai", Model: "x", Message: "provider words"}
}

func answer(text string) *model.Response {
	return &model.Response{
		Message: model.Text("", model.RoleAssistant, text), Finish: model.FinishStop,
		Usage: model.Usage{InputTokens: 10, OutputTokens: 5},
	}
}

func ask(names ...string) *model.Response {
	res := &model.Response{Message: model.Message{Role: model.RoleAssistant}, Finish: model.FinishTools}
	for _, n := range names {
		res.Message.Parts = append(res.Message.Parts, model.Part{Kind: model.PartToolCall, Call: &model.ToolCall{
			ID: "call_" + newID(), Name: n, Arguments: json.RawMessage(`{}`),
		}})
	}
	return res
}

// says answers at once.
func says(text string) play {
	return func(_ context.Context, _ *model.Request, say func(string)) (*model.Response, error) {
		say(text)
		return answer(text), nil
	}
}

// calls asks for the tools once, then answers.
func calls(text string, names ...string) play {
	return func(_ context.Context, req *model.Request, say func(string)) (*model.Response, error) {
		if req.Messages[len(req.Messages)-1].Role != model.RoleTool {
			return ask(names...), nil
		}
		say(text)
		return answer(text), nil
	}
}

// hold is a place where something waits until the test lets it go.
type hold struct {
	reached chan struct{}
	leave   chan struct{}
	once    sync.Once
	free    sync.Once
}

func newHold() *hold { return &hold{reached: make(chan struct{}), leave: make(chan struct{})} }

func (h *hold) wait(ctx context.Context) error {
	h.once.Do(func() { close(h.reached) })
	select {
	case <-h.leave:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hold) release() { h.free.Do(func() { close(h.leave) }) }

func (h *hold) await(t failer) {
	t.Helper()
	select {
	case <-h.reached:
	case <-time.After(patience):
		t.Fatalf("nothing came to the hold")
	}
}

// waits is a model that shows some text, then waits at h, then answers.
func waits(h *hold, text string) play {
	return func(ctx context.Context, _ *model.Request, say func(string)) (*model.Response, error) {
		say("partial ")
		if h.wait(ctx) != nil {
			return nil, fault(model.ClassCanceled)
		}
		say(text)
		return answer(text), nil
	}
}

// tool is a tool made of a function.
type tool struct {
	name string
	call func(ctx context.Context, env *tools.Env) (string, error)
}

func (t *tool) Spec() tools.Spec {
	return tools.Spec{Name: t.name, Description: "test", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}
}

func (t *tool) Call(ctx context.Context, env *tools.Env, _ json.RawMessage) (tools.Result, error) {
	out, err := t.call(ctx, env)
	return tools.Result{Content: out}, err
}

// faulty is a store whose methods can be made to fail or wait.
type faulty struct {
	Store
	mu sync.Mutex
	at func(op, run string) error // before each write
}

func (s *faulty) on(f func(op, run string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = f
}

func (s *faulty) before(op, run string) error {
	s.mu.Lock()
	f := s.at
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(op, run)
}

func (s *faulty) AdmitRun(ctx context.Context, r *store.Run, st store.Strategy) (store.Run, bool, error) {
	if err := s.before("admit", r.ID); err != nil {
		return store.Run{}, false, err
	}
	return s.Store.AdmitRun(ctx, r, st)
}

func (s *faulty) ClaimRun(ctx context.Context, id, owner string, until time.Time) (store.Run, error) {
	if err := s.before("claim", id); err != nil {
		return store.Run{}, err
	}
	return s.Store.ClaimRun(ctx, id, owner, until)
}

func (s *faulty) EndPending(ctx context.Context, id string, to store.RunState, stop []store.StopReason) error {
	if err := s.before("end pending", id); err != nil {
		return err
	}
	return s.Store.EndPending(ctx, id, to, stop)
}

func (s *faulty) RequestCancel(ctx context.Context, id, by string) error {
	if err := s.before("request cancel", id); err != nil {
		return err
	}
	return s.Store.RequestCancel(ctx, id, by)
}

func (s *faulty) WriteRun(ctx context.Context, w *store.RunWrite) error {
	op := "write"
	if w.To.Terminal() {
		op = "end"
	}
	if err := s.before(op, w.RunID); err != nil {
		return err
	}
	return s.Store.WriteRun(ctx, w)
}

func (s *faulty) Checkpoints(ctx context.Context, threadID, head string) ([]store.Checkpoint, error) {
	if err := s.before("load", threadID); err != nil {
		return nil, err
	}
	return s.Store.Checkpoints(ctx, threadID, head)
}

// world is a manager over a real store, with models by name.
type world struct {
	t    failer
	dir  string
	path string
	db   *boltstore.Store
	st   *faulty
	m    *Manager
	b    *stream.Memory

	mu    sync.Mutex
	plays map[string]play
	tools []tools.Tool
	grace time.Duration
	setup func(ctx context.Context, r store.Run) error
	slots int
	files bool
	ended bool
}

func newWorld(t testing.TB) *world {
	w := openWorld(t, t.TempDir())
	t.Cleanup(w.close)
	return w
}

// openWorld makes a world in dir, which may hold the store of an earlier one.
func openWorld(t failer, dir string) *world {
	t.Helper()
	w := &world{t: t, dir: dir, path: filepath.Join(dir, "deerbot.db"), plays: map[string]play{}, slots: 8}
	var err error
	if w.db, err = boltstore.Open(w.path, boltstore.Options{}); err != nil {
		t.Fatalf("open: %v", err)
	}
	w.start()
	return w
}

// start makes a manager over the open store, as a process does at its start.
func (w *world) start() {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("DEERBOT_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	chain, err := agent.NewChain(log, middleware.Default(middleware.Config{})...)
	if err != nil {
		w.t.Fatalf("chain: %v", err)
	}
	w.st, w.b = &faulty{Store: w.db}, stream.NewMemory(time.Now)
	w.m, err = New(Config{
		Store: w.st, Bridge: w.b, Loop: &agent.Loop{Chain: chain, Log: log}, Setup: w.prepare, Slots: w.slotCount,
		Owner: newID(), Now: time.Now, NewID: newID, Log: log,
	})
	if err != nil {
		w.t.Fatalf("manager: %v", err)
	}
}

func (w *world) slotCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots
}

func (w *world) prepare(ctx context.Context, r store.Run) (Setup, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.setup != nil {
		if err := w.setup(ctx, r); err != nil {
			return Setup{}, err
		}
	}
	p := w.plays[r.Model]
	if p == nil {
		p = says("ok")
	}
	set, err := tools.NewSet(w.tools...)
	if err != nil {
		return Setup{}, err
	}
	s := Setup{Model: &actor{t: w.t, play: p}, Tools: set, System: "You are a test.", Limits: agent.Limits{CancelGrace: w.grace}}
	if w.files {
		if s.Files, err = sandbox.Open(filepath.Join(w.dir, "files", r.ThreadID)); err != nil {
			return Setup{}, err
		}
	}
	return s, nil
}

func (w *world) model(name string, p play) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plays[name] = p
}

func (w *world) tool(name string, f func(ctx context.Context, env *tools.Env) (string, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tools = append(w.tools, &tool{name, f})
}

// close ends the manager as a clean stop does, and the store.
func (w *world) close() {
	if w.ended {
		return
	}
	w.ended = true
	w.suspend()
	if err := w.db.Close(); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// suspend stops the manager without waiting for steps.
func (w *world) suspend() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.m.Close(ctx)
}

// restart is a stop that suspends what runs, and a start.
func (w *world) restart() {
	w.t.Helper()
	w.close()
	db, err := boltstore.Open(w.path, boltstore.Options{})
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	w.db, w.ended = db, false
	w.start()
}

// crash is what kill -9 leaves: the file as it is on disk now. The old manager goes on elsewhere until the test ends.
func (w *world) crash() *world {
	w.t.Helper()
	// The store may be written meanwhile. What two readings agree on stood on the disk at one moment.
	var raw, again []byte
	for len(raw) == 0 || !bytes.Equal(raw, again) {
		var err error
		raw = again
		if again, err = os.ReadFile(w.path); err != nil {
			w.t.Fatalf("read: %v", err)
		}
	}
	dir, err := os.MkdirTemp(w.dir, "crash")
	if err != nil {
		w.t.Fatalf("mkdir: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "deerbot.db"), raw, 0o600); err != nil {
		w.t.Fatalf("write: %v", err)
	}
	n := openWorld(w.t, dir)
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.Copy(n.plays, w.plays)
	n.tools, n.slots, n.files, n.grace = w.tools, w.slots, w.files, w.grace
	if c, ok := w.t.(interface{ Cleanup(func()) }); ok {
		c.Cleanup(n.close)
	}
	return n
}

func (w *world) thread() string {
	w.t.Helper()
	id := newID()
	err := w.db.PutThread(context.Background(), &store.Thread{ID: id, CreatedAt: time.Now(), UpdatedAt: time.Now()})
	if err != nil {
		w.t.Fatalf("thread: %v", err)
	}
	return id
}

func request(threadID, mdl string) store.Run {
	id := newID()
	in, err := EncodeInput([]model.Message{model.Text("in-"+id, model.RoleUser, "do "+id)})
	if err != nil {
		panic(err)
	}
	return store.Run{ID: id, ThreadID: threadID, Origin: "test", Model: mdl, Input: in, CreatedAt: time.Now()}
}

func (w *world) admit(threadID, mdl string) store.Run {
	w.t.Helper()
	r, _, err := w.m.Admit(context.Background(), request(threadID, mdl), store.StrategyEnqueue)
	if err != nil {
		w.t.Fatalf("admit: %v", err)
	}
	return r
}

// follow reads a run's stream to the End.
func (w *world) follow(runID string) (out []event.Event) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for e, err := range w.b.Subscribe(ctx, runID, 0) {
		if err != nil {
			w.t.Fatalf("stream of run %s after %d events: %v", runID, len(out), err)
		}
		out = append(out, e)
	}
	return out
}

// until reads a run's stream to the first event that ok accepts.
func (w *world) until(runID string, ok func(event.Body) bool) event.Event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for e, err := range w.b.Subscribe(ctx, runID, 0) {
		if err != nil {
			w.t.Fatalf("stream of run %s: %v", runID, err)
		}
		if ok(e.Body) {
			return e
		}
	}
	w.t.Fatalf("the stream of run %s ended", runID)
	return event.Event{}
}

// end waits for a run's End and returns the record, whose state must be want.
func (w *world) end(runID string, want store.RunState) store.Run {
	w.t.Helper()
	es := w.follow(runID)
	if got := es[len(es)-1].Body; got != (event.End{State: want}) {
		w.t.Errorf("the stream of run %s ends with %+v, want %s", runID, got, want)
	}
	r := w.record(runID)
	if r.State != want {
		w.t.Errorf("run %s is %s (%s), want %s", runID, r.State, r.Error, want)
	}
	return r
}

func (w *world) record(runID string) store.Run {
	w.t.Helper()
	r, err := w.db.Run(context.Background(), runID)
	if err != nil {
		w.t.Fatalf("run %s: %v", runID, err)
	}
	return r
}

func (w *world) messages(threadID string) []model.Message {
	w.t.Helper()
	l, err := thread.Load(context.Background(), w.db, threadID, "")
	if err != nil {
		w.t.Fatalf("thread: %v", err)
	}
	return l.Messages()
}

// journal returns the events of a run that are on disk.
func (w *world) journal(runID string) (out []event.Event) {
	w.t.Helper()
	list, err := w.db.JournalEvents(context.Background(), runID, 0, 100_000)
	if err != nil {
		w.t.Fatalf("journal: %v", err)
	}
	for i, je := range list {
		if je.Seq != uint64(i+1) {
			w.t.Fatalf("journal event %d has sequence %d", i+1, je.Seq)
		}
		e, err := decode(je)
		if err != nil {
			w.t.Fatalf("journal: %v", err)
		}
		out = append(out, e)
	}
	return out
}

// sound checks a thread's history: ids are unique, every call is answered once and right after, nothing else.
func (w *world) sound(threadID string) {
	w.t.Helper()
	msgs := w.messages(threadID)
	ids := map[string]bool{}
	for i, m := range msgs {
		if ids[m.ID] || m.ID == "" {
			w.t.Errorf("message %d: id %q twice", i, m.ID)
		}
		ids[m.ID] = true
	}
	if err := middlewaretest.Strict(&model.Request{Messages: msgs}); err != nil {
		w.t.Errorf("history of thread %s: %v\n%s", threadID, err, dump(msgs))
	}
}

func dump(msgs []model.Message) string {
	var b strings.Builder
	for i, m := range msgs {
		fmt.Fprintf(&b, "%3d %s %s", i, m.Role, m.ID)
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				fmt.Fprintf(&b, " call(%s)", p.Call.ID)
			case p.Result != nil:
				fmt.Fprintf(&b, " result(%s: %s)", p.Result.CallID, p.Result.Content)
			default:
				fmt.Fprintf(&b, " %q", p.Text)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func kinds(es []event.Event) (out []string) {
	for _, e := range es {
		out = append(out, e.Body.Kind())
	}
	return out
}

func codes(stop []store.StopReason) (out []store.StopCode) {
	for _, s := range stop {
		out = append(out, s.Code)
	}
	return out
}

func is[B event.Body](b event.Body) bool { _, ok := b.(B); return ok }

func wantCodes(t failer, r store.Run, want ...store.StopCode) {
	t.Helper()
	if got := codes(r.Stop); !slices.Equal(got, want) {
		t.Errorf("run %s ended by %v, want %v", r.ID, got, want)
	}
}

var errDisk = errors.New("disk trouble")
