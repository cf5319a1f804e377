package bot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"

	"deerbot/channels"
	"deerbot/runtime/model"
	"deerbot/runtime/sandbox"
	"deerbot/store"
)

// Bounds of what travels with a message.
const (
	maxQuote     = 2000 // characters of a quoted message
	fetchTimeout = 2 * time.Minute
)

// settingCorrection is the conversation setting that keeps an edit of a message that was worked on already.
const settingCorrection = "correction"

// input makes the model's message of an inbound one: the words first, then context blocks as data. Files are fetched into
// the thread's uploads; one that cannot be had becomes a note, and the turn goes on.
func (b *Bot) input(ctx context.Context, in *channels.Inbound, conv *store.Conversation, entry string) ([]model.Message, error) {
	msg := model.Message{ID: "in-" + entry, Role: model.RoleUser, Origin: "user", At: b.now()}
	text := func(s string) {
		if s != "" {
			msg.Parts = append(msg.Parts, model.Part{Kind: model.PartText, Text: s})
		}
	}
	if in.ChatKind != "dm" {
		text(fmt.Sprintf("<from name=%q id=%q/>\n", nameLabel(in.Sender.Name), shortID(in.Sender.ID)))
	}
	text(neutralise(in.Text))
	quoted, err := b.quoted(ctx, in, conv.ThreadID, entry)
	if err != nil {
		return nil, err
	}
	text(quoted)
	files, err := b.uploads(ctx, in.Place.Channel, conv.ThreadID, entry, in.Attachments)
	if err != nil {
		return nil, err
	}
	text(files)
	if in.Note != "" {
		text("<note>" + neutralise(in.Note) + "</note>")
	}
	if c := conv.Settings[settingCorrection]; c != "" {
		text(c)
		delete(conv.Settings, settingCorrection)
		if err := b.store.PutConversation(ctx, conv); err != nil {
			return nil, err
		}
	}
	return []model.Message{msg}, nil
}

func (b *Bot) quoted(ctx context.Context, in *channels.Inbound, threadID, entry string) (string, error) {
	q := in.Quote
	if q == nil || (q.Text == "" && len(q.Attachments) == 0) {
		return "", nil
	}
	author := nameLabel(q.Author)
	if q.FromBot {
		author = "you"
	}
	body := neutralise(cutText(q.Text, maxQuote))
	files, err := b.uploads(ctx, in.Place.Channel, threadID, entry+"-quoted", q.Attachments)
	if err != nil {
		return "", err
	}
	if files != "" {
		body += "\n" + files
	}
	return fmt.Sprintf("<quote author=%q>\n%s\n</quote>", author, body), nil
}

// uploads fetches attachments and says where they are. Only a full disk or the end of ctx is an error.
func (b *Bot) uploads(ctx context.Context, channel, threadID, dir string, list []channels.Attachment) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	files, err := b.files(threadID)
	if err != nil {
		return "", err
	}
	defer func() { _ = files.Close() }()
	fetcher, _ := b.channel(channel).(channels.FileFetcher)
	var lines []string
	for _, a := range list {
		name := a.Name
		if name == "" {
			name = a.Kind
		}
		path, n, err := b.fetch(ctx, fetcher, files, dir, name, a)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if errors.Is(err, store.ErrFull) {
			return "", err
		}
		if err != nil {
			b.log.Info("an attachment was not taken", "kind", a.Kind, "err", err)
			lines = append(lines, fmt.Sprintf("[%s %q could not be taken: %s]", a.Kind, sandbox.Label(name), reasonOf(err)))
			continue
		}
		lines = append(lines, fmt.Sprintf("- %s (%s, %s)", path, a.Kind, size(n)))
	}
	return "<uploads>\n" + strings.Join(lines, "\n") + "\n</uploads>", nil
}

// errNotTaken carries a reason that people and the model may read.
type errNotTaken struct{ reason string }

func (e *errNotTaken) Error() string { return e.reason }

func reasonOf(err error) string {
	if n, ok := errors.AsType[*errNotTaken](err); ok {
		return n.reason
	}
	if _, ok := errors.AsType[*channels.Gone](err); ok {
		return "it is no longer there"
	}
	if _, ok := errors.AsType[*channels.TooLong](err); ok {
		return "it is larger than the platform hands out"
	}
	return "it could not be fetched"
}

func (b *Bot) fetch(ctx context.Context, f channels.FileFetcher, files *sandbox.Files, dir, name string, a channels.Attachment) (string, int64, error) {
	limit := b.settings().AttachmentBytes
	if f == nil {
		return "", 0, &errNotTaken{"this channel hands out no files"}
	}
	if limit > 0 && a.Size > limit {
		return "", 0, &errNotTaken{fmt.Sprintf("it has %s, the limit is %s", size(a.Size), size(limit))}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	wait := 500 * time.Millisecond
	for attempt := 1; ; attempt++ {
		path, n, err := fetchOnce(ctx, f, files, dir, name, a, limit)
		var transient *channels.Transient
		var limited *channels.RateLimited
		switch {
		case errors.As(err, &limited) && attempt < 4:
			wait = limited.RetryAfter
		case errors.As(err, &transient) && attempt < 4:
		default:
			return path, n, err
		}
		if sleep(ctx, wait) != nil {
			return "", 0, err
		}
		wait *= 2
	}
}

func fetchOnce(ctx context.Context, f channels.FileFetcher, files *sandbox.Files, dir, name string, a channels.Attachment, limit int64) (string, int64, error) {
	r, err := f.Fetch(ctx, a)
	if err != nil {
		return "", 0, err
	}
	defer r.Close()
	path, n, err := files.SaveUpload(dir, name, r, limit)
	if err != nil {
		if pe, ok := errors.AsType[*sandbox.PathError](err); ok {
			return "", 0, &errNotTaken{pe.Reason}
		}
		return "", 0, &channels.Transient{Err: err}
	}
	return path, n, nil
}

// addCorrection keeps an edit of a message that a run has seen, for the next turn.
func (b *Bot) addCorrection(ctx context.Context, p channels.Place, was, now string) error {
	c, err := b.store.Conversation(ctx, p)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.Settings == nil {
		c.Settings = map[string]string{}
	}
	c.Settings[settingCorrection] = fmt.Sprintf("<correction was=%q>\n%s\n</correction>", cut(neutralise(was), 200), neutralise(cutText(now, maxQuote)))
	c.UpdatedAt = b.now()
	return b.store.PutConversation(ctx, &c)
}

// contextTags are the tags with which the bot and the runtime mark data for the model. In what people write they are
// shown to the model, but not as tags.
var contextTag = regexp.MustCompile(`(?i)<(\s*/?\s*(?:from|quote|uploads|note|correction|system|system-reminder|untrusted)\b)`)

// neutralise makes what people wrote harmless as data and leaves its lines and words alone: no control characters, nothing
// that is invisible or turns the direction of text, no tags of ours.
func neutralise(s string) string {
	s = strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(s), "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u200c' || r == '\u200d' || r == '\u200e' || r == '\u200f' || r == '\u061c' || r == '\u00ad':
			return r // joiners of scripts and emoji, marks of direction that end by themselves, the soft hyphen
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		}
		return r
	}, s)
	return contextTag.ReplaceAllString(s, "‹$1")
}

// isContext reports whether a text part is one of the blocks above rather than somebody's words.
func isContext(s string) bool {
	for _, tag := range []string{"<from ", "<quote ", "<uploads>", "<note>", "<correction "} {
		if strings.HasPrefix(s, tag) {
			return true
		}
	}
	return false
}

// shortID is enough of a platform id to tell people of a chat apart.
func shortID(id string) string {
	id = sandbox.Label(id)
	if len(id) > 12 {
		return id[len(id)-12:]
	}
	return id
}

// nameLabel is a person's name as the model sees it: one line of at most 64 characters that closes nothing.
func nameLabel(name string) string { return sandbox.Label(cut(name, 64)) }

// cutText shortens to n runes and keeps lines.
func cutText(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// openOutgoing opens the file of an outgoing record.
func (b *Bot) openOutgoing(rec *store.Outgoing, c *content) (channels.File, error) {
	if c.File == nil {
		return channels.File{
			Name: "answer.md", MIME: "text/markdown", Size: int64(len(c.Inline)),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c.Inline)), nil },
		}, nil
	}
	a := c.File
	files, err := b.files(a.ThreadID)
	if err != nil {
		return channels.File{}, err
	}
	info, err := files.Stat(a.Path)
	if err != nil {
		files.Close()
		return channels.File{}, err
	}
	files.Close()
	return channels.File{
		Name: a.Name, MIME: a.MIME, Size: info.Size(),
		Open: func() (io.ReadCloser, error) {
			files, err := b.files(a.ThreadID)
			if err != nil {
				return nil, err
			}
			f, err := files.Open(a.Path)
			if err != nil {
				files.Close()
				return nil, err
			}
			return &ownedFile{ReadCloser: f, tree: files}, nil
		},
	}, nil
}

// ownedFile closes the tree with the file.
type ownedFile struct {
	io.ReadCloser
	tree *sandbox.Files
}

func (f *ownedFile) Close() error { return errors.Join(f.ReadCloser.Close(), f.tree.Close()) }
