package sessions_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/stream"
)

const origin = "https://agents.example"

type claims map[string]any

// provider is an OpenID provider whose claims, tokens and failures the test controls.
type provider struct {
	t   *testing.T
	url string
	key *rsa.PrivateKey

	mu      sync.Mutex
	codes   map[string]url.Values // the authorization request of each code that is unused
	refresh string                // the valid refresh token; an earlier one revokes it
	claims  claims                // of the next ID token, in addition to the defaults
	lasts   time.Duration         // lifetime of ID tokens
	asked   int                   // uses of refresh tokens
	answer  http.HandlerFunc      // of the token endpoint; nil = the default
}

// newProvider starts a provider.
func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, codes: map[string]url.Values{}, claims: claims{}, lasts: time.Hour}
	documents := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: "RS256"}}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": p.url, "jwks_uri": p.url + "/keys", "authorization_endpoint": p.url + "/authorize", "token_endpoint": p.url + "/token",
			"end_session_endpoint": p.url + "/logout",
		})
	})
	mux.HandleFunc("POST /token", p.serveToken)
	mux.Handle("/", documents)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url = server.URL
	documents.SetIssuer(p.url)
	return p
}

// serveToken serves the token endpoint.
func (p *provider) serveToken(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		p.t.Error(err)
	}
	if p.answer != nil {
		p.answer(w, r)
		return
	}
	nonce := ""
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		request, known := p.codes[r.PostForm.Get("code")]
		delete(p.codes, r.PostForm.Get("code"))
		digest := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if !known || request.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(digest[:]) || request.Get("redirect_uri") != r.PostForm.Get("redirect_uri") {
			refuseGrant(w)
			return
		}
		nonce = request.Get("nonce")
	case "refresh_token":
		p.asked++
		if p.refresh == "" || r.PostForm.Get("refresh_token") != p.refresh {
			p.refresh = ""
			refuseGrant(w)
			return
		}
	}
	p.refresh = rand.Text()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": "a", "token_type": "Bearer", "expires_in": int(p.lasts.Seconds()), "refresh_token": p.refresh, "id_token": p.sign(claims{"nonce": nonce}),
	})
}

// refuseGrant refuses a code or a refresh token.
func refuseGrant(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"error": "invalid_grant"}`))
}

// sign returns a token with the claims; nil omits a claim. The caller holds the lock.
func (p *provider) sign(different claims) string {
	all := claims{"iss": p.url, "aud": "console", "sub": "ann", "sid": "s1", "exp": time.Now().Add(p.lasts).Unix(), "iat": time.Now().Unix()}
	maps.Copy(all, p.claims)
	maps.Copy(all, different)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	body, err := json.Marshal(all)
	if err != nil {
		p.t.Error(err)
	}
	return oidctest.SignIDToken(p.key, "k", "RS256", string(body))
}

// set changes the provider.
func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// logoutToken returns a logout token with claims that differ from the defaults.
func (p *provider) logoutToken(different claims) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := claims{
		"jti": rand.Text(), "exp": time.Now().Add(2 * time.Minute).Unix(),
		"events": claims{"http://schemas.openid.net/event/backchannel-logout": claims{}},
	}
	maps.Copy(all, different)
	return p.sign(all)
}

// authorize signs the user in at the provider, and returns the response of the authorization request
// that the location has.
func (p *provider) authorize(location string) url.Values {
	p.t.Helper()
	u, err := url.Parse(location)
	if err != nil || u.Query().Get("code_challenge_method") != "S256" {
		p.t.Fatalf("location = %s, %v, want a PKCE challenge", location, err)
	}
	code := rand.Text()
	p.set(func() { p.codes[code] = u.Query() })
	return url.Values{"state": {u.Query().Get("state")}, "code": {code}}
}

// open opens sessions on a log, as an API process does.
func (p *provider) open(log *stream.Log, change ...func(*sessions.Config)) *sessions.Sessions {
	p.t.Helper()
	tokens := oidc.New(oidc.Config{Issuer: p.url, Audiences: []string{"perdure"}, SubjectClaim: "sub", RolesClaim: "roles", Tenant: "shop"})
	cfg := sessions.Config{
		Log: log, PublicURL: origin, Idle: time.Hour, Lifetime: 12 * time.Hour, Logger: slog.New(slog.DiscardHandler),
		Client: tokens.NewClient(oidc.ClientConfig{ID: "console", RedirectURL: origin + sessions.CallbackPath, Scopes: []string{"openid"}}),
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := sessions.Open(p.t.Context(), cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(s.Close)
	return s
}

// browser is the cookies of a browser.
type browser struct {
	t       *testing.T
	cookies map[string]*http.Cookie
}

// newBrowser returns a browser without cookies.
func newBrowser(t *testing.T) *browser { return &browser{t, map[string]*http.Cookie{}} }

// take stores a cookie, or removes it.
func (b *browser) take(c *http.Cookie) {
	if c == nil {
		return
	}
	if c.MaxAge < 0 {
		delete(b.cookies, c.Name)
		return
	}
	b.cookies[c.Name] = c
}

// request returns a request of a page of the API, with the cookies.
func (b *browser) request(method, target string) *http.Request {
	r := httptest.NewRequestWithContext(b.t.Context(), method, origin+target, nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	return r
}

// signIn signs the user of the provider in.
func (b *browser) signIn(s *sessions.Sessions, p *provider) {
	b.t.Helper()
	location, cookie, err := s.Begin(b.request(http.MethodGet, "/auth/login"), "/v1/threads?limit=1")
	if err != nil {
		b.t.Fatal(err)
	}
	b.take(cookie)
	returnTo, cookie, err := s.Complete(b.request(http.MethodGet, "/auth/callback?"+p.authorize(location).Encode()))
	if err != nil || returnTo != "/v1/threads?limit=1" {
		b.t.Fatalf("Complete = %q, %v, want the return path", returnTo, err)
	}
	b.take(cookie)
}

// identify authenticates a request of the browser, and takes the new cookie if there is one.
func (b *browser) identify(s *sessions.Sessions) (auth.Identity, error) {
	identity, err := s.Authenticate(b.request(http.MethodGet, "/v1/threads"))
	b.take(identity.Cookie)
	return identity, err
}

// token returns the token of the session.
func (b *browser) token() string {
	b.t.Helper()
	c := b.cookies["__Host-perdure"]
	if c == nil {
		b.t.Fatal("the browser has no session cookie")
	}
	return c.Value
}
