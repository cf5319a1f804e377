package telegram

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// DefaultToken is the bot's token when Options has none.
const DefaultToken = "700001:AAwireWireWireWireWireWireWireWire00"

// Options of a server. The zero value works: one bot, no rate limits.
type Options struct {
	Token    string           // bot token, "<id>:<secret>"
	Username string           // deer_bot
	Name     string           // Deer
	Privacy  bool             // privacy mode: in groups only commands, mentions and replies reach the bot
	Limits   *Limits          // nil: none
	CallLog  int              // calls kept for Calls, default 100,000, <0 none; counters are always kept
	Now      func() time.Time // default time.Now
}

// Server is the Bot API of one bot and the world around it. Create it with New.
type Server struct {
	opt Options
	bot User

	mu       sync.Mutex
	ids      counters
	chats    map[int64]*Chat
	users    map[int64]*User
	queue    []queued
	allowed  map[string]bool // nil: the default set
	poll     *poll
	webhook  string
	files    map[string]*storedFile // by file id
	paths    map[string]*storedFile // by file path
	queries  map[string]*Press
	commands map[string][]Command
	faults   []*Fault
	down     bool
	cut      chan struct{}
	log      callLog
	rate     rate
	changed  signal
}

// counters number things; message ids of private chats and basic groups are one sequence of the account.
type counters struct {
	user, group, super int64
	message            int
	update             int64
	file, query, album int
}

// New makes a server with its bot and an empty world.
func New(o Options) *Server {
	if o.Token == "" {
		o.Token = DefaultToken
	}
	if o.Username == "" {
		o.Username = "deer_bot"
	}
	if o.Name == "" {
		o.Name = "Deer"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.CallLog == 0 {
		o.CallLog = 100_000
	}
	head, _, _ := strings.Cut(o.Token, ":")
	id, _ := strconv.ParseInt(head, 10, 64)
	return &Server{
		opt:      o,
		bot:      User{ID: id, IsBot: true, FirstName: o.Name, Username: o.Username},
		ids:      counters{user: 1000, group: 4000, super: 1001000000000, message: 100, update: 900_000_000},
		chats:    make(map[int64]*Chat),
		users:    make(map[int64]*User),
		files:    make(map[string]*storedFile),
		paths:    make(map[string]*storedFile),
		queries:  make(map[string]*Press),
		commands: make(map[string][]Command),
		cut:      make(chan struct{}),
		log:      callLog{keep: o.CallLog, counts: make(map[string]int)},
	}
}

// Token is the bot's token.
func (s *Server) Token() string { return s.opt.Token }

// Bot is the bot's account.
func (s *Server) Bot() User { return s.bot }

// ServeHTTP serves the Bot API, the files and the control endpoints.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/control/"):
		s.control(w, r)
	case strings.HasPrefix(path, "/file/bot"):
		s.serveFile(w, r, path[len("/file/bot"):])
	case strings.HasPrefix(path, "/bot"):
		s.serveMethod(w, r, path[len("/bot"):])
	default:
		write(w, nil, &apiError{Code: 404, Text: "Not Found"})
	}
}

type handler func(s *Server, c *request) (any, *apiError)

// methods by lower-case name: the real server ignores case too.
var methods map[string]handler

func init() {
	methods = map[string]handler{
		"getme":                  func(s *Server, _ *request) (any, *apiError) { return s.getMe(), nil },
		"getupdates":             (*Server).getUpdates,
		"deletewebhook":          (*Server).deleteWebhook,
		"getwebhookinfo":         (*Server).webhookInfo,
		"sendmessage":            (*Server).sendMessage,
		"editmessagetext":        (*Server).editText,
		"editmessagecaption":     (*Server).editCaption,
		"editmessagereplymarkup": (*Server).editMarkup,
		"deletemessage":          (*Server).deleteMessage,
		"sendchataction":         (*Server).chatAction,
		"senddocument":           (*Server).sendDocument,
		"sendphoto":              (*Server).sendPhoto,
		"sendmediagroup":         (*Server).sendMediaGroup,
		"getfile":                (*Server).getFile,
		"setmycommands":          (*Server).setCommands,
		"getmycommands":          (*Server).getCommands,
		"answercallbackquery":    (*Server).answerQuery,
		"setmessagereaction":     (*Server).setReaction,
	}
}

// serveMethod serves {token}/{method}.
func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, rest string) {
	token, method, ok := strings.Cut(rest, "/")
	c, err := parseRequest(r, method)
	c.At = s.opt.Now()
	s.mu.Lock()
	down, cut := s.down, s.cut
	fault := s.takeFault(c)
	s.mu.Unlock()
	c.cut = cut
	if down {
		s.record(c, 0, "connection refused by SetDown")
		panic(http.ErrAbortHandler)
	}
	if fault != nil {
		s.obeyDelay(r, c, fault)
		if fault.Drop == DropBefore {
			s.record(c, 0, "dropped before")
			panic(http.ErrAbortHandler)
		}
		if fault.Code != 0 {
			s.answerFault(w, c, fault)
			return
		}
	}
	var result any
	h := methods[strings.ToLower(method)]
	switch {
	case token != s.opt.Token && !wellFormed(token):
		err = &apiError{Code: 404, Text: "Not Found"}
	case token != s.opt.Token:
		err = &apiError{Code: 401, Text: "Unauthorized"}
	case err != nil:
	case !ok || h == nil:
		err = &apiError{Code: 404, Text: "Not Found: method not found"}
	default:
		result, err = h(s, c)
	}
	code, text := 200, ""
	if err != nil {
		code, text, c.RetryAfter = err.Code, err.Text, err.RetryAfter
	}
	s.record(c, code, text)
	if fault != nil && fault.Drop == DropAfter {
		panic(http.ErrAbortHandler)
	}
	write(w, result, err)
}

// wellFormed reports whether token looks like one; the real server answers 404 when not, 401 when so.
func wellFormed(token string) bool {
	id, secret, ok := strings.Cut(token, ":")
	_, err := strconv.ParseInt(id, 10, 64)
	return ok && err == nil && secret != ""
}

func write(w http.ResponseWriter, result any, e *apiError) {
	a := answer{OK: true, Result: result}
	code := http.StatusOK
	if e != nil {
		a = answer{ErrorCode: e.Code, Description: e.Text}
		code = e.Code
		if e.RetryAfter > 0 || e.MigrateTo != 0 {
			a.Parameters = &parameters{RetryAfter: e.RetryAfter, MigrateTo: e.MigrateTo}
		}
		if e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
		}
	}
	body, err := json.Marshal(a)
	if err != nil {
		panic(err) // our own types always marshal
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

func (s *Server) getMe() me {
	return me{User: s.bot, CanJoinGroups: true, CanReadAllGroupMessages: !s.opt.Privacy}
}
