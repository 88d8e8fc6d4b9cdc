package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/source"
)

// webhookKey is the key of the webhooks of the tests.
const webhookKey = "a-key-that-only-the-provider-has"

// setupWebhooks returns a server with the webhooks github and slack of the tenant acme. It refuses
// callers without credentials.
func setupWebhooks(t *testing.T, change ...func(*api.Config)) *node {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sources.yaml")
	const config = "- {name: github, tenant: acme, webhook: {scheme: github, secret: KEY}}\n- {name: slack, tenant: acme, webhook: {scheme: slack, secret: KEY}}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := source.Open(file, func(string) string { return webhookKey })
	if err != nil {
		t.Fatal(err)
	}
	return setup(t, append(change, func(c *api.Config) {
		store, err := events.Open(t.Context(), c.Log)
		if err != nil {
			t.Fatal(err)
		}
		if c.Waits, err = store.Watch(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Waits.Stop)
		c.Events, c.Sources, c.Auth = store, sources, onlyAdmin{}
	})...)
}

// onlyAdmin is an authenticator that knows the administrator of acme, by a header.
type onlyAdmin struct{}

// Authenticate implements auth.Authenticator.
func (onlyAdmin) Authenticate(r *http.Request) (auth.Identity, error) {
	if r.Header.Get("X-Admin") == "" {
		return auth.Identity{}, auth.ErrNoCredentials
	}
	return auth.Identity{Principal: auth.Principal{Tenant: "acme", Subject: "ann", Roles: []string{policy.DefaultRoles.TenantAdmin}}}, nil
}

// signature returns the HMAC-SHA256 of a text, in hex.
func signature(text string) string {
	mac := hmac.New(sha256.New, []byte(webhookKey))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// github sends a webhook of GitHub with a signature.
func (n *node) github(source, delivery, body, signature string) answer {
	return n.do(http.MethodPost, "/webhooks/"+source, body, "Content-Type", "application/json",
		"X-GitHub-Event", "issues", "X-GitHub-Delivery", delivery, "X-Hub-Signature-256", "sha256="+signature)
}

// TestWebhooksAreTaken: a signed webhook is durable, and a repetition is one.
func TestWebhooksAreTaken(t *testing.T) {
	t.Parallel()
	n := setupWebhooks(t, withAudit(t))
	const body = `{"action":"opened","issue":{"number":7}}`
	for i, duplicate := range []bool{false, true} {
		a := n.github("github", "d-1", body, signature(body))
		a.mustStatus(t, fmt.Sprintf("status of request %d", i), http.StatusAccepted)
		wantEqual(t, "receipt", strings.TrimSpace(a.body), fmt.Sprintf(`{"id":"d-1","source":"/webhooks/github","duplicate":%t}`, duplicate))
	}
	n.github("github", "d-1", body, "00").wantStatus(t, "status of a forged request", http.StatusUnauthorized)
	entries := n.entries("?action=event.send", []string{"X-Admin", "yes"})
	wantEqual(t, "entries of the tenant", inWords(entries), "/webhooks/github event.send accepted 202\n/webhooks/github event.send accepted 202")
}

// TestInvalidWebhooksHaveTheRateOfTheTenant: signed requests that are no events are slowed down, too.
func TestInvalidWebhooksHaveTheRateOfTheTenant(t *testing.T) {
	t.Parallel()
	n := setupWebhooks(t, quotasOf(t, "default: {subjectWritesPerSecond: 1}"))
	for i := 0; ; i++ {
		a := n.github("github", "d-1", "no JSON", signature("no JSON"))
		if a.status == http.StatusTooManyRequests {
			return
		}
		a.mustStatus(t, "signed request without an event", http.StatusBadRequest)
		if i == 100 {
			t.Fatal("100 signed requests without events and without a refusal by rate, want at most 10 and a few")
		}
	}
}

// TestForgedWebhooksLookUnknown: the answer does not tell whether a webhook exists.
func TestForgedWebhooksLookUnknown(t *testing.T) {
	t.Parallel()
	n := setupWebhooks(t)
	const body = `{"action":"opened"}`
	forged := n.github("github", "d-1", body, signature(body+" "))
	forged.wantStatus(t, "status of a bad signature", http.StatusUnauthorized)
	unknown := n.github("gitlab", "d-1", body, signature(body))
	unknown.wantStatus(t, "status of an unknown webhook", http.StatusUnauthorized)
	wantEqual(t, "answer of an unknown webhook", unknown.body, forged.body)

	large := `{"action":"` + strings.Repeat("x", events.MaxEvent) + `"}`
	for _, name := range []string{"github", "gitlab"} {
		n.github(name, "d-1", large, signature(large)).wantStatus(t, "large body to "+name, http.StatusRequestEntityTooLarge)
	}
	form := n.github("github", "d-2", "payload=%7B%7D", signature("payload=%7B%7D"))
	form.wantStatus(t, "status of a form", http.StatusBadRequest)
	wantEqual(t, "code of a form", form.problem.Code, "invalid_event")
}

// TestForgedWebhooksHaveARate: a peer without a valid signature is slowed down, and one with a signature
// is not.
func TestForgedWebhooksHaveARate(t *testing.T) {
	t.Parallel()
	n := setupWebhooks(t, quotasOf(t, "default: {unauthenticatedPerSecond: 1}"))
	const body = `{}`
	for i := 0; ; i++ {
		a := n.github("github", "d-1", body, "00")
		if a.status == http.StatusTooManyRequests {
			break
		}
		a.mustStatus(t, "forged webhook", http.StatusUnauthorized)
		if i == 100 {
			t.Fatal("100 forged webhooks without a refusal by rate, want at most 10 and a few")
		}
	}
	n.github("github", "d-1", body, signature(body)).wantStatus(t, "signed webhook", http.StatusAccepted)
}
