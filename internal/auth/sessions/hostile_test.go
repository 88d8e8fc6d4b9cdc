package sessions_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestForgedCallbacksAreRefused: the response of the provider begins a session only in the browser
// that began the sign-in, once, and in time.
func TestForgedCallbacksAreRefused(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	for name, tt := range map[string]struct {
		forge func(b *browser, response url.Values)
		want  error
	}{
		"no state":        {func(_ *browser, v url.Values) { v.Del("state") }, auth.ErrInvalid},
		"an invented one": {func(_ *browser, v url.Values) { v.Set("state", strings.Repeat("A", 200)) }, auth.ErrInvalid},
		"a changed one":   {func(_ *browser, v url.Values) { v.Set("state", changed(v.Get("state"))) }, auth.ErrInvalid},
		"a huge one":      {func(_ *browser, v url.Values) { v.Set("state", strings.Repeat("A", 1<<20)) }, auth.ErrInvalid},
		"another browser": {func(b *browser, _ url.Values) { delete(b.cookies, "__Host-perdure-login") }, auth.ErrInvalid},
		"another cookie":  {func(b *browser, _ url.Values) { changeCookie(b) }, auth.ErrInvalid},
		"a short cookie":  {func(b *browser, _ url.Values) { b.cookies["__Host-perdure-login"].Value = "AAAA" }, auth.ErrInvalid},
		"a planted cookie": {func(b *browser, _ url.Values) {
			b.cookies["2"] = &http.Cookie{Name: "__Host-perdure-login", Value: "x"}
		}, auth.ErrInvalid},
		"a late one": {func(b *browser, v url.Values) {
			state, cookie := s.SealedFor("/", time.Now().Add(-time.Second))
			v.Set("state", state)
			b.take(cookie)
		}, auth.ErrExpired},
		"another issuer":   {func(_ *browser, v url.Values) { v.Set("iss", "https://other.example") }, auth.ErrInvalid},
		"a refusal":        {func(_ *browser, v url.Values) { v.Set("error", "access_denied"); v.Del("code") }, oidc.ErrRefused},
		"no code":          {func(_ *browser, v url.Values) { v.Del("code") }, oidc.ErrRefused},
		"another code":     {func(_ *browser, v url.Values) { v.Set("code", rand.Text()) }, oidc.ErrRefused},
		"another verifier": {func(_ *browser, v url.Values) { p.authorized(v.Get("code")).Set("code_challenge", "x") }, oidc.ErrRefused},
		"another nonce":    {func(_ *browser, v url.Values) { p.authorized(v.Get("code")).Set("nonce", "x") }, auth.ErrInvalid},
	} {
		b := newBrowser(t)
		location, cookie, err := s.Begin(b.request(http.MethodGet, "/auth/login"), "/")
		if err != nil {
			t.Fatal(err)
		}
		b.take(cookie)
		response := p.authorize(location)
		tt.forge(b, response)
		if _, session, err := s.Complete(b.request(http.MethodGet, "/auth/callback?"+response.Encode())); !errors.Is(err, tt.want) || session != nil {
			t.Errorf("%s: got %v, %v, want %v", name, session, err, tt.want)
		}
	}
}

// authorized returns the authorization request of a code.
func (p *provider) authorized(code string) url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.codes[code]
}

// changed returns a base64url text with another byte in the middle.
func changed(text string) string {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return text
	}
	raw[len(raw)/2] ^= 1
	return base64.RawURLEncoding.EncodeToString(raw)
}

// changeCookie changes the key in the cookie of a sign-in.
func changeCookie(b *browser) {
	c := *b.cookies["__Host-perdure-login"]
	c.Value = changed(c.Value)
	b.take(&c)
}

// TestCallbackWorksOnce: a replayed callback begins no session, and does not change the first one.
func TestCallbackWorksOnce(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	b := newBrowser(t)
	location, cookie, err := s.Begin(b.request(http.MethodGet, "/auth/login"), "/")
	if err != nil {
		t.Fatal(err)
	}
	b.take(cookie)
	callback := "/auth/callback?" + p.authorize(location).Encode()
	_, session, err := s.Complete(b.request(http.MethodGet, callback))
	if err != nil {
		t.Fatal(err)
	}
	b.take(session)
	if _, replayed, err := s.Complete(b.request(http.MethodGet, callback)); !errors.Is(err, oidc.ErrRefused) || replayed != nil {
		t.Errorf("replay: got %v, %v, want %v", replayed, err, oidc.ErrRefused)
	}
	if _, err := b.identify(s); err != nil {
		t.Errorf("the session after a replay: %v", err)
	}
}

// TestTokensOfOthersBeginNoSession: the ID token must be for this client, of this provider, and have
// the claims of a principal.
func TestTokensOfOthersBeginNoSession(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	for name, different := range map[string]claims{
		"another audience": {"aud": "perdure"}, "another party": {"aud": []string{"console", "x"}, "azp": "x"}, "another issuer": {"iss": "https://other.example"},
		"expired": {"exp": time.Now().Add(-time.Hour).Unix()}, "no subject": {"sub": nil}, "an invisible subject": {"sub": "a\u200bb"}, "long": {"name": strings.Repeat("x", 17<<10)},
		"roles of numbers": {"roles": []int{1}},
	} {
		p.set(func() { p.claims = different })
		b := newBrowser(t)
		location, cookie, err := s.Begin(b.request(http.MethodGet, "/auth/login"), "/")
		if err != nil {
			t.Fatal(err)
		}
		b.take(cookie)
		if _, session, err := s.Complete(b.request(http.MethodGet, "/auth/callback?"+p.authorize(location).Encode())); session != nil || !errors.Is(err, auth.ErrInvalid) && !errors.Is(err, auth.ErrExpired) {
			t.Errorf("%s: got %v, %v, want %v", name, session, err, auth.ErrInvalid)
		}
	}
}

func TestReturnStaysOnThisServer(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	for path, ok := range map[string]bool{
		"/": true, "/console/threads/a%2Fb?x=1&y=//z#top": true,
		"": false, "console": false, "https://evil.example": false, "//evil.example": false, "/\\evil.example": false, "\\/evil.example": false, "/a\\b": false,
		"///evil.example": false, "/\t/evil.example": false, "/\n": false, " /": false, "javascript:alert(1)": false, "/ä": false, "/%zz": false,
		"/" + strings.Repeat("a", 512): false, "http:/x": false, "@evil.example": false,
	} {
		location, _, err := s.Begin(newBrowser(t).request(http.MethodGet, "/auth/login"), path)
		if (err == nil) != ok || !ok && !errors.Is(err, sessions.ErrReturn) {
			t.Errorf("return to %q: got %s, %v, want allowed: %t", path, location, err, ok)
		}
	}
}

// TestCookiesOfOtherSitesAreRefused: a request that may be that of another site does not use the
// cookie, and neither does a token that was changed, shortened or sent twice.
func TestCookiesOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	b := newBrowser(t)
	b.signIn(s, p)
	for name, tt := range map[string]struct {
		method string
		body   string
		header []string
		want   error
	}{
		"read of the same site":      {"GET", "", nil, nil},
		"read of another site":       {"GET", "", []string{"Sec-Fetch-Site", "cross-site"}, nil}, // CORS keeps the answer from the page
		"write":                      {"POST", "{}", []string{"Sec-Fetch-Site", "same-origin", "Content-Type", "application/json; charset=utf-8"}, nil},
		"write by the address bar":   {"POST", "", []string{"Sec-Fetch-Site", "none"}, nil},
		"write of an older browser":  {"PUT", "{}", []string{"Origin", origin, "Content-Type", "application/json"}, nil},
		"… of another origin":        {"PUT", "{}", []string{"Origin", "https://evil.example", "Content-Type", "application/json"}, auth.ErrCrossSite},
		"… of a page without TLS":    {"PUT", "{}", []string{"Origin", "http://agents.example", "Content-Type", "application/json"}, auth.ErrCrossSite},
		"… of no origin":             {"PUT", "{}", []string{"Origin", "null", "Content-Type", "application/json"}, auth.ErrCrossSite},
		"write of another site":      {"POST", "{}", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example", "Content-Type", "application/json"}, auth.ErrCrossSite},
		"write of a sibling":         {"DELETE", "", []string{"Sec-Fetch-Site", "same-site", "Origin", "https://blog.agents.example"}, auth.ErrCrossSite},
		"write without a proof":      {"POST", "{}", []string{"Content-Type", "application/json"}, auth.ErrCrossSite},
		"a form":                     {"POST", "a=b", []string{"Sec-Fetch-Site", "same-origin", "Content-Type", "application/x-www-form-urlencoded"}, auth.ErrCrossSite},
		"text":                       {"POST", "{}", []string{"Sec-Fetch-Site", "same-origin", "Content-Type", "text/plain"}, auth.ErrCrossSite},
		"a body of no type":          {"POST", "{}", []string{"Sec-Fetch-Site", "same-origin"}, auth.ErrCrossSite},
		"WebSocket":                  {"GET", "", []string{"Upgrade", "websocket", "Origin", origin}, nil},
		"WebSocket of another site":  {"GET", "", []string{"Upgrade", "websocket", "Origin", "https://evil.example"}, auth.ErrCrossSite},
		"WebSocket without TLS":      {"GET", "", []string{"Upgrade", "websocket", "Origin", "http://agents.example"}, auth.ErrCrossSite},
		"WebSocket without origin":   {"GET", "", []string{"Upgrade", "websocket"}, auth.ErrCrossSite},
		"two cookies of the session": {"GET", "", []string{"Cookie", "__Host-perdure=" + b.token() + "; __Host-perdure=" + strings.Repeat("A", 43)}, auth.ErrSessionEnded},
		"a changed token":            {"GET", "", []string{"Cookie", "__Host-perdure=" + changed(b.token())}, auth.ErrSessionEnded},
		"a shorter token":            {"GET", "", []string{"Cookie", "__Host-perdure=" + b.token()[:42]}, auth.ErrSessionEnded},
		"no token":                   {"GET", "", []string{"Cookie", "__Host-perdure="}, auth.ErrSessionEnded},
		"a wildcard":                 {"GET", "", []string{"Cookie", "__Host-perdure=*"}, auth.ErrSessionEnded},
		"a name without prefix":      {"GET", "", []string{"Cookie", "perdure=" + b.token()}, auth.ErrNoCredentials},
	} {
		r := b.request(tt.method, "/v1/threads")
		r.Header.Del("Sec-Fetch-Site")
		r.ContentLength = int64(len(tt.body))
		for i := 0; i < len(tt.header); i += 2 {
			r.Header.Set(tt.header[i], tt.header[i+1])
		}
		if identity, err := s.Authenticate(r); !errors.Is(err, tt.want) || (err == nil) != (identity.Principal.Subject == "ann") {
			t.Errorf("%s: got %+v, %v, want %v", name, identity.Principal, err, tt.want)
		}
	}
	r := b.request(http.MethodPost, "/auth/logout")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	for _, cookie := range []string{r.Header.Get("Cookie"), ""} { // browsers keep the cookie back, and accept its removal
		r.Header.Set("Cookie", cookie)
		if _, _, err := s.SignOut(r); !errors.Is(err, auth.ErrCrossSite) {
			t.Errorf("sign-out by another site, with the cookie %q: got %v, want %v", cookie, err, auth.ErrCrossSite)
		}
	}
	if _, err := b.identify(s); err != nil {
		t.Errorf("the session after all of these: %v", err)
	}
}

// TestLogoutTokens: a logout token of the provider ends the sessions that it names. Others end none.
func TestLogoutTokens(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	s := p.open(streamtest.Open(t))
	b, second, bob := newBrowser(t), newBrowser(t), newBrowser(t)
	b.signIn(s, p)
	p.set(func() { p.claims = claims{"sid": "s2"} })
	second.signIn(s, p)
	p.set(func() { p.claims = claims{"sub": "bob", "sid": "s3"} })
	bob.signIn(s, p)
	p.set(func() { p.claims = claims{} })
	identities := map[*browser]auth.Identity{}
	for _, each := range []*browser{b, second, bob} {
		identity, err := each.identify(s)
		if err != nil {
			t.Fatal(err)
		}
		identities[each] = identity
	}
	good := p.logoutToken(nil)
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"empty": "", "no token": "x", "alg none": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".", "no signature": parts[0] + "." + parts[1] + ".",
		"another issuer": p.logoutToken(claims{"iss": "https://other.example"}), "another audience": p.logoutToken(claims{"aud": "perdure"}),
		"expired": p.logoutToken(claims{"exp": time.Now().Add(-time.Minute).Unix()}), "without an end": p.logoutToken(claims{"exp": nil}),
		"for ever": p.logoutToken(claims{"exp": time.Now().Add(48 * time.Hour).Unix()}), "of the future": p.logoutToken(claims{"iat": time.Now().Add(30 * time.Minute).Unix()}),
		"no event": p.logoutToken(claims{"events": nil}), "another event": p.logoutToken(claims{"events": claims{"x": claims{}}}),
		"an event of another type": p.logoutToken(claims{"events": claims{"http://schemas.openid.net/event/backchannel-logout": "x"}}),
		"an ID token":              p.logoutToken(claims{"events": nil, "nonce": "n"}), "with a nonce": p.logoutToken(claims{"nonce": ""}), "a nonce of null": p.logoutToken(claims{"nonce": json.RawMessage("null")}),
		"no ID": p.logoutToken(claims{"jti": nil}), "nobody": p.logoutToken(claims{"sub": nil, "sid": nil}), "long": p.logoutToken(claims{"x": strings.Repeat("x", 17<<10)}),
	} {
		if err := s.EndByProvider(b.request(http.MethodPost, "/auth/backchannel-logout"), token); !errors.Is(err, auth.ErrInvalid) && !errors.Is(err, auth.ErrExpired) {
			t.Errorf("%s: got %v, want %v", name, err, auth.ErrInvalid)
		}
	}
	if err := s.EndByProvider(b.request(http.MethodPost, "/"), p.logoutToken(claims{"sub": "bob", "sid": "s1"})); err != nil {
		t.Errorf("a session of another subject: %v", err)
	}
	for each, identity := range identities {
		if identity.Valid.Err() != nil {
			t.Fatalf("%s was signed out", each.token())
		}
	}
	if err := s.EndByProvider(b.request(http.MethodPost, "/"), good); err != nil {
		t.Fatal(err)
	}
	<-identities[b].Valid.Done()
	wantEnded(t, s, b, "after the logout of its session")
	if _, err := second.identify(s); err != nil {
		t.Errorf("another session of the user: %v", err)
	}
	b.signIn(s, p)
	if err := s.EndByProvider(b.request(http.MethodPost, "/"), good); !errors.Is(err, auth.ErrInvalid) {
		t.Errorf("replay: got %v, want %v", err, auth.ErrInvalid)
	}
	if _, err := b.identify(s); err != nil {
		t.Errorf("after the replay: %v", err)
	}
	if err := s.EndByProvider(b.request(http.MethodPost, "/"), p.logoutToken(claims{"sid": nil})); err != nil {
		t.Fatal(err)
	}
	wantEnded(t, s, b, "after the logout of the user")
	wantEnded(t, s, second, "after the logout of the user")
	if _, err := bob.identify(s); err != nil {
		t.Errorf("a session of another user: %v", err)
	}
}
