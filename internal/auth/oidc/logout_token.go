package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/auth"
)

// MaxLogoutToken bounds a logout token, in bytes.
const MaxLogoutToken = 16 << 10

// logoutEvent is the member of the claim events that makes a token a logout token.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// Logout is the content of a logout token: which sessions the provider has ended.
type Logout struct {
	// ID is the claim jti. Expires is the end of the token with the skew: until then its ID must not
	// occur again.
	ID      string
	Expires time.Time
	// Subject and SessionID are the claims sub and sid. One of them may be empty: the provider has
	// ended all sessions of the subject, or the session.
	Subject, SessionID string
}

// VerifyLogout verifies a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6). It
// does not check whether the ID was used. Errors: auth.ErrInvalid, auth.ErrExpired,
// auth.ErrUnavailable.
func (c *Client) VerifyLogout(ctx context.Context, raw string) (Logout, error) {
	if len(raw) > MaxLogoutToken {
		return Logout{}, fmt.Errorf("%w: the logout token may have %d bytes", auth.ErrInvalid, MaxLogoutToken)
	}
	if err := c.tokens.Discover(ctx); err != nil {
		return Logout{}, unavailable(err)
	}
	token, err := c.tokens.verify(ctx, raw, []string{c.cfg.ID})
	if err != nil {
		return Logout{}, err
	}
	var claims struct {
		ID        string                     `json:"jti"`
		SessionID string                     `json:"sid"`
		Nonce     json.RawMessage            `json:"nonce"` // nil = absent; null is not nil
		Events    map[string]json.RawMessage `json:"events"`
	}
	invalid := func(reason string) (Logout, error) {
		return Logout{}, fmt.Errorf("%w: the logout token %s", auth.ErrInvalid, reason)
	}
	if err := token.Claims(&claims); err != nil {
		return invalid("has claims of other types")
	}
	var event map[string]any
	switch {
	case json.Unmarshal(claims.Events[logoutEvent], &event) != nil || event == nil:
		return invalid("has no logout event")
	case claims.Nonce != nil: // an ID token must not serve as a logout token
		return invalid("has a nonce")
	case claims.ID == "":
		return invalid("has no jti")
	case token.Subject == "" && claims.SessionID == "":
		return invalid("has neither sub nor sid")
	case token.IssuedAt.After(c.tokens.now().Add(Skew)):
		return invalid("was issued in the future")
	case token.Expiry.After(c.tokens.now().Add(maxLogoutAge)):
		return invalid("is valid for too long")
	}
	return Logout{ID: claims.ID, Expires: token.Expiry.Add(Skew), Subject: token.Subject, SessionID: claims.SessionID}, nil
}

// maxLogoutAge bounds how long a logout token is valid, so that its ID is not stored for ever. The
// specification recommends two minutes.
const maxLogoutAge = time.Hour
