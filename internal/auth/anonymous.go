package auth

import (
	"net/http"
	"net/netip"
	"strings"
)

// Anonymous accepts every caller with the subject and roles that it claims. It is for a single
// machine, or a trusted network.
type Anonymous struct {
	// Headers are the headers with subject and roles. Their Tenant is ignored: every caller has the
	// default tenant.
	Headers Headers
	// Roles are roles that every caller has.
	Roles []string
}

// Authenticate implements Authenticator.
func (a *Anonymous) Authenticate(r *http.Request) (Identity, error) {
	names := a.Headers
	names.Tenant = ""
	p, err := names.principal(r.Header)
	if err != nil {
		return Identity{}, err
	}
	for _, role := range a.Roles {
		if !p.Has(role) {
			p.Roles = append(p.Roles, role)
		}
	}
	return Identity{Principal: p}, nil
}

// IsLoopback reports whether a host, with or without a port, always means this machine: localhost,
// a name below it (RFC 6761), or a loopback address.
func IsLoopback(hostPort string) bool {
	host := HostName(hostPort)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
