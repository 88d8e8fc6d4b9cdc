package agentroutes

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
)

// Scope tells to whom an agent belongs.
type Scope string

// Values of Scope.
const (
	ScopePlatform Scope = "platform"
	ScopeTenant   Scope = "tenant"
)

// scopeOf returns the scope of an agent of a tenant; "" = of the platform.
func scopeOf(tenant string) Scope {
	if tenant == "" {
		return ScopePlatform
	}
	return ScopeTenant
}

// requestedTenant returns the tenant to which the agent of a request belongs, by the parameter scope:
// that of the caller, or "" for the platform. isNamed is false without the parameter.
func requestedTenant(c *gin.Context) (tenant string, isNamed bool, err error) {
	p, err := request.Principal(c.Request.Context())
	if err != nil {
		return "", false, err
	}
	text, isNamed := c.GetQuery("scope")
	switch Scope(text) {
	case ScopeTenant:
		return p.Tenant, true, nil
	case ScopePlatform:
		return "", true, nil
	}
	if isNamed {
		return "", true, problem.InvalidParameter("scope", "scope must be platform or tenant")
	}
	return p.Tenant, false, nil
}

// current returns the agent in the path: with a scope, the one of that scope, else the one that a run
// would have. An unknown agent is a 404.
func (r *Routes) current(c *gin.Context) (catalog.Published, error) {
	name := request.Segment(c, "agent")
	tenant, isNamed, err := requestedTenant(c)
	if err != nil {
		return catalog.Published{}, err
	}
	p, err := r.Catalog.Current(tenant, name)
	if err == nil && isNamed && p.Tenant != tenant {
		err = &catalog.UnknownError{Agent: name}
	}
	return p, err
}

// readable returns the name of the agent in the path, and the tenant to which it belongs, if the
// caller may read its definitions. Callers that may not get a 403 also for an unknown agent.
func (r *Routes) readable(c *gin.Context) (tenant, name string, err error) {
	name = request.Segment(c, "agent")
	p, unknown := r.current(c)
	if err := r.Access.CheckAgent(c.Request.Context(), p.Tenant, name, policy.ReadDefinition); err != nil {
		return "", "", err
	}
	return p.Tenant, name, unknown
}
