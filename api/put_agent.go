package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
)

// putAgent publishes a definition. It is current when the answer is sent. Active runs keep theirs.
func (s *Server) putAgent(c *gin.Context) {
	name := segment(c, "agent")
	expected, err := expectation(c.Request.Header)
	if err != nil {
		s.refuse(c, err)
		return
	}
	d, err := s.readDefinition(c, name)
	if err != nil {
		s.refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), patience)
	defer cancel()
	existed := true
	revision, err := s.Catalog.Put(ctx, d, func(current string) bool {
		existed = current != ""
		return expected(current)
	})
	if err != nil {
		s.refuse(c, err)
		return
	}
	answer := s.describe(catalog.Published{Definition: d, Revision: revision})
	answer.Warnings = s.warnings(d)
	if len(answer.UnavailableTools) > 0 || len(answer.Warnings) > 0 {
		s.logger.WarnContext(ctx, "an agent is published with names that this node does not know", "agent", name, "tools", answer.UnavailableTools, "warnings", answer.Warnings)
	}
	c.Header("ETag", etag(revision))
	if existed {
		c.JSON(http.StatusOK, answer)
		return
	}
	c.JSON(http.StatusCreated, answer)
}

// readDefinition reads the body like a file of that name.
func (s *Server) readDefinition(c *gin.Context, name string) (*agents.Definition, error) {
	parse, err := parserOf(c.GetHeader("Content-Type"))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, min(s.MaxBody, agents.MaxFile)))
	if err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			return nil, err
		}
		return nil, badRequest("invalid_agent", "", "the body could not be read")
	}
	d, err := parse("", body)
	if err != nil {
		return nil, err
	}
	if d.Name != name {
		return nil, badRequest("invalid_agent", "/name", "must be the name in the path")
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
	return nil, problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "a definition is application/yaml or application/json")
}

// yamlTypes are the media types of YAML: the registered one, and earlier ones.
var yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"}

// invalidAgent is the problem with all mistakes in a definition, and their places; nil = err is another error.
func invalidAgent(err error) *Problem {
	var mistakes []Mistake
	for _, wrong := range definitionErrors(err) {
		mistakes = append(mistakes, Mistake{Pointer: pointerOf(wrong.Key), Line: wrong.Line, Column: wrong.Column, Detail: wrong.Reason})
	}
	if len(mistakes) == 0 {
		return nil
	}
	p := badRequest("invalid_agent", mistakes[0].Pointer, mistakes[0].Detail)
	p.Errors = mistakes
	return p
}

// definitionErrors splits the errors that agents.Parse has joined.
func definitionErrors(err error) []*agents.DefinitionError {
	if all, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // what is joined is looked at one by one
		var list []*agents.DefinitionError
		for _, err := range all.Unwrap() {
			list = append(list, definitionErrors(err)...)
		}
		return list
	}
	var one *agents.DefinitionError
	if errors.As(err, &one) {
		return []*agents.DefinitionError{one}
	}
	return nil
}

// pointerOf is a key such as state.predict[0].tool as a JSON pointer.
func pointerOf(key string) string {
	if key == "" {
		return ""
	}
	key = strings.ToValidUTF8(key[:min(len(key), maxPointer)], "")
	return "/" + strings.NewReplacer("~", "~0", "/", "~1", ".", "/", "[", "/", "]", "").Replace(key)
}

// expectation is the condition on the revision that is replaced (RFC 9110): If-Match, or If-None-Match with *. Without either any revision is
// replaced.
func expectation(h http.Header) (func(current string) bool, error) {
	match, noneMatch := strings.Join(h.Values("If-Match"), ","), strings.Join(h.Values("If-None-Match"), ",")
	switch {
	case noneMatch != "" && strings.TrimSpace(noneMatch) != "*":
		return nil, badRequest("invalid_precondition", "", "If-None-Match may only be *")
	case noneMatch != "" && match != "":
		return nil, badRequest("invalid_precondition", "", "If-Match and If-None-Match exclude each other")
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

// etag is a revision as an entity tag.
func etag(revision string) string { return `"` + revision + `"` }
