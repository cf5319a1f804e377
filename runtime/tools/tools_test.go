package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deerbot/runtime/sandbox"
)

// rig is a set of the built-in tools over a fresh tree.
type rig struct {
	t    *testing.T
	set  *Set
	env  *Env
	host string // of /mnt/user-data
}

func newRig(t *testing.T) *rig {
	t.Helper()
	host := filepath.Join(t.TempDir(), "thread")
	files, err := sandbox.Open(host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	list, err := Builtin(BuiltinConfig{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := NewSet(list...)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, set: set, env: &Env{RunID: "r", ThreadID: "t", Files: files}, host: host}
}

// call runs a tool the way the runtime does.
func (r *rig) call(name string, args any) (Result, error) {
	r.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	checked, err := r.set.Check(name, raw)
	if err != nil {
		return Result{}, err
	}
	tool, _ := r.set.Get(name)
	if line := tool.Spec().Line(checked); len([]rune(line)) > 120 || strings.Contains(line, "\n") {
		r.t.Errorf("%s: bad line %q", name, line)
	}
	return tool.Call(r.t.Context(), r.env, checked)
}

type m = map[string]any

// ok calls a tool that must succeed and returns its content.
func (r *rig) ok(name string, args any) string {
	r.t.Helper()
	res, err := r.call(name, args)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	return res.Content
}

// fails calls a tool that must fail and whose error must say all of want.
func (r *rig) fails(name string, args any, want ...string) {
	r.t.Helper()
	_, err := r.call(name, args)
	if err == nil {
		r.t.Fatalf("%s %v: no error", name, args)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			r.t.Errorf("%s: error %q does not say %q", name, err, w)
		}
	}
	if strings.Contains(err.Error(), r.host) {
		r.t.Errorf("%s: error tells the host's path: %v", name, err)
	}
}

func (r *rig) file(p, text string) {
	r.t.Helper()
	if err := r.env.Files.WriteFile(p, []byte(text)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) text(p string) string {
	r.t.Helper()
	b, err := r.env.Files.ReadFile(p, 1<<20)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

const ws, outs = sandbox.Workspace, sandbox.Outputs

func TestBuiltinSpecs(t *testing.T) {
	r := newRig(t)
	for _, s := range r.set.Specs() {
		if s.Description == "" || strings.Contains(s.Description, "\n") || s.Timeout == 0 || s.Line == nil {
			t.Errorf("%s: incomplete spec", s.Name)
		}
		var schema struct {
			Type       string
			Properties map[string]struct{ Description, Type string }
			Additional *bool `json:"additionalProperties"`
		}
		if err := json.Unmarshal(s.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		if schema.Type != "object" || schema.Additional == nil || *schema.Additional {
			t.Errorf("%s: schema %s", s.Name, s.Schema)
		}
		for name, p := range schema.Properties {
			if p.Description == "" || p.Type == "" {
				t.Errorf("%s: argument %s is not described", s.Name, name)
			}
		}
		for _, bad := range []string{"", "null", "[]", `{"path":3}`} {
			if line := s.Line(json.RawMessage(bad)); len(line) > 120 {
				t.Errorf("%s: line of %q is %q", s.Name, bad, line)
			}
		}
	}
}

func TestCancelledCall(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tool, _ := r.set.Get("ls")
	if _, err := tool.Call(ctx, r.env, json.RawMessage(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestC207SymlinkInWorkspace(t *testing.T) {
	r := newRig(t)
	r.file(ws+"/a.txt", "a")
	r.file(ws+"/sub/b.txt", "b")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "id_ed25519"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"escape": "/", "link": outside, "in": "sub"} {
		if err := os.Symlink(target, filepath.Join(r.host, "workspace", link)); err != nil {
			t.Fatal(err)
		}
	}
	evil := filepath.Join(outside, "evil")
	r.fails("write_file", m{"path": ws + "/escape" + evil, "content": "x"}, "leads out")
	r.fails("write_file", m{"path": ws + "/link/evil", "content": "x"}, "leads out")
	r.fails("read_file", m{"path": ws + "/link/id_ed25519"}, "leads out")
	r.fails("str_replace", m{"path": ws + "/link/id_ed25519", "old_str": "s", "new_str": "x"}, "leads out")
	r.fails("ls", m{"path": ws + "/link"}, "leads out")
	r.fails("grep", m{"pattern": "s", "path": ws + "/link"}, "leads out")
	r.fails("glob", m{"pattern": "*", "path": ws + "/escape"}, "leads out")
	if _, err := os.Stat(evil); err == nil {
		t.Error("a file was created outside")
	}
	if got := r.ok("grep", m{"pattern": "secret"}); !strings.HasPrefix(got, "no line") {
		t.Errorf("grep went through a link: %s", got)
	}
	if got := r.ok("read_file", m{"path": ws + "/in/b.txt"}); !strings.HasSuffix(got, "\nb") {
		t.Errorf("through a link inside: %q", got)
	}
}
