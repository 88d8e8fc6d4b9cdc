package auth

import (
	"fmt"
	"net/http"
	"strings"
)

// Headers are the names of the request headers with the principal, which an authenticating proxy
// sets. "" = the principal has no such part.
type Headers struct {
	Subject, Roles, Tenant string
}

// principal reads the principal from the headers. A header that occurs twice is an error: one of
// the two may be the client's, which the proxy has passed on.
func (h Headers) principal(header http.Header) (Principal, error) {
	p := Principal{Tenant: TenantDefault}
	subject, err := single(header, h.Subject)
	if err != nil {
		return p, err
	}
	roles, err := single(header, h.Roles)
	if err != nil {
		return p, err
	}
	p.Subject = subject
	for _, role := range strings.Split(roles, ",") {
		if role = strings.TrimSpace(role); role != "" && !p.Has(role) {
			p.Roles = append(p.Roles, role)
		}
	}
	if h.Tenant != "" {
		p.Tenant, err = single(header, h.Tenant)
	}
	return p, err
}

// single returns the value of a header; "" = it is missing. Errors: ErrInvalid if it occurs more
// than once.
func single(h http.Header, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	values := h.Values(name)
	if len(values) > 1 {
		return "", fmt.Errorf("%w: the header %s appears %d times", ErrInvalid, name, len(values))
	}
	return strings.TrimSpace(h.Get(name)), nil
}
