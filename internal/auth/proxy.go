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
func (a *Proxy) Authenticate(r *http.Request) (Identity, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !a.trusts(peer.Addr()) {
		return Identity{}, &UntrustedError{
			Detail: "the request does not come from one of the proxies in PERDURE_AUTH_PROXIES",
			Reason: r.RemoteAddr + " is not a trusted proxy",
		}
	}
	p, err := a.Headers.principal(r.Header)
	switch {
	case err != nil:
		return Identity{}, err
	case p.Subject == "":
		return Identity{}, fmt.Errorf("%w: %s is empty", ErrNoCredentials, a.Headers.Subject)
	case p.Tenant == "":
		return Identity{}, fmt.Errorf("%w: %s is empty", ErrNoCredentials, a.Headers.Tenant)
	}
	return Identity{Principal: p}, nil
}

// trusts reports whether a peer is in one of the trusted networks.
func (a *Proxy) trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("") // netip.Prefix.Contains is false for mapped addresses and zones
	for _, p := range a.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
