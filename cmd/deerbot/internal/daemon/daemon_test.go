package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"deerbot/config"
	"deerbot/internal/wire/openai"
	"deerbot/internal/wire/script"
	"deerbot/internal/wire/telegram"
)

// rig runs the true daemon in this process, between wire servers.
func rig(tb testing.TB, respond script.Responder) (*telegram.Server, *Daemon) {
	tb.Helper()
	tg := telegram.New(telegram.Options{CallLog: -1})
	llm := &openai.Server{Respond: respond}
	llm.Keep = -1
	tgs, llms := httptest.NewServer(tg), httptest.NewServer(llm)
	dir := tb.TempDir()
	file := filepath.Join(dir, "config.yaml")
	conf := fmt.Sprintf(`data_dir: %s
server: {listen: "127.0.0.1:0"}
models: [{name: main, provider: openai, model: wire, base_url: %q, api_key: sk-test}]
channels: {telegram: {token: %q, api_url: %q}}
limits: {inbound_per_minute: 1000000}
`, filepath.Join(dir, "data"), llms.URL+"/v1", tg.Token(), tgs.URL)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		tb.Fatal(err)
	}
	load := config.LoadOptions{Path: file}
	cfg, err := config.Load(load)
	if err != nil {
		tb.Fatal(err)
	}
	up := make(chan string, 1)
	d, err := New(context.Background(), cfg, Options{Version: "test", Load: load, Ready: func(url string) { up <- url }})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	tb.Cleanup(func() {
		stop()
		tg.Cut()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		tgs.CloseClientConnections()
		llms.CloseClientConnections()
		tgs.Close()
		llms.Close()
	})
	select {
	case <-up:
	case err := <-done:
		done <- err
		tb.Fatal(err)
	}
	return tg, d
}

// The daemon starts, is ready, answers, and stops with nothing left behind.
func TestStartAnswerStop(t *testing.T) {
	tg, d := rig(t, func(r *script.Request) script.Script { return script.Text("re: " + r.LastUser()) })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	u := tg.Person("Ann", "ann")
	dm := tg.DM(u)
	said := dm.Say(u, "hello")
	if _, err := dm.Await(ctx, said.ID, func(m telegram.Message) bool { return m.Bot && m.Text == "re: hello" }); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL()+"readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("readyz: %s", res.Status)
	}
}

// BenchmarkTurns measures whole turns of 200 chats at once, both wire servers included.
func BenchmarkTurns(b *testing.B) {
	tg, _ := rig(b, func(*script.Request) script.Script { return script.Text("an answer") })
	const chats = 200
	type pair struct {
		u  *telegram.User
		dm *telegram.Chat
	}
	var ps []pair
	for i := range chats {
		u := tg.Person(fmt.Sprint("User ", i), "")
		ps = append(ps, pair{u, tg.DM(u)})
	}
	ctx := context.Background()
	work := make(chan int)
	var wg sync.WaitGroup
	b.ResetTimer()
	for _, p := range ps {
		wg.Go(func() {
			for n := range work {
				m := p.dm.Say(p.u, fmt.Sprint("message ", n))
				if _, err := p.dm.Await(ctx, m.ID, func(m telegram.Message) bool { return m.Bot }); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	for i := range b.N {
		work <- i
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}
