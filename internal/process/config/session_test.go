package config_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/process/config"
)

// signIn has the settings of an API whose users sign in with a browser.
var signIn = []string{
	"PERDURE_AUTH=oidc", "PERDURE_OIDC_ISSUER=https://login.example", "PERDURE_OIDC_AUDIENCE=perdure", "PERDURE_OIDC_TENANT=shop",
	"PERDURE_OIDC_CLIENT_ID=console", "PERDURE_PUBLIC_URL=https://agents.example",
}

func TestSessionsAreConfigured(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := load(t, config.API, []string{"--session-idle=30m"}, append(signIn, "PERDURE_OIDC_CLIENT_SECRET_FILE="+secret, "PERDURE_OIDC_SCOPES=openid, offline_access", "PERDURE_SESSION_LIFETIME=8h")...).Auth.Sessions
	if got.ClientID != "console" || !slices.Equal(got.Scopes, []string{"openid", "offline_access"}) || got.Idle != 30*time.Minute || got.Lifetime != 8*time.Hour {
		t.Errorf("sessions = %+v, want those of the variables", got)
	}
	for _, want := range []string{"s3cret", "another"} { // the file is read at each use
		if err := os.WriteFile(secret, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := got.ClientSecret(); err != nil || text != want {
			t.Errorf("secret = %q, %v, want %q", text, err, want)
		}
	}
	if public := load(t, config.API, nil, signIn...).Auth.Sessions; public.ClientSecret != nil {
		t.Error("client secret of a public client: got one, want none")
	}
}

func TestInvalidSessionsNameTheirVariable(t *testing.T) {
	t.Parallel()
	for change, variable := range map[string]string{
		"PERDURE_AUTH=apikey":                               "PERDURE_OIDC_CLIENT_ID",
		"PERDURE_PUBLIC_URL=":                               "PERDURE_PUBLIC_URL",
		"PERDURE_PUBLIC_URL=http://agents.example":          "PERDURE_PUBLIC_URL",
		"PERDURE_PUBLIC_URL=https://agents.example/perdure": "PERDURE_PUBLIC_URL",
		"PERDURE_SESSION_IDLE=13h":                          "PERDURE_SESSION_IDLE",
		"PERDURE_SESSION_IDLE=0s":                           "PERDURE_SESSION_IDLE",
		"PERDURE_SESSION_LIFETIME=1000h":                    "PERDURE_SESSION_LIFETIME",
		"PERDURE_OIDC_SCOPES=profile":                       "PERDURE_OIDC_SCOPES",
	} {
		_, err := config.Load(config.API, nil, append(signInWith(change), nowhere, "PERDURE_AUTH_KEYS=k"), io.Discard)
		if bad, ok := errors.AsType[*config.VariableError](err); !ok || bad.Name != variable {
			t.Errorf("%s: got %v, want an error about %s", change, err, variable)
		}
	}
	load(t, config.API, nil, signInWith("PERDURE_PUBLIC_URL=http://127.0.0.1:8080")...)
	load(t, config.Dev, nil, signInWith("PERDURE_PUBLIC_URL=")...)
}

// signInWith returns the settings with one that differs.
func signInWith(change string) []string {
	name, _, _ := strings.Cut(change, "=")
	rest := slices.DeleteFunc(slices.Clone(signIn), func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
	return append(rest, change)
}
