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
)

// Ways to find out who calls.
const (
	AuthNone   = "none"   // everybody is let in, as whoever they say they are
	AuthHeader = "header" // a proxy says who it is
	AuthOIDC   = "oidc"   // a token of an OpenID provider does
	AuthAPIKey = "apikey" // a key does, from a file
)

// Auth says how the api finds out who calls.
type Auth struct {
	// Mode is one of the ways above.
	Mode string
	// AllowAnonymous has AuthNone on addresses that others can reach.
	AllowAnonymous bool
	// AdminRole may change what all tenants share.
	AdminRole string
	// Headers say who calls, with AuthHeader and AuthNone; Proxies are where they may come from.
	Headers auth.Headers
	Proxies []netip.Prefix
	// Keys is the file of AuthAPIKey.
	Keys string
	OIDC OIDC
}

// OIDC says whose tokens are accepted, and what they say. Claims are members of the token's JSON, with
// dots between the names where they are nested.
type OIDC struct {
	Issuer       string // URL
	Audiences    []string
	SubjectClaim string
	RolesClaim   string
	TenantClaim  string // empty = everybody has the default tenant
}

// CheckAddr refuses an address that others can reach where everybody is let in.
func (a Auth) CheckAddr(addr string) error {
	if a.Mode != AuthNone || a.AllowAnonymous || auth.IsLoopback(addr) {
		return nil
	}
	return &VariableError{Name: "PERDURE_AUTH", Err: fmt.Errorf(
		"none lets everybody in, and others can reach %s: set it to header, oidc or apikey, or listen on 127.0.0.1, or set PERDURE_AUTH_ALLOW_ANONYMOUS=true if everybody who can reach it may use it", addr)}
}

// check finds what is missing for the way that was chosen.
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
	}
	return nil
}

var headerPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// headerName leaves out "_", which proxies take for "-", or drop.
func headerName(s string) (string, error) {
	if !headerPattern.MatchString(s) {
		return "", fmt.Errorf("%q is not the name of a header, such as X-Forwarded-User", s)
	}
	return textproto.CanonicalMIMEHeaderKey(s), nil
}

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

// issuer insists on TLS: who can change what the issuer answers says who everybody is.
func issuer(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !auth.IsLoopback(u.Host)) {
		return "", fmt.Errorf("%q is not the URL of an issuer, such as https://login.example/realms/shop; without TLS only on loopback", s)
	}
	return s, nil
}

func words(s string) ([]string, error) {
	list := strings.Split(s, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
			return nil, fmt.Errorf("%q has an empty part", s)
		}
	}
	return list, nil
}
