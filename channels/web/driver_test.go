package web_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// browserTab is a page in a headless Chromium of its own, driven over the DevTools protocol on a pipe. Calls that fail end
// the test.
type browserTab struct {
	t       testing.TB
	w       *os.File
	answers chan answer
	session string
	last    int
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// openBrowser starts a browser; it skips the test when none is installed or none can start here.
func openBrowser(t testing.TB, width, height int) *browserTab {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no chromium on this machine")
	}
	toBrowser, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--lang=en", fmt.Sprintf("--window-size=%d,%d", width, height), "--user-data-dir="+t.TempDir(),
		"--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Skipf("chromium does not start here: %v", err)
	}
	_ = toBrowser.Close()
	_ = fromBrowser.Close()
	tab := &browserTab{t: t, w: w, answers: make(chan answer, 16)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(tab.answers)
		in := bufio.NewReader(r)
		for {
			msg, err := in.ReadBytes(0)
			if err != nil {
				return
			}
			var a answer
			if json.Unmarshal(msg[:len(msg)-1], &a) == nil && a.ID > 0 {
				tab.answers <- a
			}
		}
	}()
	t.Cleanup(func() {
		_, _ = tab.try("Browser.close", nil)
		_ = w.Close()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = r.Close()
		<-read
	})
	var target struct{ TargetID string }
	res, err := tab.try("Target.createTarget", map[string]any{"url": "about:blank"})
	if err != nil {
		t.Skipf("chromium does not work here: %v", err)
	}
	tab.decode(res, &target)
	var session struct{ SessionID string }
	tab.decode(tab.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &session)
	tab.session = session.SessionID
	return tab
}

func (b *browserTab) decode(raw json.RawMessage, v any) {
	b.t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		b.t.Fatalf("browser: %v in %.200s", err, raw)
	}
}

func (b *browserTab) call(method string, params any) json.RawMessage {
	b.t.Helper()
	res, err := b.try(method, params)
	if err != nil {
		b.t.Fatalf("browser: %s: %v", method, err)
	}
	return res
}

func (b *browserTab) try(method string, params any) (json.RawMessage, error) {
	b.last++
	req := map[string]any{"id": b.last, "method": method}
	if params != nil {
		req["params"] = params
	}
	if b.session != "" && method != "Browser.close" {
		req["sessionId"] = b.session
	}
	data, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	if _, err := b.w.Write(append(data, 0)); err != nil {
		return nil, err
	}
	timeout := time.After(20 * time.Second)
	for {
		select {
		case a, ok := <-b.answers:
			switch {
			case !ok:
				return nil, errors.New("the browser is gone")
			case a.ID != b.last:
			case a.Error != nil:
				return nil, errors.New(a.Error.Message)
			default:
				return a.Result, nil
			}
		case <-timeout:
			return nil, errors.New("no answer")
		}
	}
}

// visit opens an address.
func (b *browserTab) visit(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url})
}

// eval runs an expression and returns its JSON value.
func (b *browserTab) eval(expr string) string {
	b.t.Helper()
	var out struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Text string }
	}
	b.decode(b.call("Runtime.evaluate", map[string]any{"expression": expr, "returnByValue": true, "awaitPromise": true}), &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("browser: %s: %s", expr, out.ExceptionDetails.Text)
	}
	return string(out.Result.Value)
}

// until waits until the expression is true.
func (b *browserTab) until(expr string) {
	b.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for b.eval("Boolean("+expr+")") != "true" {
		if time.Now().After(deadline) {
			b.t.Fatalf("browser: %s did not become true; the page reads:\n%s", expr, b.eval("document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond) // another process, there is nothing to wait on
	}
}

// typeText writes text into the element in focus, as from a keyboard.
func (b *browserTab) typeText(text string) {
	b.t.Helper()
	b.call("Input.insertText", map[string]any{"text": text})
}

// key presses a key: Enter, Escape, ArrowDown, Tab.
func (b *browserTab) key(name string, shift bool) {
	b.t.Helper()
	code := map[string]int{"Enter": 13, "Escape": 27, "ArrowDown": 40, "Tab": 9}[name]
	ev := map[string]any{"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": code}
	if name == "Enter" {
		ev["text"] = "\r"
	}
	if shift {
		ev["modifiers"] = 8
	}
	b.call("Input.dispatchKeyEvent", ev)
	ev["type"] = "keyUp"
	b.call("Input.dispatchKeyEvent", ev)
}
