package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TenantDefault is the tenant of all callers if the configuration has no tenants.
const TenantDefault = "default"

// Bounds of a principal: the bytes of each name, and the number of roles.
const (
	MaxNameBytes = 256
	MaxRoles     = 256
)

// Principal is an authenticated caller. It is recorded in the log with inputs and decisions.
type Principal struct {
	// Tenant owns threads and runs. A caller never sees those of another tenant.
	Tenant string `json:"tenant"`
	// Subject is the person or program within the tenant; "" = an anonymous caller.
	Subject string `json:"subject,omitempty"`
	// Roles are the caller's roles, in no order. Approvers are named by subject or role.
	Roles []string `json:"roles,omitempty"`
}

// Has reports whether the principal has a role.
func (p Principal) Has(role string) bool { return slices.Contains(p.Roles, role) }

// Check refuses a principal that is out of bounds, and names with invisible characters, which
// people could not distinguish. The subject may be empty. Errors: ErrInvalid.
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

// checkName checks one name; what describes it in the error.
func checkName(what, name string) error {
	switch {
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%w: %s has %d bytes, more than %d", ErrInvalid, what, len(name), MaxNameBytes)
	case strings.ContainsFunc(name, invisible): // includes invalid UTF-8
		return fmt.Errorf("%w: %s has control characters or invisible characters", ErrInvalid, what)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%w: %s begins or ends with white space", ErrInvalid, what)
	}
	return nil
}

// invisible reports whether a rune has no graphic representation, or is invalid UTF-8.
func invisible(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }

// key is the context key of a Principal.
type key struct{}

// With returns a context with the authenticated caller.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns the authenticated caller of a context; ok is false if there is none.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(key{}).(Principal)
	return p, ok
}
