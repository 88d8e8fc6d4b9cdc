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

// The modes of authentication.
const (
	AuthNone   = "none"   // every caller is accepted, under the name that it gives
	AuthHeader = "header" // headers of a proxy
	AuthOIDC   = "oidc"   // a token of an OpenID provider
	AuthAPIKey = "apikey" // a key of a file
)

// Auth is how the API authenticates callers.
type Auth struct {
	// Mode is one of the modes above.
	Mode string
	// AllowAnonymous permits AuthNone on addresses that other machines can reach.
	AllowAnonymous bool
	// AdminRole is the role that may change what all tenants share.
	AdminRole string
	// Headers name the headers of AuthHeader and AuthNone. Proxies are the addresses that may send
	// those of AuthHeader.
	Headers auth.Headers
	Proxies []netip.Prefix
	// Keys is the file of AuthAPIKey.
	Keys string
	OIDC OIDC
}

// OIDC is whose tokens are accepted, and what their claims mean. Claims are members of the token's
// JSON, with dots between the names of nested ones.
type OIDC struct {
	Issuer       string // URL
	Audiences    []string
	SubjectClaim string
	RolesClaim   string
	TenantClaim  string // empty = all callers have the default tenant
}

// CheckAddr refuses an address that other machines can reach, if every caller is accepted.
func (a Auth) CheckAddr(addr string) error {
	if a.Mode != AuthNone || a.AllowAnonymous || auth.IsLoopback(addr) {
		return nil
	}
	return &VariableError{Name: "PERDURE_AUTH", Err: fmt.Errorf(
		"none lets everybody in, and others can reach %s: set it to header, oidc or apikey, or listen on 127.0.0.1, or set PERDURE_AUTH_ALLOW_ANONYMOUS=true if everybody who can reach it may use it", addr)}
}

// check reports what the mode lacks.
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

// headerName refuses "_", which proxies drop or treat as "-".
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

// issuer requires TLS: whoever can change the issuer's answers decides who every caller is.
func issuer(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !auth.IsLoopback(u.Host)) {
		return "", fmt.Errorf("%q is not the URL of an issuer, such as https://login.example/realms/shop; without TLS only on loopback", s)
	}
	return s, nil
}

func wordList(s string) ([]string, error) {
	list := strings.Split(s, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
			return nil, fmt.Errorf("%q has an empty part", s)
		}
	}
	return list, nil
}
