// Package auth says who calls.
package auth

import (
	"context"
	"slices"
)

// TenantDefault is the tenant of everybody where callers are not told apart.
const TenantDefault = "default"

// Principal is who calls. It stands in the log beside what they asked for and what they decided.
type Principal struct {
	// Tenant owns threads and agents' runs: nobody sees those of another.
	Tenant string `json:"tenant"`
	// Subject names the person or program within the tenant; empty = nobody said who they are.
	Subject string `json:"subject,omitempty"`
	// Roles are what approvers are named by, besides the subject. In no order.
	Roles []string `json:"roles,omitempty"`
}

// Has tells whether the principal has a role.
func (p Principal) Has(role string) bool { return slices.Contains(p.Roles, role) }

type key struct{}

// With returns a context that knows who calls.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From tells who calls; ok is false where nobody found that out.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(key{}).(Principal)
	return p, ok
}
