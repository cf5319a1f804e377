package discord

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxContent is what bots may send; the schema's 4000 is for paying users.
const maxContent = 2000

// Flags of messages.
const (
	flagSuppressEmbeds        = 1 << 2
	flagHasThread             = 1 << 5
	flagEphemeral             = 1 << 6
	flagSuppressNotifications = 1 << 12
)

// Ping is a notification that somebody got from a message of the bot.
type Ping struct {
	Message string
	Whom    string // everyone, here, role:<id>, user:<id>, reply:<id>
}

type allowedMentions struct {
	Parse       []string `json:"parse"`
	Users       []string `json:"users"`
	Roles       []string `json:"roles"`
	RepliedUser bool     `json:"replied_user"`
}

type messageBody struct {
	Content         *string          `json:"content"`
	Nonce           json.RawMessage  `json:"nonce"`
	EnforceNonce    bool             `json:"enforce_nonce"`
	TTS             bool             `json:"tts"`
	Embeds          []any            `json:"embeds"`
	AllowedMentions *allowedMentions `json:"allowed_mentions"`
	Reference       *reference       `json:"message_reference"`
	Components      json.RawMessage  `json:"components"`
	StickerIDs      []string         `json:"sticker_ids"`
	Flags           int              `json:"flags"`
	Attachments     *[]struct {
		ID          json.RawMessage `json:"id"`
		Filename    string          `json:"filename"`
		Description string          `json:"description"`
	} `json:"attachments"`
}

// visible finds the channel of a request that the bot can see.
func (s *Server) visible(c *request) (*Channel, *apiError) {
	ch := s.channels[c.channel]
	if ch == nil {
		return nil, unknownChannel
	}
	if !ch.may(View) {
		return nil, missingAccess
	}
	return ch, nil
}

func (s *Server) getMe(*request) (any, *apiError) { return s.bot, nil }

func (s *Server) getApplication(*request) (any, *apiError) {
	flags := 1 << 19
	if s.opt.NoContent {
		flags = 0
	}
	return map[string]any{"id": s.app, "name": s.bot.Username, "flags": flags}, nil
}

func (s *Server) gatewayBot(c *request) (any, *apiError) {
	return map[string]any{
		"url": "ws://" + c.host + "/gateway", "shards": 1,
		"session_start_limit": map[string]any{"total": 1000, "remaining": 1000 - s.identifies, "reset_after": 14400000, "max_concurrency": 1},
	}, nil
}

func (s *Server) getChannel(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	return ch.object(), nil
}

func (s *Server) editChannel(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	var in struct {
		Archived *bool `json:"archived"`
		Locked   *bool `json:"locked"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if ch.Kind != KindThread || ch.locked {
		return nil, missingPermission
	}
	if in.Archived != nil {
		ch.archived = *in.Archived
	}
	return ch.object(), nil
}

func (s *Server) getGuild(c *request) (any, *apiError) {
	for _, g := range s.guilds {
		if g.ID == c.path[1] {
			o := g.object()
			delete(o, "channels")
			delete(o, "threads")
			return o, nil
		}
	}
	return nil, unknownGuild
}

func (s *Server) activeThreads(c *request) (any, *apiError) {
	for _, g := range s.guilds {
		if g.ID == c.path[1] {
			return map[string]any{"threads": g.object()["threads"], "members": []any{}}, nil
		}
	}
	return nil, unknownGuild
}

// listMessages answers newest first, as Discord does.
func (s *Server) listMessages(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	limit := c.number("limit", 50)
	if limit < 1 || limit > 100 {
		return nil, invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
	}
	out := []message{}
	if !ch.may(History) {
		return out, nil
	}
	after, before := c.get("after"), c.get("before")
	for _, m := range ch.messages {
		if m.deleted || after != "" && compareIDs(m.wire.ID, after) <= 0 || before != "" && compareIDs(m.wire.ID, before) >= 0 {
			continue
		}
		out = append(out, s.shown(m, c.host))
	}
	if n := len(out); n > limit {
		if after != "" {
			out = out[:limit]
		} else {
			out = out[n-limit:]
		}
	}
	slices.Reverse(out)
	return out, nil
}

func (s *Server) getMessage(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	m := ch.find(c.path[3])
	if m == nil {
		return nil, unknownMessage
	}
	return s.shown(m, c.host), nil
}

// shown is m with fresh addresses of its files.
func (s *Server) shown(m *stored, host string) message {
	w := m.wire
	w.Attachments = []attachment{}
	for _, f := range m.files {
		w.Attachments = append(w.Attachments, s.attachment(f, host))
	}
	return w
}

func (s *Server) attachment(f *File, host string) attachment {
	f.expired = false
	u := "http://" + host + "/cdn/attachments/" + f.channel + "/" + f.ID + "/" + url.PathEscape(f.Name) + "?ex=66a0&is=669f&hm=" + signature(f)
	return attachment{ID: f.ID, Filename: f.Name, ContentType: f.MIME, Size: len(f.Data), URL: u, ProxyURL: u}
}

func signature(f *File) string { return fmt.Sprintf("%x", "sig"+f.ID) }

func (s *Server) cdn(w http.ResponseWriter, r *http.Request) {
	p := strings.Split(r.URL.Path, "/")
	s.mu.Lock()
	var f *File
	if len(p) == 6 {
		f = s.files[p[4]]
	}
	ok := f != nil && f.channel == p[3] && !f.expired && r.URL.Query().Get("hm") == signature(f)
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "" { // the token has no business here
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if !ok {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.MIME)
	w.Header().Set("Content-Length", strconv.Itoa(len(f.Data)))
	_, _ = w.Write(f.Data)
}

// sendable reports why the bot may not write in ch.
func (s *Server) sendable(ch *Channel) *apiError {
	switch {
	case !ch.may(Send):
		return missingPermission
	case ch.Kind == KindForum:
		return wrongKind
	case ch.Kind == KindDM && ch.with.closed:
		return cannotDM
	case ch.locked:
		return locked
	}
	return nil
}

func (s *Server) createMessage(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	if err := s.sendable(ch); err != nil {
		return nil, err
	}
	var in messageBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	key := strings.Trim(string(in.Nonce), `"`)
	if key == "null" {
		key = ""
	}
	if len(key) > 25 {
		return nil, tooLong("nonce", 25)
	}
	if in.EnforceNonce && key != "" {
		if n, ok := s.nonces[key]; ok && s.opt.Now().Sub(n.at) < s.opt.NonceWindow && n.msg.wire.ChannelID == ch.ID {
			return s.shown(n.msg, c.host), nil
		}
	}
	m := &stored{wire: s.blank(ch, s.bot)}
	m.wire.Nonce = key
	if err := s.fill(m, ch, &in, c); err != nil {
		return nil, err
	}
	if in.Reference != nil {
		if err := s.refer(m, ch, in.Reference); err != nil {
			return nil, err
		}
	}
	ch.archived = false // a message unarchives
	s.ping(m, in.AllowedMentions)
	ch.messages = append(ch.messages, m)
	if key != "" {
		s.nonces[key] = nonce{m, s.opt.Now()}
	}
	s.announce("MESSAGE_CREATE", ch, m, c.host)
	return s.shown(m, c.host), nil
}

// blank is a message without content.
func (s *Server) blank(ch *Channel, by User) message {
	return message{
		ID: s.snowflake(), ChannelID: ch.ID, Author: by, Timestamp: stamp(s.opt.Now()), Mentions: []User{}, MentionRoles: []string{},
		Attachments: []attachment{}, Embeds: []any{},
	}
}

// fill checks and sets what create and edit have in common.
func (s *Server) fill(m *stored, ch *Channel, in *messageBody, c *request) *apiError {
	if in.Content != nil {
		if utf16Len(*in.Content) > maxContent {
			return tooLong("content", maxContent)
		}
		m.wire.Content = strings.TrimSpace(*in.Content)
	}
	if len(c.uploads) > 0 && !ch.may(Attach) {
		return missingPermission
	}
	if len(c.uploads) > 10 {
		return invalid("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
	}
	for _, u := range c.uploads {
		if int64(len(u.data)) > s.opt.MaxAttachments {
			return tooLarge
		}
		name := u.name
		if in.Attachments != nil {
			for _, a := range *in.Attachments {
				if "files["+strings.Trim(string(a.ID), `"`)+"]" == u.field && a.Filename != "" {
					name = a.Filename
				}
			}
		}
		m.files = append(m.files, s.file(ch, name, u.mime, u.data))
	}
	if len(in.Components) > 0 {
		rows, err := buttons(in.Components)
		if err != nil {
			return err
		}
		m.buttons, m.wire.Components = rows, in.Components
	}
	m.wire.Embeds = append([]any{}, in.Embeds...)
	if m.wire.Content == "" && len(m.files) == 0 && len(m.buttons) == 0 && len(in.Embeds) == 0 {
		return emptyMessage
	}
	m.wire.Flags = m.wire.Flags&^flagSuppressEmbeds | in.Flags&(flagSuppressEmbeds|flagSuppressNotifications)
	m.silent = in.Flags&flagSuppressNotifications != 0
	return nil
}

func (s *Server) file(ch *Channel, name, kind string, data []byte) *File {
	f := &File{ID: s.snowflake(), Name: name, MIME: kind, Data: data, channel: ch.ID}
	s.files[f.ID] = f
	return f
}

// refer sets the reply of m.
func (s *Server) refer(m *stored, ch *Channel, ref *reference) *apiError {
	if !ch.may(History) {
		return noHistory
	}
	to := ch.find(ref.MessageID)
	if to == nil {
		if ref.FailIfNotExists != nil && !*ref.FailIfNotExists {
			return nil
		}
		return invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
	}
	m.wire.Type = 19
	m.wire.Reference = &reference{MessageID: to.wire.ID, ChannelID: ch.ID, GuildID: guildID(ch)}
	m.wire.Referenced, _ = json.Marshal(s.shown(to, ""))
	return nil
}

func guildID(ch *Channel) string {
	if ch.guild == nil {
		return ""
	}
	return ch.guild.ID
}

// buttons checks components: rows of buttons.
func buttons(raw json.RawMessage) ([][]Button, *apiError) {
	var rows []struct {
		Type       int `json:"type"`
		ID         int `json:"id"`
		Components []struct {
			Type     int    `json:"type"`
			ID       int    `json:"id"`
			Style    int    `json:"style"`
			Label    string `json:"label"`
			CustomID string `json:"custom_id"`
			Disabled bool   `json:"disabled"`
			Emoji    any    `json:"emoji"`
			URL      string `json:"url"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, invalid("components", "BASE_TYPE_BAD_TYPE", err.Error())
	}
	if len(rows) > 5 {
		return nil, invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	seen := map[string]bool{}
	var out [][]Button
	for i, r := range rows {
		at := fmt.Sprintf("components.%d.components", i)
		if r.Type != 1 || len(r.Components) < 1 || len(r.Components) > 5 {
			return nil, invalid(at, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
		}
		var row []Button
		for j, b := range r.Components {
			at := fmt.Sprintf("%s.%d", at, j)
			switch {
			case b.Type != 2 || b.Style < 1 || b.Style > 4:
				return nil, invalid(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (2).")
			case b.CustomID == "" || utf16Len(b.CustomID) > 100:
				return nil, invalid(at+".custom_id", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
			case seen[b.CustomID]:
				return nil, invalid(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
			case b.Label == "" || utf16Len(b.Label) > 80:
				return nil, invalid(at+".label", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 80 in length.")
			}
			seen[b.CustomID] = true
			row = append(row, Button{b.Label, b.CustomID, b.Style})
		}
		out = append(out, row)
	}
	return out, nil
}

var (
	userMention = regexp.MustCompile(`<@!?(\d+)>`)
	roleMention = regexp.MustCompile(`<@&(\d+)>`)
	allMention  = regexp.MustCompile(`@(everyone|here)`)
)

// ping records whom m notifies (developers/resources/message#allowed-mentions-object).
func (s *Server) ping(m *stored, a *allowedMentions) {
	allow := func(kind string) bool { return a == nil || slices.Contains(a.Parse, kind) }
	note := func(whom string) { s.pings = append(s.pings, Ping{m.wire.ID, whom}) }
	for _, x := range allMention.FindAllStringSubmatch(m.wire.Content, -1) {
		if allow("everyone") {
			note(x[1])
		}
	}
	for _, x := range roleMention.FindAllStringSubmatch(m.wire.Content, -1) {
		if allow("roles") || a != nil && slices.Contains(a.Roles, x[1]) {
			note("role:" + x[1])
		}
	}
	for _, x := range userMention.FindAllStringSubmatch(m.wire.Content, -1) {
		if allow("users") || a != nil && slices.Contains(a.Users, x[1]) {
			note("user:" + x[1])
		}
	}
	if m.wire.Referenced != nil && (a == nil || a.RepliedUser) {
		note("reply:" + m.wire.Reference.MessageID)
	}
}

func (s *Server) editMessage(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	m := ch.find(c.path[3])
	switch {
	case m == nil:
		return nil, unknownMessage
	case m.wire.Author.ID != s.bot.ID:
		return nil, notTheAuthor
	case ch.archived || ch.locked:
		return nil, archived
	}
	var in messageBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Reference != nil || len(in.Nonce) > 0 {
		return nil, invalid("body", "UNKNOWN_FIELD", "not in an edit")
	}
	next := *m
	if len(in.Components) > 0 { // an empty list takes them away
		next.buttons, next.wire.Components = nil, nil
	}
	if err := s.fill(&next, ch, &in, c); err != nil {
		return nil, err
	}
	at := stamp(s.opt.Now())
	next.wire.Edited = &at
	next.edits++
	*m = next
	s.ping(m, in.AllowedMentions)
	s.announce("MESSAGE_UPDATE", ch, m, c.host)
	return s.shown(m, c.host), nil
}

func (s *Server) deleteMessage(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	m := ch.find(c.path[3])
	switch {
	case m == nil:
		return nil, unknownMessage
	case m.wire.Author.ID != s.bot.ID:
		return nil, missingPermission
	}
	s.remove(ch, m)
	return nil, nil
}

func (s *Server) remove(ch *Channel, m *stored) {
	m.deleted = true
	s.dispatch("MESSAGE_DELETE", intentOf(ch), func(int) any {
		return map[string]any{"id": m.wire.ID, "channel_id": ch.ID, "guild_id": guildID(ch)}
	})
}

func (s *Server) typing(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	if err := s.sendable(ch); err != nil {
		return nil, err
	}
	ch.typing++
	return nil, nil
}

func intentOf(ch *Channel) int {
	if ch.Kind == KindDM {
		return IntentDirectMessages
	}
	return IntentGuildMessages
}

// announce sends a message event. Without the content intent it is empty, but for the bot's own, in direct messages, and
// when the bot is mentioned (developers/events/gateway#message-content-intent).
func (s *Server) announce(t string, ch *Channel, m *stored, host string) {
	if !ch.may(View) {
		return
	}
	if host == "" {
		host = s.host()
	}
	w := s.shown(m, host)
	w.GuildID = guildID(ch)
	if ch.guild != nil && w.WebhookID == "" {
		w.Member = &member{Nick: ch.guild.nicks[w.Author.ID], Roles: []string{}}
	}
	mentioned := slices.ContainsFunc(w.Mentions, func(u User) bool { return u.ID == s.bot.ID })
	s.dispatch(t, intentOf(ch), func(intents int) any {
		if intents&IntentMessageContent == 0 && ch.Kind != KindDM && !mentioned && w.Author.ID != s.bot.ID {
			bare := w
			bare.Content, bare.Attachments, bare.Embeds, bare.Components = "", []attachment{}, []any{}, nil
			return bare
		}
		return w
	})
}

type threadBody struct {
	Name     string `json:"name"`
	Archive  int    `json:"auto_archive_duration"`
	Slowmode *int   `json:"rate_limit_per_user"`
	Type     int    `json:"type"`
}

func (s *Server) threadBody(c *request, ch *Channel) (*threadBody, *apiError) {
	var in threadBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if n := utf16Len(in.Name); n < 1 || n > 100 {
		return nil, invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	if in.Archive != 0 && !slices.Contains([]int{60, 1440, 4320, 10080}, in.Archive) {
		return nil, invalid("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of (60, 1440, 4320, 10080).")
	}
	switch {
	case ch.Kind != KindText:
		return nil, wrongKind
	case !ch.may(Threads):
		return nil, missingPermission
	}
	return &in, nil
}

func (s *Server) startThread(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	in, err := s.threadBody(c, ch)
	if err != nil {
		return nil, err
	}
	m := ch.find(c.path[3])
	if m == nil {
		return nil, unknownMessage
	}
	if s.channels[m.wire.ID] != nil {
		return nil, threadExists
	}
	m.wire.Flags |= flagHasThread
	t := s.thread(ch, m.wire.ID, in.Name, &s.bot)
	starter := &stored{wire: s.blank(t, m.wire.Author)}
	starter.wire.Type, starter.wire.Reference = 21, &reference{MessageID: m.wire.ID, ChannelID: ch.ID, GuildID: ch.guild.ID}
	starter.wire.Referenced, _ = json.Marshal(s.shown(m, c.host))
	t.messages = append(t.messages, starter)
	s.announce("MESSAGE_CREATE", t, starter, c.host)
	return t.object(), nil
}

func (s *Server) createThread(c *request) (any, *apiError) {
	ch, err := s.visible(c)
	if err != nil {
		return nil, err
	}
	in, err := s.threadBody(c, ch)
	if err != nil {
		return nil, err
	}
	return s.thread(ch, s.snowflake(), in.Name, &s.bot).object(), nil
}

func (s *Server) thread(parent *Channel, id, name string, owner *User) *Channel {
	t := &Channel{ID: id, Name: name, Kind: KindThread, Parent: parent, s: s, guild: parent.guild, denied: map[string]bool{}}
	s.channels[id] = t
	parent.guild.channels = append(parent.guild.channels, t)
	if t.may(View) {
		s.dispatch("THREAD_CREATE", IntentGuilds, func(int) any {
			o := t.object()
			o["newly_created"], o["owner_id"] = true, owner.ID
			return o
		})
	}
	return t
}

// host is where files are said to be when no request tells.
func (s *Server) host() string { return s.opt.Host }

func expireAll(files map[string]*File) {
	for _, f := range files {
		f.expired = true
	}
}

// ExpireFiles makes every address of a file given so far invalid, as time does.
func (s *Server) ExpireFiles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	expireAll(s.files)
}
