package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
)

// The modes of authentication.
const (
	AuthNone   = "none"   // every caller is accepted, with the subject that it claims
	AuthHeader = "header" // a proxy authenticates callers and sets headers
	AuthOIDC   = "oidc"   // tokens of an OpenID provider
	AuthAPIKey = "apikey" // keys of a file
)

// Auth is how the API authenticates callers.
type Auth struct {
	// Mode is one of the modes above.
	Mode string
	// AllowAnonymous permits AuthNone on addresses that other machines can reach.
	AllowAnonymous bool
	// Hosts are the hosts to which requests may be addressed; nil = those of AllowedHosts.
	Hosts auth.Hosts
	// Headers are the names of the headers of AuthHeader and AuthNone. Proxies are the networks
	// whose requests AuthHeader accepts; nil = those of TrustedProxies.
	Headers auth.Headers
	Proxies []netip.Prefix
	// ProxySecrets reads the secrets of which a request of AuthHeader must have one; nil = it needs
	// none.
	ProxySecrets func() ([]string, error)
	// ProxyCertificates means that only clients with certain certificates can connect.
	ProxyCertificates bool
	// Keys is the path of the file of AuthAPIKey.
	Keys string
	OIDC OIDC
	// Sessions sign users of web pages in, in the mode AuthOIDC.
	Sessions Sessions
}

// Policies are the policies that decide what callers may do. The API and the worker must have the
// same ones.
type Policies struct {
	Roles policy.Roles
	// Path is a file, or a folder with files *.cedar; "" = only the default policies.
	Path string
}

// Load reads the policies. Errors: *VariableError.
func (p Policies) Load() (*policy.Engine, error) {
	engine, err := policy.Load(p.Roles, p.Path)
	if err != nil {
		return nil, &VariableError{Name: "PERDURE_POLICIES", Err: err}
	}
	return engine, nil
}

// OIDC selects the accepted tokens and the claims with the principal. A claim is a member of the
// token's JSON; dots separate the names of nested members.
type OIDC struct {
	Issuer       string // URL
	Audiences    []string
	SubjectClaim string
	RolesClaim   string
	// Exactly one of these is set: the claim with the tenant, or the tenant of all callers.
	TenantClaim string
	Tenant      string
}

// CheckAddr refuses an address that other machines can reach if the mode accepts every caller,
// unless AllowAnonymous is set, or if it recognizes the proxy only by its address: every process at
// that address could act as every caller. Errors: *VariableError.
func (a Auth) CheckAddr(addr string) error {
	switch {
	case auth.IsLoopback(addr):
	case a.Mode == AuthNone && !a.AllowAnonymous:
		return &VariableError{Name: "PERDURE_AUTH", Err: fmt.Errorf(
			"none accepts every caller, and other machines can reach %s: set header, oidc or apikey, listen on 127.0.0.1, or set PERDURE_AUTH_ALLOW_ANONYMOUS=true", addr)}
	case a.Mode == AuthHeader && !a.provesProxy():
		return &VariableError{Name: "PERDURE_AUTH_PROXY_SECRET", Err: fmt.Errorf(
			"must be set when PERDURE_AUTH is header and other machines can reach %s, because an address does not prove that a request is from the proxy: the proxy sends it in the header %s. A client certificate does, too: set PERDURE_TLS_CLIENT_CA_FILE and PERDURE_TLS_CLIENT_NAMES", addr, auth.ProxySecretHeader)}
	}
	return nil
}

// NeedsToken reports whether requests need a token or a key.
func (a Auth) NeedsToken() bool { return a.Mode == AuthOIDC || a.Mode == AuthAPIKey }

// provesProxy reports whether a proxy of AuthHeader proves its identity by more than its address.
func (a Auth) provesProxy() bool { return a.ProxySecrets != nil || a.ProxyCertificates }

// TrustedProxies returns Proxies. Without them, a proxy that proves its identity may have every
// address, and another one must be on this machine.
func (a Auth) TrustedProxies() []netip.Prefix {
	switch {
	case a.Proxies != nil:
		return a.Proxies
	case a.provesProxy():
		return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// AllowedHosts returns Hosts. Without them, every host is allowed where requests need a token, and
// the names of this machine otherwise.
func (a Auth) AllowedHosts() auth.Hosts {
	if a.Hosts == nil && a.NeedsToken() {
		return auth.Hosts{"*"}
	}
	return a.Hosts
}

// check reports the settings that the mode lacks.
func (a Auth) check() error {
	missing := func(name string) error {
		return &VariableError{Name: name, Err: errors.New("must be set when PERDURE_AUTH is " + a.Mode)}
	}
	switch {
	case a.Mode == AuthAPIKey && a.Keys == "":
		return missing("PERDURE_AUTH_KEYS")
	case a.Mode == AuthOIDC && a.OIDC.Issuer == "":
		return missing("PERDURE_OIDC_ISSUER")
	case a.Mode == AuthOIDC && len(a.OIDC.Audiences) == 0:
		return missing("PERDURE_OIDC_AUDIENCE")
	case a.Mode == AuthOIDC && a.OIDC.TenantClaim == "" && a.OIDC.Tenant == "":
		return &VariableError{Name: "PERDURE_OIDC_TENANT_CLAIM", Err: errors.New(
			"must be set when PERDURE_AUTH is oidc; if all users of the provider are one tenant, set PERDURE_OIDC_TENANT to its name instead")}
	case a.OIDC.TenantClaim != "" && a.OIDC.Tenant != "":
		return &VariableError{Name: "PERDURE_OIDC_TENANT", Err: errors.New("must not be set together with PERDURE_OIDC_TENANT_CLAIM")}
	}
	return nil
}

var headerPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// headerName parses the name of a header. It refuses "_", which proxies drop or treat as "-".
func headerName(s string) (string, error) {
	if !headerPattern.MatchString(s) {
		return "", fmt.Errorf("%q is not the name of a header, such as X-Forwarded-User", s)
	}
	return textproto.CanonicalMIMEHeaderKey(s), nil
}

var hostPattern = regexp.MustCompile(`^(\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*)$`)

// hostList parses a list of hosts, without ports.
func hostList(s string) (auth.Hosts, error) {
	list, err := wordList(s)
	if err != nil {
		return nil, err
	}
	for _, host := range list {
		if _, err := netip.ParseAddr(host); err != nil && !hostPattern.MatchString(host) {
			return nil, fmt.Errorf("%q is not a host without port, such as agents.example, *.agents.example or 10.0.0.7", host)
		}
	}
	return list, nil
}

// networks parses a list of CIDR prefixes. It refuses IPv4-mapped IPv6 prefixes, which would match
// no address: package auth unmaps addresses.
func networks(s string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, part := range strings.Split(s, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil || prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is not a network, such as 10.0.0.0/8", part)
		}
		list = append(list, prefix.Masked())
	}
	return list, nil
}

// issuer parses the URL of an OpenID provider. It requires TLS except on loopback: an attacker who
// can change the provider's responses could impersonate every caller.
func issuer(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !auth.IsLoopback(u.Host)) {
		return "", fmt.Errorf("%q is not the URL of an issuer, such as https://login.example/realms/shop; without TLS only on loopback", s)
	}
	return s, nil
}

// wordList parses a list of words, separated by commas.
func wordList(s string) ([]string, error) {
	list := strings.Split(s, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
			return nil, fmt.Errorf("%q has an empty part", s)
		}
	}
	return list, nil
}
