package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// webhookKey is the key of the webhook of the test.
const webhookKey = "a-key-that-only-github-has"

// triage is an agent that a webhook of GitHub starts.
const triage = `
name: triage
model: openai/mock
triggers:
  - event: github.issues.opened
    match: {repository.name: shop}
    thread: issue-${event.data.issue.number}
    input: Issue ${event.data.issue.number} of ${event.source}
steps:
  - name: note
    set: [{path: /seen, value: "${messages.map(m, m.content)}"}]
`

// sendWebhook sends a webhook of GitHub about an issue, and returns the status of the answer.
func sendWebhook(t *testing.T, p *kit.Endpoint, key, body string) int {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL("/webhooks/github"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "issues")
	req.Header.Set("X-GitHub-Delivery", "72d3162e")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // only the status counts
	return resp.StatusCode
}

// TestWebhookTriggersRun: a webhook of GitHub starts one run, also if GitHub sends it again. A forged one
// starts none.
func TestWebhookTriggersRun(t *testing.T) {
	t.Parallel()
	p := setupSources(t, triage, "- {name: github, webhook: {scheme: github, secret: GITHUB}}\n", "PERDURE_SECRET_GITHUB="+webhookKey)
	const body = `{"action":"opened","issue":{"number":7},"repository":{"name":"shop"}}`
	forged := strings.Replace(body, "7", "8", 1)
	if status := sendWebhook(t, p.Endpoint, "another-key-of-a-forger", forged); status != http.StatusUnauthorized {
		t.Errorf("forged webhook: got %d, want 401", status)
	}
	for range 2 {
		if status := sendWebhook(t, p.Endpoint, webhookKey, body); status != http.StatusAccepted {
			t.Fatalf("webhook: got %d, want 202", status)
		}
	}
	in := kit.NewInput("read")
	in.ThreadID = "issue-7"
	awaitThread(t, p.Endpoint, in.ThreadID)
	f := p.NewFollower(t, in)
	f.AttachPath = "/v1/threads/" + in.ThreadID + "/events"
	f.UntilSuccess(t)
	messages := p.MessagesOf(t, in.ThreadID)
	if want := "Issue 7 of /webhooks/github"; len(messages) != 1 || messages[0].Content != want {
		t.Errorf("messages = %+v, want one: %q", messages, want)
	}
	var page struct{ Items []struct{ ThreadID string } }
	p.GetJSON(t, "/v1/threads", &page)
	if len(page.Items) != 1 {
		t.Errorf("threads = %+v, want one", page.Items)
	}
}

// setupSources starts a process with agents, sources of events, and further variables.
func setupSources(t *testing.T, agents, sources string, env ...string) *kit.Perdure {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	file := filepath.Join(t.TempDir(), "sources.yaml")
	for name, content := range map[string]string{filepath.Join(p.Agents, "all.yaml"): agents, file: sources} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Env = append(env, "PERDURE_EVENT_SOURCES="+file)
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}
