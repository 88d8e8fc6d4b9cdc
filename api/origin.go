package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/fileroutes"
	"github.com/perdure/perdure/api/problem"
)

// originAllowed reports whether Origins names an origin, literally or by a wildcard. origin is the
// value of the header, which browsers write in lower case.
func (s *Server) originAllowed(origin string) bool {
	for _, allowed := range s.Origins {
		before, after, wild := strings.Cut(strings.ToLower(allowed), "*")
		switch {
		case !wild && origin == before:
			return true
		case wild && len(origin) >= len(before)+len(after) && strings.HasPrefix(origin, before) && strings.HasSuffix(origin, after):
			return true
		}
	}
	return false
}

// requestAllowed reports whether a request may come from its page. A request without an Origin
// header comes from a program, or is a read whose answer CORS keeps from a foreign page. A page of
// the API's own origin is allowed; if a proxy changes the Host, only Sec-Fetch-Site, which pages
// cannot set, shows that. Other pages need an entry in Origins.
func (s *Server) requestAllowed(r *http.Request) bool {
	return !isForeign(r) || s.originAllowed(r.Header.Get("Origin"))
}

// isForeign reports whether a request comes from a page of another origin.
func isForeign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin != "" && r.Header.Get("Sec-Fetch-Site") != "same-origin" && origin != "http://"+r.Host && origin != "https://"+r.Host
}

// refuseOrigin is middleware that refuses, with 403 origin_not_allowed, requests of pages of
// foreign origins. The CORS middleware would refuse them with an empty body.
//
// It refuses, with 415, bodies without a Content-Type of foreign pages that are allowed. A browser
// sends them without a preflight request, and with cookies: those of a proxy that signs people in
// would authenticate them (https://fetch.spec.whatwg.org/#cors-safelisted-request-header).
func (s *Server) refuseOrigin(c *gin.Context) {
	switch {
	case !s.requestAllowed(c.Request):
		s.Refuse(c, errOrigin(c.Request))
	case isForeign(c.Request) && c.Request.ContentLength != 0 && c.GetHeader("Content-Type") == "":
		s.Refuse(c, problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "pages of other origins must send bodies with the Content-Type application/json"))
	}
}

// errOrigin returns that problem. It names the setting to change.
func errOrigin(r *http.Request) *problem.Problem {
	return problem.New(http.StatusForbidden, "origin_not_allowed",
		fmt.Sprintf("pages of the origin %.200q may not call this API; PERDURE_CORS_ORIGINS lists the origins that may", r.Header.Get("Origin")))
}

// cors returns the configuration of the CORS middleware. Credentials (cookies) are not allowed:
// clients send a token. Preflight answers may be cached for an hour.
func (s *Server) cors() cors.Config {
	cfg := cors.Config{
		AllowMethods:  []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch},
		AllowHeaders:  append([]string{"Accept", "Authorization", "Content-Type", "If-Match", "If-None-Match", "Last-Event-ID", "Traceparent"}, fileroutes.RequestHeaders...),
		ExposeHeaders: append([]string{"ETag", "RateLimit", "RateLimit-Policy", "Retry-After", "WWW-Authenticate"}, fileroutes.ResponseHeaders...),
		MaxAge:        time.Hour,
	}
	if len(s.Origins) == 1 && s.Origins[0] == "*" {
		cfg.AllowAllOrigins = true
	} else {
		cfg.AllowOriginWithContextFunc = func(c *gin.Context, _ string) bool { return s.requestAllowed(c.Request) }
	}
	return cfg
}
