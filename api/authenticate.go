package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/auth"
)

// public are the routes without authentication. They reveal nothing of any tenant. All other routes
// need a principal, also later ones.
var public = []string{rootPath, "/healthz", "/readyz", "/metrics", openAPIPath}

// authenticate finds out who calls (see auth.From). The request ends when the credentials expire.
func (s *Server) authenticate(c *gin.Context) {
	if slices.Contains(public, c.FullPath()) {
		return
	}
	if changes(c.Request) && !s.allowed(c.Request) {
		s.Refuse(c, errOrigin(c.Request))
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
		ctx, cancel = context.WithDeadlineCause(ctx, identity.Expires, streams.ErrExpired)
		defer cancel()
	}
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// changes reports whether a request may change something, or opens a socket. Browsers let every
// page send such requests, with the credentials that a proxy uses.
func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.Path == socketPath
}

// turnAway refuses a request without a principal. The log has the reason, the answer does not.
func (s *Server) turnAway(c *gin.Context, err error) {
	if errors.Is(err, auth.ErrInvalid) || errors.Is(err, auth.ErrUntrusted) {
		s.logger.WarnContext(c.Request.Context(), "a request is not let in", "route", c.FullPath(), "peer", c.Request.RemoteAddr, "reason", shortened(err))
	} else if !errors.Is(err, auth.ErrUnavailable) { // refuse logs that error
		s.logger.DebugContext(c.Request.Context(), "a request is not let in", "route", c.FullPath(), "peer", c.Request.RemoteAddr, "reason", shortened(err))
	}
	s.Refuse(c, err)
}

// maxWhy bounds the reason in the log, in bytes: it may have a part of a token.
const maxWhy = 300

func shortened(err error) string {
	text := err.Error()
	return text[:min(maxWhy, len(text))]
}

// administers refuses callers that may not change what all tenants share.
func (s *Server) administers(c *gin.Context) {
	if p, ok := auth.From(c.Request.Context()); !ok || !p.Has(s.AdminRole) {
		s.Refuse(c, problem.New(http.StatusForbidden, "forbidden", "changing what all tenants share needs the role that PERDURE_ADMIN_ROLE names"))
	}
}
