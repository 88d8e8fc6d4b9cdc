package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const demo = "/v1/agents/demo/runs"

// bearer asks as whoever has a token; "" = nobody.
func (p *endpoint) bearer(t *testing.T, token, method, path string, body any, header ...string) *http.Response {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, p.url(path), strings.NewReader(string(encoded)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// wantProblem wants a request to be refused.
func wantProblem(t *testing.T, resp *http.Response, status int, code string) {
	t.Helper()
	if p := refused(t, resp, nil); p.Status != status || p.Code != code {
		t.Errorf("%s %s: %+v, want %d %s", resp.Request.Method, resp.Request.URL.Path, p, status, code)
	}
}

// wantEvents reads a stream to its end.
func wantEvents(t *testing.T, resp *http.Response) []event {
	t.Helper()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %.300s", resp.Status, body)
	}
	stream, err := readEvents(resp)
	if err != nil {
		t.Fatal(err)
	}
	var events []event
	for {
		e, err := stream.next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// Tokens of a real provider, then keys of a file on the same data: tenants are apart, whichever way
// they come, and a tenant's threads are its own over a restart. Subjects are content, as far as
// Temporal and the process's output go.
func TestTenantsOfTokensAndOfKeys(t *testing.T) {
	t.Parallel()
	provider := startIssuer(t)
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{
		"PERDURE_AUTH=oidc", "PERDURE_OIDC_ISSUER=" + provider.url, "PERDURE_OIDC_AUDIENCE=perdure",
		"PERDURE_OIDC_TENANT_CLAIM=org.id", "PERDURE_OIDC_ROLES_CLAIM=realm_access.roles",
	}
	p.keep(t)
	p.start(t)
	person := func(name, tenant string, lasts time.Duration, roles ...string) string {
		return provider.token(t, say(name), lasts, map[string]any{"org": map[string]any{"id": tenant}, "realm_access": map[string]any{"roles": roles}})
	}
	ann, bob := person("ann", "shop", time.Hour, "admin"), person("bob", "bank", time.Hour)
	in := newInput(say("What is 12*7?"))
	p.threads.use(in.ThreadID)

	wantProblem(t, p.bearer(t, "", http.MethodPost, demo, in), 401, "unauthenticated")
	wantProblem(t, p.bearer(t, person("eve", "shop", -time.Minute), http.MethodPost, demo, in), 401, "unauthenticated")
	wantProblem(t, p.bearer(t, strings.TrimRight(ann, "=")[:len(ann)-8], http.MethodPost, demo, in), 401, "unauthenticated")
	anns := wantEvents(t, p.bearer(t, ann, http.MethodPost, demo, in))
	if len(anns) < 5 || anns[len(anns)-1].Type != "RUN_FINISHED" {
		t.Fatalf("ann's run: %v", anns)
	}

	wantProblem(t, p.bearer(t, bob, http.MethodGet, eventsPath(in), nil), 404, "unknown_run")
	wantProblem(t, p.bearer(t, bob, http.MethodPost, cancelPath(in), nil), 404, "unknown_run")
	if _, events := p.subscribes(t, bob, in); events != 0 {
		t.Errorf("bob is shown %d events of ann's over a socket", events)
	}
	if code, events := p.subscribes(t, ann, in); code != "" || events != len(anns) {
		t.Errorf("ann is shown %d of her %d events over a socket, %s", events, len(anns), code)
	}
	p.threads.use(in.ThreadID + " of the bank")
	bobs := wantEvents(t, p.bearer(t, bob, http.MethodPost, demo, in))
	if bobs[0].ID == anns[0].ID || bobs[len(bobs)-1].Type != "RUN_FINISHED" {
		t.Errorf("bob's run of the same id: %v", bobs)
	}

	wantProblem(t, p.bearer(t, bob, http.MethodPut, "/v1/agents/extra", map[string]string{"name": "extra", "model": "scripted/demo"}), 403, "forbidden")
	if resp := p.bearer(t, ann, http.MethodPut, "/v1/agents/extra", map[string]string{"name": "extra", "model": "scripted/demo"}); resp.StatusCode != http.StatusCreated {
		t.Errorf("an administrator publishes an agent: %s", resp.Status)
	}

	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	const annsKey, bobsKey = "key-of-the-shops-program", "key-of-the-banks-program"
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	listed := fmt.Sprintf("keys:\n  - {key: %s, tenant: shop, subject: %q}\n  - {sha256: %x, tenant: bank, subject: bot}\n", annsKey, say("bot"), sha256.Sum256([]byte(bobsKey)))
	if err := os.WriteFile(keys, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + keys}
	p.start(t)
	wantProblem(t, p.bearer(t, ann, http.MethodGet, eventsPath(in), nil), 401, "unauthenticated")
	if again := wantEvents(t, p.bearer(t, annsKey, http.MethodGet, eventsPath(in), nil)); len(again) != len(anns) || again[0].ID != anns[0].ID {
		t.Errorf("with a key of the shop there are %d of %d events", len(again), len(anns))
	}
	if again := wantEvents(t, p.bearer(t, bobsKey, http.MethodGet, eventsPath(in), nil)); len(again) != len(bobs) || again[0].ID != bobs[0].ID {
		t.Errorf("with a key of the bank there are %d of %d events", len(again), len(bobs))
	}
	for _, secret := range []string{ann, bob, annsKey, bobsKey} {
		if strings.Contains(p.output.String(), secret) {
			t.Error("a token is in the output")
		}
	}
}

// subscribes asks for a run over a socket as a browser would, and counts its events.
func (p *endpoint) subscribes(t *testing.T, token string, in input) (code string, events int) {
	t.Helper()
	dialer := &websocket.Dialer{Subprotocols: []string{"ag-ui.perdure.v1", "bearer." + token}}
	conn, resp, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(p.url("/v1/ws"), "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	defer func() { _ = conn.Close() }()
	if conn.Subprotocol() != "ag-ui.perdure.v1" {
		t.Errorf("the subprotocol is %q", conn.Subprotocol())
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := conn.WriteJSON(map[string]string{"type": "subscribe", "id": "s", "threadId": in.ThreadID, "runId": in.RunID}); err != nil {
		t.Fatal(err)
	}
	for {
		var f socketFrame
		if err := conn.ReadJSON(&f); err != nil {
			t.Fatal(err)
		}
		switch f.Type {
		case "event":
			events++
		case "end", "error":
			return f.Code, events
		}
	}
}

// Whoever is let in because nobody asks is let in from this machine only.
func TestNobodyIsAskedOnlyOnLoopback(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args, env []string
		want      string
	}{
		"everywhere":     {[]string{"--addr", "0.0.0.0:0"}, nil, "PERDURE_AUTH_ALLOW_ANONYMOUS"},
		"no keys":        {nil, []string{"PERDURE_AUTH=apikey"}, "PERDURE_AUTH_KEYS"},
		"no file":        {nil, []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=testdata/none"}, "PERDURE_AUTH_KEYS"},
		"another issuer": {nil, []string{"PERDURE_AUTH=oidc", "PERDURE_OIDC_AUDIENCE=a", "PERDURE_OIDC_ISSUER=" + startIssuer(t).url + "/"}, "PERDURE_OIDC_ISSUER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			args := []string{"dev", "--agents", "testdata/agents", "--data", t.TempDir(), "--addr", "127.0.0.1:0"}
			cmd := exec.CommandContext(ctx, program, append(args, tt.args...)...)
			cmd.Env = append(os.Environ(), tt.env...)
			said, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(said), tt.want) {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}
