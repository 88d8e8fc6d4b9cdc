package agentroutes

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
)

// putDraft serves POST /v1/agents/{agent}/drafts: it stores a definition as a draft, which never
// becomes current, and answers 201 when it is durable. Runs use it by its revision. The agent need
// not exist. The checks are those of a publication.
//
// Errors: 400 invalid_agent with all mistakes, 403 forbidden, 409 agent_name_taken, 415, 429.
func (r *Routes) putDraft(c *gin.Context) error {
	name := request.Segment(c, "agent")
	tenant, err := publishingTenant(c)
	if err != nil {
		return err
	}
	auditing.Detail(c.Request.Context(), audit.DetailScope, string(scopeOf(tenant)))
	if err := r.Access.CheckAgent(c.Request.Context(), tenant, name, policy.PublishAgent); err != nil {
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
	r.publishing.Lock() // until the catalog counts the draft
	defer r.publishing.Unlock()
	if err := r.checkDraftQuota(ctx, tenant, d); err != nil {
		return err
	}
	revision, err := r.Catalog.PutDraft(ctx, tenant, d, request.Requester(ctx))
	if err != nil {
		return err
	}
	answer := r.describe(catalog.Published{Definition: d, Revision: revision, Tenant: tenant})
	answer.Warnings = r.warnings(tenant, d)
	return request.WriteJSON(c, http.StatusCreated, answer)
}

// checkDraftQuota refuses a further draft of a tenant ("" = of the platform) that would exceed the
// quota of definitions.
func (r *Routes) checkDraftQuota(ctx context.Context, tenant string, d *agents.Definition) error {
	if r.Catalog.HasDraft(tenant, d.Name, catalog.RevisionOf(tenant, d)) {
		return nil
	}
	body, err := agents.Encode(d)
	if err != nil {
		return err
	}
	return r.Meter.CheckMore(ctx, tenant, quota.DefinitionBytes, int64(len(body)))
}
