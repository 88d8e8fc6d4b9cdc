package agentroutes

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
)

// Validation is the answer about a definition that is not published.
type Validation struct {
	// Valid tells that the definition can be published: there are no errors.
	Valid  bool              `json:"valid"`
	Errors []problem.Mistake `json:"errors"`
	// Warnings are about names that this process does not know, and a worker may know.
	Warnings []problem.Mistake `json:"warnings"`
	// Revision is what the definition would have, and Definition has all defaults; only of a valid
	// one.
	Revision   string          `json:"revision,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

// validateAgent serves POST /v1/agents/validate: it checks a definition as its publication would,
// and changes nothing. Mistakes are part of a 200. The caller must be permitted to publish the
// agent, because the warnings tell about the tools of workers. Errors: 403 forbidden, 413, 415.
func (r *Routes) validateAgent(c *gin.Context) error {
	tenant, err := publishingTenant(c)
	if err != nil {
		return err
	}
	parse, err := parserOf(c.GetHeader("Content-Type"))
	if err != nil {
		return err
	}
	body, err := r.ReadBody(c, agents.MaxFile)
	if err != nil {
		return err
	}
	answer := Validation{Errors: []problem.Mistake{}, Warnings: []problem.Mistake{}}
	d, err := parse("", body)
	ctx := c.Request.Context()
	if err != nil {
		if d != nil && r.Tools != nil && r.Access.CheckAgent(ctx, tenant, d.Name, policy.PublishAgent) == nil {
			err = d.AttributeToTools(err, r.knownNames(tenant, d.Name))
		}
		if answer.Errors = problem.Of(err).Errors; len(answer.Errors) == 0 {
			return err
		}
		return request.WriteJSON(c, http.StatusOK, answer)
	}
	if err := r.Access.CheckAgent(ctx, tenant, d.Name, policy.PublishAgent); err != nil {
		return err
	}
	if tenant != "" {
		var refused *problem.Problem
		switch err := r.checkUses(ctx, d.Definition); {
		case errors.As(err, &refused):
			answer.Errors = append(answer.Errors, mistakeOfUse(d, refused))
		case err != nil:
			return err
		}
	}
	for _, e := range r.unknownNames(tenant, d.Name, d) {
		answer.Warnings = append(answer.Warnings, mistakeOf(e))
	}
	if answer.Valid = len(answer.Errors) == 0; answer.Valid {
		answer.Revision = catalog.RevisionOf(tenant, d.Definition)
		if answer.Definition, err = agents.Encode(d.Definition); err != nil {
			return err
		}
	}
	return request.WriteJSON(c, http.StatusOK, answer)
}

// publishingTenant returns the tenant for which a request publishes: that of the caller with the
// scope tenant, and otherwise "", the platform.
func publishingTenant(c *gin.Context) (string, error) {
	tenant, isNamed, err := requestedTenant(c)
	if !isNamed {
		tenant = ""
	}
	return tenant, err
}

// mistakeOf returns an error of a definition as clients get it.
func mistakeOf(e *agents.DefinitionError) problem.Mistake {
	return problem.Mistake{Pointer: problem.Pointer(e.Key), Line: e.Line, Column: e.Column, Detail: e.Reason}
}

// mistakeOfUse returns the refusal of what a definition uses, with its position.
func mistakeOfUse(d *agents.Located, refused *problem.Problem) problem.Mistake {
	for _, use := range d.Uses() {
		if problem.Pointer(use.Key) == refused.Pointer {
			return mistakeOf(d.ErrorAt(use.Key, refused.Detail))
		}
	}
	return problem.Mistake{Pointer: refused.Pointer, Detail: refused.Detail}
}

// showSchema serves GET /v1/schemas/agent: the JSON schema of definitions of agents.
func (r *Routes) showSchema(c *gin.Context) error {
	return request.WriteBytes(c, http.StatusOK, "application/schema+json", []byte(agents.AgentSchema()))
}
