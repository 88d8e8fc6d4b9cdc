package callers_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/apikey"
	"github.com/perdure/perdure/internal/auth/callers"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/auth/sessions"
	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/stream/streamtest"
)

const loopback, network = "127.0.0.1:8080", "0.0.0.0:8080"

func TestEachModeHasAnAuthenticator(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(keys, []byte(`{"keys": [{"key": "a-key-of-some-twenty-bytes", "subject": "a"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	away := httptest.NewServer(http.NotFoundHandler())
	defer away.Close()
	for name, tt := range map[string]struct {
		cfg     config.Auth
		addr    string
		want    auth.Authenticator
		wantLog string
		// wantHosts tells that the host agents.example is allowed.
		wantHosts bool
	}{
		"none":           {config.Auth{Mode: config.AuthNone}, loopback, &auth.Anonymous{Roles: []string{"boss"}}, "", false},
		"none, wherever": {config.Auth{Mode: config.AuthNone, AllowAnonymous: true}, network, &auth.Anonymous{Roles: []string{"boss"}}, "", false},
		"header":         {config.Auth{Mode: config.AuthHeader, Headers: auth.Headers{Subject: "X"}}, loopback, &auth.Proxy{Headers: auth.Headers{Subject: "X"}}, "", false},
		"header, hosts":  {config.Auth{Mode: config.AuthHeader, ProxySecrets: func() ([]string, error) { return nil, nil }, Hosts: auth.Hosts{"*.example"}}, network, &auth.Proxy{}, "", true},
		"apikey, hosts":  {config.Auth{Mode: config.AuthAPIKey, Keys: keys, Hosts: auth.Hosts{"other.example"}}, network, &apikey.Keys{}, "", false},
		"apikey":         {config.Auth{Mode: config.AuthAPIKey, Keys: keys}, network, &apikey.Keys{}, "", true},
		"oidc, later":    {config.Auth{Mode: config.AuthOIDC, OIDC: config.OIDC{Issuer: away.URL}}, network, &oidc.Tokens{}, "the API refuses all tokens until it can", true},
	} {
		var log bytes.Buffer
		got, err := callers.New(t.Context(), tt.cfg, tt.addr, "boss", slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		defer got.Close()
		check := got.HostCheck
		if reflect.TypeOf(check.Callers) != reflect.TypeOf(tt.want) || !strings.Contains(log.String(), tt.wantLog) {
			t.Errorf("%s: got %T and the log %s, want %T and %q", name, check.Callers, log.String(), tt.want, tt.wantLog)
		}
		if _, anonymous := check.Callers.(*auth.Anonymous); anonymous && !reflect.DeepEqual(check.Callers, tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, check.Callers, tt.want)
		}
		if check.Hosts.Allow("agents.example") != tt.wantHosts {
			t.Errorf("%s: host agents.example allowed: %t, want %t", name, !tt.wantHosts, tt.wantHosts)
		}
	}
}

func TestErrorsNameTheirVariable(t *testing.T) {
	t.Parallel()
	another := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"issuer": "https://another.example", "jwks_uri": "https://another.example/keys"}`))
	}))
	defer another.Close()
	for variable, cfg := range map[string]config.Auth{
		"PERDURE_AUTH":              {Mode: config.AuthNone},
		"PERDURE_AUTH_PROXY_SECRET": {Mode: config.AuthHeader, Proxies: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}},
		"PERDURE_AUTH_KEYS":         {Mode: config.AuthAPIKey, Keys: filepath.Join(t.TempDir(), "none")},
		"PERDURE_OIDC_ISSUER":       {Mode: config.AuthOIDC, OIDC: config.OIDC{Issuer: another.URL}},
	} {
		got, err := callers.New(t.Context(), cfg, network, "admin", slog.New(slog.DiscardHandler))
		var bad *config.VariableError
		if !errors.As(err, &bad) || bad.Name != variable || got != nil {
			t.Errorf("%s: got %T, %v, want an error about it", variable, got, err)
		}
	}
}

// TestTokenTakesPrecedenceOverCookie: a request with a token is authenticated by the token, whatever
// cookie it has.
func TestTokenTakesPrecedenceOverCookie(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.NotFoundHandler())
	defer away.Close()
	cfg := config.Auth{Mode: config.AuthOIDC, OIDC: config.OIDC{Issuer: away.URL}, Sessions: config.Sessions{Idle: time.Hour, Lifetime: time.Hour}}
	got, err := callers.New(t.Context(), cfg, loopback, "admin", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	open := func() *sessions.Sessions {
		t.Helper()
		s, err := got.OpenSessions(t.Context(), cfg.Sessions, "http://"+loopback, streamtest.Open(t), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	authenticate := func(header ...string) error {
		r := httptest.NewRequest(http.MethodGet, "/v1/agents", nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		_, err := got.Authenticate(r)
		return err
	}
	cookie := []string{"Cookie", "perdure=" + strings.Repeat("A", 43)}
	if s := open(); s != nil {
		t.Error("sessions without a client ID: got some, want none")
	}
	if err := authenticate(cookie...); !errors.Is(err, auth.ErrNoCredentials) {
		t.Errorf("a cookie without sessions: got %v, want %v", err, auth.ErrNoCredentials)
	}
	cfg.Sessions.ClientID = "console"
	open()
	if err := authenticate(cookie...); !errors.Is(err, auth.ErrSessionEnded) {
		t.Errorf("a cookie: got %v, want %v", err, auth.ErrSessionEnded)
	}
	if err := authenticate(append(cookie, "Authorization", "Bearer a.b.c")...); !errors.Is(err, auth.ErrUnavailable) { // there is no provider
		t.Errorf("a cookie and a token: got %v, want %v", err, auth.ErrUnavailable)
	}
}
