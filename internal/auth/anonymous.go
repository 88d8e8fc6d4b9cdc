package auth

import (
	"fmt"
	"net"
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
	// Local accepts only requests whose Host header is a name of this machine. On loopback this
	// prevents DNS rebinding: a web page whose own host name resolves to 127.0.0.1 could call the
	// API from the user's browser.
	Local bool
}

// Authenticate implements Authenticator.
func (a *Anonymous) Authenticate(r *http.Request) (Identity, error) {
	if a.Local && !IsLoopback(r.Host) {
		return Identity{}, &UntrustedError{
			Detail: "without authentication the API answers only requests whose Host header is localhost or a loopback address: " +
				"set PERDURE_AUTH, or PERDURE_AUTH_ALLOW_ANONYMOUS=true to accept every request",
			Reason: fmt.Sprintf("%.80q is not a loopback address", r.Host),
		}
	}
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
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	host = strings.ToLower(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
