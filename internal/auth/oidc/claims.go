package oidc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/perdure/perdure/internal/auth"
)

// principal returns the principal in the claims of a verified token. Errors: auth.ErrInvalid.
func (t *Tokens) principal(token *oidc.IDToken) (auth.Principal, error) {
	p := auth.Principal{Tenant: t.cfg.Tenant}
	var claims map[string]any
	err := token.Claims(&claims)
	if err != nil {
		return p, fmt.Errorf("%w: %w", auth.ErrInvalid, err)
	}
	if p.Subject, err = stringClaim(claims, t.cfg.SubjectClaim); err != nil {
		return p, err
	}
	if t.cfg.SubjectClaim == "email" && claims["email_verified"] != true {
		return p, fmt.Errorf("%w: the claim email_verified is not true", auth.ErrInvalid)
	}
	if t.cfg.TenantClaim != "" {
		if p.Tenant, err = stringClaim(claims, t.cfg.TenantClaim); err != nil {
			return p, err
		}
	}
	p.Roles, err = wordsClaim(claims, t.cfg.RolesClaim)
	return p, err
}

// stringClaim reads a required claim: a non-empty string.
func stringClaim(claims map[string]any, path string) (string, error) {
	value, ok := claim(claims, path).(string)
	if !ok || value == "" {
		return "", fmt.Errorf("%w: the claim %s is not a string", auth.ErrInvalid, path)
	}
	return value, nil
}

// wordsClaim reads an optional claim: a list of strings, or one string of words separated by spaces
// (as in OAuth scopes). The result is sorted and has no duplicates.
func wordsClaim(claims map[string]any, path string) ([]string, error) {
	var list []string
	switch value := claim(claims, path).(type) {
	case nil:
	case string:
		list = strings.Fields(value)
	case []any:
		for _, element := range value {
			text, ok := element.(string)
			if !ok || text == "" {
				return nil, fmt.Errorf("%w: the claim %s has an element that is not a string", auth.ErrInvalid, path)
			}
			list = append(list, text)
		}
	default:
		return nil, fmt.Errorf("%w: the claim %s is not a list", auth.ErrInvalid, path)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// claim returns a claim; nil = the token does not have it. Some providers use URLs as names, which
// contain dots: a member with the whole path as its name takes precedence.
func claim(claims map[string]any, path string) any {
	if value, ok := claims[path]; ok {
		return value
	}
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		return nil
	}
	inner, ok := claims[first].(map[string]any)
	if !ok {
		return nil
	}
	return claim(inner, rest)
}
