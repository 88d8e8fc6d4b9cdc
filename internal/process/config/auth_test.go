package config_test

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/config"
)

func TestAuthModesAreConfigured(t *testing.T) {
	t.Parallel()
	plain := config.Auth{
		Mode: config.AuthNone, Headers: auth.Headers{Subject: "X-Forwarded-User", Roles: "X-Forwarded-Groups"},
		Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		OIDC:    config.OIDC{SubjectClaim: "sub", RolesClaim: "roles"},
	}
	prefixes := cmpopts.EquateComparable(netip.Prefix{})
	for _, p := range []config.Process{config.API, config.Dev} {
		if diff := cmp.Diff(plain, load(t, p, nil).Auth, prefixes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p, diff)
		}
	}
	got := load(t, config.API, []string{"--auth=oidc", "--auth-keys=k"},
		"PERDURE_AUTH_SUBJECT_HEADER=x-user", "PERDURE_AUTH_ROLES_HEADER=X-Roles", "PERDURE_AUTH_TENANT_HEADER=X-Tenant",
		"PERDURE_AUTH_PROXIES=10.1.2.3/8, fd00::/8", "PERDURE_OIDC_ISSUER=https://login.example/realms/shop", "PERDURE_OIDC_AUDIENCE=perdure, cli",
		"PERDURE_OIDC_SUBJECT_CLAIM=email", "PERDURE_OIDC_ROLES_CLAIM=realm_access.roles", "PERDURE_OIDC_TENANT_CLAIM=org.id", "PERDURE_ADDR=0.0.0.0:80").Auth
	want := config.Auth{
		Mode: config.AuthOIDC, Keys: "k", Headers: auth.Headers{Subject: "X-User", Roles: "X-Roles", Tenant: "X-Tenant"},
		Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		OIDC: config.OIDC{
			Issuer: "https://login.example/realms/shop", Audiences: []string{"perdure", "cli"},
			SubjectClaim: "email", RolesClaim: "realm_access.roles", TenantClaim: "org.id",
		},
	}
	if diff := cmp.Diff(want, got, prefixes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnonymousAccessNeedsLoopback: anonymous access is allowed only on a loopback address, or
// where the operator allows it explicitly.
func TestAnonymousAccessNeedsLoopback(t *testing.T) {
	t.Parallel()
	for addr, local := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:8080": true, "[::1]:8080": true, "127.9.9.9:0": true,
		"0.0.0.0:8080": false, ":8080": false, "[::]:8080": false, "10.0.0.1:80": false, "api.example:80": false,
	} {
		load := func(environ ...string) error {
			_, err := config.Load(config.API, nil, append(environ, nowhere, "PERDURE_ADDR="+addr), io.Discard)
			return err
		}
		err := load()
		var bad *config.VariableError
		if local && err != nil || !local && (!errors.As(err, &bad) || bad.Name != "PERDURE_AUTH" || !strings.Contains(err.Error(), "PERDURE_AUTH_ALLOW_ANONYMOUS")) {
			t.Errorf("address %s: got %v, want an error about PERDURE_AUTH unless it is local", addr, err)
		}
		for _, text := range []string{"PERDURE_AUTH_ALLOW_ANONYMOUS=true", "PERDURE_AUTH=header"} {
			if err := load(text); err != nil {
				t.Errorf("%s with %s: %v", addr, text, err)
			}
		}
	}
}

func TestInvalidAuthConfiguration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ variable, environ string }{
		{"PERDURE_AUTH", "PERDURE_AUTH=ldap"},
		{"PERDURE_AUTH_KEYS", "PERDURE_AUTH=apikey"},
		{"PERDURE_OIDC_ISSUER", "PERDURE_AUTH=oidc PERDURE_OIDC_AUDIENCE=a"},
		{"PERDURE_OIDC_AUDIENCE", "PERDURE_AUTH=oidc PERDURE_OIDC_ISSUER=https://login.example"},
		{"PERDURE_OIDC_AUDIENCE", "PERDURE_OIDC_AUDIENCE=a,,b"},
		{"PERDURE_OIDC_TENANT_CLAIM", "PERDURE_AUTH=oidc PERDURE_OIDC_ISSUER=https://login.example PERDURE_OIDC_AUDIENCE=a"},
		{"PERDURE_OIDC_TENANT", "PERDURE_OIDC_TENANT=shop PERDURE_OIDC_TENANT_CLAIM=org.id"},
		{"PERDURE_OIDC_ISSUER", "PERDURE_OIDC_ISSUER=http://login.example"},
		{"PERDURE_OIDC_ISSUER", "PERDURE_OIDC_ISSUER=login.example"},
		{"PERDURE_OIDC_ISSUER", "PERDURE_OIDC_ISSUER=https://login.example?x=y"},
		{"PERDURE_AUTH_PROXIES", "PERDURE_AUTH_PROXIES=10.0.0.1"},
		{"PERDURE_AUTH_PROXIES", "PERDURE_AUTH_PROXIES=::ffff:10.0.0.0/104"},
		{"PERDURE_AUTH_PROXIES", "PERDURE_AUTH_PROXIES=10.0.0.0/8,"},
		{"PERDURE_AUTH_SUBJECT_HEADER", "PERDURE_AUTH_SUBJECT_HEADER=X_User"},
		{"PERDURE_AUTH_TENANT_HEADER", "PERDURE_AUTH_TENANT_HEADER=a,b"},
		{"PERDURE_HOSTS", "PERDURE_HOSTS=https://agents.example"},
		{"PERDURE_HOSTS", "PERDURE_HOSTS=agents.example:8080"},
		{"PERDURE_HOSTS", "PERDURE_HOSTS=10.0.0.7:80"},
		{"PERDURE_HOSTS", "PERDURE_HOSTS=a.*.example"},
		{"PERDURE_HOSTS", "PERDURE_HOSTS=agents.example,"},
	} {
		_, err := config.Load(config.API, nil, append(strings.Fields(tt.environ), nowhere), io.Discard)
		var bad *config.VariableError
		if !errors.As(err, &bad) || bad.Name != tt.variable {
			t.Errorf("%s: got %v, want an error about %s", tt.environ, err, tt.variable)
		}
	}
}
