package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// public are the routes that everybody may ask. They say nothing of what anybody did. All others need a
// principal, also those that are added one day.
var public = []string{rootPath, "/healthz", "/readyz", "/metrics", openAPIPath}

// errExpired is the cause with which requests end whose credentials have expired under way. The client
// comes back with new ones, and its last event id.
var errExpired = fmt.Errorf("api: under way: %w", auth.ErrExpired)

// authenticate finds out who sends a request; whoever comes later asks auth.From. It lives no longer than
// the credentials do.
func (s *Server) authenticate(c *gin.Context) {
	if slices.Contains(public, c.FullPath()) {
		return
	}
	if changes(c.Request) && !s.allowed(c.Request) {
		s.refuse(c, errOrigin(c.Request))
		return
	}
	identity, err := s.Auth.Authenticate(c.Request)
	if err == nil {
		err = identity.Principal.Check()
	}
	if err != nil {
		s.turnAway(c, err)
		return
	}
	ctx := auth.With(c.Request.Context(), identity.Principal)
	if !identity.Expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, identity.Expires, errExpired)
		defer cancel()
	}
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// changes tells whether a request may change something, or opens a socket, over which others may.
// Browsers let every page send such requests, and send what a proxy knows its user by along.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.Path == socketPath
}

// turnAway refuses a request that nobody is known to have sent. Why exactly is for the log alone.
func (s *Server) turnAway(c *gin.Context, err error) {
	if errors.Is(err, auth.ErrInvalid) || errors.Is(err, auth.ErrUntrusted) {
		s.logger.WarnContext(c.Request.Context(), "a request is not let in", "route", c.FullPath(), "peer", c.Request.RemoteAddr, "reason", shortened(err))
	} else if !errors.Is(err, auth.ErrUnavailable) { // which refuse logs
		s.logger.DebugContext(c.Request.Context(), "a request is not let in", "route", c.FullPath(), "peer", c.Request.RemoteAddr, "reason", shortened(err))
	}
	s.refuse(c, err)
}

// maxWhy bounds what is logged of why a request was not let in: it may hold what a token says.
const maxWhy = 300

func shortened(err error) string {
	text := err.Error()
	return text[:min(maxWhy, len(text))]
}

// unauthenticated is how an Authenticator's errors are answered; nil = it is none.
func unauthenticated(err error) *Problem {
	switch {
	case errors.Is(err, auth.ErrNoCredentials):
		return challenge("", "the request does not say who sends it")
	case errors.Is(err, auth.ErrExpired):
		return challenge("invalid_token", "the credentials have expired")
	case errors.Is(err, auth.ErrInvalid):
		return challenge("invalid_token", "the credentials are not accepted")
	case errors.Is(err, auth.ErrUntrusted):
		detail := "requests that come this way are not let in"
		if named, ok := errors.AsType[*auth.UntrustedError](err); ok {
			detail = named.Detail
		}
		return problem(http.StatusForbidden, "forbidden", detail)
	case errors.Is(err, auth.ErrUnavailable):
		p := problem(http.StatusServiceUnavailable, "auth_unavailable", "the credentials cannot be checked now; nothing was begun")
		p.RetryAfter = 1
		return p
	}
	return nil
}

func challenge(code, detail string) *Problem {
	p := problem(http.StatusUnauthorized, "unauthenticated", detail)
	p.Challenge = `Bearer realm="perdure"`
	if code != "" {
		p.Challenge += `, error="` + code + `"`
	}
	return p
}

// administers lets only those go on who may change what all tenants share.
func (s *Server) administers(c *gin.Context) {
	if p, ok := auth.From(c.Request.Context()); !ok || !p.Has(s.AdminRole) {
		s.refuse(c, problem(http.StatusForbidden, "forbidden", "changing what all tenants share needs the role that PERDURE_ADMIN_ROLE names"))
	}
}

// threadIn is a thread of the caller's tenant: the one way to a thread, so that nobody reaches another
// tenant's. Without a caller there is none.
func threadIn(ctx context.Context, id string) (stream.Thread, error) {
	p, ok := auth.From(ctx)
	if !ok {
		return stream.Thread{}, challenge("", "the request does not say who sends it")
	}
	return stream.Thread{Tenant: p.Tenant, ID: id}, nil
}

// requester is who calls, for the log; nil where nobody found that out.
func requester(ctx context.Context) *auth.Principal {
	if p, ok := auth.From(ctx); ok {
		return &p
	}
	return nil
}
