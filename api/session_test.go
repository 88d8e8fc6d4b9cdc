package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/sessions"
)

// TestNavigationWithoutSessionGoesToSignIn: a browser that shows a page is sent to the sign-in, with
// the path to which it returns. Other requests get a problem.
func TestNavigationWithoutSessionGoesToSignIn(t *testing.T) {
	t.Parallel()
	navigation := []string{"Sec-Fetch-Mode", "navigate", "Accept", "text/html"}
	long := "/v1/threads?cursor=" + strings.Repeat("x", 600)
	for _, tt := range []struct {
		err          error
		method, path string
		header       []string
		wantStatus   int
		want         string // the Location, or the code
	}{
		{auth.ErrNoCredentials, "GET", "/v1/threads?limit=2", navigation, 302, "/auth/login?return=%2Fv1%2Fthreads%3Flimit%3D2"},
		{auth.ErrSessionEnded, "GET", "/v1/threads/a%2Fb", []string{"Accept", "text/html,*/*"}, 302, "/auth/login?return=%2Fv1%2Fthreads%2Fa%252Fb"},
		{auth.ErrSessionEnded, "GET", long, navigation, 302, "/auth/login"},
		{auth.ErrSessionEnded, "GET", "/v1/threads", []string{"Sec-Fetch-Mode", "cors", "Accept", "text/html"}, 401, "session_ended"},
		{auth.ErrNoCredentials, "GET", "/v1/threads", nil, 401, "unauthenticated"},
		{auth.ErrInvalid, "GET", "/v1/threads", navigation, 401, "unauthenticated"},
		{auth.ErrUnavailable, "GET", "/v1/threads", navigation, 503, "auth_unavailable"},
		{auth.ErrSessionEnded, "POST", "/v1/threads/t/pause", navigation, 401, "session_ended"},
		{&auth.CrossSiteError{Reason: "the reason"}, "POST", "/v1/threads/t/pause", nil, 403, "cross_site_request"},
	} {
		node := setup(t, func(c *api.Config) {
			c.Sessions = &sessions.Sessions{}
			c.Auth = authenticatorFunc(func(*http.Request) (auth.Identity, error) { return auth.Identity{}, tt.err })
		})
		node.http.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		a := node.do(tt.method, tt.path, "", tt.header...)
		got := a.problem.Code
		if a.status == http.StatusFound {
			got = a.header.Get("Location")
		}
		if a.status != tt.wantStatus || got != tt.want {
			t.Errorf("%v, %s %.40s %q: got %d %s, want %d %s", tt.err, tt.method, tt.path, tt.header, a.status, got, tt.wantStatus, tt.want)
		}
	}
}

// TestResponseHasTheNewCookie: a cookie that the authenticator has renewed is in the response.
func TestResponseHasTheNewCookie(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) {
		c.Auth = authenticatorFunc(func(*http.Request) (auth.Identity, error) {
			return auth.Identity{Principal: auth.Principal{Tenant: "default", Subject: "ann"}, Cookie: &http.Cookie{Name: "perdure", Value: "t"}}, nil
		})
	})
	a := node.do(http.MethodGet, "/v1/agents", "")
	wantEqual(t, "status", a.status, http.StatusOK)
	wantEqual(t, "cookie", a.header.Get("Set-Cookie"), "perdure=t")
}
