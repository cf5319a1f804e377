package commands

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"deerbot/cards"
	"deerbot/config/nearest"
	"deerbot/runtime/model"
)

// maxFiles is how many files /files lists.
const maxFiles = 30

func handleNew(ctx context.Context, s Session, args string) (Reply, error) {
	l := s.Lang()
	title := cut(sanitize(args), 80)
	stopped, err := s.New(ctx, title)
	if err != nil {
		return Reply{Markdown: msgNewFailed.In(l)}, fmt.Errorf("new thread: %w", err)
	}
	text := msgNew.In(l)
	if title != "" {
		text = msgNewTitled.In(l, escape(title))
	}
	if stopped {
		text = sentences(l, text, msgNewStopped.In(l))
	}
	return Reply{Markdown: text}, nil
}

func handleStop(ctx context.Context, s Session, _ string) (Reply, error) {
	l := s.Lang()
	got, err := s.Stop(ctx)
	if err != nil {
		return Reply{}, fmt.Errorf("stop: %w", err)
	}
	text := msgNotRunning.In(l)
	if got.Running {
		text = msgStopped.In(l)
	}
	if len(got.Queued) > 0 {
		text += "\n\n" + msgWaiting.In(l, len(got.Queued)) + "\n"
		for i, head := range got.Queued {
			if i == 10 {
				text += "\n- …"
				break
			}
			text += "\n- " + escape(cut(sanitize(head), 80))
		}
	}
	return Reply{Markdown: text}, nil
}

func handleRetry(ctx context.Context, s Session, args string) (Reply, error) {
	if args != "" {
		return Reply{Markdown: msgNoArgs.In(s.Lang(), "retry")}, nil
	}
	ok, err := s.Retry(ctx)
	if err != nil {
		return Reply{}, fmt.Errorf("retry: %w", err)
	}
	if !ok {
		// Why not: a run is in the way, or there is no turn.
		if st, err := s.Status(ctx); err == nil && st.Phase != PhaseIdle && st.Phase != "" {
			return Reply{Markdown: msgRetryBusy.In(s.Lang())}, nil
		}
		return Reply{Markdown: msgNothingRetry.In(s.Lang())}, nil
	}
	return Reply{Markdown: msgRetrying.In(s.Lang())}, nil
}

func handleFiles(ctx context.Context, s Session, args string) (Reply, error) {
	l := s.Lang()
	files, err := s.Files(ctx)
	if err != nil {
		return Reply{}, fmt.Errorf("list files: %w", err)
	}
	if len(files) == 0 {
		return Reply{Markdown: msgNoFiles.In(l)}, nil
	}
	if args != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(args, "#"))
		if err != nil || n < 1 || n > len(files) {
			return Reply{Markdown: msgFileNumber.In(l, len(files))}, nil
		}
		f := files[n-1]
		name := cut(sanitize(f.Name), 120)
		if err := s.SendFile(ctx, f); err != nil {
			return Reply{Markdown: msgFileFailed.In(l, name)}, fmt.Errorf("send file %s: %w", f.ID, err)
		}
		return Reply{Markdown: msgFileSent.In(l, name)}, nil
	}
	var b strings.Builder
	first := max(len(files)-maxFiles, 0)
	for i := first; i < len(files); i++ {
		fmt.Fprintf(&b, "%d. `%s` · %s\n", i+1, cut(sanitize(files[i].Name), 120), bytesText(files[i].Size))
	}
	more := msgFilesMore.In(l, len(files))
	if first > 0 {
		more = sentences(l, msgFilesOlder.In(l, first), more)
	}
	return Reply{Markdown: b.String() + "\n" + more}, nil
}

func handleWhoami(_ context.Context, s Session, _ string) (Reply, error) {
	l, w := s.Lang(), s.Who()
	name := cut(w.Name, 64)
	if strings.TrimSpace(name) == "" {
		name = w.ID
	}
	lines := []string{msgWhoami.In(l, "**"+escape(name)+"**", w.Channel), "", "- " + msgWhoamiID.In(l, sanitize(w.ID))}
	if w.Workspace != "" {
		lines = append(lines, "- "+msgWhoamiSpace.In(l, sanitize(w.Workspace)))
	}
	role := w.Role
	if p, ok := roleWords[w.Role]; ok {
		role = p.In(l)
	}
	lines = append(lines, "- "+msgWhoamiRole.In(l, role))
	if w.UserID != "" {
		lines = append(lines, "- "+msgWhoamiUser.In(l, sanitize(w.UserID)))
	}
	return Reply{Markdown: strings.Join(lines, "\n"), Private: true}, nil
}

func handleModel(ctx context.Context, s Session, args string) (Reply, error) {
	l, models := s.Lang(), s.Models()
	if len(models) == 0 {
		return Reply{Markdown: msgNoModels.In(l)}, nil
	}
	if args == "" {
		text := msgModelNow.In(l, s.Model())
		if len(models) > 1 {
			text = sentences(l, text, msgModelsMore.In(l))
		}
		return Reply{Markdown: text}, nil
	}
	known := make([]string, len(models))
	for i, m := range models {
		known[i] = m.Name
		if !strings.EqualFold(m.Name, args) {
			continue
		}
		if m.Name == s.Model() {
			return Reply{Markdown: msgModelSame.In(l, m.Name)}, nil
		}
		if err := s.SetModel(ctx, m.Name); err != nil {
			return Reply{}, fmt.Errorf("choose model %s: %w", m.Name, err)
		}
		return Reply{Markdown: msgModelSet.In(l, m.Name)}, nil
	}
	typed := cut(sanitize(args), 60)
	if near, _ := nearest.Word(args, known); near != "" {
		return Reply{Markdown: msgModelNear.In(l, typed, near), Buttons: modelButtons(models, s.Model())}, nil
	}
	return Reply{Markdown: msgModelUnknown.In(l, typed), Buttons: modelButtons(models, s.Model())}, nil
}

func handleModels(_ context.Context, s Session, _ string) (Reply, error) {
	l, models := s.Lang(), s.Models()
	if len(models) == 0 {
		return Reply{Markdown: msgNoModels.In(l)}, nil
	}
	var b strings.Builder
	b.WriteString("**" + msgModels.In(l) + "**\n\n")
	for _, m := range models {
		fmt.Fprintf(&b, "- `%s`", m.Name)
		if m.Rehearsal {
			b.WriteString(" · " + msgModelRehearsal.In(l))
		} else if m.Model != "" && m.Model != m.Name {
			fmt.Fprintf(&b, " · %s %s", m.Provider, escape(m.Model))
		}
		if m.Name == s.Model() {
			b.WriteString(" · **" + msgModelHere.In(l) + "**")
		}
		b.WriteByte('\n')
	}
	if len(models) > 1 {
		b.WriteString("\n" + msgModelHow.In(l))
	}
	return Reply{Markdown: strings.TrimRight(b.String(), "\n"), Buttons: modelButtons(models, s.Model())}, nil
}

// modelButtons offers the models that are not in use, three a row, nine at most.
func modelButtons(models []model.Info, current string) [][]cards.Button {
	var rows [][]cards.Button
	n := 0
	for _, m := range models {
		action, ok := Action(Command{Name: "model", Args: m.Name})
		if m.Name == current || !ok || n == 9 {
			continue
		}
		if n%3 == 0 {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], cards.Button{Label: m.Name, Action: action})
		n++
	}
	return rows
}
