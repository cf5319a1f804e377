package features

import (
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"

	"deerbot/commands"
	"deerbot/runtime/agent"
	"deerbot/runtime/event"
	"deerbot/runtime/middleware"
	"deerbot/runtime/model"
	"deerbot/runtime/model/anthropic"
	"deerbot/runtime/model/openai"
	"deerbot/runtime/model/rehearsal"
	"deerbot/runtime/tools"
)

func commandTable(b *strings.Builder, _ dirs) error {
	b.WriteString("## Commands\n\nTyped with `/` or `!`, in any case.\n\n")
	var rows [][]string
	for _, c := range commands.Commands() {
		en, _ := c.Short.Texts()
		role := c.Role
		if role == "" {
			role = "everybody who is let in"
		}
		var also []string
		for _, a := range c.Aliases {
			also = append(also, code("/"+a))
		}
		rows = append(rows, []string{code(c.Usage()), strings.Join(also, " "), en, mark(c.DuringRun), role})
	}
	table(b, []string{"command", "also", "does", "during a run", "who"}, rows)
	return nil
}

func toolTable(b *strings.Builder, _ dirs) error {
	list, err := tools.Builtin(tools.BuiltinConfig{})
	if err != nil {
		return err
	}
	d := agent.DefaultLimits
	fmt.Fprintf(b, `## Tools of the agent

A call may take %g minutes, and %s characters of its result stay in the conversation, unless the table says otherwise; the
rest lies in a file that the agent can read. *Beside others*: several such calls of one step run at once. *From outside*:
the result is marked as material to judge, never as instruction.

`, d.ToolTimeout.Minutes(), thousands(d.OutputBudget))
	var rows [][]string
	for _, t := range list {
		s := t.Spec()
		timeout, output := "", ""
		if s.Timeout > 0 {
			timeout = s.Timeout.String()
		}
		if s.MaxOutput > 0 {
			output = thousands(s.MaxOutput)
		}
		rows = append(rows, []string{code(s.Name), sentence(s.Description), mark(s.ReadOnly), mark(s.Untrusted), timeout, output})
	}
	table(b, []string{"tool", "what the model is told, first sentence", "beside others", "from outside", "timeout", "characters"}, rows)
	return nil
}

func providerTable(b *strings.Builder, _ dirs) error {
	b.WriteString("## Model providers\n\n")
	oa, err := openai.New(openai.Config{Model: "m"})
	if err != nil {
		return err
	}
	an, err := anthropic.New(anthropic.Config{Model: "m"})
	if err != nil {
		return err
	}
	var rows [][]string
	for _, p := range []struct {
		m    model.Model
		base string
		what string
	}{
		{oa, openai.DefaultBaseURL, "chat completions, of OpenAI and of every server that imitates it"},
		{an, anthropic.DefaultBaseURL, "the Messages API"},
		{rehearsal.New(rehearsal.Config{}), "", "the built-in scripted stand-in: it calls real tools, and says that it is no language model"},
	} {
		rows = append(rows, []string{code(p.m.Info().Provider), p.what, p.base})
	}
	table(b, []string{"provider", "speaks", "default base URL"}, rows)
	return nil
}

func middlewareTable(b *strings.Builder, _ dirs) error {
	chain, err := agent.NewChain(slog.New(slog.DiscardHandler), middleware.Default(middleware.Config{Now: time.Now})...)
	if err != nil {
		return err
	}
	b.WriteString("## Middleware of the agent\n\nOutermost first; `deerbot middleware` prints what each observes and changes.\n\n")
	var rows [][]string
	for i, e := range chain.Describe() {
		rows = append(rows, []string{
			strconv.Itoa(i + 1), code(e.Name), e.Phase.String(), strings.Join(e.Hooks, ", "),
			strings.Join(e.Before, ", "), strings.Join(e.After, ", "), string(e.OnFailure), e.Why,
		})
	}
	table(b, []string{"", "middleware", "phase", "hooks", "before", "after", "fails", "why there"}, rows)
	return nil
}

func eventTable(b *strings.Builder, d dirs) error {
	words, err := d.comments("runtime/event")
	if err != nil {
		return err
	}
	b.WriteString("## Events of a run\n\nWhat a subscriber of the runtime receives. All but the live ones are in the journal too.\n\n")
	var rows [][]string
	for _, kind := range event.Kinds() {
		body, err := event.Decode(kind, []byte("{}"))
		if err != nil {
			return err
		}
		t := reflect.Indirect(reflect.ValueOf(body)).Type()
		w := words[t.Name()]
		if w == "" {
			return fmt.Errorf("event.%s has no comment", t.Name())
		}
		where := "journal"
		if event.Live(body) {
			where = "live only"
		}
		rows = append(rows, []string{code(kind), w, where, fields(t)})
	}
	table(b, []string{"event", "what it is", "kept", "fields"}, rows)
	return nil
}

// fields lists the JSON names of a struct.
func fields(t reflect.Type) string {
	var out []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out = append(out, code(name))
		}
	}
	return strings.Join(out, " ")
}

// sentence is the first sentence of a description.
func sentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
