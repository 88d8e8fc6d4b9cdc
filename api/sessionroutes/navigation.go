package sessionroutes

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/sessions"
)

// isNavigation reports whether a browser shows the response as a page. Browsers without
// Sec-Fetch-Mode are recognized by their preference for HTML.
func isNavigation(r *http.Request) bool {
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// LoginFor returns the path at which a user signs in and then returns to the page of a request; "" =
// the request is no navigation to a page, or err is not the lack of a session.
func LoginFor(r *http.Request, err error) string {
	if r.Method != http.MethodGet || !isNavigation(r) || !errors.Is(err, auth.ErrNoCredentials) && !errors.Is(err, auth.ErrSessionEnded) {
		return ""
	}
	returnTo := r.URL.RequestURI()
	if sessions.CheckReturn(returnTo) != nil {
		return sessions.LoginPath
	}
	return sessions.LoginPath + "?" + url.Values{"return": {returnTo}}.Encode()
}

// failurePage tells a user why a sign-in has failed. It has no scripts and loads nothing.
var failurePage = template.Must(template.New("failure").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign-in failed</title>
<h1>Sign-in failed</h1>
<p>{{.Detail}} ({{.Code}})</p>
<p><a href="` + sessions.LoginPath + `">Sign in again</a></p>
</html>
`))

// refuse answers with the problem of an error: as a page if a browser shows it.
func (r *Routes) refuse(c *gin.Context, err error) {
	p := problem.Of(err)
	problem.Keep(c, p)
	if p.Status >= http.StatusInternalServerError || !isNavigation(c.Request) {
		r.Refuse(c, err)
		return
	}
	var page bytes.Buffer
	if err := failurePage.Execute(&page, p); err != nil {
		r.Refuse(c, err)
		return
	}
	if p.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	c.Header("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
	c.Header("Referrer-Policy", "no-referrer") // the URL has the code
	c.Abort()
	c.Data(p.Status, "text/html; charset=utf-8", page.Bytes())
}
