package auth

import (
	"fmt"
	"net/http"
	"net/netip"
)

// Proxy believes what a proxy in front says about who calls. The proxy must remove these headers
// from what it is sent, and set them itself.
type Proxy struct {
	Headers Headers
	// Trusted are the networks that the proxy sends from.
	Trusted []netip.Prefix
}

// Authenticate implements Authenticator.
func (a *Proxy) Authenticate(r *http.Request) (Identity, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !a.trusts(peer.Addr()) {
		return Identity{}, &UntrustedError{
			Detail: "the request does not come from one of the proxies in PERDURE_AUTH_PROXIES",
			Reason: r.RemoteAddr + " is no proxy",
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

func (a *Proxy) trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("") // a prefix contains neither
	for _, p := range a.Trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
