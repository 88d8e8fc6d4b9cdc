package auth

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Anonymous lets everybody in, as whoever they say they are: for one machine, or a network of
// friends.
type Anonymous struct {
	// Headers may say who calls. That of the tenant is not looked at.
	Headers Headers
	// Roles are everybody's.
	Roles []string
	// Local lets only those in who call this machine by a name of its own. On loopback it keeps
	// away pages that have had the browser look their own name up as 127.0.0.1.
	Local bool
}

// Authenticate implements Authenticator.
func (a *Anonymous) Authenticate(r *http.Request) (Identity, error) {
	if a.Local && !IsLoopback(r.Host) {
		return Identity{}, &UntrustedError{
			Detail: "without authentication the API answers only requests whose Host header is localhost or a loopback address: " +
				"set PERDURE_AUTH, or PERDURE_AUTH_ALLOW_ANONYMOUS=true to let in every request",
			Reason: fmt.Sprintf("%.80q is no name of this machine", r.Host),
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

// IsLoopback reports whether a host, with or without a port, is this machine and can be nothing
// else.
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
