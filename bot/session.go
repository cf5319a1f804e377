package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"deerbot/cards/phrase"
	"deerbot/channels"
	"deerbot/commands"
	"deerbot/runtime"
	"deerbot/runtime/model"
	"deerbot/runtime/run"
	"deerbot/store"
)

// session is the conversation as a command sees it.
type session struct {
	b    *Bot
	conv store.Conversation
	in   *channels.Inbound
	lang phrase.Lang
	key  string // inbox entry of the command: what it does twice after a crash has this in its idempotency key
	// prepStopped says that the command has stopped a message that was no run yet.
	prepStopped bool
}

var _ commands.Session = (*session)(nil)

// Lang implements commands.Session.
func (s *session) Lang() phrase.Lang { return s.lang }

// Place implements commands.Session.
func (s *session) Place() channels.Place { return s.in.Place }

// ThreadID implements commands.Session.
func (s *session) ThreadID() string { return s.conv.ThreadID }

// Models implements commands.Session.
func (s *session) Models() []model.Info { return s.b.models() }

// Who implements commands.Session.
func (s *session) Who() commands.Who {
	w := commands.Who{
		ID: s.in.Sender.ID, Name: s.in.Sender.Name, Channel: s.in.Place.Channel, Workspace: s.in.Place.Workspace,
		Role: commands.RoleMember,
	}
	if contains(s.b.settings().Channels[s.in.Place.Channel].Admins, s.in.Sender.ID) || s.in.Place.Channel == "web" {
		w.Role = commands.RoleOperator // who can open the web chat runs the daemon
	}
	return w
}

// Model implements commands.Session.
func (s *session) Model() string {
	models := s.b.models()
	for _, m := range models {
		if m.Name == s.conv.Model {
			return m.Name
		}
	}
	if len(models) == 0 {
		return ""
	}
	return models[0].Name
}

// SetModel implements commands.Session.
func (s *session) SetModel(ctx context.Context, name string) error {
	s.conv.Model, s.conv.UpdatedAt = name, s.b.now()
	return s.b.store.PutConversation(ctx, &s.conv)
}

// New implements commands.Session. Runs of the old thread end; nothing of them can reach the new one.
func (s *session) New(ctx context.Context, title string) (bool, error) {
	stopped, err := s.endRuns(ctx, true)
	if err != nil {
		return false, err
	}
	now := s.b.now()
	s.conv.ThreadID, s.conv.UpdatedAt = runtime.NewID(), now
	delete(s.conv.Settings, settingCorrection)
	if err := s.b.store.PutConversation(ctx, &s.conv); err != nil {
		return false, err
	}
	stopped = stopped || s.prepStopped
	if title == "" {
		return stopped, nil
	}
	t, err := s.b.store.Thread(ctx, s.conv.ThreadID)
	if err != nil {
		return false, err
	}
	t.Title, t.UpdatedAt = title, now
	return stopped, s.b.store.PutThread(ctx, &t)
}

// Stop implements commands.Session.
func (s *session) Stop(ctx context.Context) (commands.Stopped, error) {
	// Before the stop: the first that waits begins as soon as the active run has ended.
	pending, err := s.b.store.PendingRuns(ctx, s.conv.ThreadID)
	if err != nil {
		return commands.Stopped{}, err
	}
	running, err := s.endRuns(ctx, false)
	if err != nil {
		return commands.Stopped{}, err
	}
	out := commands.Stopped{Running: running || s.prepStopped}
	for _, r := range pending {
		out.Queued = append(out.Queued, headOf(r))
	}
	return out, nil
}

// endRuns cancels the thread's active run, and the waiting ones if all is set, and waits until the active one's output
// has ended: nothing of it may appear after the stop was confirmed.
func (s *session) endRuns(ctx context.Context, all bool) (bool, error) {
	if all {
		pending, err := s.b.store.PendingRuns(ctx, s.conv.ThreadID)
		if err != nil {
			return false, err
		}
		for _, r := range pending {
			if err := s.b.rt.Cancel(ctx, r.ID, s.in.Sender.ID); err != nil {
				return false, err
			}
		}
	}
	r, err := s.b.store.ActiveRun(ctx, s.conv.ThreadID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := s.b.rt.Cancel(ctx, r.ID, s.in.Sender.ID); err != nil {
		return false, err
	}
	wait, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if f := s.b.following(r.ID); f != nil {
		select {
		case <-f.done:
		case <-wait.Done():
		}
	} else if err := s.b.rt.Wait(wait, r.ID); err != nil && ctx.Err() != nil {
		return true, err
	}
	return true, nil
}

// headOf is the beginning of what a run was asked.
func headOf(r store.Run) string {
	in, err := run.InputOf(r)
	if err != nil {
		return ""
	}
	for _, m := range in {
		for _, p := range m.Parts {
			if p.Kind == model.PartText && !isContext(p.Text) {
				return cut(p.Text, 60)
			}
		}
	}
	return ""
}

// Status implements commands.Session.
func (s *session) Status(ctx context.Context) (commands.Status, error) {
	b := s.b
	st := commands.Status{
		Phase: commands.PhaseIdle, ThreadID: s.conv.ThreadID, Model: s.Model(), Channels: b.Health(), Version: b.version,
		Uptime: b.now().Sub(b.started), RSS: b.rss(),
	}
	if s.in.ChatKind != "dm" {
		st.Groups = b.settings().Channels[s.in.Place.Channel].Groups
	}
	t, err := b.store.Thread(ctx, s.conv.ThreadID)
	switch {
	case err == nil:
		st.Title = t.Title
	case !errors.Is(err, store.ErrNotFound):
		return st, err
	}
	pending, err := b.store.PendingRuns(ctx, s.conv.ThreadID)
	if err != nil {
		return st, err
	}
	st.Queue = len(pending)
	r, err := b.store.ActiveRun(ctx, s.conv.ThreadID)
	switch {
	case err == nil:
		st.Phase, st.Elapsed = commands.PhaseRunning, b.now().Sub(r.StartedAt)
		if r.CancelRequested != "" {
			st.Phase = commands.PhaseStopping
		}
		totals, step := r.Totals, r.Totals.Steps
		if f := b.following(r.ID); f != nil {
			f.mu.Lock()
			c := f.view.Card(b.now(), s.lang)
			f.mu.Unlock()
			st.Step, st.Tokens, st.CostUSD, st.Estimated = max(step, c.Totals.Steps), c.Totals.Tokens, c.Totals.CostUSD, c.Totals.Estimated
			return st, nil
		}
		st.Step, st.Tokens, st.CostUSD, st.Estimated = step, totals.Tokens(), totals.CostUSD, totals.Estimated
		return st, nil
	case !errors.Is(err, store.ErrNotFound):
		return st, err
	}
	if len(pending) > 0 {
		st.Phase, st.Position = commands.PhaseQueued, 1
		return st, nil
	}
	last, err := b.store.ThreadRuns(ctx, s.conv.ThreadID, 1)
	if err != nil {
		return st, err
	}
	if len(last) > 0 {
		st.Tokens, st.CostUSD, st.Estimated = last[0].Totals.Tokens(), last[0].Totals.CostUSD, last[0].Totals.Estimated
	}
	return st, nil
}

// Retry implements commands.Session: the last turn again, from the state before it.
func (s *session) Retry(ctx context.Context) (bool, error) {
	b := s.b
	key := "retry/" + s.key
	runs, err := b.store.ThreadRuns(ctx, s.conv.ThreadID, 2)
	if err != nil || len(runs) == 0 {
		return false, err
	}
	last := runs[0]
	if last.IdempotencyKey == key { // this very command, before a crash
		b.follow(last)
		return true, nil
	}
	if !last.State.Terminal() || len(last.Input) == 0 {
		return false, nil
	}
	in, err := run.InputOf(last)
	if err != nil {
		return false, err
	}
	t, err := b.store.Thread(ctx, s.conv.ThreadID)
	if err != nil {
		return false, err
	}
	if t.Head != last.BaseHead {
		if err := b.store.MoveHead(ctx, t.ID, t.Head, last.BaseHead); err != nil {
			return false, fmt.Errorf("retry: %w", err)
		}
	}
	var was turnMeta
	if err := json.Unmarshal(last.Meta, &was); err != nil {
		was = turnMeta{}
	}
	meta := turnMeta{
		Place: s.in.Place, ReplyTo: s.in.MessageID, Lang: s.lang, ChatKind: s.in.ChatKind, Sender: s.in.Sender.ID,
	}
	r, err := b.startRun(ctx, s.conv, key, in, store.StrategyEnqueue, meta)
	if err != nil {
		return false, err
	}
	b.follow(r)
	return true, nil
}

// Files implements commands.Session.
func (s *session) Files(ctx context.Context) ([]store.Artifact, error) {
	return s.b.store.ThreadArtifacts(ctx, s.conv.ThreadID)
}

// SendFile implements commands.Session.
func (s *session) SendFile(ctx context.Context, a store.Artifact) error {
	_, err := s.b.out.post(ctx, store.Outgoing{
		Key: "inbox/" + s.key + "/file/" + a.ID, Conversation: s.in.Place, Kind: outFile,
	}, content{File: &a, ReplyTo: replyTo(s.in.ChatKind, s.in.MessageID)})
	return err
}

// cut shortens to n runes on one line.
func cut(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
