package oidc_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
)

func TestTokenIdentifiesThePrincipal(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	keycloak := func(c *oidc.Config) {
		c.SubjectClaim, c.RolesClaim, c.TenantClaim = "preferred_username", "realm_access.roles", "https://shop.example/claims.tenant"
	}
	byEmail := func(c *oidc.Config) { c.SubjectClaim = "email" }
	nested := claims{"preferred_username": "ann@shop", "realm_access": claims{"roles": []string{"b", "a", "b"}}, "https://shop.example/claims.tenant": "shop"}
	for name, tt := range map[string]struct {
		change func(*oidc.Config)
		claims claims
		want   auth.Principal
	}{
		"plain":                        {nil, claims{"tenant": "elsewhere"}, auth.Principal{Tenant: "default", Subject: "ann"}},
		"roles as a list":              {nil, claims{"roles": []string{"x", "y"}}, auth.Principal{Tenant: "default", Subject: "ann", Roles: []string{"x", "y"}}},
		"roles as words":               {nil, claims{"roles": "y  x"}, auth.Principal{Tenant: "default", Subject: "ann", Roles: []string{"x", "y"}}},
		"one of the audiences":         {nil, claims{"aud": []string{"other", "cli"}}, auth.Principal{Tenant: "default", Subject: "ann"}},
		"a verified address":           {byEmail, claims{"email": "ann@shop.example", "email_verified": true}, auth.Principal{Tenant: "default", Subject: "ann@shop.example"}},
		"nested and very names":        {keycloak, nested, auth.Principal{Tenant: "shop", Subject: "ann@shop", Roles: []string{"a", "b"}}},
		"the provider's clock is slow": {nil, claims{"exp": p.clock().Add(-20 * time.Second).Unix()}, auth.Principal{Tenant: "default", Subject: "ann"}},
		"… or before":                  {nil, claims{"nbf": p.clock().Add(20 * time.Second).Unix(), "iat": p.clock().Add(20 * time.Second).Unix()}, auth.Principal{Tenant: "default", Subject: "ann"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokens := p.tokens()
			if tt.change != nil {
				tokens = p.tokens(tt.change)
			}
			got, err := tokens.Authenticate(requestWithToken(p.token(tt.claims)))
			if err != nil || !cmp.Equal(got.Principal, tt.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
			if left := got.Expires.Sub(p.clock()); left <= 0 || left > 5*time.Minute+oidc.Skew {
				t.Errorf("lifetime of the token = %s, want at most 5m and the skew", left)
			}
		})
	}
}

func TestInvalidTokensAreRejected(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tenants := func(c *oidc.Config) { c.TenantClaim = "org.id" }
	byEmail := func(c *oidc.Config) { c.SubjectClaim = "email" }
	good := p.token(nil)
	parts := strings.Split(good, ".")
	plain := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	bob := strings.Replace(decoded(t, parts[1]), "ann", "bob", 1)
	for name, tt := range map[string]struct {
		token   string
		change  func(*oidc.Config)
		wantErr error
	}{
		"another audience":           {p.token(claims{"aud": "bank"}), nil, auth.ErrInvalid},
		"no audience":                {p.token(claims{"aud": nil}), nil, auth.ErrInvalid},
		"another issuer":             {p.token(claims{"iss": "https://other.example"}), nil, auth.ErrInvalid},
		"expired":                    {p.token(claims{"exp": p.clock().Add(-oidc.Skew - time.Second).Unix()}), nil, auth.ErrExpired},
		"without an end":             {p.token(claims{"exp": nil}), nil, auth.ErrExpired},
		"not yet":                    {p.token(claims{"nbf": p.clock().Add(time.Hour).Unix()}), nil, auth.ErrInvalid},
		"no subject":                 {p.token(claims{"sub": nil}), nil, auth.ErrInvalid},
		"an empty subject":           {p.token(claims{"sub": ""}), nil, auth.ErrInvalid},
		"a subject of numbers":       {p.token(claims{"sub": 7}), nil, auth.ErrInvalid},
		"roles of numbers":           {p.token(claims{"roles": []int{1}}), nil, auth.ErrInvalid},
		"roles as an object":         {p.token(claims{"roles": claims{"admin": true}}), nil, auth.ErrInvalid},
		"no tenant":                  {good, tenants, auth.ErrInvalid},
		"an unverified address":      {p.token(claims{"email": "ann@shop.example", "email_verified": false}), byEmail, auth.ErrInvalid},
		"an address of unknown kind": {p.token(claims{"email": "ann@shop.example"}), byEmail, auth.ErrInvalid},
		"a tenant elsewhere":         {p.token(claims{"org": "id"}), tenants, auth.ErrInvalid},
		"an empty tenant":            {p.token(claims{"org": claims{"id": ""}}), tenants, auth.ErrInvalid},
		"a stranger's key":           {oidctest.SignIDToken(stranger, "k1", "RS256", decoded(t, parts[1])), nil, auth.ErrInvalid},
		"no key of that name":        {oidctest.SignIDToken(stranger, "k9", "RS256", decoded(t, parts[1])), nil, auth.ErrInvalid},
		"alg none":                   {plain(`{"alg":"none"}`) + "." + parts[1] + ".", nil, auth.ErrInvalid},
		"the public key as a secret": {oidctest.SignIDToken([]byte(strings.Repeat("k", 64)), "k1", "HS256", decoded(t, parts[1])), nil, auth.ErrInvalid},
		"claims that were changed":   {parts[0] + "." + plain(bob) + "." + parts[2], nil, auth.ErrInvalid},
		"no signature":               {parts[0] + "." + parts[1] + ".", nil, auth.ErrInvalid},
		"no token":                   {"abc", nil, auth.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokens := p.tokens()
			if tt.change != nil {
				tokens = p.tokens(tt.change)
			}
			got, err := tokens.Authenticate(requestWithToken(tt.token))
			if !errors.Is(err, tt.wantErr) {
				t.Errorf("got %+v, %v, want %v", got, err, tt.wantErr)
			}
			if err != nil && strings.Contains(err.Error(), tt.token) {
				t.Errorf("error = %v, want no token in it", err)
			}
		})
	}
	r := requestWithToken("")
	r.Header.Del("Authorization")
	if _, err := p.tokens().Authenticate(r); !errors.Is(err, auth.ErrNoCredentials) {
		t.Errorf("request without a token: got %v, want %v", err, auth.ErrNoCredentials)
	}
}

// TestTokensForOtherUsesAreRejected: a token of the provider that is not for the authentication of
// its sender, such as a logout token, is refused although issuer and audience are right.
func TestTokensForOtherUsesAreRejected(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	tokens := p.tokens()
	logout := claims{"jti": "1", "events": claims{"http://schemas.openid.net/event/backchannel-logout": claims{}}}
	for name, tt := range map[string]struct {
		token string
		want  error
	}{
		"no type":                           {p.token(nil), nil},
		"JWT":                               {p.typedToken("JWT", nil), nil},
		"jwt":                               {p.typedToken("jwt", nil), nil},
		"an access token":                   {p.typedToken("at+jwt", nil), nil},
		"an access token, with a full type": {p.typedToken("application/AT+JWT", nil), nil},
		"a logout token":                    {p.typedToken("logout+jwt", logout), auth.ErrInvalid},
		"the type of a logout token":        {p.typedToken("logout+jwt", nil), auth.ErrInvalid},
		"an untyped logout token":           {p.token(logout), auth.ErrInvalid},
		"a logout token with the type JWT":  {p.typedToken("JWT", logout), auth.ErrInvalid},
		"events of no object":               {p.token(claims{"events": "x"}), auth.ErrInvalid},
		"a security event":                  {p.typedToken("secevent+jwt", nil), auth.ErrInvalid},
		"an empty type":                     {p.typedToken("", nil), auth.ErrInvalid},
		"a type of numbers":                 {p.typedToken(7, nil), auth.ErrInvalid},
	} {
		if got, err := tokens.Authenticate(requestWithToken(tt.token)); !errors.Is(err, tt.want) || (err == nil) != (got.Principal.Subject == "ann") {
			t.Errorf("%s: got %+v, %v, want %v", name, got.Principal, err, tt.want)
		}
	}
}

// decoded decodes a part of a token.
func decoded(t *testing.T, part string) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestProviderMayStartLater: while the provider cannot be reached, no caller is authenticated. The
// authenticator finds the provider when it comes up.
func TestProviderMayStartLater(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	tokens, token := p.tokens(), p.token(nil)
	for name, h := range map[string]http.HandlerFunc{
		"an error":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, token, http.StatusBadGateway) },
		"a page":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>" + token)) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"a cut":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		p.breaks(h)
		p.advanceClock(2 * time.Second)
		if err := tokens.Discover(t.Context()); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("%s: Discover = %v, want %v", name, err, auth.ErrUnavailable)
		}
		if got, err := tokens.Authenticate(requestWithToken(token)); !errors.Is(err, auth.ErrUnavailable) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: Authenticate = %+v, %v, want ErrUnavailable without the token", name, got, err)
		}
	}
	p.breaks(nil)
	p.advanceClock(2 * time.Second)
	if _, err := tokens.Authenticate(requestWithToken(token)); err != nil {
		t.Error(err)
	}
}

func TestProviderWithOtherIssuerIsRefused(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	p.issuer = "https://other.example"
	if err := p.tokens().Discover(t.Context()); err == nil || errors.Is(err, auth.ErrUnavailable) || !strings.Contains(err.Error(), "https://other.example") {
		t.Errorf("Discover of another issuer = %v, want its URL", err)
	}
	p.breaks(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"issuer":"` + p.http.URL + `"}`))
	})
	if err := p.tokens().Discover(t.Context()); err == nil || errors.Is(err, auth.ErrUnavailable) || !strings.Contains(err.Error(), "jwks_uri") {
		t.Errorf("Discover without keys = %v, want that jwks_uri is missing", err)
	}
}

// TestKnownKeysSurviveOutage: while the provider is unreachable, tokens that are signed with
// cached keys are accepted. For tokens with unknown keys, the error does not say that the token is
// invalid.
func TestKnownKeysSurviveOutage(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	tokens := p.tokens()
	if _, err := tokens.Authenticate(requestWithToken(p.token(nil))); err != nil {
		t.Fatal(err)
	}
	p.mint("k2")
	p.breaks(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	p.advanceClock(time.Minute)
	if _, err := tokens.Authenticate(requestWithToken(p.token(nil))); err != nil {
		t.Errorf("token with a cached key: %v", err)
	}
	if _, err := tokens.Authenticate(requestWithToken(p.signToken("k2", nil))); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("token with an unknown key: got %v, want %v", err, auth.ErrUnavailable)
	}
	p.breaks(nil)
	err := auth.ErrUnavailable
	for range 100 { // go-oidc (v3.21) answers all waiting requests before it starts the next one
		if errors.Is(err, auth.ErrUnavailable) {
			p.advanceClock(2 * time.Second)
			_, err = tokens.Authenticate(requestWithToken(p.signToken("k2", nil)))
		}
	}
	if err != nil {
		t.Errorf("with the key when it can be had: %v", err)
	}
}

// TestFetchesOfKeysAreLimited: tokens with invented key IDs do not cause a request to the
// provider each. Keys that the provider rotates are found.
func TestFetchesOfKeysAreLimited(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	tokens := p.tokens()
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			made := oidctest.SignIDToken(stranger, rand.Text(), "RS256", `{}`)
			if _, err := tokens.Authenticate(requestWithToken(made)); !errors.Is(err, auth.ErrInvalid) {
				t.Errorf("token with an invented key: got %v, want %v", err, auth.ErrInvalid)
			}
		})
	}
	all.Wait()
	if n, d := p.fetches("/keys"), p.fetches("/.well-known/openid-configuration"); n != 1 || d != 1 {
		t.Errorf("fetches of the keys = %d, of the configuration = %d, want 1 and 1", n, d)
	}
	p.mint("k2")
	p.advanceClock(11 * time.Second)
	if _, err := tokens.Authenticate(requestWithToken(p.signToken("k2", nil))); err != nil {
		t.Errorf("with a new key: %v", err)
	}
}

func TestWaitForProviderEndsWithContext(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	held, let := make(chan struct{}), make(chan struct{})
	p.breaks(func(http.ResponseWriter, *http.Request) { close(held); <-let })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-held; cancel() }()
	_, err := p.tokens().Authenticate(requestWithToken("a.b.c").WithContext(ctx))
	if !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("Authenticate after the cancel = %v, want %v", err, auth.ErrUnavailable)
	}
	close(let)
}
