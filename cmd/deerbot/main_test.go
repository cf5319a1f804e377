package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// asMain makes this test binary behave as deerbot: the signal test starts itself.
const asMain = "DEERBOT_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"deerbot": main})
}

// TestScripts runs the command line as a person would; testdata/script reads as documentation.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// Nothing of the developer's own environment may decide a test.
			for _, kv := range os.Environ() {
				name, _, _ := strings.Cut(kv, "=")
				for _, prefix := range []string{"DEERBOT_", "OPENAI_", "ANTHROPIC_", "TELEGRAM_", "SLACK_", "DISCORD_", "LARK_"} {
					if strings.HasPrefix(name, prefix) {
						env.Setenv(name, "")
					}
				}
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": exitStatus},
	})
}

// exitStatus runs a command and wants the exit code it is given: status 2 deerbot --nonsense.
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status code command…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		got = strings.TrimPrefix(ee.String(), "exit status ")
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// TestRunUntilSignal starts the daemon with nothing configured and stops it with each signal.
func TestRunUntilSignal(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("server: {listen: 127.0.0.1:0}\nmodels:\n- {name: r, provider: rehearsal}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, exe)
			cmd.Dir, cmd.Env = dir, []string{asMain + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + dir}
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stdout strings.Builder
			cmd.Stdout = &stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(log)
			up := regexp.MustCompile(`deerbot is up.* web=http://127\.0\.0\.1:[0-9]+`)
			var seen []string
			for lines.Scan() {
				seen = append(seen, lines.Text())
				if up.MatchString(lines.Text()) {
					if err := cmd.Process.Signal(sig); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := cmd.Wait(); err != nil || stdout.String() != "" {
				t.Errorf("exit %v, stdout %q, log:\n%s", err, stdout.String(), strings.Join(seen, "\n"))
			}
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	signals := make(chan os.Signal, 2)
	ended := make(chan struct{})
	ctx, stop := untilSignal(t.Context(), signals, func() { close(ended) })
	defer stop()
	signals <- os.Interrupt
	<-ctx.Done()
	select {
	case <-ended:
		t.Fatal("the first signal ended the process")
	default:
	}
	signals <- syscall.SIGTERM
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the second signal did not end the process")
	}

	// Without a signal, stopping leaves nothing behind.
	ctx, stop = untilSignal(t.Context(), make(chan os.Signal), func() { t.Error("ended by itself") })
	stop()
	<-ctx.Done()
}

func TestLogger(t *testing.T) {
	var b strings.Builder
	level := new(slog.LevelVar)
	for format, want := range map[string]string{"text": "level=INFO msg=x", "json": `"level":"INFO","msg":"x"`} {
		b.Reset()
		log := logger(format, level, &b)
		level.Set(slog.LevelWarn)
		log.Info("hidden")
		level.Set(slog.LevelInfo)
		log.Info("x")
		if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "hidden") {
			t.Errorf("%s: %s", format, b.String())
		}
	}
}

// brokenPipe fails every write.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestFailedWriteIsAFailure(t *testing.T) {
	var stderr strings.Builder
	if got := run([]string{"config", "schema"}, brokenPipe{}, &stderr); got != exitFailed || stderr.Len() == 0 {
		t.Errorf("exit %d, %q", got, stderr.String())
	}
}
