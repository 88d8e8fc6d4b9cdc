package auth

import (
	"fmt"
	"net/http"
	"net/netip"
)

// Proxy accepts the principal in headers of a reverse proxy that authenticates callers. The proxy
// must remove these headers from incoming requests before it sets them.
type Proxy struct {
	Headers Headers
	// Trusted are the networks of the proxy. Requests from other peers are refused with
	// ErrUntrusted.
	Trusted []netip.Prefix
}

// Authenticate implements Authenticator.
func (p *Proxy) Authenticate(r *http.Request) (Identity, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !p.trusts(peer.Addr()) {
		return Identity{}, &UntrustedError{
			Detail: "the request does not come from one of the proxies in PERDURE_AUTH_PROXIES",
			Reason: r.RemoteAddr + " is not a trusted proxy",
		}
	}
	principal, err := p.Headers.principal(r.Header)
	switch {
	case err != nil:
		return Identity{}, err
	case principal.Subject == "":
		return Identity{}, fmt.Errorf("%w: %s is empty", ErrNoCredentials, p.Headers.Subject)
	case principal.Tenant == "":
		return Identity{}, fmt.Errorf("%w: %s is empty", ErrNoCredentials, p.Headers.Tenant)
	}
	return Identity{Principal: principal}, nil
}

// trusts reports whether a peer is in one of the trusted networks.
func (p *Proxy) trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("") // netip.Prefix.Contains is false for mapped addresses and zones
	for _, prefix := range p.Trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}
