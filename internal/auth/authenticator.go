package auth

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Authenticator identifies the senders of requests. Implementations are safe for concurrent use.
type Authenticator interface {
	// Authenticate identifies the sender of a request by its headers and its TCP peer. The caller
	// then checks the principal with Principal.Check.
	//
	// Errors: ErrNoCredentials, ErrInvalid, ErrExpired, ErrUntrusted, ErrUnavailable, ErrSessionEnded,
	// ErrCrossSite, wrapped with the reason.
	Authenticate(r *http.Request) (Identity, error)
}

// Identity is what a request has proved.
type Identity struct {
	Principal Principal
	// Expires is when the credentials expire; zero = never. Streams end at that time.
	Expires time.Time
	// Valid ends when the credentials are revoked, and streams end with it; nil = the authenticator
	// learns of no revocation.
	Valid context.Context
	// Cookie is a new cookie for the sender, which the response sets; nil = the sender keeps its
	// credentials.
	Cookie *http.Cookie
}

// Errors of an Authenticator.
var (
	// ErrNoCredentials: the request has no credentials.
	ErrNoCredentials = errors.New("no credentials")
	// ErrInvalid: the credentials are malformed, unknown, or not signed by the provider.
	ErrInvalid = errors.New("invalid credentials")
	// ErrExpired: the credentials were valid until their expiry.
	ErrExpired = errors.New("expired credentials")
	// ErrUntrusted: requests from this peer, or for this host, must not authenticate.
	ErrUntrusted = errors.New("untrusted sender")
	// ErrUnavailable: the credentials cannot be checked at the moment. A repetition may succeed.
	ErrUnavailable = errors.New("credentials cannot be checked")
)

// Errors of requests with the cookie of a session (package sessions), in addition to those above.
var (
	// ErrSessionEnded: the session is unknown, has expired or was ended. The user signs in again.
	ErrSessionEnded = errors.New("the session has ended")
	// ErrCrossSite: the request has the cookie, but may be sent by a page of another site.
	ErrCrossSite = errors.New("cross-site request")
)

// CrossSiteError is an ErrCrossSite with its reason, which is shown to the client.
type CrossSiteError struct{ Reason string }

func (e *CrossSiteError) Error() string { return ErrCrossSite.Error() + ": " + e.Reason }

// Unwrap returns ErrCrossSite.
func (e *CrossSiteError) Unwrap() error { return ErrCrossSite }

// UntrustedError is an ErrUntrusted that names the settings which cause it.
type UntrustedError struct {
	// Detail is shown to the client. It names settings, but none of their values.
	Detail string
	// Reason is for the log.
	Reason string
}

func (e *UntrustedError) Error() string { return ErrUntrusted.Error() + ": " + e.Reason }

// Unwrap returns ErrUntrusted.
func (e *UntrustedError) Unwrap() error { return ErrUntrusted }

// SubprotocolPrefix begins the subprotocol by which a browser's WebSocket sends a token:
// bearer.<token>.
const SubprotocolPrefix = "bearer."

// bearerToken is the syntax of a token (RFC 6750, section 2.1).
var bearerToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// IsToken reports whether a text has the syntax of a bearer token.
func IsToken(s string) bool { return bearerToken.MatchString(s) }

// Bearer returns the bearer token of a request. It reads the Authorization header, and the
// subprotocols of a WebSocket handshake, because browsers cannot set that header there. It never
// reads the URL, which proxies and servers log. More than one token is an error.
//
// Errors: ErrNoCredentials, ErrInvalid.
func Bearer(h http.Header) (string, error) {
	tokens := append(authorizations(h), offered(h)...)
	switch {
	case len(tokens) == 0:
		return "", ErrNoCredentials
	case len(tokens) > 1 || !IsToken(tokens[0]):
		return "", ErrInvalid
	}
	return tokens[0], nil
}

// authorizations returns the tokens of all Authorization headers. A scheme other than Bearer gives
// "", which is an invalid token.
func authorizations(h http.Header) []string {
	var tokens []string
	for _, value := range h.Values("Authorization") {
		scheme, token, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			token = ""
		}
		tokens = append(tokens, strings.Trim(token, " "))
	}
	return tokens
}

// offered returns the tokens in the subprotocols of a WebSocket handshake.
func offered(h http.Header) []string {
	if !strings.EqualFold(h.Get("Upgrade"), "websocket") {
		return nil
	}
	var tokens []string
	for _, value := range h.Values("Sec-WebSocket-Protocol") {
		for _, protocol := range strings.Split(value, ",") {
			if token, ok := strings.CutPrefix(strings.TrimSpace(protocol), SubprotocolPrefix); ok {
				tokens = append(tokens, token)
			}
		}
	}
	return tokens
}
