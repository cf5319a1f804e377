package discord

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// DefaultToken is the bot's token when Options has none. Its middle and end are the secret.
const DefaultToken = "MTIzNDU2Nzg5MDEyMzQ1Njc4.GwIrEw.wireWireWireWireWireWireWireWireWire0"

// Intents of the gateway.
const (
	IntentGuilds         = 1 << 0
	IntentGuildMessages  = 1 << 9
	IntentDirectMessages = 1 << 12
	IntentMessageContent = 1 << 15
	privileged           = 1<<1 | 1<<8 | IntentMessageContent
)

// Options of a server. The zero value works: one bot with the Message Content intent, no rate limits.
type Options struct {
	Token          string
	Username       string        // deer_bot
	NoContent      bool          // the Message Content intent is not switched on for the bot
	Limits         bool          // enforce the rate limits
	Heartbeat      time.Duration // interval told to clients, default 41.25 s
	Now            func() time.Time
	SayFirst       []int         // opcodes sent instead of an answer to IDENTIFY or RESUME, one a connection
	NonceWindow    time.Duration // how long a nonce is remembered, default 5 min
	MaxAttachments int64         // bytes of an upload, default 10 MiB
	Host           string        // where files are, as host:port; SetHost sets it later
}

// Server is Discord for one bot. Create it with New.
type Server struct {
	opt Options
	bot User
	app string // application id

	mu           sync.Mutex
	last         int64 // snowflake
	guilds       []*Guild
	channels     map[string]*Channel
	users        map[string]*User
	dms          map[string]*Channel
	files        map[string]*File
	sessions     map[string]*session
	conns        map[*conn]bool
	frozen       bool
	interactions map[string]*Interaction
	commands     map[string][]Command
	puts         int
	nonces       map[string]nonce
	pings        []Ping
	faults       []*Fault
	down         bool
	calls        []Call
	counts       map[string]int
	buckets      map[string]*bucket
	identifies   int
	resumes      int
	changed      signal
}

type nonce struct {
	msg *stored
	at  time.Time
}

// New makes a server with its bot and an empty world.
func New(o Options) *Server {
	if o.Token == "" {
		o.Token = DefaultToken
	}
	if o.Username == "" {
		o.Username = "deer_bot"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 41250 * time.Millisecond
	}
	if o.NonceWindow == 0 {
		o.NonceWindow = 5 * time.Minute
	}
	if o.MaxAttachments == 0 {
		o.MaxAttachments = 10 << 20
	}
	s := &Server{
		opt: o, channels: make(map[string]*Channel), users: make(map[string]*User), dms: make(map[string]*Channel),
		files: make(map[string]*File), sessions: make(map[string]*session), conns: make(map[*conn]bool),
		interactions: make(map[string]*Interaction), commands: make(map[string][]Command), nonces: make(map[string]nonce),
		counts: make(map[string]int), buckets: make(map[string]*bucket),
	}
	s.bot = User{ID: s.snowflake(), Username: o.Username, GlobalName: "Deer", Bot: true}
	s.app = s.bot.ID
	s.users[s.bot.ID] = &s.bot
	return s
}

// Token is the bot's token.
func (s *Server) Token() string { return s.opt.Token }

// Bot is the bot's account.
func (s *Server) Bot() User { return s.bot }

const epoch = 1420070400000 // first millisecond of 2015

// snowflake makes the next id. Ids sort by time.
func (s *Server) snowflake() string {
	id := (s.opt.Now().UnixMilli() - epoch) << 22
	s.last = max(id, s.last+1)
	return strconv.FormatInt(s.last, 10)
}

// ServeHTTP serves the API under /api/v10, the gateway under /gateway and files under /cdn.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/gateway"):
		s.gateway(w, r)
	case strings.HasPrefix(path, "/cdn/"):
		s.cdn(w, r)
	case strings.HasPrefix(path, "/api/v10/"):
		s.api(w, r, strings.Split(path[len("/api/v10/"):], "/"))
	case strings.HasPrefix(path, "/api/"):
		write(w, nil, &apiError{Status: 400, Code: 50041, Message: "Invalid API version specified"})
	default:
		write(w, nil, notFound)
	}
}

type handler func(s *Server, c *request) (any, *apiError)

// route finds the handler of a request and its name for faults and logs.
func route(method string, p []string) (string, handler, bool) {
	is := func(m string, pattern ...string) bool {
		if m != method || len(p) != len(pattern) {
			return false
		}
		for i := range p {
			if pattern[i] != "*" && pattern[i] != p[i] {
				return false
			}
		}
		return true
	}
	switch {
	case is("GET", "users", "@me"):
		return "getMe", (*Server).getMe, true
	case is("GET", "applications", "@me"):
		return "getApplication", (*Server).getApplication, true
	case is("GET", "gateway", "bot"):
		return "gatewayBot", (*Server).gatewayBot, true
	case is("GET", "channels", "*"):
		return "getChannel", (*Server).getChannel, true
	case is("PATCH", "channels", "*"):
		return "editChannel", (*Server).editChannel, true
	case is("GET", "channels", "*", "messages"):
		return "listMessages", (*Server).listMessages, true
	case is("POST", "channels", "*", "messages"):
		return "createMessage", (*Server).createMessage, true
	case is("GET", "channels", "*", "messages", "*"):
		return "getMessage", (*Server).getMessage, true
	case is("PATCH", "channels", "*", "messages", "*"):
		return "editMessage", (*Server).editMessage, true
	case is("DELETE", "channels", "*", "messages", "*"):
		return "deleteMessage", (*Server).deleteMessage, true
	case is("POST", "channels", "*", "typing"):
		return "typing", (*Server).typing, true
	case is("POST", "channels", "*", "messages", "*", "threads"):
		return "startThread", (*Server).startThread, true
	case is("POST", "channels", "*", "threads"):
		return "createThread", (*Server).createThread, true
	case is("GET", "guilds", "*"):
		return "getGuild", (*Server).getGuild, true
	case is("GET", "guilds", "*", "threads", "active"):
		return "activeThreads", (*Server).activeThreads, true
	case is("GET", "applications", "*", "commands"), is("GET", "applications", "*", "guilds", "*", "commands"):
		return "getCommands", (*Server).getCommands, true
	case is("PUT", "applications", "*", "commands"), is("PUT", "applications", "*", "guilds", "*", "commands"):
		return "putCommands", (*Server).putCommands, true
	case is("POST", "interactions", "*", "*", "callback"):
		return "interactionCallback", (*Server).interactionCallback, false
	case is("POST", "webhooks", "*", "*"):
		return "followup", (*Server).followup, false
	case is("PATCH", "webhooks", "*", "*", "messages", "@original"):
		return "editOriginal", (*Server).editOriginal, false
	}
	return "", nil, true
}

func (s *Server) api(w http.ResponseWriter, r *http.Request, p []string) {
	name, h, auth := route(r.Method, p)
	c, err := parseRequest(r, name, p)
	s.mu.Lock()
	fault := s.takeFault(c)
	s.mu.Unlock()
	if fault != nil && s.obey(w, r, c, fault) {
		return
	}
	switch {
	case auth && r.Header.Get("Authorization") != "Bot "+s.opt.Token:
		err = unauthorized
	case err != nil:
	case !strings.HasPrefix(r.UserAgent(), "DiscordBot ("):
		// developers/reference#user-agent: other agents may be blocked by Cloudflare.
		err = &apiError{Status: 403, Code: 40333, Message: "internal network error"}
	case h == nil:
		err = &apiError{Status: 404, Message: "404: Not Found"}
	}
	var result any
	s.mu.Lock()
	if err == nil {
		err = s.limit(w, c)
	}
	if err == nil {
		result, err = h(s, c)
	}
	s.record(c, err)
	s.changed.fire()
	s.mu.Unlock()
	if fault != nil && fault.Drop == DropAfter {
		panic(http.ErrAbortHandler)
	}
	write(w, result, err)
}

// Call is one call in the log.
type Call struct {
	Name    string
	Channel string
	Status  int
	Code    int
	At      time.Time
	Body    []byte // JSON
}

// record is called with the lock held.
func (s *Server) record(c *request, e *apiError) {
	call := Call{Name: c.name, Channel: c.channel, Status: 200, At: s.opt.Now(), Body: c.body}
	if e != nil {
		call.Status, call.Code = e.Status, e.Code
	}
	if len(s.calls) < 100_000 {
		s.calls = append(s.calls, call)
	}
	s.counts[c.name]++
	s.counts[strconv.Itoa(call.Status)]++
}

func write(w http.ResponseWriter, result any, e *apiError) {
	status := http.StatusOK
	if e != nil {
		status, result = e.Status, e
		if e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter+0.999)))
			w.Header().Set("X-RateLimit-Scope", e.scope)
			if e.Global {
				w.Header().Set("X-RateLimit-Global", "true")
			}
			result = map[string]any{"message": e.Message, "retry_after": e.RetryAfter, "global": e.Global}
		}
	}
	if result == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	body, err := json.Marshal(result)
	if err != nil {
		panic(err) // our own types always marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
