package api

import (
	"html/template"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/internal/process/version"
)

// rootPath is the route that describes the server, for people and tools that open its address. It
// is public, and reveals nothing about any tenant.
const rootPath = "/"

// documentationURL is the address of the reference of the HTTP API.
const documentationURL = "https://github.com/perdure/perdure/blob/main/docs/reference/http-api.md"

// description is the JSON answer of the root route.
type description struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Links   struct {
		OpenAPI       string `json:"openapi"`
		Agents        string `json:"agents"`
		Documentation string `json:"documentation"`
	} `json:"links"`
}

// rootPage is the description as a page for browsers.
var rootPage = template.Must(template.New("root").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{{.Name}}</title>
<h1>{{.Name}} {{.Version}}</h1>
<p>This server runs AG-UI agents.</p>
<ul>
<li><a href="{{.Links.Agents}}">agents</a></li>
<li><a href="{{.Links.OpenAPI}}">description of the API (OpenAPI)</a></li>
<li><a href="{{.Links.Documentation}}">documentation</a></li>
</ul>
</html>
`))

// showRoot serves GET /. It answers with a page if the Accept header prefers HTML, and with JSON
// otherwise. The policy of the page forbids scripts and any loading of resources.
func (s *Server) showRoot(c *gin.Context) error {
	d := description{Name: "Perdure", Version: version.Read().Version}
	d.Links.OpenAPI, d.Links.Agents, d.Links.Documentation = openAPIPath, "/v1/agents", documentationURL
	c.Header("Vary", "Accept")
	if c.NegotiateFormat(gin.MIMEJSON, gin.MIMEHTML) != gin.MIMEHTML {
		c.JSON(http.StatusOK, d)
		return nil
	}
	var page strings.Builder
	if err := rootPage.Execute(&page, d); err != nil {
		return err
	}
	c.Header("Content-Security-Policy", "default-src 'none'")
	c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(page.String()))
	return nil
}
