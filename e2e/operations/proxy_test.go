package operations

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestProxySecret: only a request with the secret of the proxy may name its caller. The secret can
// be rotated while the API runs.
func TestProxySecret(t *testing.T) {
	t.Parallel()
	older, newer := strings.Repeat("older", 8), strings.Repeat("newer", 8)
	file := filepath.Join(t.TempDir(), "secret")
	rotate := func(secrets string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(secrets), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	rotate(older)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_AUTH=header", "PERDURE_AUTH_PROXY_SECRET_FILE=" + file}
	p.InspectAtEnd(t)
	p.Start(t)
	status := func(secret string) int {
		t.Helper()
		header := []string{"X-Forwarded-User", "ann"}
		if secret != "" {
			header = append(header, "Perdure-Proxy-Secret", secret)
		}
		return p.RequestAs(t, "", http.MethodGet, "/v1/threads", nil, header...).StatusCode
	}
	for _, step := range []struct {
		file                string
		none, before, after int
	}{
		{older, 403, 200, 403}, {newer + "\n" + older, 403, 200, 200}, {newer, 403, 403, 200}, {"short", 503, 503, 503},
	} {
		rotate(step.file)
		if none, before, after := status(""), status(older), status(newer); none != step.none || before != step.before || after != step.after {
			t.Errorf("with %q: without a secret %d, with the older %d, with the newer %d, want %d, %d, %d", step.file, none, before, after, step.none, step.before, step.after)
		}
	}
	if output := p.Output.String(); strings.Contains(output, older) || strings.Contains(output, newer) {
		t.Error("output of Perdure has a secret, want none")
	}
}
