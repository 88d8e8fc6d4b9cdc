package auth

import (
	"fmt"
	"net/http"
	"strings"
)

// Headers are those that say who calls, where a proxy has found that out. An empty name = none
// does.
type Headers struct {
	Subject, Roles, Tenant string
}

// principal reads them. A header that stands there twice has one that the client sent and the proxy
// let through, in whatever order: neither is believed.
func (n Headers) principal(h http.Header) (Principal, error) {
	p := Principal{Tenant: TenantDefault}
	subject, err := single(h, n.Subject)
	if err != nil {
		return p, err
	}
	roles, err := single(h, n.Roles)
	if err != nil {
		return p, err
	}
	p.Subject = subject
	for _, role := range strings.Split(roles, ",") {
		if role = strings.TrimSpace(role); role != "" && !p.Has(role) {
			p.Roles = append(p.Roles, role)
		}
	}
	if n.Tenant != "" {
		p.Tenant, err = single(h, n.Tenant)
	}
	return p, err
}

func single(h http.Header, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	values := h.Values(name)
	if len(values) > 1 {
		return "", fmt.Errorf("%w: %s stands there %d times", ErrInvalid, name, len(values))
	}
	return strings.TrimSpace(h.Get(name)), nil
}
