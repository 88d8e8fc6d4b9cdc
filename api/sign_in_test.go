package api_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/auth/sessions"
)

// signInProvider is an OpenID provider that gives an ID token of ann for every code.
type signInProvider struct {
	t     *testing.T
	url   string
	key   *rsa.PrivateKey
	nonce atomic.Value // of the last authorization request
}

// newSignInProvider starts a provider.
func newSignInProvider(t *testing.T) *signInProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &signInProvider{t: t, key: key}
	documents := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: "RS256"}}}
	mux := http.NewServeMux()
	mux.Handle("/", documents)
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.sign(map[string]any{"nonce": p.nonce.Load()})})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url = server.URL
	documents.SetIssuer(p.url)
	return p
}

// sign returns a token of ann with further claims.
func (p *signInProvider) sign(more map[string]any) string {
	claims := map[string]any{"iss": p.url, "aud": "console", "sub": "ann", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix()}
	maps.Copy(claims, more)
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	return oidctest.SignIDToken(p.key, "k", "RS256", string(body))
}

// setup starts a node whose users sign in at the provider. Its client follows no redirects.
func (p *signInProvider) setup() *node {
	p.t.Helper()
	node := setup(p.t, func(c *api.Config) {
		tokens := oidc.New(oidc.Config{Issuer: p.url, Audiences: []string{"perdure"}, SubjectClaim: "sub", RolesClaim: "roles", Tenant: "default"})
		s, err := sessions.Open(p.t.Context(), sessions.Config{
			Log: c.Log, PublicURL: "http://127.0.0.1", Idle: time.Hour, Lifetime: 2 * time.Hour, Logger: slog.New(slog.DiscardHandler),
			Client: tokens.NewClient(oidc.ClientConfig{ID: "console", RedirectURL: "http://127.0.0.1" + sessions.CallbackPath, Scopes: []string{"openid"}}),
		})
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(s.Close)
		c.Auth, c.Sessions = s, s
	})
	node.http.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return node
}

// cookieOf returns the name and the value of the cookie in a response.
func cookieOf(t *testing.T, a answer) string {
	t.Helper()
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatalf("cookie of %d %s: %v", a.status, a.body, err)
	}
	return cookie.Name + "=" + cookie.Value
}

// signIn begins a sign-in at a node, and returns the path of its callback and its cookie.
func (p *signInProvider) signIn(n *node, returnTo string) (callback, cookie string) {
	p.t.Helper()
	a := n.do(http.MethodGet, "/auth/login?return="+url.QueryEscape(returnTo), "")
	a.mustStatus(p.t, "login", http.StatusFound)
	u, err := url.Parse(a.header.Get("Location"))
	if err != nil || !strings.HasPrefix(u.String(), p.url) {
		p.t.Fatalf("location = %s, %v, want the provider", u, err)
	}
	p.nonce.Store(u.Query().Get("nonce"))
	return sessions.CallbackPath + "?session_state=of-the-provider&code=c&state=" + u.Query().Get("state"), cookieOf(p.t, a)
}

// TestSignInAndSignOut: the routes of sign-in begin and end a session. Their responses are those of
// the description, and stay out of caches.
func TestSignInAndSignOut(t *testing.T) {
	t.Parallel()
	p := newSignInProvider(t)
	n := p.setup()
	callback, login := p.signIn(n, "/v1/threads?limit=1")
	a := n.do(http.MethodGet, callback, "", "Cookie", login)
	a.mustStatus(t, "callback", http.StatusFound)
	wantEqual(t, "return path", a.header.Get("Location"), "/v1/threads?limit=1")
	wantEqual(t, "caching of the callback", a.header.Get("Cache-Control"), "no-store")
	cookie := cookieOf(t, a)

	a = n.do(http.MethodGet, "/auth/session", "", "Cookie", cookie)
	a.mustStatus(t, "session", http.StatusOK)
	var caller struct {
		Subject                  string
		Roles                    []string
		StartedAt, IdleExpiresAt time.Time
	}
	if err := json.Unmarshal([]byte(a.body), &caller); err != nil || caller.Subject != "ann" || caller.Roles == nil || caller.IdleExpiresAt.Sub(caller.StartedAt) != time.Hour {
		t.Errorf("caller = %s, %v, want ann for an hour", a.body, err)
	}
	a = n.do(http.MethodGet, "/v1/agents", "", "Cookie", cookie)
	wantEqual(t, "agents", fmt.Sprint(a.status, " ", a.header.Get("Cache-Control")), "200 private")

	n.do(http.MethodPost, "/auth/logout", "", "Cookie", cookie).wantRefusal(t, "sign-out without a proof of the origin", http.StatusForbidden, "cross_site_request", "")
	a = n.do(http.MethodPost, "/auth/logout", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	wantEqual(t, "sign-out", fmt.Sprint(a.status, " ", a.body), `200 {"location":"http://127.0.0.1/"}`)
	wantEqual(t, "cookie after sign-out", strings.HasPrefix(a.header.Get("Set-Cookie"), "perdure=; Path=/; Max-Age=0"), true)
	n.do(http.MethodGet, "/auth/session", "", "Cookie", cookie).wantRefusal(t, "after sign-out", http.StatusUnauthorized, "session_ended", "")
	a = n.do(http.MethodPost, "/auth/logout", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate")
	wantEqual(t, "repeated sign-out with a form", fmt.Sprint(a.status, " ", a.header.Get("Location")), "303 http://127.0.0.1/")
}

// TestCallerWithoutSessions: an API without sign-in also tells a caller who it is.
func TestCallerWithoutSessions(t *testing.T) {
	t.Parallel()
	n := setup(t, func(c *api.Config) {
		c.Auth = authenticatorFunc(func(*http.Request) (auth.Identity, error) {
			return auth.Identity{Principal: auth.Principal{Tenant: "shop", Subject: "ann"}}, nil
		})
	})
	a := n.do(http.MethodGet, "/auth/session", "")
	wantEqual(t, "caller", fmt.Sprint(a.status, " ", a.body), `200 {"tenant":"shop","subject":"ann","roles":[]}`)
	n.do(http.MethodPost, "/auth/logout", "").wantStatus(t, "sign-out", http.StatusNotFound)
}

// TestFailedSignInIsAPage: a user sees why the sign-in has failed, and can try again. Other clients
// get a problem.
func TestFailedSignInIsAPage(t *testing.T) {
	t.Parallel()
	p := newSignInProvider(t)
	n := p.setup()
	n.do(http.MethodGet, "/auth/login?return=//evil.example", "").wantRefusal(t, "return to another host", http.StatusBadRequest, "invalid_input", "")
	callback, cookie := p.signIn(n, "/")
	n.do(http.MethodGet, callback, "").wantRefusal(t, "callback in another browser", http.StatusBadRequest, "sign_in_failed", "")
	n.do(http.MethodGet, callback+"&error=access_denied", "", "Cookie", cookie).wantRefusal(t, "cancelled sign-in", http.StatusForbidden, "sign_in_refused", "")
	a := n.do(http.MethodGet, callback, "", "Sec-Fetch-Mode", "navigate")
	a.wantStatus(t, "page", http.StatusBadRequest)
	if !strings.Contains(a.body, `<a href="/auth/login">`) || !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("page = %s, %v, want a link to the sign-in, and a policy", a.body, a.header)
	}
}

// TestMalformedQueriesOfSignInAreRefused: the routes of sign-in do not ignore a query that they
// cannot parse.
func TestMalformedQueriesOfSignInAreRefused(t *testing.T) {
	t.Parallel()
	n := newSignInProvider(t).setup()
	for _, route := range []string{"GET /auth/login", "GET /auth/callback", "POST /auth/logout", "POST /auth/backchannel-logout"} {
		method, path, _ := strings.Cut(route, " ")
		for query, want := range map[string]string{"return=/;@evil.example": "semicolon", "return=%u": `"%u"`, "state=x&code=%zz": `"%zz"`} {
			a := n.do(method, path+"?"+query, "", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
			a.wantRefusal(t, route+"?"+query, http.StatusBadRequest, "invalid_input", "")
			if !strings.Contains(a.problem.Detail, want) {
				t.Errorf("%s?%s: problem detail = %q, want text with %q", route, query, a.problem.Detail, want)
			}
		}
	}
}

// TestSignInRefusesOtherMethods: the routes of sign-in need no credentials, and so answer a method
// that they do not have with 405.
func TestSignInRefusesOtherMethods(t *testing.T) {
	t.Parallel()
	n := newSignInProvider(t).setup()
	for _, tt := range []struct{ method, path, wantAllow string }{
		{"POST", "/auth/login", "GET"}, {"POST", "/auth/callback", "GET"}, {"GET", "/auth/logout", "POST"}, {"PUT", "/auth/backchannel-logout", "POST"},
	} {
		for _, header := range [][]string{nil, {"Sec-Fetch-Mode", "navigate"}, {"Origin", "https://evil.example"}} {
			a := n.do(tt.method, tt.path, "", header...)
			wantEqual(t, fmt.Sprintf("%s %s with %q", tt.method, tt.path, header), fmt.Sprint(a.status, " ", a.header.Get("Allow")), "405 "+tt.wantAllow)
		}
	}
	head, err := n.http.Client().Head(n.http.URL + sessions.CallbackPath)
	if err != nil {
		t.Fatal(err)
	}
	_ = head.Body.Close()
	wantEqual(t, "HEAD /auth/callback", head.StatusCode, http.StatusMethodNotAllowed)
	n.do(http.MethodPost, "/auth/session", "").wantStatus(t, "a route with credentials", http.StatusUnauthorized)
	n.do(http.MethodPost, "/auth%2Flogin", "").wantStatus(t, "another path", http.StatusUnauthorized)
}

// TestLogoutByTheProvider: only a form with a valid logout token ends sessions.
func TestLogoutByTheProvider(t *testing.T) {
	t.Parallel()
	p := newSignInProvider(t)
	n := p.setup()
	callback, login := p.signIn(n, "/")
	cookie := cookieOf(t, n.do(http.MethodGet, callback, "", "Cookie", login))
	token := p.sign(map[string]any{"jti": "1", "events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}})
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	hook := "/auth/backchannel-logout"
	n.do(http.MethodPost, hook, `{"logout_token":"x"}`, "Content-Type", "application/json").wantRefusal(t, "JSON", http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	n.do(http.MethodPost, hook, "logout_token="+strings.Repeat("x", 64<<10), form...).wantRefusal(t, "a large form", http.StatusRequestEntityTooLarge, "too_large", "")
	n.do(http.MethodPost, hook, "logout_token=%zz", form...).wantRefusal(t, "a malformed form", http.StatusBadRequest, "invalid_logout_token", "")
	n.do(http.MethodPost, hook+"?logout_token="+token, "", form...).wantRefusal(t, "a token in the URL", http.StatusBadRequest, "invalid_logout_token", "")
	n.do(http.MethodGet, "/auth/session", "", "Cookie", cookie).wantStatus(t, "before the logout", http.StatusOK)
	a := n.do(http.MethodPost, hook, "logout_token="+token, form...)
	wantEqual(t, "logout", fmt.Sprintf("%d %q", a.status, a.body), `200 ""`)
	n.do(http.MethodGet, "/auth/session", "", "Cookie", cookie).wantRefusal(t, "after the logout", http.StatusUnauthorized, "session_ended", "")
}
