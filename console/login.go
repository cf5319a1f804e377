package console

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

//go:embed login.html
var loginSource string

//go:embed login.css
var loginStyle []byte

const (
	cookieName = "deerbot_session"
	sessionFor = 30 * 24 * time.Hour
)

// login checks tokens and sessions.
type login struct {
	s     *Server
	tmpl  *template.Template
	token [sha256.Size]byte // hash of the token, so that comparing takes the same time for every length
	key   []byte            // signs sessions; another token makes another key
	tries guesses
}

func newLogin(s *Server) (*login, error) {
	tmpl, err := template.New("login").Parse(loginSource)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, []byte(s.cfg.AuthToken))
	mac.Write([]byte("deerbot console session v1"))
	return &login{
		s: s, tmpl: tmpl, token: sha256.Sum256([]byte(s.cfg.AuthToken)), key: mac.Sum(nil),
		tries: guesses{now: s.cfg.Now},
	}, nil
}

func (l *login) mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		if l.s.cfg.AuthToken == "" || l.session(r) {
			http.Redirect(w, r, next(r.URL.Query().Get("next")), http.StatusSeeOther)
			return
		}
		l.show(w, r, http.StatusOK, "")
	})
	mux.HandleFunc("GET /login/style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(loginStyle)
	})
	mux.HandleFunc("POST /login", l.enter)
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		l.setCookie(w, r, "", -1)
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	})
}

// guard lets through who holds the token or a session.
func (l *login) guard(inner http.Handler) http.Handler {
	if l.s.cfg.AuthToken == "" {
		return inner
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case ok && !l.tries.open(r):
			w.Header().Set("Retry-After", "5")
			http.Error(w, "too many wrong tokens", http.StatusTooManyRequests)
		case ok && l.check(bearer), !ok && l.session(r):
			inner.ServeHTTP(w, r)
		case !ok && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		default:
			if ok {
				l.tries.wrong(r)
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="deerbot"`)
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{
				"code": "unauthorized", "message": "server.auth_token is needed: Authorization: Bearer <token>, or sign in at /login",
			}})
		}
	})
}

func (l *login) check(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], l.token[:]) == 1
}

func (l *login) enter(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	switch {
	case !l.tries.open(r):
		w.Header().Set("Retry-After", "5")
		l.show(w, r, http.StatusTooManyRequests, "slow")
	case l.s.cfg.AuthToken == "" || l.check(strings.TrimSpace(r.PostForm.Get("token"))):
		if l.s.cfg.AuthToken != "" {
			l.setCookie(w, r, l.newSession(), int(sessionFor/time.Second))
		}
		http.Redirect(w, r, next(r.PostForm.Get("next")), http.StatusSeeOther)
	default:
		l.tries.wrong(r)
		l.s.log.Warn("sign-in with a wrong token")
		l.show(w, r, http.StatusUnauthorized, "wrong")
	}
}

// newSession is a signed expiry: expiry "." nonce "." signature.
func (l *login) newSession() string {
	claim := strconv.FormatInt(l.s.cfg.Now().Add(sessionFor).Unix(), 10) + "." + rand.Text()
	return claim + "." + l.sign(claim)
}

func (l *login) sign(claim string) string {
	mac := hmac.New(sha256.New, l.key)
	mac.Write([]byte(claim))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (l *login) session(r *http.Request) bool {
	for _, ck := range r.CookiesNamed(cookieName) {
		i := strings.LastIndexByte(ck.Value, '.')
		if i < 0 || !hmac.Equal([]byte(ck.Value[i+1:]), []byte(l.sign(ck.Value[:i]))) {
			continue
		}
		expiry, _, _ := strings.Cut(ck.Value, ".")
		if t, err := strconv.ParseInt(expiry, 10, 64); err == nil && l.s.cfg.Now().Unix() < t {
			return true
		}
	}
	return false
}

func (l *login) setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

// next is where to go after signing in: a path here, never another site.
func next(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") || strings.HasPrefix(path, "/login") {
		return "/"
	}
	return path
}

type loginData struct {
	Lang, Next, Title, Hint, Label, Button, Error string
}

func (l *login) show(w http.ResponseWriter, r *http.Request, status int, fault string) {
	dest := r.URL.Query().Get("next")
	if r.Method == http.MethodPost {
		dest = r.PostForm.Get("next")
	}
	d := loginTexts(l.lang(r), fault)
	d.Next = next(dest)
	var buf bytes.Buffer
	if err := l.tmpl.Execute(&buf, d); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes())
}

func (l *login) lang(r *http.Request) string {
	switch {
	case l.s.cfg.Lang == "en" || l.s.cfg.Lang == "zh":
		return l.s.cfg.Lang
	case strings.HasPrefix(strings.ToLower(r.Header.Get("Accept-Language")), "zh"):
		return "zh"
	}
	return "en"
}
