package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/bwmarrin/discordgo"

	"deerbot/cards"
	"deerbot/channels"
)

// allowed are the mentions that notify: none. The list must be there and empty, without it Discord notifies everybody
// whom the text names (C095).
type allowed struct {
	Parse       []string `json:"parse"`
	RepliedUser bool     `json:"replied_user"`
}

var nobody = allowed{Parse: []string{}}

// create is the body of a new message. The SDK's has no nonce.
type create struct {
	Content         string     `json:"content"`
	Nonce           string     `json:"nonce,omitempty"`
	EnforceNonce    bool       `json:"enforce_nonce,omitempty"`
	AllowedMentions allowed    `json:"allowed_mentions"`
	Reference       *reference `json:"message_reference,omitempty"`
	Components      []row      `json:"components,omitempty"`
	Flags           int        `json:"flags,omitempty"`
	Attachments     []part     `json:"attachments,omitempty"`
}

// change is the body of an edit; the fields are always there, so that what is left out goes.
type change struct {
	Content         string  `json:"content"`
	AllowedMentions allowed `json:"allowed_mentions"`
	Components      []row   `json:"components"`
	Flags           int     `json:"flags"`
}

type reference struct {
	MessageID       string `json:"message_id"`
	FailIfNotExists bool   `json:"fail_if_not_exists"`
}

type part struct {
	ID       int    `json:"id"`
	Filename string `json:"filename"`
}

// row is a row of buttons. The SDK's types marshal a button's empty fields, which Discord refuses for some styles.
type row struct {
	Type       discordgo.ComponentType `json:"type"`
	Components []button                `json:"components"`
}

type button struct {
	Type     discordgo.ComponentType `json:"type"`
	Style    discordgo.ButtonStyle   `json:"style"`
	Label    string                  `json:"label"`
	CustomID string                  `json:"custom_id"`
}

// Send implements channels.Channel. The same key in the same place within some minutes gives the first message again.
func (c *Channel) Send(ctx context.Context, to channels.Place, m channels.Message, key string) (channels.Ref, error) {
	return c.post(ctx, to, create{
		Content: m.Body.Text, Nonce: nonceOf(to, key), EnforceNonce: key != "", AllowedMentions: nobody,
		Reference: replyTo(to, m.ReplyTo), Components: rows(m.Body.Buttons), Flags: flags(m.Silent),
	}, nil)
}

// post sends body, or a form of it, again without the reply when that alone is not allowed.
func (c *Channel) post(ctx context.Context, to channels.Place, body create, form func(create) api) (channels.Ref, error) {
	const name = "create message"
	ch := target(to)
	if err := validID(name, ch); err != nil {
		return channels.Ref{}, err
	}
	if utf16Len(body.Content) > maxContent {
		return channels.Ref{}, &channels.TooLong{Err: &failure{name: name, text: fmt.Sprintf("text of %d units, Discord takes %d", utf16Len(body.Content), maxContent)}}
	}
	for {
		a := api{name: name, method: "POST", body: body}
		if form != nil {
			a = form(body)
		}
		a.path = "/channels/" + ch + "/messages"
		var out struct {
			ID string `json:"id"`
		}
		err := c.call(ctx, a, &out)
		if err == nil && out.ID == "" {
			return channels.Ref{}, &channels.Transient{MaybeSent: true, Err: &failure{name: name, text: "the answer has no message; is api_url right?"}}
		}
		if body.Reference != nil && refused(err, codeNoHistory) {
			body.Reference = nil
			continue
		}
		if err != nil {
			return channels.Ref{}, err
		}
		c.sent.add(out.ID)
		return channels.Ref{Place: to, ID: out.ID}, nil
	}
}

// Edit implements channels.Channel. An archived thread is opened again for it.
func (c *Channel) Edit(ctx context.Context, ref channels.Ref, m channels.Message) error {
	const name = "edit message"
	path, err := messagePath(name, ref)
	if err != nil {
		return err
	}
	if n := utf16Len(m.Body.Text); n > maxContent {
		return &channels.TooLong{Err: &failure{name: name, text: fmt.Sprintf("text of %d units, Discord takes %d", n, maxContent)}}
	}
	a := api{name: name, method: "PATCH", path: path, body: change{
		Content: m.Body.Text, AllowedMentions: nobody, Components: append([]row{}, rows(m.Body.Buttons)...), Flags: flags(false),
	}}
	err = c.call(ctx, a, nil)
	if refused(err, codeArchived) && ref.Place.Topic != "" {
		open := api{name: "open thread", method: "PATCH", path: "/channels/" + ref.Place.Topic, body: map[string]bool{"archived": false}}
		if e := c.call(ctx, open, nil); e != nil {
			return e
		}
		err = c.call(ctx, a, nil)
	}
	return err
}

// Delete implements channels.Deleter. A message that is not there any more is success.
func (c *Channel) Delete(ctx context.Context, ref channels.Ref) error {
	path, err := messagePath("delete message", ref)
	if err != nil {
		return err
	}
	err = c.call(ctx, api{name: "delete message", method: "DELETE", path: path}, nil)
	if refused(err, codeUnknownMessage) {
		return nil
	}
	return err
}

// Typing implements channels.Typer; Discord shows it for ten seconds.
func (c *Channel) Typing(ctx context.Context, to channels.Place) error {
	if err := validID("typing", target(to)); err != nil {
		return err
	}
	return c.call(ctx, api{name: "typing", method: "POST", path: "/channels/" + target(to) + "/typing"}, nil)
}

func messagePath(name string, ref channels.Ref) (string, error) {
	if err := validID(name, target(ref.Place)); err != nil {
		return "", err
	}
	if err := validID(name, ref.ID); err != nil {
		return "", err
	}
	return "/channels/" + target(ref.Place) + "/messages/" + ref.ID, nil
}

// validID checks that id is a snowflake: it becomes part of an address.
func validID(name, id string) error {
	if !snowflake(id) {
		return wrong(name, fmt.Sprintf("%q is not a Discord id", shorten(id, 40)))
	}
	return nil
}

func snowflake(id string) bool {
	return id != "" && len(id) <= 20 && strings.Trim(id, "0123456789") == ""
}

// nonceOf makes the nonce of a message: what was sent once with it is not sent again.
func nonceOf(to channels.Place, key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(target(to) + "\x00" + key))
	return hex.EncodeToString(sum[:maxNonce/2])
}

// replyTo answers a message, or nothing when it was deleted meanwhile. The message that a thread was made from is not in
// the thread.
func replyTo(to channels.Place, id string) *reference {
	if !snowflake(id) || id == to.Topic {
		return nil
	}
	return &reference{MessageID: id}
}

func flags(silent bool) int {
	f := discordgo.MessageFlagsSuppressEmbeds // no previews
	if silent {
		f |= discordgo.MessageFlagsSuppressNotifications
	}
	return int(f)
}

var styles = map[string]discordgo.ButtonStyle{
	"primary": discordgo.PrimaryButton, "danger": discordgo.DangerButton, "": discordgo.SecondaryButton,
}

// rows are at most five of five buttons; their actions must differ.
func rows(in [][]cards.Button) []row {
	var out []row
	seen := map[string]bool{}
	for _, bs := range in {
		var line []button
		flush := func() {
			if len(line) > 0 && len(out) < 5 {
				out = append(out, row{Type: discordgo.ActionsRowComponent, Components: line})
			}
			line = nil
		}
		for _, b := range bs {
			if b.Label == "" || b.Action == "" || seen[b.Action] {
				continue
			}
			seen[b.Action] = true
			style := styles[b.Style]
			if style == 0 {
				style = discordgo.SecondaryButton
			}
			line = append(line, button{
				Type: discordgo.ButtonComponent, Style: style, Label: shorten(b.Label, maxLabel/2), CustomID: b.Action,
			})
			if len(line) == 5 {
				flush()
			}
		}
		flush()
	}
	return out
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// shorten cuts s to n runes.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
