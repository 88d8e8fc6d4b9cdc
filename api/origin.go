package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-contrib/cors"
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
)

// allows reports whether pages of an origin may call. The same rule holds for requests and for
// sockets, which browsers let every page open.
func (s *Server) allows(origin string) bool {
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

// allowed reports whether a request comes from a page that may call, or from no page. Behind a
// proxy that changes the host, only the browser knows that the page is of the same origin.
func (s *Server) allowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin == "" || r.Header.Get("Sec-Fetch-Site") == "same-origin" || origin == "http://"+r.Host || origin == "https://"+r.Host || s.allows(origin)
}

// refuseOrigin refuses requests of pages that may not call. The CORS middleware would refuse them
// later, without a body.
func (s *Server) refuseOrigin(c *gin.Context) {
	if !s.allowed(c.Request) {
		s.Refuse(c, errOrigin(c.Request))
	}
}

func errOrigin(r *http.Request) *problem.Problem {
	return problem.New(http.StatusForbidden, "origin_not_allowed",
		fmt.Sprintf("pages of the origin %.200q may not call this API; PERDURE_CORS_ORIGINS lists the origins that may", r.Header.Get("Origin")))
}

func (s *Server) cors() cors.Config {
	cfg := cors.Config{
		AllowMethods:  []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut},
		AllowHeaders:  []string{"Accept", "Authorization", "Content-Type", "If-Match", "If-None-Match", "Last-Event-ID", "Traceparent"},
		ExposeHeaders: []string{"ETag", "Retry-After", "WWW-Authenticate"},
		MaxAge:        time.Hour,
	}
	if len(s.Origins) == 1 && s.Origins[0] == "*" {
		cfg.AllowAllOrigins = true
	} else {
		cfg.AllowOriginWithContextFunc = func(c *gin.Context, _ string) bool { return s.allowed(c.Request) }
	}
	return cfg
}
