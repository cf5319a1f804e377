package middleware

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deerbot/runtime/middleware/middlewaretest"
	"deerbot/runtime/model"
)

// line writes messages in short form: u "text", a "text" call(id name args), t id=content or id!content for an error.
func line(ms []model.Message) string {
	var out []string
	for _, m := range ms {
		s := string(m.Role[:1])
		for _, p := range m.Parts {
			switch {
			case p.Kind == model.PartText:
				s += fmt.Sprintf(" %q", p.Text)
			case p.Call != nil:
				s += fmt.Sprintf(" call(%s %s %s)", p.Call.ID, p.Call.Name, p.Call.Arguments)
			case p.Result != nil && p.Result.IsError:
				s += fmt.Sprintf(" %s!%.9s", p.Result.CallID, p.Result.Content)
			case p.Result != nil:
				s += fmt.Sprintf(" %s=%s", p.Result.CallID, p.Result.Content)
			default:
				s += " " + string(p.Kind)
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

func u(text string) model.Message { return model.Text("", model.RoleUser, text) }

// a makes an assistant message of calls, each "id name" or "id name args".
func a(id string, calls ...string) model.Message {
	m := model.Message{ID: id, Role: model.RoleAssistant}
	for _, c := range calls {
		f := append(strings.SplitN(c, " ", 3), "{}")
		m.Parts = append(m.Parts, model.Part{Kind: model.PartToolCall, Call: &model.ToolCall{ID: f[0], Name: f[1], Arguments: json.RawMessage(f[2])}})
	}
	return m
}

// r makes a tool message of results, each "id name content".
func r(results ...string) model.Message {
	m := model.Message{Role: model.RoleTool}
	for _, c := range results {
		f := strings.SplitN(c, " ", 3)
		m.Parts = append(m.Parts, resultPart(f[0], f[1], f[2]))
	}
	return m
}

func TestRepair(t *testing.T) {
	// Synthetic ids are hashes of message and place.
	id := func(msg string, k int) string {
		m := model.Message{ID: msg}
		return (&turns{ms: []model.Message{m}}).syntheticID(0, k)
	}
	for _, tc := range []struct {
		name string
		in   []model.Message
		want string
	}{
		{
			"missing result in the middle (C118)",
			[]model.Message{u("go"), a("x", "1 ls", "2 ls"), r("1 ls ok"), u("on")},
			"u \"go\"\na call(1 ls {}) call(2 ls {})\nt 1=ok 2!no result\nu \"on\"",
		},
		{
			"no results at the end (C117)",
			[]model.Message{u("go"), a("x", "1 ls")},
			"u \"go\"\na call(1 ls {})\nt 1!no result",
		},
		{
			"orphans",
			[]model.Message{u("go"), r("9 ls lost"), a("x", "1 ls"), r("1 ls ok", "8 ls lost")},
			"u \"go\"\na call(1 ls {})\nt 1=ok",
		},
		{
			"duplicates",
			[]model.Message{u("go"), a("x", "1 ls"), r("1 ls first"), r("1 ls second")},
			"u \"go\"\na call(1 ls {})\nt 1=first",
		},
		{
			"out of order and late",
			[]model.Message{u("go"), a("x", "1 ls", "2 rm"), u("wait"), r("2 rm two"), r("1 ls one")},
			"u \"go\"\na call(1 ls {}) call(2 rm {})\nt 1=one 2=two\nu \"wait\"",
		},
		{
			"id used again later",
			[]model.Message{u("go"), a("x", "0 ls"), r("0 ls one"), a("y", "0 ls"), r("0 ls two")},
			"u \"go\"\na call(0 ls {})\nt 0=one\na call(" + id("y", 0) + " ls {})\nt " + id("y", 0) + "=two",
		},
		{
			"id used again, the first call is open",
			[]model.Message{u("go"), a("x", "0 ls"), u("on"), a("y", "0 ls"), r("0 ls two")},
			"u \"go\"\na call(0 ls {})\nt 0!no result\nu \"on\"\na call(" + id("y", 0) + " ls {})\nt " + id("y", 0) + "=two",
		},
		{
			"same id twice in one message",
			[]model.Message{u("go"), a("x", "0 ls", "0 ls"), r("0 ls one", "0 ls two")},
			"u \"go\"\na call(0 ls {}) call(" + id("x", 1) + " ls {})\nt 0=one " + id("x", 1) + "=two",
		},
		{
			"no ids, by name",
			[]model.Message{u("go"), a("x", " ls", " rm"), r(" rm two", " ls one")},
			"u \"go\"\na call(" + id("x", 0) + " ls {}) call(" + id("x", 1) + " rm {})\nt " + id("x", 0) + "=one " + id("x", 1) + "=two",
		},
		{
			"no ids, not to be told apart",
			[]model.Message{u("go"), a("x", " ls", " ls"), r(" ls which?")},
			"u \"go\"\na call(" + id("x", 0) + " ls {}) call(" + id("x", 1) + " ls {})\nt " + id("x", 0) + "!no result " + id("x", 1) + "!no result",
		},
		{
			"no ids, no names, all there",
			[]model.Message{u("go"), a("x", " ls", " rm"), r("  one", "  two")},
			"u \"go\"\na call(" + id("x", 0) + " ls {}) call(" + id("x", 1) + " rm {})\nt " + id("x", 0) + "=one " + id("x", 1) + "=two",
		},
		{
			"no ids, no names, one missing",
			[]model.Message{u("go"), a("x", " ls", " rm"), r("  one")},
			"u \"go\"\na call(" + id("x", 0) + " ls {}) call(" + id("x", 1) + " rm {})\nt " + id("x", 0) + "!no result " + id("x", 1) + "!no result",
		},
		{
			"names (C154)",
			[]model.Message{u("go"), a("x", "1 ", "2 functions.ls", "3 工具"), r("1  no", "2 functions.ls no", "3 工具 no")},
			"u \"go\"\na call(1 unknown_tool {}) call(2 functions_ls {}) call(3 unknown_tool {})\nt 1=no 2=no 3=no",
		},
		{
			"arguments (C137)",
			[]model.Message{u("go"), a("x", `1 ls {"q": "unter`, `2 ls [1]`, `3 ls {"n":1}`), r("1 ls a", "2 ls b", "3 ls c")},
			"u \"go\"\na call(1 ls {}) call(2 ls {}) call(3 ls {\"n\":1})\nt 1=a 2=b 3=c",
		},
		{
			"starts in the middle",
			[]model.Message{r("1 ls lost"), a("x", "2 ls"), r("2 ls ok"), u("go"), u("on")},
			"u \"go\"\nu \"on\"",
		},
		{"no user at all", []model.Message{a("x", "1 ls"), r("1 ls ok")}, "u \"Go on.\"\na call(1 ls {})\nt 1=ok"},
		{
			"empty messages",
			[]model.Message{u("go"), {Role: model.RoleAssistant}, u(" "), model.Text("", model.RoleAssistant, "\n"), u("on")},
			"u \"go\"\nu \"on\"",
		},
		{"nothing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := repair(tc.in)
			if diff := cmp.Diff(tc.want, line(got)); diff != "" {
				t.Error(diff)
			}
			if err := middlewaretest.Strict(&model.Request{Messages: got}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRepairSaysWhyNotCarriedOut(t *testing.T) {
	m := a("x", "1 write_file")
	m.Parts[0].Call.Malformed = `{"content":"lon`
	got := repair([]model.Message{u("go"), m})
	if res := got[2].Parts[0].Result; !strings.Contains(res.Content, "several calls") {
		t.Errorf("got %+v", res)
	}
}

func TestPicturesStayWithTheirResults(t *testing.T) {
	m := r("1 view ok")
	m.Parts = append(m.Parts, model.Part{Kind: model.PartImage, Image: &model.Image{}})
	got := repair([]model.Message{u("go"), a("x", "1 view", "2 ls"), m})
	if diff := cmp.Diff("u \"go\"\na call(1 view {}) call(2 ls {})\nt 1=ok 2!no result image", line(got)); diff != "" {
		t.Error(diff)
	}
}

func TestCoalescing(t *testing.T) {
	s := func(text string) model.Message { return model.Text("s", model.RoleSystem, text) }
	for _, tc := range []struct {
		name string
		in   []model.Message
		want string
	}{
		{"one", []model.Message{s("a "), u("go")}, "s \"a \"\nu \"go\""},
		{"none", []model.Message{u("go")}, "u \"go\""},
		{"two", []model.Message{s("a"), u("go"), s("b"), s("a"), u("on")}, "s \"a\\n\\nb\"\nu \"go\"\nu \"on\""},
		{"late", []model.Message{u("go"), s("a")}, "s \"a\"\nu \"go\""},
		{"blank", []model.Message{s(" "), u("go")}, "u \"go\""},
	} {
		req := &model.Request{Messages: tc.in}
		if err := (SystemCoalescing{}).BeforeModel(t.Context(), nil, req); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, line(req.Messages)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}
