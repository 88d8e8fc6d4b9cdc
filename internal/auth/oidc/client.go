package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"github.com/perdure/perdure/internal/auth"
)

// ErrRefused tells that the provider refuses a code or a refresh token, or that the user did not
// sign in.
var ErrRefused = errors.New("the provider refuses")

// Bounds of the tokens that a Client accepts, in bytes. They are stored with the session.
const (
	maxIDToken      = 16 << 10
	maxRefreshToken = 8 << 10
)

// ClientConfig registers Perdure as a client of the provider.
type ClientConfig struct {
	ID string
	// Secret returns the client secret at each use; nil = the client is public.
	Secret func() (string, error)
	// RedirectURL is where the provider sends users after they have signed in.
	RedirectURL string
	// Scopes are the requested scopes. They must contain openid.
	Scopes []string
}

// Client signs users in at the provider of a Tokens: the authorization code flow with PKCE (OpenID
// Connect Core, section 3.1; RFC 7636). It is safe for concurrent use and needs no closing.
//
// Errors of its methods wrap ErrRefused, auth.ErrInvalid for a token that is not valid, or
// auth.ErrUnavailable if a repetition may succeed. They contain no token and no secret.
type Client struct {
	tokens *Tokens
	cfg    ClientConfig
	http   *http.Client
}

// NewClient returns a client of the provider.
func (t *Tokens) NewClient(cfg ClientConfig) *Client {
	return &Client{tokens: t, cfg: cfg, http: &http.Client{
		Timeout: requestTimeout,
		// A redirect would send the code and the secret to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Grant is what the provider has granted for a user.
type Grant struct {
	// Principal has the claims of the ID token, mapped as for bearer tokens.
	Principal auth.Principal
	// Subject and SessionID are the claims sub and sid, by which the provider ends sessions. The
	// SessionID may be empty.
	Subject, SessionID string
	// IDToken is the ID token; "" = the provider has issued none with a refresh.
	IDToken string
	// RefreshToken renews the grant; "" = it cannot be renewed.
	RefreshToken string
	// Expires is when the claims should be renewed: the expiry of the ID token or of the access
	// token, whichever is earlier.
	Expires time.Time
}

// SignInURL returns the URL at which the user signs in. verifier is the PKCE verifier, of which the
// URL has only the digest.
func (c *Client) SignInURL(ctx context.Context, state, nonce, verifier string) (string, error) {
	cfg, err := c.oauth(ctx)
	if err != nil {
		return "", err
	}
	return cfg.AuthCodeURL(state, oauth2.SetAuthURLParam("nonce", nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// CheckIssuer checks the parameter iss of an authorization response, which protects against the
// response of another provider (RFC 9207).
func (c *Client) CheckIssuer(ctx context.Context, issuer string) error {
	if err := c.tokens.Discover(ctx); err != nil {
		return unavailable(err)
	}
	if issuer == "" && !c.tokens.provider.Load().namesIssuer || issuer == c.tokens.cfg.Issuer {
		return nil
	}
	return fmt.Errorf("%w: the response is of another issuer", auth.ErrInvalid)
}

// Exchange exchanges the code of an authorization response. The ID token must have the nonce of the
// authorization request.
func (c *Client) Exchange(ctx context.Context, code, nonce, verifier string) (Grant, error) {
	cfg, err := c.oauth(ctx)
	if err != nil {
		return Grant{}, err
	}
	token, err := cfg.Exchange(context.WithValue(ctx, oauth2.HTTPClient, c.http), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Grant{}, tokenError(err)
	}
	grant, tokenNonce, err := c.grant(ctx, token)
	switch {
	case err != nil:
		return Grant{}, err
	case grant.IDToken == "":
		return Grant{}, fmt.Errorf("%w: the provider has issued no ID token", auth.ErrInvalid)
	case subtle.ConstantTimeCompare([]byte(tokenNonce), []byte(nonce)) == 0:
		return Grant{}, fmt.Errorf("%w: the ID token has another nonce", auth.ErrInvalid)
	}
	return grant, nil
}

// Refresh renews a grant. The new grant has the earlier principal and ID token if the provider
// issues no new ID token, and the earlier refresh token if that stays valid.
func (c *Client) Refresh(ctx context.Context, earlier Grant) (Grant, error) {
	cfg, err := c.oauth(ctx)
	if err != nil {
		return Grant{}, err
	}
	source := cfg.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, c.http), &oauth2.Token{RefreshToken: earlier.RefreshToken})
	token, err := source.Token()
	if err != nil {
		return Grant{}, tokenError(err)
	}
	grant, _, err := c.grant(ctx, token)
	if err != nil {
		return Grant{}, err
	}
	if grant.IDToken == "" {
		earlier.RefreshToken, earlier.Expires = grant.RefreshToken, grant.Expires
		return earlier, nil
	}
	if grant.Subject != earlier.Subject { // OpenID Connect Core, section 12.2
		return Grant{}, fmt.Errorf("%w: the renewed ID token has another subject", auth.ErrInvalid)
	}
	if grant.SessionID == "" {
		grant.SessionID = earlier.SessionID
	}
	return grant, nil
}

// SignOutURL returns the URL at which the provider ends the user's session, and then sends the user
// to returnTo (OpenID Connect RP-Initiated Logout); "" = the provider has none.
func (c *Client) SignOutURL(ctx context.Context, idToken, returnTo string) (string, error) {
	if err := c.tokens.Discover(ctx); err != nil {
		return "", unavailable(err)
	}
	endSession := c.tokens.provider.Load().endSession
	if endSession == "" {
		return "", nil
	}
	u, err := url.Parse(endSession)
	if err != nil {
		return "", fmt.Errorf("%w: the provider's end_session_endpoint: %w", auth.ErrInvalid, err)
	}
	query := u.Query()
	query.Set("client_id", c.cfg.ID)
	query.Set("post_logout_redirect_uri", returnTo)
	if len(idToken) > 0 && len(idToken) <= maxHint {
		query.Set("id_token_hint", idToken)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// maxHint bounds the ID token in a URL, in bytes. Without it the provider asks the user whether to
// sign out.
const maxHint = 4 << 10

// oauth returns the configuration of the OAuth client.
func (c *Client) oauth(ctx context.Context) (*oauth2.Config, error) {
	if err := c.tokens.Discover(ctx); err != nil {
		return nil, unavailable(err)
	}
	cfg := &oauth2.Config{ClientID: c.cfg.ID, Endpoint: c.tokens.provider.Load().endpoint, RedirectURL: c.cfg.RedirectURL, Scopes: c.cfg.Scopes}
	if c.cfg.Secret == nil { // a public client sends its ID in the body (RFC 6749, section 3.2.1)
		cfg.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		return cfg, nil
	}
	secret, err := c.cfg.Secret()
	if err != nil {
		return nil, unavailable(err)
	}
	cfg.ClientSecret = secret
	return cfg, nil
}

// grant verifies the tokens of a response. nonce is the claim of the ID token.
func (c *Client) grant(ctx context.Context, token *oauth2.Token) (grant Grant, nonce string, err error) {
	grant = Grant{RefreshToken: token.RefreshToken, Expires: token.Expiry}
	grant.IDToken, _ = token.Extra("id_token").(string)
	if len(grant.IDToken) > maxIDToken || len(grant.RefreshToken) > maxRefreshToken {
		return Grant{}, "", fmt.Errorf("%w: the ID token may have %d bytes, and the refresh token %d", auth.ErrInvalid, maxIDToken, maxRefreshToken)
	}
	if grant.IDToken == "" {
		return grant, "", nil
	}
	verified, err := c.tokens.verify(ctx, grant.IDToken, []string{c.cfg.ID})
	if err != nil {
		return Grant{}, "", err
	}
	var claims struct {
		Party     string `json:"azp"`
		SessionID string `json:"sid"`
	}
	if err := verified.Claims(&claims); err != nil {
		return Grant{}, "", fmt.Errorf("%w: %w", auth.ErrInvalid, err)
	}
	if claims.Party != "" && claims.Party != c.cfg.ID {
		return Grant{}, "", fmt.Errorf("%w: the ID token is for the client %.100q", auth.ErrInvalid, claims.Party)
	}
	if grant.Principal, err = c.tokens.principal(verified); err != nil {
		return Grant{}, "", err
	}
	if err := grant.Principal.Check(); err != nil {
		return Grant{}, "", err
	}
	grant.Subject, grant.SessionID = verified.Subject, claims.SessionID
	if grant.Expires.IsZero() || verified.Expiry.Before(grant.Expires) {
		grant.Expires = verified.Expiry
	}
	return grant, verified.Nonce, nil
}

// tokenError maps an error of the token endpoint. A refusal is an OAuth error about the code or the
// refresh token. Every other answer may be that of a proxy, of a provider that is starting, or the
// consequence of a wrong client secret, which the operator can mend.
func tokenError(err error) error {
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok:
		return unavailable(err)
	case refusal.ErrorCode == "invalid_grant" || refusal.ErrorCode == "invalid_request":
		return fmt.Errorf("%w: %s", ErrRefused, refusal.ErrorCode)
	}
	return unavailable(fmt.Errorf("the token endpoint answers %s, error %.100q", refusal.Response.Status, refusal.ErrorCode))
}
