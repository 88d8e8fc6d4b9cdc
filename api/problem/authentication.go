package problem

import (
	"errors"
	"net/http"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
)

// authenticationProblem returns the problem for an error of an auth.Authenticator or a policy; nil =
// err is another error. The details do not tell which check failed, because they would help an attacker.
func authenticationProblem(err error) *Problem {
	if denied, ok := errors.AsType[*policy.DeniedError](err); ok {
		p := New(http.StatusForbidden, "forbidden", denied.Error())
		p.Rule = denied.Rule
		return p
	}
	switch {
	case errors.Is(err, auth.ErrNoCredentials):
		return Unauthorized("", "the request has no credentials")
	case errors.Is(err, auth.ErrSessionEnded):
		p := Unauthorized("", "the session has ended, or is unknown: sign in again")
		p.Code = "session_ended"
		return p
	case errors.Is(err, auth.ErrCrossSite):
		detail := "the request may be that of another site"
		if crossSite, ok := errors.AsType[*auth.CrossSiteError](err); ok {
			detail = crossSite.Reason
		}
		return New(http.StatusForbidden, "cross_site_request", detail)
	case errors.Is(err, auth.ErrExpired):
		return Unauthorized("invalid_token", "the credentials have expired")
	case errors.Is(err, auth.ErrInvalid):
		return Unauthorized("invalid_token", "the credentials are not accepted")
	case errors.Is(err, auth.ErrUntrusted): // 401 would ask for credentials, which do not help
		detail := "requests from this sender are not accepted"
		if untrusted, ok := errors.AsType[*auth.UntrustedError](err); ok {
			detail = untrusted.Detail
		}
		return New(http.StatusForbidden, "forbidden", detail)
	case errors.Is(err, auth.ErrUnavailable):
		p := New(http.StatusServiceUnavailable, "auth_unavailable", "the credentials cannot be checked now, and the request had no effect")
		p.RetryAfter = 1
		return p
	}
	return nil
}

// Unauthorized returns the 401 for a request without valid credentials. code is the error of the
// Bearer challenge (RFC 6750), such as invalid_token; "" = the request has no credentials.
func Unauthorized(code, detail string) *Problem {
	p := New(http.StatusUnauthorized, "unauthenticated", detail)
	p.Challenge = `Bearer realm="perdure"`
	if code != "" {
		p.Challenge += `, error="` + code + `"`
	}
	return p
}
