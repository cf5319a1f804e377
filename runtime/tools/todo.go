package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"deerbot/runtime/event"
)

const (
	todoMax  = 50
	todoText = 200 // characters of an item
)

// StateTodos is the thread state key of the plan: a list of [event.Todo].
const StateTodos = "todos"

type todoArgs struct {
	Todos []todoItem `json:"todos" jsonschema:"the whole plan in order; an empty list clears it"`
}

type todoItem struct {
	Text   string `json:"text" jsonschema:"what is to be done, one line"`
	Status string `json:"status" jsonschema:"pending, in_progress or completed"`
}

func newTodo() (Tool, error) {
	return New(Spec{
		Name: "todo",
		Description: "Keep the plan of a task with three or more steps, for yourself and for the people who watch. Each call sends the " +
			"whole list: at most 50 items of 200 characters, each pending, in_progress or completed, one in_progress at a time. Update " +
			"it when an item is begun or finished, and make sure nothing finished is left open at the end.",
		Timeout: fileTimeout,
		Line: lineOf(func(a todoArgs) string {
			done := 0
			for _, t := range a.Todos {
				if t.Status == "completed" {
					done++
				}
			}
			for _, t := range a.Todos {
				if t.Status == "in_progress" {
					return fmt.Sprintf("%d/%d %s", done, len(a.Todos), t.Text)
				}
			}
			return fmt.Sprintf("%d/%d", done, len(a.Todos))
		}),
	}, todo, func(s *jsonschema.Schema) {
		list := s.Properties["todos"]
		most, one, text := todoMax, 1, todoText
		list.MaxItems = &most
		list.Items.Properties["text"].MinLength = &one
		list.Items.Properties["text"].MaxLength = &text
		list.Items.Properties["status"].Enum = []any{"pending", "in_progress", "completed"}
	})
}

func todo(ctx context.Context, env *Env, args todoArgs) (Result, error) {
	todos := make([]event.Todo, 0, len(args.Todos))
	var n struct{ pending, active, done, turned int }
	for i, t := range args.Todos {
		text := clean(t.Text, todoText)
		if text == "" {
			return Result{}, fmt.Errorf("todos[%d].text is blank", i)
		}
		if t.Status == "in_progress" && n.active == 1 {
			t.Status = "pending"
			n.turned++
		}
		switch t.Status {
		case "pending":
			n.pending++
		case "in_progress":
			n.active++
		case "completed":
			n.done++
		default:
			return Result{}, errors.New("status must be pending, in_progress or completed")
		}
		todos = append(todos, event.Todo{Text: text, Status: t.Status})
	}
	out := fmt.Sprintf("plan saved: %d completed, %d in progress, %d pending", n.done, n.active, n.pending)
	if len(todos) == 0 {
		out = "plan cleared"
	}
	if n.turned > 0 {
		out += fmt.Sprintf("; only one item can be in_progress, so the first stayed and %d went back to pending", n.turned)
	}
	return Result{Content: strings.TrimSpace(out), Todos: todos, State: map[string]any{StateTodos: todos}}, nil
}
