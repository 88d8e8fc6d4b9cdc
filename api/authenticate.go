package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/sessionroutes"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/auth"
)

// publicRoutes are the routes without authentication. They reveal nothing about any tenant. Every
// other route needs a principal, so a new route is protected unless this list names it. Links
// (approvalroutes), which use the middleware unless their token names an approver, webhooks
// (eventroutes), whose requests are signed, and the routes of sign-in (sessionroutes), which begin and
// end sessions, are registered before the middleware.
var publicRoutes = []string{rootPath, "/healthz", readinessPath, openAPIPath, keysPath}

// authenticate is middleware that finds the principal of a request and puts it into the request's
// context (auth.From). A request without valid credentials gets 401, from an untrusted proxy 403,
// and if the credentials cannot be checked 503 auth_unavailable. A caller that sends too many
// requests gets 429 rate_limited.
//
// The context ends when the credentials expire or are revoked, with the cause streams.ErrExpired. So
// an open stream or WebSocket does not outlive the credentials that opened it.
//
// A browser sends ambient credentials, such as a proxy's session cookie, also with requests of
// foreign pages. So a request that may change something is refused with 403 if its page is of a
// foreign origin, whether CORS is configured or not.
func (s *Server) authenticate(c *gin.Context) {
	if slices.Contains(publicRoutes, c.FullPath()) {
		return
	}
	if s.Sessions != nil && sessionroutes.IsPublic(c.Request.URL.EscapedPath()) {
		return // with a method that the route of sign-in does not have: refuseMethod answers
	}
	if mayChange(c.Request) && !s.requestAllowed(c.Request) {
		err := errOrigin(c.Request)
		s.recorder.Reject(c, err.Status, err.Detail)
		s.Refuse(c, err)
		return
	}
	identity, err := s.Auth.Authenticate(c.Request)
	// The names of a principal become part of subjects, workflow IDs and audits.
	if err == nil {
		err = identity.Principal.Check()
	}
	if err != nil {
		s.refuseCaller(c, err)
		return
	}
	if err := s.rates.Take(identity.Principal, writes(c)); err != nil {
		s.Refuse(c, err)
		return
	}
	if s.Sessions != nil && c.GetHeader("Authorization") == "" {
		c.Header("Cache-Control", "private") // shared caches recognize only Authorization (RFC 9111, section 3.5)
	}
	if identity.Cookie != nil {
		http.SetCookie(c.Writer, identity.Cookie)
	}
	ctx := auth.With(c.Request.Context(), identity.Principal)
	ctx, end := whileValid(ctx, identity)
	defer end()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// whileValid returns a context that ends when the credentials of an identity expire or are revoked,
// with the cause streams.ErrExpired. The caller must call end.
func whileValid(ctx context.Context, identity auth.Identity) (valid context.Context, end func()) {
	end = func() {}
	if !identity.Expires.IsZero() {
		ctx, end = context.WithDeadlineCause(ctx, identity.Expires, streams.ErrExpired)
	}
	if identity.Valid == nil {
		return ctx, end
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(identity.Valid, func() { cancel(streams.ErrExpired) })
	expiry := end
	return ctx, func() {
		stop()
		cancel(nil)
		expiry()
	}
}

// mayChange reports whether a request may change something, or opens a WebSocket. Browsers send
// both without a CORS preflight in some cases, and never apply CORS to a WebSocket, so the server
// has to check the origin itself.
func mayChange(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.Path == socketPath
}

// writes reports whether a request may start a run or write to the log.
func writes(c *gin.Context) bool {
	return c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead && c.FullPath() != streamsPath
}

// refuseCaller refuses a request without a principal, or sends the user of a browser to the sign-in.
// The log has the reason; the answer has not, because it would help an attacker. Rejected credentials
// are logged as warnings. Missing and expired ones are normal, and logged at debug level only.
//
// A peer that sends too many of these requests gets 429 rate_limited, without a line in the log. Its
// credentials are checked nevertheless: callers with valid ones may share the address of a proxy.
func (s *Server) refuseCaller(c *gin.Context, err error) {
	if !errors.Is(err, auth.ErrUnavailable) {
		peer, _ := netip.ParseAddrPort(c.Request.RemoteAddr) // invalid addresses are one peer
		if tooMany := s.rates.TakeRefusal(peer.Addr()); tooMany != nil {
			s.Refuse(c, tooMany)
			return
		}
	}
	if errors.Is(err, auth.ErrInvalid) || errors.Is(err, auth.ErrUntrusted) || errors.Is(err, auth.ErrCrossSite) {
		s.logger.WarnContext(c.Request.Context(), "a request was refused", "route", c.FullPath(), "peer", c.Request.RemoteAddr, "reason", shortReason(err))
		s.recorder.Reject(c, problem.Of(err).Status, shortReason(err))
	} else if !errors.Is(err, auth.ErrUnavailable) { // Refuse logs that error
		s.logger.DebugContext(c.Request.Context(), "a request was refused", "route", c.FullPath(), "peer", c.Request.RemoteAddr, "reason", shortReason(err))
	}
	if s.Sessions != nil {
		if location := sessionroutes.LoginFor(c.Request, err); location != "" {
			c.Header("Cache-Control", "no-store")
			c.Redirect(http.StatusFound, location)
			c.Abort()
			return
		}
	}
	s.Refuse(c, err)
}

// maxReasonBytes bounds the reason in the log, in bytes. A reason may quote a part of a token,
// which must not be logged whole.
const maxReasonBytes = 300

// shortReason returns the text of an error, cut to maxReasonBytes bytes.
func shortReason(err error) string {
	text := err.Error()
	return text[:min(maxReasonBytes, len(text))]
}
