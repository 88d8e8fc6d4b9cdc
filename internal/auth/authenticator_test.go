package auth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/auth"
)

// requestFrom returns a request with the given header fields, as pairs of name and value. A name
// may occur twice.
func requestFrom(from string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/v1/agents", nil)
	r.RemoteAddr = from
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func TestTokensAreReadFromOneHeader(t *testing.T) {
	t.Parallel()
	const ws = "Sec-WebSocket-Protocol"
	for _, tt := range []struct {
		header    []string
		wantToken string
		wantErr   error
	}{
		{nil, "", auth.ErrNoCredentials},
		{[]string{"Authorization", "Bearer abc.DEF-_~+/=="}, "abc.DEF-_~+/==", nil},
		{[]string{"Authorization", "bEARER  abc "}, "abc", nil},
		{[]string{"Authorization", "Basic YTpi"}, "", auth.ErrInvalid},
		{[]string{"Authorization", "Bearer"}, "", auth.ErrInvalid},
		{[]string{"Authorization", "Bearer a b"}, "", auth.ErrInvalid},
		{[]string{"Authorization", "Bearer a,b"}, "", auth.ErrInvalid},
		{[]string{"Authorization", "Bearer a", "Authorization", "Bearer b"}, "", auth.ErrInvalid},
		{[]string{"Upgrade", "websocket", ws, "ag-ui.perdure.v1, bearer.abc"}, "abc", nil},
		{[]string{"Upgrade", "WebSocket", ws, "ag-ui.perdure.v1", ws, "bearer.abc"}, "abc", nil},
		{[]string{"Upgrade", "websocket", ws, "bearer.a, bearer.b"}, "", auth.ErrInvalid},
		{[]string{"Upgrade", "websocket", ws, "bearer."}, "", auth.ErrInvalid},
		{[]string{"Upgrade", "websocket", ws, "bearer.a", "Authorization", "Bearer b"}, "", auth.ErrInvalid},
		{[]string{ws, "bearer.abc"}, "", auth.ErrNoCredentials},
	} {
		token, err := auth.Bearer(requestFrom("", tt.header...).Header)
		if token != tt.wantToken || !errors.Is(err, tt.wantErr) {
			t.Errorf("header %q: got %q, %v, want %q, %v", tt.header, token, err, tt.wantToken, tt.wantErr)
		}
	}
}

func TestProxyHeadersAreReadOnlyFromProxy(t *testing.T) {
	t.Parallel()
	proxy := &auth.Proxy{
		Headers: auth.Headers{Subject: "X-Forwarded-User", Roles: "X-Forwarded-Groups", Tenant: "X-Tenant"},
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fe80::/10")},
	}
	ann := []string{"X-Forwarded-User", "ann", "X-Tenant", "shop", "X-Forwarded-Groups", "a, b,,a", "X-Forwarded-For", "10.1.2.3"}
	for _, from := range []string{"10.1.2.3:99", "[::ffff:10.1.2.3]:99", "[fe80::1%eth0]:99"} {
		got, err := proxy.Authenticate(requestFrom(from, ann...))
		want := auth.Principal{Tenant: "shop", Subject: "ann", Roles: []string{"a", "b"}}
		if err != nil || !cmp.Equal(got.Principal, want) || !got.Expires.IsZero() {
			t.Errorf("caller at %s: got %+v, %v, want %+v", from, got, err, want)
		}
	}
	for _, from := range []string{"10.2.0.1:99", "127.0.0.1:99", "[::1]:99", "", "@"} {
		if _, err := proxy.Authenticate(requestFrom(from, ann...)); !errors.Is(err, auth.ErrUntrusted) {
			t.Errorf("caller at %q: got %v, want %v", from, err, auth.ErrUntrusted)
		}
	}
	for _, tt := range []struct {
		wantErr error
		header  []string
	}{
		{auth.ErrNoCredentials, nil},
		{auth.ErrNoCredentials, []string{"X-Forwarded-User", " ", "X-Tenant", "shop"}},
		{auth.ErrNoCredentials, []string{"X-Forwarded-User", "ann"}},
		{auth.ErrInvalid, []string{"X-Forwarded-User", "eve", "X-Forwarded-User", "ann", "X-Tenant", "shop"}},
		{auth.ErrInvalid, []string{"X-Forwarded-User", "ann", "X-Tenant", "shop", "X-Tenant", "bank"}},
		{auth.ErrInvalid, []string{"X-Forwarded-User", "ann", "X-Tenant", "shop", "X-Forwarded-Groups", "a", "X-Forwarded-Groups", "admin"}},
	} {
		if got, err := proxy.Authenticate(requestFrom("10.1.2.3:99", tt.header...)); !errors.Is(err, tt.wantErr) {
			t.Errorf("headers %q: got %+v, %v, want %v", tt.header, got, err, tt.wantErr)
		}
	}
}

// TestProxyNeedsItsSecret: a request from the address of the proxy needs one of the secrets.
func TestProxyNeedsItsSecret(t *testing.T) {
	t.Parallel()
	const older, newer = "the-older-secret-of-the-proxy", "the-newer-secret-of-the-proxy"
	secrets, failure := []string{newer, older}, error(nil)
	proxy := &auth.Proxy{
		Headers: auth.Headers{Subject: "X-User"}, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Secrets: func() ([]string, error) { return secrets, failure },
	}
	authenticate := func(from string, header ...string) error {
		_, err := proxy.Authenticate(requestFrom(from, append(header, "X-User", "ann")...))
		return err
	}
	for _, secret := range secrets {
		if err := authenticate("10.0.0.1:1", auth.ProxySecretHeader, secret); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
		if err := authenticate("11.0.0.1:1", auth.ProxySecretHeader, secret); !errors.Is(err, auth.ErrUntrusted) {
			t.Errorf("%s from another network: got %v, want %v", secret, err, auth.ErrUntrusted)
		}
	}
	for _, header := range [][]string{nil, {auth.ProxySecretHeader, ""}, {auth.ProxySecretHeader, older[1:]}, {auth.ProxySecretHeader, older + "x"}} {
		if err := authenticate("10.0.0.1:1", header...); !errors.Is(err, auth.ErrUntrusted) {
			t.Errorf("%q: got %v, want %v", header, err, auth.ErrUntrusted)
		}
	}
	if err := authenticate("10.0.0.1:1", auth.ProxySecretHeader, "guess", auth.ProxySecretHeader, newer); !errors.Is(err, auth.ErrInvalid) {
		t.Errorf("two secrets in one request: got %v, want %v", err, auth.ErrInvalid)
	}
	secrets, failure = nil, errors.New("the file is missing")
	if err := authenticate("10.0.0.1:1"); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("a secret that cannot be read: got %v, want %v", err, auth.ErrUnavailable)
	}
}

// TestTenantHasDefault: without a configured tenant header, clients cannot choose a
// tenant.
func TestTenantHasDefault(t *testing.T) {
	t.Parallel()
	proxy := &auth.Proxy{Headers: auth.Headers{Subject: "X-User"}, Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	got, err := proxy.Authenticate(requestFrom("127.0.0.1:9", "X-User", "ann", "", "shop", "Tenant", "shop", "X-Tenant", "shop"))
	if want := (auth.Principal{Tenant: "default", Subject: "ann"}); err != nil || !cmp.Equal(got.Principal, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestAnonymousCallersHaveSubjectOfHeader(t *testing.T) {
	t.Parallel()
	a := &auth.Anonymous{Headers: auth.Headers{Subject: "X-User", Roles: "X-Roles", Tenant: "X-Tenant"}, Roles: []string{"admin"}}
	got, err := a.Authenticate(requestFrom("", "X-User", "ann", "X-Roles", "finance", "X-Tenant", "shop"))
	if want := (auth.Principal{Tenant: "default", Subject: "ann", Roles: []string{"finance", "admin"}}); err != nil || !cmp.Equal(got.Principal, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
