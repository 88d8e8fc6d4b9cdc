package agentroutes

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
)

// putAgent serves PUT /v1/agents/{agent}: it publishes a definition as the current revision. It
// answers 201 for a new agent and 200 otherwise, when the definition is durable. Active runs keep
// their revision. Publishing the current definition again has no effect. The parameter scope tells
// whether the agent belongs to the platform, which is the default, or to the tenant of the caller.
// The policies decide who may publish, and what an agent of a tenant may use.
//
// Errors: 400 invalid_agent with all mistakes, 400 invalid_precondition, 403 forbidden, 409
// agent_name_taken, 412 revision_mismatch, 415. Names that this process does not know are warnings,
// not errors, because a worker may know them.
func (r *Routes) putAgent(c *gin.Context) error {
	name := request.Segment(c, "agent")
	tenant, err := publishingTenant(c)
	if err != nil {
		return err
	}
	auditing.Detail(c.Request.Context(), audit.DetailScope, string(scopeOf(tenant)))
	if err := r.Access.CheckAgent(c.Request.Context(), tenant, name, policy.PublishAgent); err != nil {
		return err
	}
	note, err := readNote(c)
	if err != nil {
		return err
	}
	isExpected, err := precondition(c.Request.Header)
	if err != nil {
		return err
	}
	d, err := r.readDefinition(c, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	if tenant != "" {
		if err := r.checkUses(ctx, d); err != nil {
			return err
		}
	}
	r.publishing.Lock() // until the catalog counts the publication
	defer r.publishing.Unlock()
	if err := r.checkQuotas(ctx, tenant, d); err != nil {
		return err
	}
	existed := true
	// Put calls the function again if another publication wins the race, so existed is about the
	// last attempt.
	revision, err := r.Catalog.Put(ctx, tenant, d, request.Requester(ctx), note, func(current string) bool {
		existed = current != ""
		return isExpected(current)
	})
	if err != nil {
		return err
	}
	answer := r.describe(catalog.Published{Definition: d, Revision: revision, Tenant: tenant})
	answer.Warnings = r.warnings(tenant, d)
	if len(answer.UnavailableTools) > 0 || len(answer.Warnings) > 0 {
		r.Logger.WarnContext(ctx, "a published agent refers to names that this process does not know", "agent", name, "tools", answer.UnavailableTools, "warnings", answer.Warnings)
	}
	if n := r.Catalog.TenantsWith(name); tenant == "" && n > 0 {
		answer.Warnings = append(answer.Warnings, fmt.Sprintf("%d tenants have an agent of their own with this name, and keep it", n))
	}
	c.Header("ETag", etag(revision))
	if existed {
		return request.WriteJSON(c, http.StatusOK, answer)
	}
	return request.WriteJSON(c, http.StatusCreated, answer)
}

// maxNoteBytes bounds the note of a publication.
const maxNoteBytes = 1000

// readNote reads the parameter note: what the publisher says about the change.
func readNote(c *gin.Context) (string, error) {
	note := c.Query("note")
	if len(note) > maxNoteBytes || !utf8.ValidString(note) {
		return "", problem.InvalidParameter("note", fmt.Sprintf("note must have at most %d bytes of UTF-8", maxNoteBytes))
	}
	return note, nil
}

// checkQuotas refuses a publication of a tenant ("" = of the platform) that would exceed a quota.
// To publish the current definition again needs none.
func (r *Routes) checkQuotas(ctx context.Context, tenant string, d *agents.Definition) error {
	publications, err := r.Catalog.Publications(tenant, d.Name)
	switch {
	case errors.Is(err, catalog.ErrUnknownAgent):
		if err := r.Meter.Check(ctx, tenant, quota.Agents); err != nil {
			return err
		}
	case err != nil:
		return err
	case publications[len(publications)-1].Revision == catalog.RevisionOf(tenant, d):
		return nil
	}
	body, err := agents.Encode(d)
	if err != nil {
		return err
	}
	return r.Meter.CheckMore(ctx, tenant, quota.DefinitionBytes, int64(len(body)))
}

// checkUses refuses a definition of a tenant's agent that uses what the policies do not permit. The
// policies decide about each tool by its name, so the definition may have no patterns of workers'
// tools.
func (r *Routes) checkUses(ctx context.Context, d *agents.Definition) error {
	for _, use := range d.Uses() {
		if use.IsPattern() {
			return problem.BadRequest("invalid_agent", problem.Pointer(use.Key), fmt.Sprintf("an agent of a tenant must name each tool of the workers, and %.100q is a pattern", use.Name))
		}
	}
	return r.Access.CheckUses(ctx, d)
}

// readDefinition reads and parses the definition in the body, with the checks of a file. Its name
// must be the name in the path.
func (r *Routes) readDefinition(c *gin.Context, name string) (*agents.Definition, error) {
	parse, err := parserOf(c.GetHeader("Content-Type"))
	if err != nil {
		return nil, err
	}
	body, err := r.ReadBody(c, agents.MaxFile)
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
	return d.Definition, nil
}

// parserOf returns the parser for a Content-Type. A body without one is YAML. Other types are a
// 415.
func parserOf(contentType string) (func(filename string, data []byte) (*agents.Located, error), error) {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case kind == "application/json":
		return agents.ParseLocatedJSON, nil
	case contentType == "" || err == nil && slices.Contains(yamlTypes, kind):
		return agents.ParseLocated, nil
	}
	return nil, problem.New(http.StatusUnsupportedMediaType, "unsupported_media_type", "a definition is application/yaml or application/json")
}

// yamlTypes are the media types of YAML: the registered one (RFC 9512) first, and earlier ones.
var yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"}

// precondition returns the condition of a request on the revision that it replaces (RFC 9110,
// section 13.1): If-Match with entity tags or *, or If-None-Match with *. Without either header any
// revision may be replaced. current is "" if the agent does not exist.
func precondition(h http.Header) (func(current string) bool, error) {
	match, noneMatch := strings.Join(h.Values("If-Match"), ","), strings.Join(h.Values("If-None-Match"), ",")
	switch {
	case len(h.Values("If-Match")) > 0 && match == "" || len(h.Values("If-None-Match")) > 0 && noneMatch == "":
		return nil, problem.BadRequest("invalid_precondition", "", "If-Match and If-None-Match must not be empty")
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
	var tags []string
	for tag := range strings.SplitSeq(match, ",") {
		tags = append(tags, strings.TrimSpace(tag))
	}
	return func(current string) bool { return current != "" && slices.Contains(tags, etag(current)) }, nil
}

// etag returns a revision as a strong entity tag.
func etag(revision string) string { return `"` + revision + `"` }
