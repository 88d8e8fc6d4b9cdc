package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/sync/singleflight"

	"github.com/perdure/perdure/internal/auth"
)

// Config says whose tokens are accepted, and what they say. Claims are names of the token's
// members; dots lead into objects, unless a member has that very name.
type Config struct {
	// Issuer is the provider's URL, as its tokens have it.
	Issuer string
	// Audiences are those of which a token must have one.
	Audiences []string
	// SubjectClaim and RolesClaim name the caller and the roles.
	SubjectClaim, RolesClaim string
	// TenantClaim names the tenant. Empty = everybody has the default one.
	TenantClaim string
}

// Skew is how far the provider's clock may be behind ours.
const Skew = 30 * time.Second

// patience bounds each request to the provider.
const patience = 10 * time.Second

// signatures are those that only the provider can make. Those with a shared key are not among them,
// nor is none.
var signatures = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// Tokens knows callers by their tokens. It is safe for concurrent use.
type Tokens struct {
	cfg      Config
	now      func() time.Time
	client   *http.Client
	verifier atomic.Pointer[oidc.IDTokenVerifier] // nil until the provider was found
	finding  singleflight.Group
}

// New knows the tokens of a provider, which is asked when it is needed, or by Discover.
func New(cfg Config) *Tokens {
	return newTokens(cfg, time.Now)
}

func newTokens(cfg Config, now func() time.Time) *Tokens {
	return &Tokens{cfg: cfg, now: now, client: &http.Client{Transport: newFetcher(http.DefaultTransport, now), Timeout: patience}}
}

// Discover finds the provider. It is done once; many may ask for it at a time.
//
// Errors: auth.ErrUnavailable, if that may be different in a moment; anything else is a mistake in
// the configuration.
func (t *Tokens) Discover(ctx context.Context) error {
	if t.verifier.Load() != nil {
		return nil
	}
	found := t.finding.DoChan("", func() (any, error) { return nil, t.discover(context.WithoutCancel(ctx)) })
	select {
	case r := <-found:
		return r.Err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", auth.ErrUnavailable, context.Cause(ctx))
	}
}

func (t *Tokens) discover(ctx context.Context) error {
	ctx = oidc.ClientContext(ctx, t.client)
	provider, err := oidc.NewProvider(ctx, t.cfg.Issuer)
	if err != nil {
		return err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil || document.Keys == "" {
		return errors.New("the provider does not say where its keys are (jwks_uri)")
	}
	t.verifier.Store(oidc.NewVerifier(t.cfg.Issuer, keySet{oidc.NewRemoteKeySet(ctx, document.Keys)}, &oidc.Config{
		SkipClientIDCheck:    true, // there may be several; accepts looks
		SupportedSigningAlgs: signatures,
		Now:                  func() time.Time { return t.now().Add(-Skew) },
	}))
	return nil
}

// Authenticate implements auth.Authenticator.
func (t *Tokens) Authenticate(r *http.Request) (auth.Identity, error) {
	raw, err := auth.Bearer(r.Header)
	if err != nil {
		return auth.Identity{}, err
	}
	if err := t.Discover(r.Context()); err != nil {
		return auth.Identity{}, unavailable(err)
	}
	token, err := t.verify(r.Context(), raw)
	if err != nil {
		return auth.Identity{}, err
	}
	p, err := t.principal(token)
	return auth.Identity{Principal: p, Expires: token.Expiry.Add(Skew)}, err
}

func (t *Tokens) verify(ctx context.Context, raw string) (*oidc.IDToken, error) {
	ctx, outage := noting(ctx)
	token, err := t.verifier.Load().Verify(ctx, raw)
	var expired *oidc.TokenExpiredError
	switch {
	case *outage != nil:
		return nil, unavailable(*outage)
	case errors.As(err, &expired):
		return nil, fmt.Errorf("%w: on %s", auth.ErrExpired, expired.Expiry.UTC().Format(time.RFC3339))
	case err != nil:
		return nil, fmt.Errorf("%w: %w", auth.ErrInvalid, err)
	case !slices.ContainsFunc(token.Audience, func(a string) bool { return slices.Contains(t.cfg.Audiences, a) }):
		return nil, fmt.Errorf("%w: the token is for %q", auth.ErrInvalid, token.Audience)
	}
	return token, nil
}

func unavailable(err error) error {
	if errors.Is(err, auth.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", auth.ErrUnavailable, err)
}
