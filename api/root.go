package api

import (
	"html/template"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/console"
	"github.com/perdure/perdure/internal/process/version"
)

// rootPath is the route that describes the server, for people and tools that open its address. It
// is public, and reveals nothing about any tenant.
const rootPath = "/"

// readinessPath is the route of the readiness check.
const readinessPath = "/readyz"

// documentationURL is the address of the folder with the documentation.
const documentationURL = "https://github.com/perdure/perdure/blob/main/docs/"

// description is the JSON answer of the root route.
type description struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Links   struct {
		Console       string `json:"console,omitempty"`
		Agents        string `json:"agents"`
		Readiness     string `json:"readiness"`
		OpenAPI       string `json:"openapi"`
		Reference     string `json:"reference"`
		FirstAgent    string `json:"firstAgent"`
		Documentation string `json:"documentation"`
	} `json:"links"`
}

// rootPage is the description as a page for browsers.
var rootPage = template.Must(template.New("root").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{{.Name}}</title>
<h1>{{.Name}} {{.Version}}</h1>
<p>This server runs AG-UI agents. Connect an AG-UI client{{if .Links.Console}}, or use its console{{end}}.</p>
<ul>
{{with .Links.Console}}<li><a href="{{.}}">Console</a></li>{{end}}
<li><a href="{{.Links.Agents}}">Agents</a> of this server</li>
<li><a href="{{.Links.Readiness}}">Readiness</a> of this server</li>
<li>Next: <a href="{{.Links.FirstAgent}}">ask an agent, and write your own</a></li>
<li><a href="{{.Links.Reference}}">API reference</a>, and the <a href="{{.Links.OpenAPI}}">OpenAPI document</a></li>
<li><a href="{{.Links.Documentation}}">Documentation</a></li>
</ul>
</html>
`))

// showRoot serves GET /. It answers with a page if the Accept header prefers HTML, and with JSON
// otherwise. The policy of the page forbids scripts and any loading of resources.
func (s *Server) showRoot(c *gin.Context) error {
	d := description{Name: "Perdure", Version: version.Read().Version}
	d.Links.Agents, d.Links.Readiness, d.Links.OpenAPI = "/v1/agents", readinessPath, openAPIPath
	d.Links.Reference, d.Links.FirstAgent, d.Links.Documentation =
		documentationURL+"reference/http-api.md", documentationURL+"start/first-agent.md", documentationURL+"README.md"
	if s.Console != nil {
		d.Links.Console = console.Path + "/"
	}
	c.Header("Vary", "Accept")
	if c.NegotiateFormat(gin.MIMEJSON, gin.MIMEHTML) != gin.MIMEHTML {
		return request.WriteJSON(c, http.StatusOK, d)
	}
	var page strings.Builder
	if err := rootPage.Execute(&page, d); err != nil {
		return err
	}
	c.Header("Content-Security-Policy", "default-src 'none'")
	c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(page.String()))
	return nil
}
