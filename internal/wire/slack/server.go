package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Tokens of the app when Options has none.
const (
	DefaultBotToken = "xoxb-1000-2000-wireWireWireWireWire"
	DefaultAppToken = "xapp-1-A0DEER-3000-wireWireWireWire"
)

// Options of a server. The zero value works: one app in one workspace, no rate limits.
type Options struct {
	BotToken, AppToken string
	BotName            string        // deer
	Scopes             []string      // granted to the bot token; nil grants all
	Limits             *Limits       // nil: none
	AckTimeout         time.Duration // an envelope not acknowledged is sent again after it; 3 s
	PingEvery          time.Duration // of the socket; 5 s
	Now                func() time.Time
}

// Server is Slack for one app in one workspace. Create it with New and close it with Close.
type Server struct {
	opt      Options
	upgrader *upgrader

	mu       sync.Mutex
	n        int // numbers things
	lastTS   int64
	users    map[string]*User
	channels map[string]*Channel
	files    map[string]*file
	triggers map[string]*response // by path of response_url
	tickets  map[string]bool
	socks    []*sock
	unacked  []*envelope
	faults   []*Fault
	calls    []Call
	posts    map[string]time.Time // last post by channel
	used     map[string][]time.Time
	opens    []time.Time
	statuses []Status
	down     bool
	closed   bool
	changed  signal
	wg       sync.WaitGroup
}

// Ids of the app.
const (
	TeamID  = "T0WIRE"
	AppID   = "A0DEER"
	BotID   = "B0DEER"
	BotUser = "U0DEER"
)

// New makes a server with its app and an empty workspace.
func New(o Options) *Server {
	if o.BotToken == "" {
		o.BotToken = DefaultBotToken
	}
	if o.AppToken == "" {
		o.AppToken = DefaultAppToken
	}
	if o.BotName == "" {
		o.BotName = "deer"
	}
	if o.AckTimeout == 0 {
		o.AckTimeout = 3 * time.Second
	}
	if o.PingEvery == 0 {
		o.PingEvery = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{
		opt: o, upgrader: newUpgrader(), users: map[string]*User{}, channels: map[string]*Channel{}, files: map[string]*file{},
		triggers: map[string]*response{}, tickets: map[string]bool{}, posts: map[string]time.Time{}, used: map[string][]time.Time{},
	}
	s.users[BotUser] = &User{ID: BotUser, Name: o.BotName, RealName: o.BotName, Bot: true}
	return s
}

// Tokens are the bot's and the app's.
func (s *Server) Tokens() (bot, app string) { return s.opt.BotToken, s.opt.AppToken }

// Close ends all sockets and waits for them.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for _, e := range s.unacked {
		e.stop()
	}
	s.mu.Unlock()
	s.Cut()
	s.wg.Wait()
}

// Call is one call of the Web API.
type Call struct {
	Method string
	Params url.Values
	Error  string // "" for ok; "http 502" and the like for what is no answer of Slack
	At     time.Time
}

// Calls are the calls of a method, of all methods for "".
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c Call) bool { return method != "" && c.Method != method })
}

func (s *Server) id(kind string) string {
	s.n++
	return fmt.Sprintf("%s%08d", kind, s.n)
}

// ts is a new timestamp, later than all before.
func (s *Server) ts() string {
	n := max(s.opt.Now().UnixMicro(), s.lastTS+1)
	s.lastTS = n
	return fmt.Sprintf("%d.%06d", n/1e6, n%1e6)
}

// ServeHTTP serves /api/, the socket, files, uploads and response URLs.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/api/"):
		s.serveMethod(w, r, path[len("/api/"):])
	case path == "/link":
		s.serveSocket(w, r)
	case strings.HasPrefix(path, "/upload/"):
		s.serveUpload(w, r, path[len("/upload/"):])
	case strings.HasPrefix(path, "/files-pri/"):
		s.serveFile(w, r, path[len("/files-pri/"):])
	case strings.HasPrefix(path, "/actions/"):
		s.serveResponse(w, r, path)
	default:
		http.NotFound(w, r)
	}
}

// apiError is an answer that is not ok.
type apiError struct {
	code     string
	messages []string
	extra    map[string]any
}

func fail(code string) *apiError { return &apiError{code: code} }

func invalidBlocks(format string, a ...any) *apiError {
	return &apiError{code: "invalid_blocks", messages: []string{"[ERROR] " + fmt.Sprintf(format, a...)}}
}

type obj = map[string]any

type method struct {
	run   func(*Server, *request) (obj, *apiError)
	scope string // "" none; alternatives by "|"
	app   bool   // wants the app-level token
	tier  int
}

// request is one call, checked and decoded.
type request struct {
	Method string
	url.Values
	host string
}

var methods map[string]method

func init() {
	methods = map[string]method{
		"auth.test":                    {run: (*Server).authTest, tier: 4},
		"apps.connections.open":        {run: (*Server).openConnection, app: true, tier: 3},
		"chat.postMessage":             {run: (*Server).postMessage, scope: "chat:write"},
		"chat.postEphemeral":           {run: (*Server).postEphemeral, scope: "chat:write", tier: 4},
		"chat.update":                  {run: (*Server).update, scope: "chat:write", tier: 3},
		"chat.delete":                  {run: (*Server).remove, scope: "chat:write", tier: 3},
		"reactions.add":                {run: (*Server).react, scope: "reactions:write", tier: 3},
		"reactions.remove":             {run: (*Server).unreact, scope: "reactions:write", tier: 2},
		"conversations.info":           {run: (*Server).info, scope: "channels:read", tier: 3},
		"conversations.history":        {run: (*Server).history, scope: "channels:history", tier: 3},
		"conversations.replies":        {run: (*Server).replies, scope: "channels:history", tier: 3},
		"conversations.open":           {run: (*Server).openDM, scope: "im:write", tier: 3},
		"users.info":                   {run: (*Server).userInfo, scope: "users:read", tier: 4},
		"files.getUploadURLExternal":   {run: (*Server).uploadURL, scope: "files:write", tier: 4},
		"files.completeUploadExternal": {run: (*Server).completeUpload, scope: "files:write", tier: 4},
		"files.info":                   {run: (*Server).fileInfo, scope: "files:read", tier: 4},
		"files.delete":                 {run: (*Server).fileDelete, scope: "files:write", tier: 3},
		"assistant.threads.setStatus":  {run: (*Server).setStatus, scope: "assistant:write|chat:write"},
	}
}

func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, name string) {
	values, token, err := decode(r)
	s.mu.Lock()
	fault := s.takeFault(name, values.Get("channel"))
	s.mu.Unlock()
	if fault != nil {
		fault.wait(r)
		if fault.DropBefore {
			s.record(name, values, "dropped before")
			panic(http.ErrAbortHandler)
		}
		if fault.answers() {
			s.record(name, values, fault.text())
			fault.write(w)
			return
		}
	}
	if err != nil {
		s.record(name, values, "invalid_form_data")
		write(w, obj{"ok": false, "error": "invalid_form_data"})
		return
	}
	res, apiErr, retry := s.call(name, token, values, r.Host)
	switch {
	case retry > 0:
		s.record(name, values, "ratelimited")
		writeLimited(w, retry)
		return
	case apiErr != nil:
		s.record(name, values, apiErr.code)
		res = obj{"ok": false, "error": apiErr.code}
		if len(apiErr.messages) > 0 {
			res["response_metadata"] = obj{"messages": apiErr.messages}
		}
		maps.Copy(res, apiErr.extra)
	default:
		s.record(name, values, "")
		res["ok"] = true
	}
	if fault != nil && fault.DropAfter {
		panic(http.ErrAbortHandler)
	}
	write(w, res)
}

func (s *Server) call(name, token string, values url.Values, host string) (obj, *apiError, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.fire()
	m, ok := methods[name]
	if !ok {
		return nil, fail("unknown_method"), 0
	}
	if e := s.authorize(m, token); e != nil {
		return nil, e, 0
	}
	if wait := s.limited(name, m.tier, values.Get("channel")); wait > 0 {
		return nil, nil, wait
	}
	res, e := m.run(s, &request{Method: name, Values: values, host: host})
	if res == nil {
		res = obj{}
	}
	return res, e, 0
}

func (s *Server) authorize(m method, token string) *apiError {
	want := s.opt.BotToken
	if m.app {
		want = s.opt.AppToken
	}
	switch {
	case token == "":
		return fail("not_authed")
	case token != want && (token == s.opt.BotToken || token == s.opt.AppToken):
		return fail("not_allowed_token_type")
	case token != want:
		return fail("invalid_auth")
	}
	if m.scope == "" || s.opt.Scopes == nil {
		return nil
	}
	for alt := range strings.SplitSeq(m.scope, "|") {
		if slices.Contains(s.opt.Scopes, alt) {
			return nil
		}
	}
	needed, _, _ := strings.Cut(m.scope, "|")
	return &apiError{code: "missing_scope", extra: obj{"needed": needed, "provided": strings.Join(s.opt.Scopes, ",")}}
}

func (s *Server) record(name string, v url.Values, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v = maps.Clone(v)
	v.Del("token")
	s.calls = append(s.calls, Call{Method: name, Params: v, Error: text, At: s.opt.Now()})
	s.changed.fire()
}

// decode reads the parameters of a call from a form, JSON or the query.
func decode(r *http.Request) (url.Values, string, error) {
	values := r.URL.Query()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return values, token, err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind == "application/json" && len(body) > 0:
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			return values, token, err
		}
		for k, v := range fields {
			var str string
			if json.Unmarshal(v, &str) != nil {
				str = string(v)
			}
			values.Set(k, str)
		}
	case len(body) > 0:
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return values, token, err
		}
		maps.Copy(values, form)
	}
	if token == "" {
		token = values.Get("token")
	}
	return values, token, nil
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}
