package runs

import "go.temporal.io/sdk/temporal"

// The search attributes of runs, for Temporal's UI. Perdure does not read them.
var (
	AttributeTenant = temporal.NewSearchAttributeKeyKeyword("PerdureTenant")
	AttributeAgent  = temporal.NewSearchAttributeKeyKeyword("PerdureAgent")
	AttributeRun    = temporal.NewSearchAttributeKeyKeyword("PerdureRun")
)

// TenantPriority returns the priority of the workflows of a tenant, of which tenant is the token. Its
// fairness key is the tenant: while tasks wait in a task queue, Temporal takes them from the tenants
// in turn, if the server is configured for it. Temporal passes it on to activities, child workflows and
// executions that continue as new (https://docs.temporal.io/develop/task-queue-priority-fairness).
func TenantPriority(tenant string) temporal.Priority { return temporal.Priority{FairnessKey: tenant} }
