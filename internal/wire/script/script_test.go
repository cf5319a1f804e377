package script

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func said(text string) *Request {
	return &Request{N: 3, Messages: []Message{{Role: "user", Text: text}}}
}

func TestDefault(t *testing.T) {
	for text, want := range map[string]Script{
		"hello": Text("You said: hello"),
		"!text Hi.\n!tool write_file {\"path\": \"a b\"}\n!tool ls": {Parts: []Part{
			{Text: "Hi."}, {Call: &Call{ID: "call_3_1", Name: "write_file", Arguments: `{"path": "a b"}`}}, {Call: &Call{ID: "call_3_2", Name: "ls", Arguments: "{}"}},
		}},
		"please\n!error 429 slow down": {Error: &Error{Status: 429, Message: "slow down"}},
		"!fail overloaded_error busy":  {StreamError: &Error{Type: "overloaded_error", Message: "busy"}},
		"!delay 20ms\n!finish length":  {ChunkDelay: 20 * time.Millisecond, ChunkSize: 8, Finish: "length"},
		"!cut 40":                      {CutAfter: 40},
		"!stall 40":                    {StallAfter: 40},
	} {
		if diff := cmp.Diff(want, Default(said(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	r := said("!tool ls")
	r.NoTools = true
	if got := Default(r); got.Calls() != 0 {
		t.Errorf("calls with tool_choice none: %+v", got)
	}
	r = said("!tool ls")
	r.Messages = append(r.Messages, Message{Role: "tool", Results: []Result{{Text: "one\ntwo"}}}, Message{Role: "tool", Results: []Result{{Text: "no", IsError: true}}})
	if got := Default(r).Parts[0].Text; got != "The tools answered:\n- ok: one two\n- error: no\n" {
		t.Errorf("after results: %q", got)
	}
}

func TestPieces(t *testing.T) {
	for size, want := range map[int][]string{0: {"añ世界"}, 1: {"a", "ñ", "世", "界"}, 3: {"añ世", "界"}, 4: {"añ世界"}, 9: {"añ世界"}} {
		if diff := cmp.Diff(want, Script{ChunkSize: size}.Pieces("añ世界")); diff != "" {
			t.Errorf("size %d:\n%s", size, diff)
		}
	}
}

func TestRecorderKeepsTheLast(t *testing.T) {
	rec := &Recorder{Keep: 3}
	for range 20 {
		rec.Add(&Request{})
	}
	if got := rec.Requests(); rec.Last().N != 20 || len(got) < 3 || len(got) > 6 {
		t.Errorf("last %d, kept %d", rec.Last().N, len(got))
	}
	if n, _ := rec.Count(); n != 20 {
		t.Errorf("count %d", n)
	}
}

// TestFaults checks cut and stall to the byte.
func TestFaults(t *testing.T) {
	serve := func(s Script) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("")).WithContext(t.Context())
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
					panic(p)
				}
			}()
			out := NewWriter(w, r, &s)
			defer out.Close()
			out.Event("t", []byte("0123456789"))
			out.Event("", []byte("abcdefghij"))
		}()
		return w
	}
	const all = "event: t\ndata: 0123456789\n\ndata: abcdefghij\n\n"
	for n := 1; n < len(all); n++ {
		if got := serve(Script{CutAfter: n}).Body.String(); got != all[:n] {
			t.Errorf("cut after %d: %q", n, got)
		}
	}
	if got := serve(Script{CutAfter: -1}).Body.String(); got != "" {
		t.Errorf("cut at once: %q", got)
	}
	if got := serve(Script{EOL: "\r\n", Comments: true}).Body.String(); !strings.HasPrefix(got, ": PROCESSING\r\n\r\nevent: t\r\ndata: 0123456789\r\n\r\n") {
		t.Errorf("CRLF: %q", got)
	}
}
