package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const config = `
- name: ledger
  webhook: {scheme: standard, secret: LEDGER}
- name: github
  tenant: acme
  webhook: {scheme: github, secret: GITHUB}
- name: stripe
  webhook: {scheme: stripe, secret: STRIPE}
- name: slack
  webhook: {scheme: slack, secret: SLACK}
`

// keys are the secrets of the webhooks: those of the examples of Standard Webhooks, GitHub and Slack. A
// rotation has two.
var keys = map[string]string{
	"PERDURE_SECRET_LEDGER": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	"PERDURE_SECRET_GITHUB": "the-next-key-of-the-rotation It's-a-Secret-to-Everybody",
	"PERDURE_SECRET_STRIPE": "whsec_test_5f1c2b7a9d3e4f60",
	"PERDURE_SECRET_SHORT":  "short",
	"PERDURE_SECRET_SLACK":  "8f742231b10e8888abcd99yyyzzz85a5",
}

// open returns the sources of a file.
func open(t testing.TB, text string) (*Set, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sources.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(file, func(name string) string { return keys[name] })
}

// signed is a request with a signature that openssl has made: echo -n TEXT | openssl dgst -sha256 -hmac KEY.
type signed struct {
	source string
	at     int64
	header map[string]string
	body   string
	// signature and time are the names of the headers with these.
	signature, time string
}

var requests = []signed{
	{
		source: "ledger", at: 1614265330, signature: "Webhook-Signature", time: "Webhook-Timestamp",
		header: map[string]string{
			"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "Webhook-Timestamp": "1614265330",
			"Webhook-Signature": "v1,c3RhbGU= v1,ipta+tBhZCmBY4xg1+2JwhnY6d3Y/LjIjz78lK113es=",
		},
		body: `{"type": "entry.posted", "amount": 7}`,
	},
	{
		source: "github", at: 1614265330, signature: "X-Hub-Signature-256",
		header: map[string]string{
			"X-Github-Event": "pull_request", "X-Github-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
			"X-Hub-Signature-256": "sha256=03a870e80e714bfb6d6797db07cdc96ce37a846b1cb5ff7f2d0934e41ea22a4d",
		},
		body: `{"action":"opened","number":7}`,
	},
	{
		source: "stripe", at: 1492774577, signature: "Stripe-Signature",
		header: map[string]string{"Stripe-Signature": "t=1492774577,v1=00ff,v1=adf8afe5ae98c56b4241b0f8b4a1d3c66db38bdc6d511314a86904543fbe60d8,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"},
		body:   `{"id":"evt_1","type":"charge.succeeded","data":{"object":{"id":"ch_1"}}}`,
	},
	{
		source: "slack", at: 1531420618, signature: "X-Slack-Signature", time: "X-Slack-Request-Timestamp",
		header: map[string]string{"X-Slack-Request-Timestamp": "1531420618", "X-Slack-Signature": "v0=6c692954f87fe39880e2239057200b89a135a84fe27db2745c1ed56c2ca27c28"},
		body:   `{"type":"event_callback","event_id":"Ev08","event":{"type":"app_mention","text":"hi"}}`,
	},
}

// send receives a request after a change.
func (r signed) send(set *Set, change func(*http.Header, *string, *time.Time)) (*Message, error) {
	header, body, now := http.Header{}, r.body, time.Unix(r.at, 0).Add(tolerance)
	for name, value := range r.header {
		header.Set(name, value)
	}
	if change != nil {
		change(&header, &body, &now)
	}
	return set.receive(r.source, header, []byte(body), now)
}

func TestWebhooksBecomeEvents(t *testing.T) {
	t.Parallel()
	set, err := open(t, config)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ tenant, id, kind string }{
		"ledger": {"default", "msg_p5jXN8AQM9LWM0D4loKWxJek", "ledger.entry.posted"},
		"github": {"acme", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "github.pull_request.opened"},
		"stripe": {"default", "evt_1", "stripe.charge.succeeded"},
		"slack":  {"default", "Ev08", "slack.app_mention"},
	}
	for _, r := range requests {
		m, err := r.send(set, nil)
		if err != nil {
			t.Errorf("%s: %v", r.source, err)
			continue
		}
		w, e := want[r.source], m.Event
		if e.Tenant != w.tenant || m.Tenant != w.tenant || e.ID != w.id || e.Type != w.kind || e.Source != "/webhooks/"+r.source || string(e.Data) != r.body {
			t.Errorf("%s: event = %+v of %s, want %+v with the body", r.source, e.Content, e.Tenant, w)
		}
	}
}

// TestForgedWebhooksAreRefused: each change of a signed request makes it one that nobody has signed.
func TestForgedWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	set, err := open(t, config)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		changes := map[string]func(*http.Header, *string, *time.Time){
			"other body":   func(_ *http.Header, body *string, _ *time.Time) { *body += " " },
			"no signature": func(h *http.Header, _ *string, _ *time.Time) { h.Del(r.signature) },
			"no headers":   func(h *http.Header, _ *string, _ *time.Time) { *h = http.Header{} },
			"bad signature": func(h *http.Header, _ *string, _ *time.Time) {
				value := h.Get(r.signature)
				at := strings.LastIndex(strings.TrimSuffix(value, ",v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"), "=")
				if r.source == "ledger" {
					at = strings.LastIndex(value, ",")
				}
				h.Set(r.signature, value[:at+1]+strings.Repeat("0", 64))
			},
			"empty signature": func(h *http.Header, _ *string, _ *time.Time) { h.Set(r.signature, "sha256=") },
		}
		if r.source != "github" { // which signs no time
			changes["old"] = func(_ *http.Header, _ *string, now *time.Time) { *now = now.Add(time.Second) }
			changes["of the future"] = func(_ *http.Header, _ *string, now *time.Time) { *now = now.Add(-2*tolerance - time.Second) }
		}
		if r.time != "" {
			changes["no time"] = func(h *http.Header, _ *string, _ *time.Time) { h.Del(r.time) }
			changes["other time"] = func(h *http.Header, _ *string, _ *time.Time) { h.Set(r.time, h.Get(r.time)[:9]+"9") }
		}
		for name, change := range changes {
			if m, err := r.send(set, change); !errors.Is(err, ErrUnverified) {
				t.Errorf("%s, %s: got %+v, %v, want ErrUnverified", r.source, name, m, err)
			}
		}
		other := r
		other.source = "unknown"
		if _, err := other.send(set, nil); !errors.Is(err, ErrUnverified) {
			t.Errorf("%s to an unknown webhook: got %v, want ErrUnverified", r.source, err)
		}
	}
	if _, err := (*Set)(nil).Receive("github", http.Header{}, nil); !errors.Is(err, ErrUnverified) {
		t.Errorf("without sources: got %v, want ErrUnverified", err)
	}
}

// TestPublishedVectors: the examples in the documentation of GitHub and of Slack, whose bodies are not
// JSON.
func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	github := http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}}
	if err := verifyGitHub("It's a Secret to Everybody", github, []byte("Hello, World!"), time.Time{}); err != nil {
		t.Errorf("github: %v", err)
	}
	slack := http.Header{
		"X-Slack-Request-Timestamp": {"1531420618"},
		"X-Slack-Signature":         {"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
	}
	const body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	if err := verifySlack("8f742231b10e8888abcd99yyyzzz85a5", slack, []byte(body), time.Unix(1531420618, 0)); err != nil {
		t.Errorf("slack: %v", err)
	}
}

// hexOf returns the HMAC-SHA256 of a text, in hex.
func hexOf(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// sign returns a request of GitHub with a valid signature.
func sign(body string) http.Header {
	return http.Header{"X-Hub-Signature-256": {"sha256=" + hexOf("It's-a-Secret-to-Everybody", body)}}
}

// TestEventWithoutNames: an event without an ID has the digest of its body, and one without a type the
// name of its source. Requests that are no events are refused.
func TestEventWithoutNames(t *testing.T) {
	t.Parallel()
	set, err := open(t, config)
	if err != nil {
		t.Fatal(err)
	}
	m, err := set.Receive("github", sign(`{"action":7}`), []byte(`{"action":7}`))
	if err != nil {
		t.Fatal(err)
	}
	const digest = "5f316f38374c417a9aba95d8e70066d2d43b4ea878632a10bf7ba75242737b0b"
	if m.Event.ID != digest || m.Event.Type != "github" {
		t.Errorf("event = %+v, want the digest of the body and the type github", m.Event.Content)
	}
	again, err := set.Receive("github", sign(`{"action":7}`), []byte(`{"action":7}`))
	if err != nil || again.Event.ID != m.Event.ID {
		t.Errorf("ID of the same body = %v, %v, want %s", again, err, m.Event.ID)
	}
	other, err := set.Receive("github", sign(`{"action":8}`), []byte(`{"action":8}`))
	if err != nil || other.Event.ID == m.Event.ID {
		t.Errorf("ID of another body = %v, %v, want another", other, err)
	}
	for _, body := range []string{`payload=%7B%7D`, ``, `{"action":"` + strings.Repeat("x", 300) + `"}`} {
		header := sign(body)
		header.Set("X-GitHub-Event", "push")
		if _, err := set.Receive("github", header, []byte(body)); !errors.As(err, new(*ContentError)) {
			t.Errorf("body %.20q: got %v, want a ContentError", body, err)
		}
	}
}

// TestDeepWebhook: JSON that is nested too deep is refused with this reason, and text that is no JSON with
// another one.
func TestDeepWebhook(t *testing.T) {
	t.Parallel()
	set, err := open(t, config)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		strings.Repeat("[", 512) + strings.Repeat("]", 512):     "",
		strings.Repeat("[", 513) + strings.Repeat("]", 513):     "is nested deeper than 512 levels, the maximum of an event",
		strings.Repeat("[", 10001) + strings.Repeat("]", 10001): "is nested deeper than 512 levels, the maximum of an event",
		"payload=%7B%7D": "must be JSON: if the provider offers several content types, choose application/json",
	} {
		var reason string
		if _, err := set.Receive("github", sign(body), []byte(body)); err != nil {
			reason = err.Error()
		}
		if reason != want {
			t.Errorf("body of %d bytes: got %q, want %q", len(body), reason, want)
		}
		s := &Source{Name: "orders", Tenant: "acme", NATS: &Subject{Subject: "orders.>"}}
		if _, err := s.event(delivery{subject: "orders.new", data: []byte(body)}); strings.Contains(want, "nested") && (err == nil || err.Error() != want) {
			t.Errorf("message of %d bytes: got %v, want %q", len(body), err, want)
		}
	}
}

// TestSlackChallenge: the challenge of Slack is no event, and needs a signature.
func TestSlackChallenge(t *testing.T) {
	t.Parallel()
	set, err := open(t, config)
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}`
	now := time.Unix(1531420618, 0)
	header := http.Header{"X-Slack-Request-Timestamp": {"1531420618"}, "X-Slack-Signature": {"v0=" + hexOf(keys["PERDURE_SECRET_SLACK"], "v0:1531420618:"+body)}}
	m, err := set.receive("slack", header, []byte(body), now)
	if err != nil || m.Event != nil || !strings.HasPrefix(m.Challenge, "3eZbrw1aBm2r") {
		t.Errorf("message = %+v, %v, want the challenge", m, err)
	}
	if _, err := set.receive("slack", http.Header{}, []byte(body), now); !errors.Is(err, ErrUnverified) {
		t.Errorf("without a signature: got %v, want ErrUnverified", err)
	}
}

func TestMistakesOfFiles(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{`- {name: GitHub, webhook: {scheme: github, secret: GITHUB}}`, `source 1 ("GitHub"): name must be a-z`},
		{"- {name: a, webhook: {scheme: github, secret: GITHUB}}\n- {name: a, webhook: {scheme: github, secret: GITHUB}}", `source 2 ("a"): name is already`},
		{`- {name: a}`, `source 1 ("a"): needs webhook or nats`},
		{`- {name: a, tenant: "\u0001", webhook: {scheme: github, secret: GITHUB}}`, `source 1 ("a"): tenant is not valid`},
		{`- {name: a, webhook: {scheme: gitlab, secret: GITHUB}}`, `webhook.scheme must be standard, github, stripe or slack, not "gitlab"`},
		{`- {name: a, webhook: {scheme: github, secret: "${secret:GITHUB}"}}`, `webhook.secret must be the name of a secret`},
		{`- {name: a, webhook: {scheme: github, secret: MISSING}}`, `the secret PERDURE_SECRET_MISSING is missing`},
		{`- {name: a, webhook: {scheme: github, secret: SHORT}}`, `the secret PERDURE_SECRET_SHORT must have at least 16 bytes`},
		{`- {name: a, webhook: {scheme: standard, secret: GITHUB}}`, `the secret PERDURE_SECRET_GITHUB must be base64 of 24 to 64 bytes`},
		{`- {name: a, nats: {subject: ">"}}`, "nats.subject must begin with a name"},
		{`- {name: a, nats: {subject: "perdure_events.>"}}`, "nats.subject must not be one of Perdure"},
		{`- {name: a, nats: {subject: "a..b"}}`, "nats.subject must be a subject of NATS"},
		{`- {name: a, nats: {subject: "a.>.b"}}`, "nats.subject must be a subject of NATS"},
		{`- {name: a, nats: {subject: orders, stream: a.b}}`, "nats.stream must be the name of a stream"},
		{`- {name: a, nats: {subject: orders}, webhook: {scheme: github, secret: GITHUB}}`, "needs webhook or nats, and not both"},
		{`- {name: a, url: x}`, "field url not found"},
	}
	for _, tt := range tests {
		_, err := open(t, tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "sources.yaml: ") {
			t.Errorf("%s: got %v, want the file and %q", tt.text, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "Everybody") {
			t.Errorf("%s: the error %v has a secret", tt.text, err)
		}
	}
	_, err := open(t, "- {name: A, webhook: {scheme: x, secret: y}}\n- {name: B, webhook: {scheme: x, secret: y}}")
	if lines := strings.Count(err.Error(), "\n") + 1; lines != 6 {
		t.Errorf("mistakes = %d, want all 6: %v", lines, err)
	}
}

// FuzzReceive: no request with a signature of another key is a message, and one with a valid signature is
// an event with JSON, or refused.
func FuzzReceive(f *testing.F) {
	set, err := open(f, config)
	if err != nil {
		f.Fatal(err)
	}
	others := &Set{sources: set.sources, lookup: func(string) string { return "bm9ib2R5IGhhcyBzaWduZWQgd2l0aCB0aGlzIGtleQ==" }}
	for _, r := range requests {
		f.Add(r.source, r.header[r.signature], "1531420618", r.body)
	}
	f.Fuzz(func(t *testing.T, name, signature, at, body string) {
		header := http.Header{
			"X-Hub-Signature-256": {signature}, "Stripe-Signature": {signature}, "X-Slack-Signature": {signature}, "Webhook-Signature": {signature},
			"X-Slack-Request-Timestamp": {at}, "Webhook-Timestamp": {at}, "Webhook-Id": {at},
		}
		if m, err := others.receive(name, header, []byte(body), time.Unix(1531420618, 0)); !errors.Is(err, ErrUnverified) {
			t.Errorf("got %+v, %v, want ErrUnverified", m, err)
		}
		for _, source := range set.sources {
			in := request{header, membersOf([]byte(body))}
			e, err := eventOf(&source, in, []byte(body))
			if err == nil && (e.ID == "" || e.Type == "" || e.Source == "") {
				t.Errorf("event = %+v, want all attributes", e)
			}
			_ = slackChallenge(in)
		}
		m, err := set.Receive("github", sign(body), []byte(body))
		if err == nil && !json.Valid(m.Event.Data) || err != nil && !errors.As(err, new(*ContentError)) {
			t.Errorf("signed: got %+v, %v", m, err)
		}
	})
}
