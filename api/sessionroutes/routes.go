package sessionroutes

import (
	"errors"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/auth/sessions"
)

// Paths of the routes that package sessions does not name.
const (
	sessionPath    = "/auth/session"
	logoutPath     = "/auth/logout"
	logoutHookPath = "/auth/backchannel-logout"
)

// IsPublic reports whether a path, as it is escaped in the URL, is that of a route of
// RegisterPublic.
func IsPublic(path string) bool {
	return slices.Contains([]string{sessions.LoginPath, sessions.CallbackPath, logoutPath, logoutHookPath}, path)
}

// Routes serves the routes. It is safe for concurrent use.
type Routes struct {
	problem.Writer
	// Sessions has the sessions; nil = users do not sign in here, and only Register may be called.
	Sessions *sessions.Sessions
}

// RegisterPublic registers the routes that need no credentials. CORS and authentication must not
// apply to them: the provider and its pages use them. record is middleware that records denials in
// the audit log.
func (r *Routes) RegisterPublic(e *gin.Engine, record gin.HandlerFunc) {
	e.GET(sessions.LoginPath, noStore, r.checkQuery, r.login)
	e.GET(sessions.CallbackPath, noStore, r.checkQuery, record, r.callback)
	e.POST(logoutPath, noStore, r.checkQuery, record, r.Handle(r.logout))
	e.POST(logoutHookPath, noStore, r.checkQuery, record, r.Handle(r.endByProvider))
}

// Register registers the route that needs credentials.
func (r *Routes) Register(e *gin.Engine) { e.GET(sessionPath, noStore, r.Handle(r.session)) }

// noStore is middleware that keeps responses out of caches.
func noStore(c *gin.Context) { c.Header("Cache-Control", "no-store") }

// checkQuery is middleware that refuses a malformed query with 400 invalid_input.
func (r *Routes) checkQuery(c *gin.Context) {
	if _, err := request.ParseQuery(c.Request); err != nil {
		r.refuse(c, err)
	}
}

// redirect sends the browser to a URL, without a body.
func redirect(c *gin.Context, status int, location string) {
	c.Header("Location", location)
	c.Status(status)
}

// login serves GET /auth/login: it sends the browser to the provider. The parameter return is the
// path to which the user returns, / by default. Errors: 400 invalid_input, 503 auth_unavailable.
func (r *Routes) login(c *gin.Context) {
	returnTo := "/"
	if given, ok := c.GetQuery("return"); ok {
		returnTo = given
	}
	location, cookie, err := r.Sessions.Begin(c.Request, returnTo)
	if errors.Is(err, sessions.ErrReturn) {
		err = problem.InvalidParameter("return", "return "+err.Error())
	}
	if err != nil {
		r.refuse(c, err)
		return
	}
	http.SetCookie(c.Writer, cookie)
	redirect(c, http.StatusFound, location)
}

// callback serves GET /auth/callback: it begins the session, and sends the user back. It ignores
// unknown parameters, because providers add their own (RFC 6749, section 4.1.2). Errors: 400
// sign_in_failed, 403 sign_in_refused, 503 auth_unavailable, 503 sessions_full.
func (r *Routes) callback(c *gin.Context) {
	returnTo, cookie, err := r.Sessions.Complete(c.Request)
	if err != nil {
		r.refuse(c, signInProblem(err))
		return
	}
	http.SetCookie(c.Writer, cookie)
	redirect(c, http.StatusFound, returnTo)
}

// signInProblem returns the problem for an error of a callback. The details do not tell which check
// failed, because they would help an attacker. Other errors are returned unchanged.
func signInProblem(err error) error {
	switch {
	case errors.Is(err, auth.ErrInvalid), errors.Is(err, auth.ErrExpired):
		return problem.New(http.StatusBadRequest, "sign_in_failed", "the sign-in cannot be completed: it has expired, was begun in another browser or at another address, or the account lacks a claim")
	case errors.Is(err, oidc.ErrRefused):
		return problem.New(http.StatusForbidden, "sign_in_refused", "the provider has not signed the user in, or the response was used before")
	case errors.Is(err, sessions.ErrFull):
		return problem.New(http.StatusServiceUnavailable, "sessions_full", "there are too many sessions: try again later")
	}
	return err
}

// signedOut is the answer to a sign-out. Location is where the browser goes next.
type signedOut struct {
	Location string `json:"location"`
}

// logout serves POST /auth/logout: it ends the session of the request. A browser that follows a form
// is sent to the provider, which ends its own session; another client gets that URL. Without a
// session the answer is the same. Errors: 403 cross_site_request, 503 auth_unavailable.
func (r *Routes) logout(c *gin.Context) error {
	location, cookie, err := r.Sessions.SignOut(c.Request)
	if err != nil {
		return err
	}
	http.SetCookie(c.Writer, cookie)
	if isNavigation(c.Request) {
		redirect(c, http.StatusSeeOther, location)
		return nil
	}
	return request.WriteJSON(c, http.StatusOK, signedOut{location})
}

// maxHookBody bounds the body of a logout by the provider, in bytes: a logout token, in a form.
const maxHookBody = 2 * oidc.MaxLogoutToken

// endByProvider serves POST /auth/backchannel-logout (OpenID Connect Back-Channel Logout 1.0): it
// ends the sessions that the logout token in the form names. Errors: 400 invalid_logout_token, 413
// too_large, 415 unsupported_media_type, 503 auth_unavailable.
func (r *Routes) endByProvider(c *gin.Context) error {
	if kind, _, err := mime.ParseMediaType(c.GetHeader("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be a form with the member logout_token")
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxHookBody)
	if err := c.Request.ParseForm(); err != nil {
		if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return tooLong
		}
		return problem.BadRequest("invalid_logout_token", "", "the body must be a form with the member logout_token")
	}
	err := r.Sessions.EndByProvider(c.Request, c.Request.PostForm.Get("logout_token"))
	if errors.Is(err, auth.ErrInvalid) || errors.Is(err, auth.ErrExpired) {
		return problem.BadRequest("invalid_logout_token", "", "the logout token is not accepted")
	}
	if err == nil {
		c.Status(http.StatusOK)
	}
	return err
}

// caller is the answer of session. The times are those of a session: a caller with a token has none.
type caller struct {
	Tenant    string     `json:"tenant"`
	Subject   string     `json:"subject"`
	Roles     []string   `json:"roles"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	// IdleExpiresAt is when the session ends without further requests, ExpiresAt when it ends in any
	// case.
	IdleExpiresAt *time.Time `json:"idleExpiresAt,omitempty"`
	ExpiresAt     *time.Time `json:"expiresAt,omitempty"`
}

// session serves GET /auth/session: the caller, and the times of its session.
func (r *Routes) session(c *gin.Context) error {
	p, err := request.Principal(c.Request.Context())
	if err != nil {
		return err
	}
	answer := caller{Tenant: p.Tenant, Subject: p.Subject, Roles: p.Roles}
	if answer.Roles == nil {
		answer.Roles = []string{}
	}
	if r.Sessions != nil && c.GetHeader("Authorization") == "" {
		details, err := r.Sessions.Describe(c.Request)
		if err != nil {
			return err
		}
		for to, at := range map[**time.Time]time.Time{&answer.StartedAt: details.Started, &answer.IdleExpiresAt: details.IdleEnd, &answer.ExpiresAt: details.End} {
			*to = new(at.UTC().Truncate(time.Second))
		}
	}
	return request.WriteJSON(c, http.StatusOK, answer)
}
