package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/api/approvalroutes"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
)

// openAPIParameter is a parameter of an operation in openapi.yaml: either a definition, or a $ref
// to one in components.
type openAPIParameter struct {
	Ref  string `yaml:"$ref"`
	Name string `yaml:"name"`
	In   string `yaml:"in"`
}

// queryParameters are the names of the query parameters of each route, sorted, by method and path
// template such as "GET /v1/threads/{thread}". They are parsed once from the embedded openapi.yaml,
// so the API accepts exactly the parameters that it documents.
var queryParameters = sync.OnceValues(func() (map[string][]string, error) {
	var document struct {
		Paths      map[string]map[string]yaml.Node `yaml:"paths"`
		Components struct {
			Parameters map[string]openAPIParameter `yaml:"parameters"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(openAPISource, &document); err != nil {
		return nil, fmt.Errorf("api: openapi.yaml: %w", err)
	}
	routes := map[string][]string{}
	for path, item := range document.Paths {
		for method, node := range item {
			if method == "parameters" { // the parameters of the path
				continue
			}
			var operation struct {
				Parameters []openAPIParameter `yaml:"parameters"`
			}
			if err := node.Decode(&operation); err != nil {
				return nil, fmt.Errorf("api: openapi.yaml: %s %s: %w", method, path, err)
			}
			names := map[string]bool{}
			for _, p := range operation.Parameters {
				if p.Ref != "" {
					p = document.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
				}
				if p.In == "query" {
					names[p.Name] = true
				}
			}
			routes[strings.ToUpper(method)+" "+path] = slices.Sorted(maps.Keys(names))
		}
	}
	return routes, nil
})

// checkQuery is middleware that refuses, with 400 invalid_input, a query that cannot be parsed, a
// parameter that the route does not have, a parameter that is given twice, and a value that no
// parameter can have. Ignoring one of these would lose a filter or a cursor without a sign: a client
// would get wrong results with 200.
//
// Requests without a route get their 404 later. Decision links are exempt: mail programs and chats
// add parameters of their own to the links in a message.
func (s *Server) checkQuery(c *gin.Context) {
	if c.Request.URL.RawQuery == "" || c.FullPath() == "" || strings.HasPrefix(c.FullPath(), approvalroutes.LinkPath) {
		return
	}
	routes, err := queryParameters()
	if err != nil {
		s.Refuse(c, err)
		return
	}
	query, err := request.ParseQuery(c.Request)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	// nil if openapi.yaml does not have the route: then it has no parameters.
	known := routes[c.Request.Method+" "+openAPIPathOf(c.FullPath())]
	names := slices.Sorted(maps.Keys(query))
	if unknown := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(known, name) }); len(unknown) > 0 {
		s.Refuse(c, problem.InvalidParameter(shortName(unknown[0]), unknownParameters(unknown, known)))
		return
	}
	for _, name := range names {
		if len(query[name]) > 1 {
			s.Refuse(c, problem.InvalidParameter(name, name+" may be given only once"))
			return
		}
		if err := request.CheckParameter(name, query[name][0]); err != nil {
			s.Refuse(c, err)
			return
		}
	}
}

// unknownParameters returns the detail of a refusal: up to eight of the unknown query parameters,
// each shortened, and all parameters that the route has.
func unknownParameters(unknown, known []string) string {
	quoted := make([]string, 0, 8)
	for _, name := range unknown[:min(len(unknown), cap(quoted))] {
		quoted = append(quoted, strconv.Quote(shortName(name)))
	}
	text := "unknown query parameter "
	if len(unknown) > 1 {
		text = "unknown query parameters "
	}
	text += strings.Join(quoted, ", ") + ": this route has "
	if len(known) == 0 {
		return text + "none"
	}
	return text + strings.Join(known, ", ")
}

// shortName returns the first 80 characters of the name of an unknown parameter.
func shortName(name string) string { return fmt.Sprintf("%.80s", strings.ToValidUTF8(name, "\uFFFD")) }

// openAPIPathOf converts gin's template of a path to that of OpenAPI: "/a/:b" to "/a/{b}".
func openAPIPathOf(route string) string {
	segments := strings.Split(route, "/")
	for i, s := range segments {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			segments[i] = "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}

// refuseRoute answers a request for an unknown path with 404 not_found, after authentication.
func (s *Server) refuseRoute(c *gin.Context) {
	s.Refuse(c, problem.New(http.StatusNotFound, "not_found", fmt.Sprintf("there is no route %.200q", c.Request.URL.Path)))
}

// refuseMethod answers a method that a route does not have with 405 method_not_allowed. gin has set
// the header Allow before it calls refuseMethod.
func (s *Server) refuseMethod(c *gin.Context) {
	detail := fmt.Sprintf("this route does not support the method %.20q, only %s", c.Request.Method, c.Writer.Header().Get("Allow"))
	s.Refuse(c, problem.New(http.StatusMethodNotAllowed, "method_not_allowed", detail))
}
