package agentroutes

import (
	"context"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
)

// putAgent publishes a definition. It is current when the answer is sent. Active runs keep theirs.
func (s *Routes) putAgent(c *gin.Context) {
	name := request.Segment(c, "agent")
	expected, err := expectation(c.Request.Header)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	d, err := s.readDefinition(c, name)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	existed := true
	revision, err := s.Catalog.Put(ctx, d, func(current string) bool {
		existed = current != ""
		return expected(current)
	})
	if err != nil {
		s.Refuse(c, err)
		return
	}
	answer := s.describe(catalog.Published{Definition: d, Revision: revision})
	answer.Warnings = s.warnings(d)
	if len(answer.UnavailableTools) > 0 || len(answer.Warnings) > 0 {
		s.Logger.WarnContext(ctx, "an agent is published with names that this node does not know", "agent", name, "tools", answer.UnavailableTools, "warnings", answer.Warnings)
	}
	c.Header("ETag", etag(revision))
	if existed {
		c.JSON(http.StatusOK, answer)
		return
	}
	c.JSON(http.StatusCreated, answer)
}

// readDefinition reads the body like a file of that name.
func (s *Routes) readDefinition(c *gin.Context, name string) (*agents.Definition, error) {
	parse, err := parserOf(c.GetHeader("Content-Type"))
	if err != nil {
		return nil, err
	}
	body, err := s.ReadBody(c, agents.MaxFile)
	if err != nil {
		return nil, err
	}
	d, err := parse("", body)
	if err != nil {
		return nil, err
	}
	if d.Name != name {
		return nil, problem.BadRequest("invalid_agent", "/name", "must be the name in the path")
	}
	return d, nil
}

// parserOf chooses the parser by the type of a body. A body without a type is YAML.
func parserOf(contentType string) (func(filename string, data []byte) (*agents.Definition, error), error) {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case kind == "application/json":
		return agents.ParseJSON, nil
	case contentType == "" || err == nil && slices.Contains(yamlTypes, kind):
		return agents.Parse, nil
	}
	return nil, problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "a definition is application/yaml or application/json")
}

// yamlTypes are the media types of YAML: the registered one, and earlier ones.
var yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"}

// expectation returns the condition on the revision that is replaced (RFC 9110): If-Match, or
// If-None-Match with *. Without either any revision is replaced.
func expectation(h http.Header) (func(current string) bool, error) {
	match, noneMatch := strings.Join(h.Values("If-Match"), ","), strings.Join(h.Values("If-None-Match"), ",")
	switch {
	case noneMatch != "" && strings.TrimSpace(noneMatch) != "*":
		return nil, problem.BadRequest("invalid_precondition", "", "If-None-Match may only be *")
	case noneMatch != "" && match != "":
		return nil, problem.BadRequest("invalid_precondition", "", "If-Match and If-None-Match exclude each other")
	case noneMatch != "":
		return func(current string) bool { return current == "" }, nil
	case match == "":
		return func(string) bool { return true }, nil
	case strings.TrimSpace(match) == "*":
		return func(current string) bool { return current != "" }, nil
	}
	var any []string
	for tag := range strings.SplitSeq(match, ",") {
		any = append(any, strings.TrimSpace(tag))
	}
	return func(current string) bool { return current != "" && slices.Contains(any, etag(current)) }, nil
}

// etag returns a revision as an entity tag.
func etag(revision string) string { return `"` + revision + `"` }
