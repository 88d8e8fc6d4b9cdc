package operations

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

const demo = "/v1/agents/demo/runs"

// TestTenantsOfTokensAndKeys: tokens of an OpenID provider, then keys of a file on the same data.
// Tenants are separate with both, and a tenant keeps its threads over a restart. Subjects are
// content: Temporal and the output do not have them.
func TestTenantsOfTokensAndKeys(t *testing.T) {
	t.Parallel()
	provider := kit.StartIssuer(t)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{
		"PERDURE_AUTH=oidc", "PERDURE_OIDC_ISSUER=" + provider.URL, "PERDURE_OIDC_AUDIENCE=perdure",
		"PERDURE_OIDC_TENANT_CLAIM=org.id", "PERDURE_OIDC_ROLES_CLAIM=realm_access.roles",
	}
	p.InspectAtEnd(t)
	p.Start(t)
	person := func(name, tenant string, lasts time.Duration, roles ...string) string {
		return provider.Token(t, kit.Marked(name), lasts, map[string]any{"org": map[string]any{"id": tenant}, "realm_access": map[string]any{"roles": roles}})
	}
	ann, bob := person("ann", "shop", time.Hour, "perdure-platform-admin"), person("bob", "bank", time.Hour)
	in := kit.NewInput(kit.Marked("What is 12*7?"))
	p.Threads.Add(in.ThreadID)

	kit.WantProblem(t, p.RequestAs(t, "", http.MethodPost, demo, in), 401, "unauthenticated")
	kit.WantProblem(t, p.RequestAs(t, person("eve", "shop", -time.Minute), http.MethodPost, demo, in), 401, "unauthenticated")
	kit.WantProblem(t, p.RequestAs(t, strings.TrimRight(ann, "=")[:len(ann)-8], http.MethodPost, demo, in), 401, "unauthenticated")
	anns := kit.WantEvents(t, p.RequestAs(t, ann, http.MethodPost, demo, in))
	if len(anns) < 5 || anns[len(anns)-1].Type != "RUN_FINISHED" {
		t.Fatalf("run of ann = %v, want it complete", anns)
	}

	kit.WantProblem(t, p.RequestAs(t, bob, http.MethodGet, kit.EventsPath(in), nil), 404, "unknown_run")
	kit.WantProblem(t, p.RequestAs(t, bob, http.MethodPost, kit.CancelPath(in), nil), 404, "unknown_thread")
	if _, events := p.Subscribe(t, bob, in); events != 0 {
		t.Errorf("events of ann for bob over a socket = %d, want none", events)
	}
	if code, events := p.Subscribe(t, ann, in); code != "" || events != len(anns) {
		t.Errorf("events of ann over a socket = %d of %d, %s, want all", events, len(anns), code)
	}
	p.Threads.Add(in.ThreadID + " of the bank")
	bobs := kit.WantEvents(t, p.RequestAs(t, bob, http.MethodPost, demo, in))
	if bobs[0].ID == anns[0].ID || bobs[len(bobs)-1].Type != "RUN_FINISHED" {
		t.Errorf("run of bob with the same ID = %v, want one of its own", bobs)
	}

	kit.WantProblem(t, p.RequestAs(t, bob, http.MethodPut, "/v1/agents/extra", map[string]string{"name": "extra", "model": "scripted/demo"}), 403, "forbidden")
	if resp := p.RequestAs(t, ann, http.MethodPut, "/v1/agents/extra", map[string]string{"name": "extra", "model": "scripted/demo"}); resp.StatusCode != http.StatusCreated {
		t.Errorf("publication of an administrator: got %s, want %d", resp.Status, http.StatusCreated)
	}

	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	const annsKey, bobsKey = "key-of-the-shops-program", "key-of-the-banks-program"
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	listed := fmt.Sprintf("keys:\n  - {key: %s, tenant: shop, subject: %q, roles: [perdure-tenant-admin]}\n  - {sha256: %x, tenant: bank, subject: bot, roles: [perdure-tenant-admin]}\n", annsKey, kit.Marked("bot"), sha256.Sum256([]byte(bobsKey)))
	if err := os.WriteFile(keys, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + keys}
	p.Start(t)
	kit.WantProblem(t, p.RequestAs(t, ann, http.MethodGet, kit.EventsPath(in), nil), 401, "unauthenticated")
	if again := kit.WantEvents(t, p.RequestAs(t, annsKey, http.MethodGet, kit.EventsPath(in), nil)); len(again) != len(anns) || again[0].ID != anns[0].ID {
		t.Errorf("events with a key of the shop = %d, want %d", len(again), len(anns))
	}
	if again := kit.WantEvents(t, p.RequestAs(t, bobsKey, http.MethodGet, kit.EventsPath(in), nil)); len(again) != len(bobs) || again[0].ID != bobs[0].ID {
		t.Errorf("events with a key of the bank = %d, want %d", len(again), len(bobs))
	}
	for _, secret := range []string{ann, bob, annsKey, bobsKey} {
		if strings.Contains(p.Output.String(), secret) {
			t.Error("output of Perdure has a token, want none")
		}
	}
}

// TestAnonymousAccessNeedsLoopback: without authentication the API accepts requests from this
// machine only.
func TestAnonymousAccessNeedsLoopback(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args, env []string
		want      string
	}{
		"everywhere":     {[]string{"--addr", "0.0.0.0:0"}, nil, "PERDURE_AUTH_ALLOW_ANONYMOUS"},
		"variable":       {nil, []string{"PERDURE_ADDR=0.0.0.0:0"}, "PERDURE_AUTH_ALLOW_ANONYMOUS"},
		"proxy":          {[]string{"--addr", "0.0.0.0:0"}, []string{"PERDURE_AUTH=header", "PERDURE_AUTH_PROXIES=10.0.0.0/8"}, "PERDURE_AUTH_PROXY_SECRET"},
		"no keys":        {nil, []string{"PERDURE_AUTH=apikey"}, "PERDURE_AUTH_KEYS"},
		"no file":        {nil, []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=testdata/none"}, "PERDURE_AUTH_KEYS"},
		"another issuer": {nil, []string{"PERDURE_AUTH=oidc", "PERDURE_OIDC_AUDIENCE=a", "PERDURE_OIDC_TENANT=shop", "PERDURE_OIDC_ISSUER=" + kit.StartIssuer(t).URL + "/"}, "PERDURE_OIDC_ISSUER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
			defer cancel()
			args := []string{"dev", "--agents", "testdata/agents", "--data", t.TempDir()}
			cmd := exec.CommandContext(ctx, kit.Program, append(args, tt.args...)...)
			cmd.Env = append(append(os.Environ(), "PERDURE_ADDR=127.0.0.1:0"), tt.env...)
			said, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(said), tt.want) {
				t.Errorf("start = %v: %s, want an error with %q", err, said, tt.want)
			}
		})
	}
}
