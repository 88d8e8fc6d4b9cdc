package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/go-jose/go-jose/v4"

	"github.com/perdure/perdure/internal/auth/oidc"
)

// provider is an OpenID provider whose keys, clock and failures the test controls.
type provider struct {
	t    *testing.T
	http *httptest.Server

	mu     sync.Mutex
	now    time.Time
	keys   map[string]*rsa.PrivateKey
	asked  map[string]int // requests, by path
	broken http.HandlerFunc
	issuer string // "" = its own address
}

// newProvider starts an identity provider.
func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t, now: time.Now(), keys: map[string]*rsa.PrivateKey{}, asked: map[string]int{}}
	p.http = httptest.NewServer(p)
	t.Cleanup(p.http.Close)
	p.mint("k1")
	return p
}

// mint creates a key that the provider publishes.
func (p *provider) mint(id string) {
	p.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[id] = key
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.URL.Path]++
	if p.broken != nil {
		p.broken(w, r)
		return
	}
	s := &oidctest.Server{}
	for id, key := range p.keys {
		s.PublicKeys = append(s.PublicKeys, oidctest.PublicKey{PublicKey: key.Public(), KeyID: id, Algorithm: "RS256"})
	}
	s.SetIssuer(p.http.URL)
	if p.issuer != "" {
		s.SetIssuer(p.issuer)
	}
	s.ServeHTTP(w, r)
}

// breaks makes the provider answer every request with h; nil = it works again.
func (p *provider) breaks(h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = h
}

// clock returns the provider's time.
func (p *provider) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// advanceClock moves the provider's time.
func (p *provider) advanceClock(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

// fetches returns the number of requests for a path.
func (p *provider) fetches(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

// tokens returns an authenticator for the provider's tokens.
func (p *provider) tokens(change ...func(*oidc.Config)) *oidc.Tokens {
	cfg := oidc.Config{Issuer: p.http.URL, Audiences: []string{"perdure", "cli"}, SubjectClaim: "sub", RolesClaim: "roles", Tenant: "default"}
	for _, c := range change {
		c(&cfg)
	}
	return oidc.NewAt(cfg, p.clock)
}

type claims map[string]any

// token returns a token that is valid for five minutes, with the given claims changed; nil omits a
// claim.
func (p *provider) token(different claims) string {
	p.t.Helper()
	return p.signToken("k1", different)
}

// signToken returns a signed token with claims that differ from the defaults.
func (p *provider) signToken(keyID string, different claims) string {
	p.t.Helper()
	key := p.keys[keyID]
	all := claims{"iss": p.http.URL, "aud": "perdure", "sub": "ann", "exp": p.clock().Add(5 * time.Minute).Unix(), "iat": p.clock().Unix()}
	maps.Copy(all, different)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	body, err := json.Marshal(all)
	if err != nil {
		p.t.Fatal(err)
	}
	return oidctest.SignIDToken(key, keyID, "RS256", string(body))
}

// typedToken returns a token with a value of the header typ.
func (p *provider) typedToken(typ any, different claims) string {
	p.t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(p.token(different), ".")[1])
	if err != nil {
		p.t.Fatal(err)
	}
	options := (&jose.SignerOptions{}).WithHeader("kid", "k1").WithHeader(jose.HeaderType, typ)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: p.keys["k1"]}, options)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		p.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return token
}

// requestWithToken returns a request with a token.
func requestWithToken(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/agents", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}
