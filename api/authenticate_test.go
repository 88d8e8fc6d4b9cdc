package api_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/apikey"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// authenticatorFunc is an Authenticator that a test defines.
type authenticatorFunc func(r *http.Request) (auth.Identity, error)

func (f authenticatorFunc) Authenticate(r *http.Request) (auth.Identity, error) { return f(r) }

func TestRefusedCallers(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-reason"
	for _, tt := range []struct {
		err           error
		wantStatus    int
		wantCode      string
		wantChallenge string
		wantLevel     string
	}{
		{auth.ErrNoCredentials, 401, "unauthenticated", `Bearer realm="perdure"`, "DEBUG"},
		{auth.ErrExpired, 401, "unauthenticated", `Bearer realm="perdure", error="invalid_token"`, "DEBUG"},
		{auth.ErrInvalid, 401, "unauthenticated", `Bearer realm="perdure", error="invalid_token"`, "WARN"},
		{auth.ErrUntrusted, 403, "forbidden", "", "WARN"},
		{auth.ErrUnavailable, 503, "auth_unavailable", "", "ERROR"},
	} {
		log := &logBuffer{}
		node := setup(t, func(c *api.Config) {
			c.Auth = authenticatorFunc(func(*http.Request) (auth.Identity, error) {
				return auth.Identity{}, fmt.Errorf("%w: %s", tt.err, secret)
			})
			c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		a := node.do(http.MethodGet, "/v1/agents", "", "Authorization", "Bearer t0ken")
		a.wantStatus(t, fmt.Sprintf("%v: status", tt.err), tt.wantStatus)
		wantEqual(t, fmt.Sprintf("%v: problem code", tt.err), a.problem.Code, tt.wantCode)
		wantEqual(t, fmt.Sprintf("%v: header WWW-Authenticate", tt.err), a.header.Get("WWW-Authenticate"), tt.wantChallenge)
		if strings.Contains(a.body, secret) {
			t.Errorf("%v: body = %q, want no %q", tt.err, a.body, secret)
		}
		wantEqual(t, fmt.Sprintf("%v: answer has Retry-After", tt.err), a.header.Get("Retry-After") != "", tt.wantStatus == 503)
		text := log.String()
		wantEqual(t, fmt.Sprintf("log of %v: occurrences of the reason", tt.err), strings.Count(text, secret), 1)
		if !strings.Contains(text, "level="+tt.wantLevel) {
			t.Errorf("log of %v = %q, want text with %q", tt.err, text, "level="+tt.wantLevel)
		}
		if strings.Contains(text, "t0ken") {
			t.Errorf("log of %v = %q, want no %q", tt.err, text, "t0ken")
		}
	}
}

// TestRefusalNamesSetting: a request that is refused for its origin, host or address gets the
// name of the setting that would allow it, and not the setting's value.
func TestRefusalNamesSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		auth        auth.Authenticator
		host        string
		wantSetting string
	}{
		{&auth.HostCheck{Callers: &auth.Anonymous{}}, "pages.example:8080", "PERDURE_HOSTS"},
		{&auth.Proxy{Trusted: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24")}}, "", "PERDURE_AUTH_PROXIES"},
	} {
		node := setup(t, func(c *api.Config) { c.Auth = tt.auth })
		req, err := http.NewRequestWithContext(node.ctx(), http.MethodGet, node.http.URL+"/v1/agents", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		resp, err := node.http.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatalf("%s: %v", tt.wantSetting, err)
		}
		wantEqual(t, tt.wantSetting+": status", resp.StatusCode, http.StatusForbidden)
		if !strings.Contains(string(body), tt.wantSetting) {
			t.Errorf("%s: body = %q, want text with %q", tt.wantSetting, string(body), tt.wantSetting)
		}
		if strings.Contains(string(body), "10.1.2") {
			t.Errorf("%s: body = %q, want no %q", tt.wantSetting, string(body), "10.1.2")
		}
	}
	node := setup(t)
	a := node.do(http.MethodPost, "/v1/agents/a/runs", "{}", "Origin", "https://pages.example")
	a.wantStatus(t, "an origin", http.StatusForbidden)
	if !strings.Contains(a.problem.Detail, "PERDURE_CORS_ORIGINS") {
		t.Errorf("problem detail = %q, want text with %q", a.problem.Detail, "PERDURE_CORS_ORIGINS")
	}
	if !strings.Contains(a.problem.Detail, "https://pages.example") {
		t.Errorf("problem detail = %q, want text with %q", a.problem.Detail, "https://pages.example")
	}
}

// logBuffer is a log that is safe for concurrent use.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *logBuffer) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *logBuffer) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func TestOnlyAdministratorsPublishAgents(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Auth = byHeader })
	const definition = "name: b\nmodel: test/m\n"
	for _, roles := range []string{"", "admin", "Perdure-Platform-Admin", policy.DefaultRoles.TenantAdmin, "perdure,platform-admin"} {
		if a := node.do(http.MethodPut, "/v1/agents/b", definition, append([]string{"X-Roles", roles}, alpha...)...); a.status != http.StatusForbidden || a.problem.Code != "forbidden" {
			t.Errorf("publication with the roles %q: got %d %s, want %d forbidden", roles, a.status, a.body, http.StatusForbidden)
		}
	}
	if a := node.do(http.MethodGet, "/v1/agents/b", "", alpha...); a.status != http.StatusNotFound {
		t.Errorf("the refused agent: got %d %s, want 404", a.status, a.body)
	}
	if a := node.do(http.MethodPut, "/v1/agents/b", definition, append([]string{"X-Roles", "x, " + policy.DefaultRoles.PlatformAdmin}, alpha...)...); a.status != http.StatusCreated {
		t.Errorf("status = %v, want %v; body: %s", a.status, http.StatusCreated, a.body)
	}
}

// TestCrossOriginRequestsChangeNothing: a page of another origin may make a browser send requests:
// to a server on this machine, or with the user's credentials of a proxy. Requests that change
// something are refused.
func TestCrossOriginRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	for _, tt := range []struct {
		header     []string
		wantStatus int
	}{
		{[]string{"Origin", "https://pages.example"}, http.StatusForbidden},
		{[]string{"Origin", "null"}, http.StatusForbidden},
		{[]string{"Origin", "https://pages.example", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{[]string{"Origin", node.http.URL}, http.StatusOK},
		{[]string{"Origin", "https://shop.example", "Sec-Fetch-Site", "same-origin"}, http.StatusOK},
		{nil, http.StatusOK},
	} {
		a := node.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", "hello")), tt.header...)
		a.wantStatus(t, fmt.Sprintf("%q: status", tt.header), tt.wantStatus)
		if a.status == http.StatusForbidden && a.problem.Code != "origin_not_allowed" {
			t.Errorf("origin %q: got %d %s, want the code origin_not_allowed", tt.header, a.status, a.body)
		}
	}
	if a := node.do(http.MethodGet, "/v1/agents", "", "Origin", "https://pages.example"); a.status != http.StatusOK || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("GET from another origin: got %d %v, want 200 without access for the page", a.status, a.header)
	}
}

// TestBodyOfForeignPageNeedsType: a page of another origin can send a body without a Content-Type with
// the user's cookies of a proxy, and without a preflight request. It is refused, also from an allowed
// origin. Programs may leave the type out.
func TestBodyOfForeignPageNeedsType(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) {
		c.Auth = &auth.Proxy{Headers: auth.Headers{Subject: "X-User"}, Trusted: byHeader.Trusted}
		c.Origins = []string{"*"}
	})
	node.completeRuns()
	const user = "X-User"
	for _, tt := range []struct {
		header     []string
		wantStatus int
	}{
		{[]string{user, "ann", "Origin", "https://pages.example", "Sec-Fetch-Site", "cross-site", "Content-Type", ""}, http.StatusUnsupportedMediaType},
		{[]string{user, "ann", "Origin", "https://pages.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		{[]string{user, "ann", "Origin", "https://pages.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "application/json"}, http.StatusOK},
		{[]string{user, "ann", "Origin", node.http.URL, "Content-Type", ""}, http.StatusOK},
		{[]string{user, "ann", "Content-Type", ""}, http.StatusOK},
	} {
		a := node.do(http.MethodPost, runsPath, encodeInput(t, inputOf("r1", "hello")), tt.header...)
		a.wantStatus(t, fmt.Sprintf("%q: status", tt.header), tt.wantStatus)
	}
}

// TestPreflightNeedsNoCredentials: browsers send a preflight request without credentials.
func TestPreflightNeedsNoCredentials(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Auth, c.Origins = byHeader, []string{"https://app.example"} })
	a := node.do(http.MethodOptions, "/v1/agents/a/runs", "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
	a.wantStatus(t, "status", http.StatusNoContent)
	wantEqual(t, "header Access-Control-Allow-Origin", a.header.Get("Access-Control-Allow-Origin"), "https://app.example")
	if !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("header Access-Control-Allow-Headers = %q, want text with %q", a.header.Get("Access-Control-Allow-Headers"), "Authorization")
	}
	refused := node.do(http.MethodPost, "/v1/agents/a/runs", "", "Origin", "https://app.example")
	if refused.status != http.StatusUnauthorized || refused.header.Get("Access-Control-Allow-Origin") == "" || !strings.Contains(refused.header.Get("Access-Control-Expose-Headers"), "Www-Authenticate") {
		t.Errorf("refusal shown to the page: got %d %v, want 401 with its headers", refused.status, refused.header)
	}
}

func TestSocketTokenInSubprotocol(t *testing.T) {
	t.Parallel()
	const key = "correct-horse-battery-staple"
	file := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(file, []byte("keys: [{key: "+key+", subject: ann, tenant: shop}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := apikey.New(file)
	if _, err := keys.Load(); err != nil {
		t.Fatal(err)
	}
	node := setup(t, func(c *api.Config) { c.Auth = keys })
	for _, tt := range []struct {
		header, value, wantProtocol string
	}{
		{"Authorization", "Bearer " + key, ""},
		{"Sec-WebSocket-Protocol", "ag-ui.perdure.v1, bearer." + key, "ag-ui.perdure.v1"},
		{"Sec-WebSocket-Protocol", "bearer." + key + ", ag-ui.perdure.v1", "ag-ui.perdure.v1"},
	} {
		c := node.dial(tt.header, tt.value)
		wantEqual(t, tt.value+": subprotocol", c.conn.Subprotocol(), tt.wantProtocol)
		c.ping("p")
		c.disconnect()
	}
	for _, header := range []http.Header{
		{}, {"Sec-Websocket-Protocol": {"ag-ui.perdure.v1, bearer.wrong-horse-battery-staple"}}, {"Sec-Websocket-Protocol": {"bearer"}}, {"Authorization": {key}},
	} {
		_, resp, err := websocket.DefaultDialer.DialContext(node.ctx(), wsURL(node.http.URL)+"?access_token="+key, header)
		if err == nil {
			t.Fatalf("%v: error of the dial = nil, want an error", header)
		}
		wantEqual(t, fmt.Sprintf("%v: status", header), resp.StatusCode, http.StatusUnauthorized)
		if resp.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%v: header WWW-Authenticate is empty, want a value", header)
		}
	}
}

// TestLogHasRequester: the log has an input with its requester. Events do not show the
// requester.
func TestLogHasRequester(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Auth = byHeader })
	node.completeRuns()
	a := node.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", "hello")), append([]string{"X-Roles", "finance,clerk"}, alpha...)...)
	a.mustStatus(t, "status", http.StatusOK)
	if strings.Contains(a.body, "ann") {
		t.Errorf("body = %q, want no %q", a.body, "ann")
	}
	if strings.Contains(a.body, "finance") {
		t.Errorf("body = %q, want no %q", a.body, "finance")
	}
	in, err := node.log.Input(node.ctx(), node.temporal.starts[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&auth.Principal{Tenant: "alpha", Subject: "ann", Roles: []string{"finance", "clerk"}}); !gocmp.Equal(in.Requester, want) {
		t.Errorf("requester: got %+v, want %+v", in.Requester, want)
	}
	if again := node.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", "hello")), "X-Tenant", "alpha", "X-User", "carl", "X-Roles", policy.DefaultRoles.TenantAdmin); again.body != a.body {
		t.Errorf("the same input of an administrator: got %d %s, want the same run", again.status, again.body)
	}
}

func TestDecisionsNameSubject(t *testing.T) {
	t.Parallel()
	fixture := setupTenants(t)
	var decisions []runs.Decision
	fixture.temporal.start = func(runs.Input) error { return alreadyStarted("e1") }
	fixture.reached.submit = func(in runs.SubmitRequest) { decisions = append(decisions, in.Decisions...) }
	input := inputOf("r2", "")
	input.Messages = nil
	input.Resume = []agui.ResumeEntry{{InterruptID: question, Status: agui.ResumeResolved, Payload: []byte(`{"approved":true}`)}}
	// decideTwice sends a decision with an input and with the decision route.
	decideTwice := func(header ...string) runs.Decision {
		decisions = nil
		fixture.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, input), header...)
		fixture.do(http.MethodPost, "/v1/threads/t/approvals/"+question, `{"decision":"approve"}`, header...)
		slices.SortFunc(decisions, func(a, b runs.Decision) int { return cmp.Compare(a.Proposal, b.Proposal) })
		if decisions = slices.Compact(decisions); len(decisions) != 1 {
			t.Fatalf("decisions of %q: got %+v, want 1", header, decisions)
		}
		return decisions[0]
	}
	decisionOfAnn := decideTwice(alpha...)
	content, err := fixture.log.Decision(fixture.ctx(), decisionOfAnn.Proposal)
	if err != nil {
		t.Fatal(err)
	}
	want := &stream.Decision{CallID: "c1", Kind: "approve", By: &auth.Principal{Tenant: "alpha", Subject: "ann"}, Channel: "input"}
	if diff := gocmp.Diff(want, content); diff != "" {
		t.Errorf("decision in the log (-want +got):\n%s", diff)
	}
	if again := decideTwice(append([]string{"X-Roles", "boss"}, alpha...)...); again != decisionOfAnn {
		t.Errorf("decision of ann: got %+v, and with another role %+v, want the same", decisionOfAnn, again)
	}
	if decisionOfCarl := decideTwice("X-Tenant", "alpha", "X-User", "carl", "X-Roles", policy.DefaultRoles.TenantAdmin); decisionOfCarl.Digest == decisionOfAnn.Digest || decisionOfCarl.By == decisionOfAnn.By || decisionOfCarl.By == "" || decisionOfCarl.Proposal == decisionOfAnn.Proposal {
		t.Errorf("decision of ann: got %+v, and of carl %+v, want different ones", decisionOfAnn, decisionOfCarl)
	}
}
