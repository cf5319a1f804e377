package slack

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of texts.
const (
	maxPost = 40_000 // longer is cut by Slack; refused here
	maxEdit = 4000   // chat.update
)

func (s *Server) authTest(r *request) (obj, *apiError) {
	return obj{
		"url": "https://wire.slack.com/", "team": "Wire", "user": s.opt.BotName, "team_id": TeamID, "user_id": BotUser, "bot_id": BotID,
		"is_enterprise_install": false,
	}, nil
}

// at is the channel of a call, with the checks of one that writes.
func (s *Server) at(r *request, writes bool) (*Channel, *apiError) {
	id := r.Get("channel")
	if id == "" {
		return nil, fail("channel_not_found")
	}
	if u := s.users[id]; u != nil && writes && r.Method == "chat.postMessage" {
		return s.dm(id), nil
	}
	c := s.channels[id]
	switch {
	case c == nil:
		return nil, fail("channel_not_found")
	case !c.member:
		return nil, fail("not_in_channel")
	case writes && c.archived:
		return nil, fail("is_archived")
	}
	return c, nil
}

// content reads and checks text and blocks.
func content(r *request, limit int) (text string, blocks json.RawMessage, e *apiError) {
	text = r.Get("text")
	if b := r.Get("blocks"); b != "" {
		blocks = json.RawMessage(b)
		if e := checkBlocks(blocks); e != nil {
			return "", nil, e
		}
		if string(blocks) == "[]" {
			blocks = nil
		}
	}
	if strings.TrimSpace(text) == "" && blocks == nil {
		return "", nil, fail("no_text")
	}
	if utf8.RuneCountInString(text) > limit {
		return "", nil, fail("msg_too_long")
	}
	return text, blocks, nil
}

func (s *Server) postMessage(r *request) (obj, *apiError) {
	c, e := s.at(r, true)
	if e != nil {
		return nil, e
	}
	text, blocks, e := content(r, maxPost)
	if e != nil {
		return nil, e
	}
	m := &message{ts: s.ts(), user: s.users[BotUser], text: text, blocks: blocks, plain: r.Get("mrkdwn") == "false"}
	if t := r.Get("thread_ts"); t != "" {
		if !slices.ContainsFunc(c.messages, func(o *message) bool { return o.ts == t }) {
			return nil, fail("thread_not_found")
		}
		m.thread = t
	}
	if meta := r.Get("metadata"); meta != "" {
		if m.metadata, e = checkMetadata(meta); e != nil {
			return nil, e
		}
	}
	c.messages = append(c.messages, m)
	ev := c.wire(m)
	ev["channel"], ev["channel_type"], ev["event_ts"] = c.id, c.kind, m.ts
	s.event(ev) // a bot's own messages come back
	return obj{"channel": c.id, "ts": m.ts, "message": c.wire(m)}, nil
}

func checkMetadata(raw string) (json.RawMessage, *apiError) {
	var meta struct {
		Type    string          `json:"event_type"`
		Payload json.RawMessage `json:"event_payload"`
	}
	if json.Unmarshal([]byte(raw), &meta) != nil || meta.Type == "" || len(meta.Payload) == 0 {
		return nil, fail("invalid_metadata_format")
	}
	if len(raw) > 16_000 {
		return nil, fail("metadata_too_large")
	}
	return json.RawMessage(raw), nil
}

func (s *Server) postEphemeral(r *request) (obj, *apiError) {
	c, e := s.at(r, true)
	if e != nil {
		return nil, e
	}
	text, blocks, e := content(r, maxPost)
	if e != nil {
		return nil, e
	}
	u := s.users[r.Get("user")]
	if u == nil {
		return nil, fail("user_not_in_channel")
	}
	m := &message{ts: s.ts(), thread: r.Get("thread_ts"), user: s.users[BotUser], text: text, blocks: blocks, ephemeral: u.ID}
	c.messages = append(c.messages, m)
	return obj{"message_ts": m.ts}, nil
}

// own is a message of the bot.
func (s *Server) own(r *request, missing, foreign string) (*Channel, *message, *apiError) {
	c, e := s.at(r, true)
	if e != nil {
		return nil, nil, e
	}
	m := c.find(r.Get("ts"))
	if m == nil {
		return nil, nil, fail(missing)
	}
	if m.user.ID != BotUser {
		return nil, nil, fail(foreign)
	}
	return c, m, nil
}

func (s *Server) update(r *request) (obj, *apiError) {
	c, m, e := s.own(r, "message_not_found", "cant_update_message")
	if e != nil {
		return nil, e
	}
	text, blocks, e := content(r, maxEdit)
	if e != nil {
		return nil, e
	}
	before := c.wire(m)
	m.text, m.blocks, m.edited, m.plain = text, blocks, s.ts(), r.Get("mrkdwn") == "false"
	if meta := r.Get("metadata"); meta == "{}" {
		m.metadata = nil
	} else if meta != "" {
		if m.metadata, e = checkMetadata(meta); e != nil {
			return nil, e
		}
	}
	m.edits++
	c.changed(m, before)
	return obj{"channel": c.id, "ts": m.ts, "text": m.text}, nil
}

func (s *Server) remove(r *request) (obj, *apiError) {
	c, m, e := s.own(r, "message_not_found", "cant_delete_message")
	if e != nil {
		return nil, e
	}
	c.removed(m)
	return obj{"channel": c.id, "ts": m.ts}, nil
}

func (s *Server) reaction(r *request) (*message, *apiError) {
	c, e := s.at(r, true)
	if e != nil {
		return nil, e
	}
	m := c.find(r.Get("timestamp"))
	if m == nil {
		return nil, fail("message_not_found")
	}
	if r.Get("name") == "" || strings.ContainsAny(r.Get("name"), ": ") {
		return nil, fail("invalid_name")
	}
	return m, nil
}

func (s *Server) react(r *request) (obj, *apiError) {
	m, e := s.reaction(r)
	if e != nil {
		return nil, e
	}
	if slices.Contains(m.reactions, r.Get("name")) {
		return nil, fail("already_reacted")
	}
	m.reactions = append(m.reactions, r.Get("name"))
	return nil, nil
}

func (s *Server) unreact(r *request) (obj, *apiError) {
	m, e := s.reaction(r)
	if e != nil {
		return nil, e
	}
	i := slices.Index(m.reactions, r.Get("name"))
	if i < 0 {
		return nil, fail("no_reaction")
	}
	m.reactions = slices.Delete(m.reactions, i, i+1)
	return nil, nil
}

func (s *Server) info(r *request) (obj, *apiError) {
	c := s.channels[r.Get("channel")]
	if c == nil {
		return nil, fail("channel_not_found")
	}
	o := obj{
		"id": c.id, "name": c.name, "is_channel": c.kind == "channel", "is_group": c.kind == "group", "is_im": c.kind == "im",
		"is_mpim": c.kind == "mpim", "is_private": c.kind != "channel", "is_archived": c.archived, "is_member": c.member,
	}
	if c.user != "" {
		o["user"] = c.user
	}
	return obj{"channel": o}, nil
}

func (s *Server) openDM(r *request) (obj, *apiError) {
	if s.users[r.Get("users")] == nil {
		return nil, fail("user_not_found")
	}
	return obj{"channel": obj{"id": s.dm(r.Get("users")).id}}, nil
}

// page answers with messages, newest first for history.
func (s *Server) page(r *request, c *Channel, in []*message) obj {
	limit, err := strconv.Atoi(r.Get("limit"))
	if err != nil || limit <= 0 || limit > 999 {
		limit = 100
	}
	oldest, latest, inclusive := r.Get("oldest"), r.Get("latest"), r.Get("inclusive") == "true" || r.Get("inclusive") == "1"
	after, _ := strconv.Atoi(r.Get("cursor"))
	var out []obj
	more := false
	for i, m := range in {
		if i < after {
			continue
		}
		if oldest != "" && (m.ts < oldest || m.ts == oldest && !inclusive) || latest != "" && (m.ts > latest || m.ts == latest && !inclusive) {
			continue
		}
		if len(out) == limit {
			more, after = true, i
			break
		}
		o := c.wire(m)
		if r.Get("include_all_metadata") == "true" || r.Get("include_all_metadata") == "1" {
			if m.metadata != nil {
				o["metadata"] = m.metadata
			}
		}
		out = append(out, o)
	}
	res := obj{"messages": out, "has_more": more}
	if out == nil {
		res["messages"] = []obj{}
	}
	if more {
		res["response_metadata"] = obj{"next_cursor": strconv.Itoa(after)}
	}
	return res
}

func (s *Server) history(r *request) (obj, *apiError) {
	c, e := s.at(r, false)
	if e != nil {
		return nil, e
	}
	var in []*message
	for _, m := range slices.Backward(c.messages) {
		if !m.deleted && m.ephemeral == "" && (m.thread == "" || m.subtype == "thread_broadcast") {
			in = append(in, m)
		}
	}
	return s.page(r, c, in), nil
}

func (s *Server) replies(r *request) (obj, *apiError) {
	c, e := s.at(r, false)
	if e != nil {
		return nil, e
	}
	ts := r.Get("ts")
	if m := c.find(ts); m != nil && m.thread != "" {
		ts = m.thread
	}
	var in []*message
	for _, m := range c.messages {
		if !m.deleted && m.ephemeral == "" && (m.ts == ts || m.thread == ts) {
			in = append(in, m)
		}
	}
	if len(in) == 0 {
		return nil, fail("thread_not_found")
	}
	res := s.page(r, c, in)
	// The root is always first, whatever oldest says.
	if msgs, _ := res["messages"].([]obj); in[0].ts == ts && (len(msgs) == 0 || msgs[0]["ts"] != ts) {
		res["messages"] = append([]obj{c.wire(in[0])}, msgs...)
	}
	return res, nil
}

func (s *Server) userInfo(r *request) (obj, *apiError) {
	u := s.users[r.Get("user")]
	if u == nil {
		return nil, fail("user_not_found")
	}
	return obj{"user": obj{
		"id": u.ID, "team_id": TeamID, "name": u.Name, "real_name": u.RealName, "is_bot": u.Bot, "locale": u.Locale,
		"profile": obj{"real_name": u.RealName, "display_name": u.RealName},
	}}, nil
}

func (s *Server) setStatus(r *request) (obj, *apiError) {
	c := s.channels[r.Get("channel_id")]
	if c == nil {
		return nil, fail("channel_not_found")
	}
	t := r.Get("thread_ts")
	if t == "" {
		return nil, fail("invalid_thread_ts")
	}
	if c.find(t) == nil {
		return nil, fail("thread_not_found")
	}
	s.statuses = append(s.statuses, Status{c.id, t, r.Get("status")})
	return nil, nil
}

// serveResponse takes what is posted to a response_url.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request, path string) {
	s.mu.Lock()
	f := s.takeFault("response_url", "")
	s.mu.Unlock()
	if f != nil && f.answers() {
		f.write(w)
		return
	}
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "a token was sent to a response_url", http.StatusBadRequest)
		return
	}
	v, _, err := decode(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.fire()
	res := s.triggers[path]
	if err != nil || res == nil || res.left == 0 {
		http.Error(w, "used_url", http.StatusNotFound)
		return
	}
	res.left--
	if v.Get("text") == "" {
		http.Error(w, "no_text", http.StatusBadRequest)
		return
	}
	if v.Get("replace_original") != "false" && v.Get("response_type") != "ephemeral" {
		http.Error(w, "the original would be replaced", http.StatusBadRequest)
		return
	}
	res.notices = append(res.notices, v.Get("text"))
	_, _ = w.Write([]byte("ok"))
}
