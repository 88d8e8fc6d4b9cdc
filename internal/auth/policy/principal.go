package policy

import (
	"github.com/cedar-policy/cedar-go"

	"github.com/perdure/perdure/internal/auth"
)

// Roles are the names of roles that make a caller an administrator; "" = no role does.
type Roles struct {
	// PlatformAdmin publishes the agents of all tenants, and administers its own tenant.
	PlatformAdmin string
	// TenantAdmin administers the threads and schedules of its tenant.
	TenantAdmin string
}

// DefaultRoles are the roles of administrators without a configuration.
var DefaultRoles = Roles{PlatformAdmin: "perdure-platform-admin", TenantAdmin: "perdure-tenant-admin"}

// hasRole reports whether a principal has a role of the configuration; "" = nobody has it, also not a
// principal whose provider lists an empty role.
func hasRole(p auth.Principal, role string) bool { return role != "" && p.Has(role) }

// caller returns the entity of a caller.
func (r Roles) caller(p auth.Principal) cedar.Entity {
	parents := []cedar.EntityUID{cedar.NewEntityUID("Tenant", cedar.String(p.Tenant))}
	roles := make([]cedar.Value, 0, len(p.Roles))
	for _, role := range p.Roles {
		parents = append(parents, cedar.NewEntityUID("Role", cedar.String(role)))
		roles = append(roles, cedar.String(role))
	}
	isPlatformAdmin := hasRole(p, r.PlatformAdmin)
	if isPlatformAdmin {
		parents = append(parents, cedar.NewEntityUID("Group", "platform-administrators"))
	}
	if isPlatformAdmin || hasRole(p, r.TenantAdmin) {
		parents = append(parents, cedar.NewEntityUID("Group", "tenant-administrators"))
	}
	return cedar.Entity{
		UID:     user(p.Tenant, p.Subject),
		Parents: cedar.NewEntityUIDSet(parents...),
		Attributes: cedar.NewRecord(cedar.RecordMap{
			"tenant":  cedar.String(p.Tenant),
			"subject": cedar.String(p.Subject),
			"roles":   cedar.NewSet(roles...),
		}),
	}
}
