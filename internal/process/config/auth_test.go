package config_test

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/config"
)

func TestAuthModesAreConfigured(t *testing.T) {
	t.Parallel()
	plain := config.Auth{
		Mode: config.AuthNone, Headers: auth.Headers{Subject: "X-Forwarded-User", Roles: "X-Forwarded-Groups"},
		OIDC:     config.OIDC{SubjectClaim: "sub", RolesClaim: "roles"},
		Sessions: config.Sessions{Scopes: []string{"openid", "profile", "email"}, Idle: time.Hour, Lifetime: 12 * time.Hour},
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
		Sessions: plain.Sessions,
	}
	if diff := cmp.Diff(want, got, prefixes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnonymousAccessNeedsLoopback: anonymous access is allowed only on a loopback address, or
// where the operator allows it explicitly. Other addresses need a secret of the proxy.
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
		if err := load("PERDURE_AUTH_ALLOW_ANONYMOUS=true"); err != nil {
			t.Errorf("%s with anonymous access: %v", addr, err)
		}
		err = load("PERDURE_AUTH=header", "PERDURE_AUTH_PROXIES=10.1.0.0/16")
		if local && err != nil || !local && (!errors.As(err, &bad) || bad.Name != "PERDURE_AUTH_PROXY_SECRET") {
			t.Errorf("address %s with a list of proxies: got %v, want an error about PERDURE_AUTH_PROXY_SECRET unless it is local", addr, err)
		}
		if err := load("PERDURE_AUTH=header", "PERDURE_AUTH_PROXY_SECRET="+strings.Repeat("s", 32)); err != nil {
			t.Errorf("%s with a secret of the proxy: %v", addr, err)
		}
		if err := load("PERDURE_AUTH=header", "PERDURE_TLS_CERT_FILE=c", "PERDURE_TLS_KEY_FILE=k", "PERDURE_TLS_CLIENT_CA_FILE=ca", "PERDURE_TLS_CLIENT_NAMES=proxy.example,spiffe://example/proxy"); err != nil {
			t.Errorf("%s with certificates of the proxy: %v", addr, err)
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
		{"PERDURE_AUTH_PROXY_SECRET", "PERDURE_AUTH_PROXY_SECRET=short"},
		{"PERDURE_TLS_KEY_FILE", "PERDURE_TLS_CERT_FILE=c"},
		{"PERDURE_TLS_CERT_FILE", "PERDURE_TLS_KEY_FILE=k"},
		{"PERDURE_TLS_CERT_FILE", "PERDURE_TLS_CLIENT_CA_FILE=ca"},
		{"PERDURE_TLS_CLIENT_CA_FILE", "PERDURE_TLS_CLIENT_NAMES=proxy.example"},
		{"PERDURE_TLS_CLIENT_NAMES", "PERDURE_TLS_CLIENT_NAMES=*"},
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

// TestDevRefusesTLS: perdure dev serves plain HTTP, so it does not start with settings of TLS.
func TestDevRefusesTLS(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PERDURE_TLS_CERT_FILE", "PERDURE_TLS_KEY_FILE", "PERDURE_TLS_CLIENT_CA_FILE", "PERDURE_TLS_CLIENT_NAMES"} {
		_, err := config.Load(config.Dev, nil, []string{name + "=x.example", nowhere}, io.Discard)
		var bad *config.VariableError
		if !errors.As(err, &bad) || bad.Name != name || !strings.Contains(err.Error(), "use api") {
			t.Errorf("perdure dev with %s: got %v, want an error that names it, and api", name, err)
		}
	}
	if _, err := config.Load(config.Worker, nil, []string{"PERDURE_TLS_CERT_FILE=x", nowhere}, io.Discard); err != nil {
		t.Errorf("worker with the environment of api: %v", err)
	}
}

// TestProxySecretsFollowTheirFile: two secrets are accepted during a rotation, and a file that is
// missing afterwards is an error.
func TestProxySecretsFollowTheirFile(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("1", 32), strings.Repeat("2", 40)
	file := write(t, t.TempDir(), "secret", first+"\n")
	a := load(t, config.API, nil, "PERDURE_AUTH=header", "PERDURE_ADDR=0.0.0.0:80", "PERDURE_AUTH_PROXY_SECRET_FILE="+file).Auth
	if got := a.TrustedProxies(); len(got) != 2 || got[0].Bits() != 0 {
		t.Errorf("trusted proxies = %v, want every address", got)
	}
	for content, want := range map[string][]string{first: {first}, second + "\n" + first + "\n": {second, first}, "short": nil, first + " " + second + " " + first: nil} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := a.ProxySecrets()
		if !slices.Equal(got, want) || (err != nil) != (want == nil) || err != nil && strings.Contains(err.Error(), first) {
			t.Errorf("%q: got %q, %v, want %q", content, got, err, want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got, err := a.ProxySecrets(); err == nil {
		t.Errorf("without the file: got %q, want an error", got)
	}
}

// TestHeaderModeNeedsOrigins: behind a proxy that signs people in, not every page may call the API.
func TestHeaderModeNeedsOrigins(t *testing.T) {
	t.Parallel()
	for origins, wantError := range map[string]bool{"*": true, "https://app.example": false} {
		_, err := config.Load(config.API, nil, []string{"PERDURE_AUTH=header", "PERDURE_CORS_ORIGINS=" + origins}, io.Discard)
		if (err != nil && strings.Contains(err.Error(), "PERDURE_CORS_ORIGINS")) != wantError {
			t.Errorf("origins %s: got %v, want an error: %v", origins, err, wantError)
		}
	}
}
