package auth

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Hosts are the hosts to which requests may be addressed, by the header Host, without ports: names,
// addresses, names with "*." in place of their first label, or "*" for all. The names of this
// machine (IsLoopback) are always allowed.
//
// Where a request needs no token, this prevents DNS rebinding: a page whose own host name resolves
// to the address of the API could otherwise call it from a user's browser.
type Hosts []string

// Allow reports whether a request to a host, with or without a port, is allowed.
func (h Hosts) Allow(hostPort string) bool {
	if IsLoopback(hostPort) {
		return true
	}
	host := HostName(hostPort)
	_, domain, _ := strings.Cut(host, ".")
	for _, allowed := range h {
		allowed = strings.ToLower(allowed)
		if allowed == "*" || host != "" && allowed == host || domain != "" && allowed == "*."+domain {
			return true
		}
	}
	return false
}

// HostName returns a host without its port, brackets and final dot, in lower case.
func HostName(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// HostCheck refuses requests to other hosts than Hosts, with an *UntrustedError, and has Callers
// authenticate the others.
type HostCheck struct {
	Hosts   Hosts
	Callers Authenticator
}

// Authenticate implements Authenticator.
func (c *HostCheck) Authenticate(r *http.Request) (Identity, error) {
	if !c.Hosts.Allow(r.Host) {
		return Identity{}, &UntrustedError{
			Detail: fmt.Sprintf("the API does not answer requests to the host %.80q: PERDURE_HOSTS lists the hosts that it answers, besides localhost", r.Host),
			Reason: fmt.Sprintf("the host %.80q is not allowed", r.Host),
		}
	}
	return c.Callers.Authenticate(r)
}
