package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"deerbot/console"
)

func signIn(t *testing.T, h http.Handler, tok, next string) *httptest.ResponseRecorder {
	t.Helper()
	form := url.Values{"token": {tok}, "next": {next}}
	return ask(h, "POST", "/login", form.Encode(), "Content-Type", "application/x-www-form-urlencoded",
		"Origin", "http://127.0.0.1:8420", "Sec-Fetch-Site", "same-origin")
}

func TestTokenIsNeeded(t *testing.T) {
	s := server(t, withToken)
	tests := []struct {
		name   string
		path   string
		header []string
		want   int
	}{
		{"nothing", "/chat/api/conversations", nil, 401},
		{"bearer", "/chat/api/conversations", []string{"Authorization", "Bearer " + token}, 200},
		{"wrong bearer", "/chat/api/conversations", []string{"Authorization", "Bearer " + token + "x"}, 401},
		{"prefix of the token", "/chat/api/conversations", []string{"Authorization", "Bearer " + token[:5]}, 401},
		{"empty bearer", "/chat/api/conversations", []string{"Authorization", "Bearer "}, 401},
		{"token as cookie", "/chat/api/conversations", []string{"Cookie", "deerbot_session=" + token}, 401},
		{"token in the query", "/chat/api/conversations?token=" + token, nil, 401},
		{"page in a browser", "/", []string{"Accept", "text/html"}, 303},
		{"api", "/api/runs", nil, 401},
	}
	for _, tt := range tests {
		if w := ask(s, "GET", tt.path, "", tt.header...); w.Code != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, w.Code, tt.want)
		}
	}
	if w := ask(s, "GET", "/chat/x?y=1", "", "Accept", "text/html"); w.Header().Get("Location") != "/login?next=%2Fchat%2Fx%3Fy%3D1" {
		t.Errorf("redirect to %s", w.Header().Get("Location"))
	}
}

func TestSignInAndOut(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := server(t, withToken, func(c *console.Config) { c.Now = func() time.Time { return now } })
	page := ask(s, "GET", "/login?next=/chat/", "", "Accept-Language", "zh-CN")
	if body := page.Body.String(); page.Code != 200 || !strings.Contains(body, "令牌") || !strings.Contains(body, `value="/chat/"`) {
		t.Errorf("login page: %d %s", page.Code, body)
	}
	if css := ask(s, "GET", "/login/style.css", ""); css.Code != 200 {
		t.Errorf("style: %d", css.Code)
	}
	if w := signIn(t, s, "wrong", "/"); w.Code != 401 || w.Header().Get("Set-Cookie") != "" || !strings.Contains(w.Body.String(), `role="alert"`) {
		t.Errorf("wrong token: %d", w.Code)
	}
	w := signIn(t, s, token, "/chat/")
	if w.Code != 303 || w.Header().Get("Location") != "/chat/" {
		t.Fatalf("sign in: %d to %s", w.Code, w.Header().Get("Location"))
	}
	ck := w.Result().Cookies()[0]
	if !ck.HttpOnly || ck.SameSite != http.SameSiteStrictMode || ck.Path != "/" || strings.Contains(ck.Value, token) {
		t.Errorf("cookie: %+v", ck)
	}
	try := func(h http.Handler, value string) int {
		return ask(h, "GET", "/chat/api/conversations", "", "Cookie", "deerbot_session="+value).Code
	}
	if got := try(s, ck.Value); got != 200 {
		t.Errorf("with the cookie: %d", got)
	}
	expiry, rest, _ := strings.Cut(ck.Value, ".")
	for name, value := range map[string]string{
		"longer life": "9" + expiry + "." + rest, "no signature": expiry, "cut": ck.Value[:len(ck.Value)-1], "empty": "", "dots": "..",
	} {
		if got := try(s, value); got != 401 {
			t.Errorf("cookie with %s: %d", name, got)
		}
	}
	other := server(t, func(c *console.Config) { c.AuthToken = "another"; c.Now = func() time.Time { return now } })
	if got := try(other, ck.Value); got != 401 {
		t.Errorf("cookie of another token: %d", got)
	}
	now = now.Add(31 * 24 * time.Hour)
	if got := try(s, ck.Value); got != 401 {
		t.Errorf("cookie after its time: %d", got)
	}
	if out := ask(s, "POST", "/logout", ""); out.Code != 303 || out.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %d", out.Code)
	}
}

func TestSignInLeadsOnlyHere(t *testing.T) {
	s := server(t, withToken)
	for next, want := range map[string]string{
		"/chat/?a=b": "/chat/?a=b", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/", "": "/",
		"javascript:alert(1)": "/", "/login": "/", "chat": "/", "/\r\nSet-Cookie: a=b": "/",
	} {
		if got := signIn(t, s, token, next).Header().Get("Location"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := server(t, withToken, func(c *console.Config) { c.Now = func() time.Time { return now } })
	session := signIn(t, s, token, "/").Result().Cookies()[0].Value
	codes := map[int]int{}
	for i := range 60 {
		if i%2 == 0 {
			codes[signIn(t, s, "guess", "/").Code]++
		} else {
			codes[ask(s, "GET", "/", "", "Authorization", "Bearer guess").Code]++
		}
	}
	if codes[401] != 10 || codes[429] != 50 {
		t.Errorf("answers: %v", codes)
	}
	if a, b := ask(s, "GET", "/", "", "Authorization", "Bearer "+token).Code, signIn(t, s, token, "/").Code; a != 429 || b != 429 {
		t.Errorf("a guess that is right gets through: %d, %d", a, b)
	}
	if w := ask(s, "GET", "/", "", "Cookie", "deerbot_session="+session); w.Code != 200 {
		t.Errorf("a session suffers from a guesser: %d", w.Code)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "198.51.100.7:1"
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("another address suffers from a guesser: %d", w.Code)
	}
	now = now.Add(time.Minute)
	if w := ask(s, "GET", "/", "", "Authorization", "Bearer "+token); w.Code != 200 {
		t.Errorf("after a minute: %d", w.Code)
	}
}
