package auth

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Authenticator finds out who sends requests. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate tells who sends a request, from its header and its peer. The principal is not
	// checked yet.
	//
	// Errors: ErrNoCredentials, ErrInvalid, ErrExpired, ErrUntrusted, ErrUnavailable, wrapped with
	// the reason.
	Authenticate(r *http.Request) (Identity, error)
}

// Identity is what a request has proved.
type Identity struct {
	Principal Principal
	// Expires is when the proof is worth nothing any more. Zero = never.
	Expires time.Time
}

// Errors of an Authenticator.
var (
	// ErrNoCredentials: the request does not say whose it is.
	ErrNoCredentials = errors.New("no credentials")
	// ErrInvalid: it says so in a way that is not believed.
	ErrInvalid = errors.New("invalid credentials")
	// ErrExpired: it was true once.
	ErrExpired = errors.New("expired credentials")
	// ErrUntrusted: nobody who comes this way may say who they are.
	ErrUntrusted = errors.New("untrusted sender")
	// ErrUnavailable: it cannot be found out now.
	ErrUnavailable = errors.New("credentials cannot be checked")
)

// UntrustedError is an ErrUntrusted that names the settings which decide about it.
type UntrustedError struct {
	// Detail is for the client. It names settings, and none of their values.
	Detail string
	// Reason is for the log.
	Reason string
}

func (e *UntrustedError) Error() string { return ErrUntrusted.Error() + ": " + e.Reason }

// Unwrap returns ErrUntrusted.
func (e *UntrustedError) Unwrap() error { return ErrUntrusted }

// SubprotocolPrefix is what a token stands behind among the subprotocols that a WebSocket's client
// offers.
const SubprotocolPrefix = "bearer."

// bearerToken is what RFC 6750 lets a token be made of.
var bearerToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// IsToken reports whether a text can be sent as a token.
func IsToken(s string) bool { return bearerToken.MatchString(s) }

// Bearer returns the token that a request brings: in the Authorization header, or, since browsers
// cannot set that on WebSockets, among the subprotocols. Never in the URL, which is logged all
// along its way.
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

// authorizations returns the tokens of the Authorization header; of another scheme than Bearer
// there is "", which is none.
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

// offered returns the tokens among the subprotocols of a handshake.
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
