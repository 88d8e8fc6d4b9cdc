package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/perdure/perdure/internal/auth"
)

// Config selects the accepted tokens, and the claims with the principal. A claim is a member of the
// token's JSON. Dots lead into nested objects, unless a member has the whole text as its name.
type Config struct {
	// Issuer is the provider's URL, exactly as in the claim iss.
	Issuer string
	// Audiences are the accepted values of the claim aud: a token must have one of them.
	Audiences []string
	// SubjectClaim and RolesClaim are the claims with the subject and the roles. If the subject is
	// the claim email, the token must have email_verified: otherwise a user of some providers could
	// take the address of another one.
	SubjectClaim, RolesClaim string
	// TenantClaim is the claim with the tenant; "" = every caller has the tenant Tenant.
	TenantClaim, Tenant string
}

// Skew is how long after its expiry a token is still accepted, because the provider's clock may be
// slow.
const Skew = 30 * time.Second

// requestTimeout bounds each request to the provider.
const requestTimeout = 10 * time.Second

// signatures are the accepted algorithms: those for which only the provider can sign. HMAC with a
// shared key and "none" are excluded (RFC 8725, section 3.1).
var signatures = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// Tokens authenticates callers by the tokens of one provider. It is safe for concurrent use and
// needs no closing.
type Tokens struct {
	cfg       Config
	now       func() time.Time
	client    *http.Client
	provider  atomic.Pointer[provider] // nil until Discover has succeeded
	discovery singleflight.Group
}

// provider is the configuration of a provider. It is not changed after it is built.
type provider struct {
	verifier *oidc.IDTokenVerifier
	endpoint oauth2.Endpoint
	// endSession is the URL at which the provider ends a user's session; "" = it has none.
	endSession string
	// namesIssuer means that the provider names itself in each response of an authorization request
	// (RFC 9207).
	namesIssuer bool
}

// New returns the authenticator for a provider. It makes no request: Discover does, at the latest
// when the first token arrives.
func New(cfg Config) *Tokens {
	return newTokens(cfg, time.Now)
}

// newTokens is New with a clock for tests.
func newTokens(cfg Config, now func() time.Time) *Tokens {
	return &Tokens{cfg: cfg, now: now, client: &http.Client{Transport: newFetcher(http.DefaultTransport, now), Timeout: requestTimeout}}
}

// Discover reads the provider's configuration (OpenID Connect Discovery) once; further calls return
// nil at once. Concurrent calls share one request, which continues if ctx ends.
//
// Errors: auth.ErrUnavailable if a repetition may succeed; any other error is a mistake in the
// configuration.
func (t *Tokens) Discover(ctx context.Context) error {
	if t.provider.Load() != nil {
		return nil
	}
	found := t.discovery.DoChan("", func() (any, error) { return nil, t.discover(context.WithoutCancel(ctx)) })
	select {
	case r := <-found:
		return r.Err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", auth.ErrUnavailable, context.Cause(ctx))
	}
}

// discover reads the provider's configuration, and sets the provider.
func (t *Tokens) discover(ctx context.Context) error {
	ctx = oidc.ClientContext(ctx, t.client)
	found, err := oidc.NewProvider(ctx, t.cfg.Issuer)
	if err != nil {
		return err
	}
	var document struct {
		Keys        string   `json:"jwks_uri"`
		EndSession  string   `json:"end_session_endpoint"`
		NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&document); err != nil || document.Keys == "" {
		return errors.New("the provider's configuration has no jwks_uri")
	}
	p := &provider{endpoint: found.Endpoint(), endSession: document.EndSession, namesIssuer: document.NamesIssuer}
	p.endpoint.AuthStyle = oauth2.AuthStyleInHeader // the default of OpenID Connect Discovery
	if document.Methods != nil && !slices.Contains(document.Methods, "client_secret_basic") {
		p.endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	p.verifier = oidc.NewVerifier(t.cfg.Issuer, keySet{oidc.NewRemoteKeySet(ctx, document.Keys)}, &oidc.Config{
		SkipClientIDCheck:    true, // there may be several audiences: verify checks them
		SupportedSigningAlgs: signatures,
		Now:                  func() time.Time { return t.now().Add(-Skew) },
	})
	t.provider.Store(p)
	return nil
}

// Authenticate implements auth.Authenticator. It may wait for the provider, up to requestTimeout
// per request.
func (t *Tokens) Authenticate(r *http.Request) (auth.Identity, error) {
	raw, err := auth.Bearer(r.Header)
	if err != nil {
		return auth.Identity{}, err
	}
	if err := t.Discover(r.Context()); err != nil {
		return auth.Identity{}, unavailable(err)
	}
	token, err := t.verify(r.Context(), raw, t.cfg.Audiences)
	if err != nil {
		return auth.Identity{}, err
	}
	if err := checkUse(raw, token); err != nil {
		return auth.Identity{}, err
	}
	p, err := t.principal(token)
	return auth.Identity{Principal: p, Expires: token.Expiry.Add(Skew)}, err
}

// bearerTypes are the accepted values of the header typ, in lower case (RFC 9068, section 4).
var bearerTypes = []string{"jwt", "at+jwt", "application/at+jwt"}

// checkUse refuses a verified token that the provider has issued for another use than to
// authenticate its sender, such as a logout token (RFC 8725, sections 3.11 and 3.12). Errors:
// auth.ErrInvalid.
func checkUse(raw string, token *oidc.IDToken) error {
	encoded, _, _ := strings.Cut(raw, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	var header, claims map[string]any
	if err == nil {
		err = errors.Join(json.Unmarshal(text, &header), token.Claims(&claims))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", auth.ErrInvalid, err)
	}
	if value, ok := header["typ"]; ok {
		if typ, _ := value.(string); !slices.Contains(bearerTypes, strings.ToLower(typ)) {
			return fmt.Errorf("%w: the token has the type %.100q, and none of %q", auth.ErrInvalid, fmt.Sprint(value), bearerTypes)
		}
	}
	if _, ok := claims["events"]; ok { // RFC 8417, section 2.2
		return fmt.Errorf("%w: the token has the claim events: it reports an event, and authenticates nobody", auth.ErrInvalid)
	}
	return nil
}

// verify checks signature, issuer and expiry of a token, and that it has one of the audiences.
// Discover must have succeeded.
func (t *Tokens) verify(ctx context.Context, raw string, audiences []string) (*oidc.IDToken, error) {
	ctx, outage := withOutage(ctx)
	token, err := t.provider.Load().verifier.Verify(ctx, raw)
	var expired *oidc.TokenExpiredError
	switch {
	case *outage != nil:
		return nil, unavailable(*outage)
	case errors.As(err, &expired):
		return nil, fmt.Errorf("%w: on %s", auth.ErrExpired, expired.Expiry.UTC().Format(time.RFC3339))
	case err != nil:
		return nil, fmt.Errorf("%w: %w", auth.ErrInvalid, err)
	case !slices.ContainsFunc(token.Audience, func(a string) bool { return slices.Contains(audiences, a) }):
		return nil, fmt.Errorf("%w: the token is for %q", auth.ErrInvalid, token.Audience)
	}
	return token, nil
}

// unavailable marks an error as auth.ErrUnavailable.
func unavailable(err error) error {
	if errors.Is(err, auth.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", auth.ErrUnavailable, err)
}
