package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
)

// ProxySecretHeader is the header in which a proxy sends its secret.
const ProxySecretHeader = "Perdure-Proxy-Secret"

// Proxy accepts the principal in headers of a reverse proxy that authenticates callers. The proxy
// must remove these headers from incoming requests before it sets them.
type Proxy struct {
	Headers Headers
	// Trusted are the networks of the proxy. Requests from other peers are refused with
	// ErrUntrusted.
	Trusted []netip.Prefix
	// Secrets returns the secrets of which a request must have one in ProxySecretHeader. It is called
	// for each request, and its error refuses the request. nil = the proxy needs no secret.
	Secrets func() ([]string, error)
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
	if err := p.checkSecret(r.Header); err != nil {
		return Identity{}, err
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

// checkSecret refuses a request without one of the secrets. The duration of the comparison depends
// neither on the secrets nor on the one in the request.
func (p *Proxy) checkSecret(h http.Header) error {
	if p.Secrets == nil {
		return nil
	}
	secrets, err := p.Secrets()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	sent, err := single(h, ProxySecretHeader)
	if err != nil {
		return err
	}
	digest, found := sha256.Sum256([]byte(sent)), 0
	for _, secret := range secrets {
		expected := sha256.Sum256([]byte(secret))
		found |= subtle.ConstantTimeCompare(digest[:], expected[:])
	}
	if found == 0 {
		return &UntrustedError{
			Detail: "the request does not have the secret of PERDURE_AUTH_PROXY_SECRET in the header " + ProxySecretHeader,
			Reason: "the secret of the proxy is missing or wrong",
		}
	}
	return nil
}
