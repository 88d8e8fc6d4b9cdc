package stream

import "strings"

// AgentRevision names one definition of an agent, for the runs of a tenant.
type AgentRevision struct {
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
}

// TenantRevision begins the revisions of agents that belong to a tenant. Those of agents that belong
// to the platform do not begin with it.
const TenantRevision = "tenant-"

// IsTenantRevision reports whether a revision is one of an agent that belongs to a tenant; otherwise
// it is one of an agent that belongs to the platform.
func IsTenantRevision(revision string) bool { return strings.HasPrefix(revision, TenantRevision) }
