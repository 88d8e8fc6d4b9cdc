package callers_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/apikey"
	"github.com/perdure/perdure/internal/auth/callers"
	"github.com/perdure/perdure/internal/auth/oidc"
	"github.com/perdure/perdure/internal/process/config"
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
	}{
		"none":           {config.Auth{Mode: config.AuthNone, AdminRole: "boss"}, loopback, &auth.Anonymous{Roles: []string{"boss"}, Local: true}, ""},
		"none, wherever": {config.Auth{Mode: config.AuthNone, AllowAnonymous: true, AdminRole: "boss"}, network, &auth.Anonymous{Roles: []string{"boss"}}, ""},
		"header":         {config.Auth{Mode: config.AuthHeader, Headers: auth.Headers{Subject: "X"}}, network, &auth.Proxy{Headers: auth.Headers{Subject: "X"}}, ""},
		"apikey":         {config.Auth{Mode: config.AuthAPIKey, Keys: keys}, network, &apikey.Keys{}, ""},
		"oidc, later":    {config.Auth{Mode: config.AuthOIDC, OIDC: config.OIDC{Issuer: away.URL}}, network, &oidc.Tokens{}, "the API refuses all tokens until it can"},
	} {
		var log bytes.Buffer
		got, err := callers.New(t.Context(), tt.cfg, tt.addr, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(tt.want) || !strings.Contains(log.String(), tt.wantLog) {
			t.Errorf("%s: got %T, %v and the log %s, want %T and %q", name, got, err, log.String(), tt.want, tt.wantLog)
		}
		if _, anonymous := got.(*auth.Anonymous); anonymous && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
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
		"PERDURE_AUTH":        {Mode: config.AuthNone},
		"PERDURE_AUTH_KEYS":   {Mode: config.AuthAPIKey, Keys: filepath.Join(t.TempDir(), "none")},
		"PERDURE_OIDC_ISSUER": {Mode: config.AuthOIDC, OIDC: config.OIDC{Issuer: another.URL}},
	} {
		got, err := callers.New(t.Context(), cfg, network, slog.New(slog.DiscardHandler))
		var bad *config.VariableError
		if !errors.As(err, &bad) || bad.Name != variable || got != nil {
			t.Errorf("%s: got %T, %v, want an error about it", variable, got, err)
		}
	}
}
