package webhook_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/internal/transport/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// lookup returns the secrets of the hooks.
func lookup(name string) string {
	return map[string]string{"HOOK": secret, "SHORT": "whsec_YWJj", "TEXT": "no base64!"}[name]
}

// load loads hooks from a text.
func load(t *testing.T, text string) ([]webhook.Hook, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hooks.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return webhook.Load(file, lookup)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	hooks, err := load(t, `
- name: chat
  url: https://chat.example/perdure
  events: [opened, reminded]
  agents: [support]
  secret: HOOK
- {name: all, url: "https://other.example", secret: HOOK}
`)
	if err != nil || len(hooks) != 2 {
		t.Fatalf("Load = %v, %v, want two hooks", hooks, err)
	}
	for _, want := range []struct {
		event     inbox.EventType
		agent     string
		wantHooks [2]bool
	}{
		{inbox.Opened, "support", [2]bool{true, true}}, {inbox.Decided, "support", [2]bool{false, true}}, {inbox.Opened, "sales", [2]bool{false, true}},
	} {
		for i, h := range hooks {
			if h.Wants(want.event, "default", want.agent) != want.wantHooks[i] {
				t.Errorf("%s wants %s of %s: %v", h.Name, want.event, want.agent, !want.wantHooks[i])
			}
		}
	}
	if none, err := load(t, "# nothing yet\n"); err != nil || len(none) != 0 {
		t.Errorf("Load of an empty file = %v, %v, want no hooks", none, err)
	}
}

func TestLoadReportsMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"- {name: A, url: 'https://x', secret: HOOK}":                                              "name must be",
		"- {name: a, url: 'https://x', secret: HOOK}\n- {name: a, url: 'https://y', secret: HOOK}": "already the name of another webhook",
		"- {name: a, url: 'http://x', secret: HOOK}":                                               "url must begin with https",
		"- {name: a, url: 'ftp://x', secret: HOOK}":                                                "url must be",
		"- {name: a, url: 'https://u:p@x', secret: HOOK}":                                          "url must be",
		"- {name: a, url: 'https://x', secret: HOOK, events: [closed]}":                            `"closed" is not one of`,
		"- {name: a, url: 'https://x', secret: hook}":                                              "secret must be the name of a secret",
		"- {name: a, url: 'https://x', secret: GONE}":                                              "PERDURE_SECRET_GONE is missing",
		"- {name: a, url: 'https://x', secret: SHORT}":                                             "24 to 64 bytes",
		"- {name: a, url: 'https://x', secret: TEXT}":                                              "24 to 64 bytes",
		"- {name: a, uri: 'https://x', secret: HOOK}":                                              "uri",
		"name: a": "cannot unmarshal",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "hooks.yaml") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := webhook.Load("nowhere.yaml", lookup); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of a missing file: got %v, want %v", err, os.ErrNotExist)
	}
}

// receiver is a server with configurable answers that keeps the last request.
type receiver struct {
	*httptest.Server
	header http.Header
	body   []byte
}

// receive starts a receiver that answers with a status.
func receive(t *testing.T, status int, header ...string) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.header = req.Header
		r.body, _ = io.ReadAll(req.Body)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	}))
	t.Cleanup(r.Close)
	return r
}

// sender returns a sender for the hook at a URL.
func sender(t *testing.T, url string, private bool) *webhook.Sender {
	t.Helper()
	s := webhook.NewSender([]webhook.Hook{{Name: "a", URL: url, Secret: "HOOK"}}, lookup, egress.PolicyFor(private))
	t.Cleanup(s.Close)
	return s
}

// TestMessagesAreSigned: the library of the Standard Webhooks specification accepts a message, and
// rejects it after any change.
func TestMessagesAreSigned(t *testing.T) {
	t.Parallel()
	r := receive(t, http.StatusNoContent)
	if _, err := sender(t, r.URL, true).Send(t.Context(), "a", "evt_1", []byte(`{"type":"approval.opened"}`)); err != nil {
		t.Fatal(err)
	}
	checker, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := checker.Verify(r.body, r.header); err != nil || r.header.Get("webhook-id") != "evt_1" || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("Verify = %v with the headers %v, want the event evt_1 as JSON", err, r.header)
	}
	if err := checker.Verify([]byte(`{"type":"approval.decided"}`), r.header); err == nil {
		t.Error("Verify of a changed message: got no error, want one")
	}
}

// TestTraceContext: a message carries the trace context and no baggage.
func TestTraceContext(t *testing.T) { //nolint:paralleltest // sets the process's propagator
	before := otel.GetTextMapPropagator()
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	otel.SetTextMapPropagator(both)
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := both.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent, "baggage": "user=eve"})
	r := receive(t, http.StatusNoContent)
	if _, err := sender(t, r.URL, true).Send(ctx, "a", "evt_1", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if r.header.Get("Traceparent") != parent || r.header.Get("Baggage") != "" {
		t.Errorf("headers = %v, want the trace without baggage", r.header)
	}
}

// TestSignatureOfSpecification: the example of the specification gets the signature that the
// specification states.
func TestSignatureOfSpecification(t *testing.T) {
	t.Parallel()
	signer, err := standardwebhooks.NewWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got, err := signer.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]*webhook.RefusedError{
		200: nil, 202: nil, 410: nil,
		301: {Status: 301, Final: true}, 400: {Status: 400, Final: true}, 404: {Status: 404, Final: true},
		408: {Status: 408}, 425: {Status: 425}, 429: {Status: 429, After: 7 * time.Second}, 500: {Status: 500}, 503: {Status: 503, After: 7 * time.Second},
	} {
		header := []string{"Location", "http://127.0.0.1:1/"}
		if want != nil && want.After > 0 {
			header = append(header, "Retry-After", "7")
		}
		r := receive(t, status, header...)
		got, err := sender(t, r.URL, true).Send(t.Context(), "a", "evt_1", []byte("{}"))
		if want == nil {
			if err != nil || got != status {
				t.Errorf("status = %v (%v), want %d", got, err, status)
			}
			continue
		}
		var refused *webhook.RefusedError
		if !errors.As(err, &refused) || refused.Status != want.Status || refused.Final != want.Final || refused.After != want.After {
			t.Errorf("%d: %+v, want %+v", status, refused, want)
		}
	}
}

func TestUnreachableReceivers(t *testing.T) {
	t.Parallel()
	r := receive(t, http.StatusOK)
	_, err := sender(t, r.URL, false).Send(t.Context(), "a", "evt_1", nil)
	if refused := (*webhook.RefusedError)(nil); !errors.As(err, &refused) || !refused.Final || r.header != nil {
		t.Errorf("hook on a private network: got %v, want a final refusal without a request", err)
	}
	r.Close()
	_, err = sender(t, r.URL, true).Send(t.Context(), "a", "evt_1", nil)
	if refused := (*webhook.RefusedError)(nil); !errors.As(err, &refused) || refused.Final {
		t.Errorf("hook that is away: got %v, want a refusal that is not final", err)
	}
	_, err = sender(t, r.URL, true).Send(t.Context(), "b", "evt_1", nil)
	if refused := (*webhook.RefusedError)(nil); !errors.As(err, &refused) || refused.Final {
		t.Errorf("unknown hook: got %v, want a refusal that is not final", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = sender(t, r.URL, true).Send(ctx, "a", "evt_1", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled delivery: got %v, want %v", err, context.Canceled)
	}
}

// TestHooksReceiveOnlyTheirTenants: a hook receives the events of the tenants that it names, and only
// those of the default tenant if it names none.
func TestHooksReceiveOnlyTheirTenants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tenants []string
		want    map[string]bool
	}{
		{nil, map[string]bool{"default": true, "acme": false}},
		{[]string{"acme"}, map[string]bool{"default": false, "acme": true, "other": false}},
		{[]string{"*"}, map[string]bool{"default": true, "acme": true}},
	} {
		for tenant, want := range tt.want {
			if got := (webhook.Hook{Tenants: tt.tenants}).Wants("opened", tenant, "a"); got != want {
				t.Errorf("a hook of %q wants events of %s: %v, want %v", tt.tenants, tenant, got, want)
			}
		}
	}
}
