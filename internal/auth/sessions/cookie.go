package sessions

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/auth"
)

// Names of cookies. Over TLS a name gets hostPrefix: then browsers accept the cookie only from this
// host, secure, and for all paths (RFC 6265bis, section 4.1.3.2).
const (
	sessionCookie = "perdure"
	loginCookie   = "perdure-login"
	hostPrefix    = "__Host-"
)

// isSecure reports whether browsers use the API over TLS.
func (s *Sessions) isSecure() bool { return strings.HasPrefix(s.cfg.PublicURL, "https://") }

// cookieName returns the name of a cookie.
func (s *Sessions) cookieName(name string) string {
	if s.isSecure() {
		return hostPrefix + name
	}
	return name
}

// cookie returns a cookie that the browser keeps for a time: 0 = until it ends, negative = it removes
// the cookie. Scripts cannot read the cookie. Other sites do not send it, except when the user
// follows a link to this one.
func (s *Sessions) cookie(name, value string, keep time.Duration) *http.Cookie {
	c := &http.Cookie{Name: s.cookieName(name), Value: value, Path: "/", HttpOnly: true, Secure: s.isSecure(), SameSite: http.SameSiteLaxMode} //nolint:gosec // because without TLS, on loopback, a secure cookie would not be sent
	if c.MaxAge = int(keep.Seconds()); keep < 0 {
		c.MaxAge = -1
	}
	return c
}

// sentToken returns the token of a request. A second cookie of that name may be planted by another
// host of the domain, so neither counts. Errors: auth.ErrNoCredentials, auth.ErrSessionEnded.
func (s *Sessions) sentToken(r *http.Request) (string, error) {
	switch sent := r.CookiesNamed(s.cookieName(sessionCookie)); len(sent) {
	case 0:
		return "", auth.ErrNoCredentials
	case 1:
		return sent[0].Value, nil
	default:
		return "", fmt.Errorf("%w: the request has %d cookies of the session", auth.ErrSessionEnded, len(sent))
	}
}

// checkSite refuses a request that a page of another site may have made the browser send, with the
// cookie. Errors: auth.ErrCrossSite.
//
//   - A request that may change something needs proof of its origin, which pages cannot set: in
//     Sec-Fetch-Site, or in Origin if the browser sends only that. Its body must not have a type that
//     a form can send.
//   - A WebSocket handshake is a GET, but no CORS applies to it: it needs the Origin of the API.
func (s *Sessions) checkSite(r *http.Request) error {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if isUpgrade(r) {
		if !s.isOwnOrigin(origin, r.Host) { // not all browsers send Sec-Fetch-Site here
			return &auth.CrossSiteError{Reason: "a WebSocket with a session cookie needs the Origin of the API"}
		}
		return nil
	}
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) {
		return nil
	}
	if origin == "" && site == "" {
		return &auth.CrossSiteError{Reason: "a request with a session cookie needs the header Sec-Fetch-Site or Origin"}
	}
	isOwnPage := site == "same-origin" || site == "none" || site == "" && s.isOwnOrigin(origin, r.Host)
	if !isOwnPage {
		return &auth.CrossSiteError{Reason: "a page of another origin must not use a session cookie"}
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength != 0 && (err != nil || slices.Contains(formTypes, kind)) {
		return &auth.CrossSiteError{Reason: "a body with a session cookie needs a Content-Type such as application/json"}
	}
	return nil
}

// isOwnOrigin reports whether an origin is the PublicURL, or has its scheme and the host of a
// request. With another scheme, an attacker in the network could send a page that uses the cookie.
func (s *Sessions) isOwnOrigin(origin, host string) bool {
	scheme, _, _ := strings.Cut(s.cfg.PublicURL, "://")
	return origin == s.cfg.PublicURL || origin == scheme+"://"+host
}

// formTypes are the types of a body that a page of any origin can send without a preflight request
// (Fetch, CORS-safelisted request headers).
var formTypes = []string{"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"}
