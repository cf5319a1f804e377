package cards

import "strings"

// planLine shows the plan in one line. Of a long plan the parts around the one in work show.
func planLine(l *lines, c Card, n int) {
	if len(c.Plan) == 0 {
		return
	}
	done, current := 0, 0
	for i, p := range c.Plan {
		if p.Status == "completed" {
			done++
			current = i
		}
	}
	for i, p := range c.Plan {
		if p.Status == "in_progress" {
			current = i
			break
		}
	}
	head := "▸ " + sayPlan.In(c.Lang, done, len(c.Plan))
	if n == 0 {
		l.add(textOf(head + "  " + planItem(c.Plan[current])))
		return
	}
	from := 0
	if len(c.Plan) > n {
		from = min(max(current-n/2, 0), len(c.Plan)-n)
	}
	to := min(from+n, len(c.Plan))
	var b strings.Builder
	b.WriteString(head)
	if from > 0 {
		b.WriteString("  …")
	}
	for _, p := range c.Plan[from:to] {
		b.WriteString("  ")
		b.WriteString(planItem(p))
	}
	if to < len(c.Plan) {
		b.WriteString("  " + sayMorePlan.In(c.Lang, len(c.Plan)-to))
	}
	l.add(textOf(b.String()))
}

func planItem(p PlanItem) string {
	mark := "○ "
	switch p.Status {
	case "completed":
		mark = "✓ "
	case "in_progress":
		mark = "● "
	}
	return mark + oneLine(p.Text, maxPlanText)
}

func toolLines(l *lines, c Card, n int) {
	tools, hidden := c.Tools, c.Hidden
	if len(tools) > n {
		hidden += len(tools) - n
		tools = tools[len(tools)-n:]
	}
	switch {
	case hidden == 1:
		l.add(textOf("▸ " + sayHiddenOne.In(c.Lang)))
	case hidden > 1:
		l.add(textOf("▸ " + sayHidden.In(c.Lang, hidden)))
	}
	for _, t := range tools {
		mark, end := "▸ ", ""
		switch t.State {
		case "ok":
			mark = "✓ "
		case "error":
			mark = "✗ "
		case "unknown":
			mark, end = "? ", " · "+sayUnknown.In(c.Lang)
		}
		if t.Elapsed >= 1e9 {
			end += " · " + elapsedText(t.Elapsed, c.Lang)
		}
		name := oneLine(t.Name, 40)
		in := []inline{textOf(mark), {kind: inCode, text: name}}
		if args := shorten(t.Args, MaxToolWidth-len([]rune(mark+name+end))-1); args != "" {
			end = " " + args + end
		}
		if end != "" {
			in = append(in, textOf(end))
		}
		l.add(in...)
	}
}

func subagentLines(l *lines, c Card, n int) {
	if len(c.Subagents) == 0 {
		return
	}
	done := 0
	for _, s := range c.Subagents {
		if s.State != "running" {
			done++
		}
	}
	l.add(textOf("▸ " + saySubagents.In(c.Lang, done, len(c.Subagents))))
	rows := c.Subagents
	if len(rows) > n { // the running ones first
		rows = nil
		for _, running := range []bool{true, false} {
			for _, s := range c.Subagents {
				if (s.State == "running") == running && len(rows) < n {
					rows = append(rows, s)
				}
			}
		}
	}
	for _, s := range rows {
		mark := "● "
		switch s.State {
		case "ok":
			mark = "✓ "
		case "error":
			mark = "✗ "
		case "unknown":
			mark = "? "
		}
		parts := []string{oneLine(s.Name, maxPlanText)}
		if s.State == "running" && s.Step > 0 {
			parts = append(parts, sayStepN.In(c.Lang, s.Step))
		}
		if s.Tokens > 0 {
			parts = append(parts, sayTokens.In(c.Lang, countText(s.Tokens)))
		}
		if s.Elapsed >= 1e9 {
			parts = append(parts, elapsedText(s.Elapsed, c.Lang))
		}
		l.add(textOf(indent + mark + strings.Join(parts, " · ")))
	}
	if k := len(c.Subagents) - len(rows); k > 0 && n > 0 {
		l.add(textOf(indent + sayMorePlan.In(c.Lang, k)))
	}
}

// shorten makes s one line of at most n runes. A path loses its middle, anything else its end.
func shorten(s string, n int) string {
	s = line(s)
	if n < 8 {
		n = 8
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if strings.IndexByte(s, '/') < 0 {
		return strings.TrimRight(string(r[:n-1]), " ") + "…"
	}
	back := (n - 1) * 2 / 3
	return string(r[:n-1-back]) + "…" + string(r[len(r)-back:])
}
