package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TenantDefault is the tenant of everybody where callers are not told apart.
const TenantDefault = "default"

// Bounds of a principal: bytes of each name, and how many roles there may be.
const (
	MaxNameBytes = 256
	MaxRoles     = 256
)

// Principal is who calls. It stands in the log beside what they asked for and what they decided.
type Principal struct {
	// Tenant owns threads and agents' runs: nobody sees those of another.
	Tenant string `json:"tenant"`
	// Subject names the person or program within the tenant; empty = nobody said who they are.
	Subject string `json:"subject,omitempty"`
	// Roles are what approvers are named by, besides the subject. In no order.
	Roles []string `json:"roles,omitempty"`
}

// Has reports whether the principal has a role.
func (p Principal) Has(role string) bool { return slices.Contains(p.Roles, role) }

// Check refuses a principal that is out of bounds, and names that nobody could tell apart by
// looking at them. The subject may be empty. Errors: ErrInvalid.
func (p Principal) Check() error {
	if p.Tenant == "" {
		return fmt.Errorf("%w: the tenant is empty", ErrInvalid)
	}
	if len(p.Roles) > MaxRoles {
		return fmt.Errorf("%w: there are %d roles, more than %d", ErrInvalid, len(p.Roles), MaxRoles)
	}
	if err := checkName("the tenant", p.Tenant); err != nil {
		return err
	}
	if err := checkName("the subject", p.Subject); err != nil {
		return err
	}
	for _, role := range p.Roles {
		if err := checkName("a role", role); err != nil {
			return err
		}
	}
	return nil
}

func checkName(what, name string) error {
	switch {
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%w: %s has %d bytes, more than %d", ErrInvalid, what, len(name), MaxNameBytes)
	case strings.ContainsFunc(name, invisible): // also where it is not UTF-8
		return fmt.Errorf("%w: %s has control characters, or invisible ones", ErrInvalid, what)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%w: %s has space around it", ErrInvalid, what)
	}
	return nil
}

func invisible(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }

// key is the key of a Principal in a context.
type key struct{}

// With returns a context that knows who calls.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From tells who calls; ok is false where nobody found that out.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(key{}).(Principal)
	return p, ok
}
