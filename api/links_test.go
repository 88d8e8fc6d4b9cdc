package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// link creates a link and returns its path.
func (f *inboxFixture) link(thread, id, body string) string {
	f.t.Helper()
	a := f.do(http.MethodPost, "/v1/threads/"+thread+"/approvals/"+id+"/links", body)
	var made struct {
		URL       string
		ExpiresAt time.Time
	}
	err := json.Unmarshal([]byte(a.body), &made)
	if err != nil {
		f.t.Fatal(err)
	}
	a.mustStatus(f.t, "status", http.StatusCreated)
	mustEqual(f.t, "link expires in the future", made.ExpiresAt.After(time.Now()), true)
	mustEqual(f.t, "header Cache-Control", a.header.Get("Cache-Control"), "no-store")
	path, ok := strings.CutPrefix(made.URL, "https://agents.example")
	mustEqual(f.t, "link has the prefix of the server", ok, true)
	return path
}

// TestLinkDecidesOnce: a link shows its interrupt any number of times, and decides once, on a
// POST.
func TestLinkDecidesOnce(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	id := fixture.openApprovals("t1", "c1")[0]
	path := fixture.link("t1", id, `{"decision":"approve","subject":"ada"}`)
	again := fixture.link("t1", id, `{"decision":"approve","subject":"ada","expiresIn":"2h"}`)
	other := fixture.link("t1", id, `{"decision":"reject","subject":"bob"}`)
	for range 2 { // as a mail program checks links
		a := fixture.do(http.MethodGet, path, "")
		a.mustStatus(t, "status", http.StatusOK)
		if !strings.Contains(a.body, "May refund be called?") {
			t.Errorf("body = %q, want text with %q", a.body, "May refund be called?")
		}
		if !strings.Contains(a.body, "&lt;b&gt;Ada") {
			t.Errorf("body = %q, want text with %q", a.body, "&lt;b&gt;Ada")
		}
		if strings.Contains(a.body, "<b>") {
			t.Errorf("body = %q, want no %q", a.body, "<b>")
		}
		if !strings.Contains(a.body, "decide as ada") {
			t.Errorf("body = %q, want text with %q", a.body, "decide as ada")
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "same-origin", "Set-Cookie": "", "X-Frame-Options": "DENY"} {
			got := a.header.Get(name)
			wantEqual(t, "header "+name, got, want)
		}
		csp := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; style-src 'sha256-") {
			t.Errorf("Content-Security-Policy = %q, want prefix %q", csp, "default-src 'none'; style-src 'sha256-")
		}
	}
	if a := fixture.do(http.MethodHead, path, ""); a.status != http.StatusOK || a.body != "" { // as a link checker does
		t.Errorf("HEAD: got %d %q, want %d without a body", a.status, a.body, http.StatusOK)
	}
	if len(fixture.updates) != 0 {
		t.Fatalf("decisions of GET requests: got %v, want none", fixture.updates)
	}
	if a := fixture.do(http.MethodPost, path, "", "Origin", "null"); a.status != http.StatusOK || !strings.Contains(a.body, "recorded: approve") {
		t.Fatalf("decision by link: got %d %s, want %d with the recorded approval", a.status, a.body, http.StatusOK)
	}
	d := fixture.proposedDecision("thread/default/t1", "c1")
	wantEqual(t, "channel of the decision", d.Channel, "link")
	if d.By == nil {
		t.Fatal("decider = nil, want a value")
	}
	wantEqual(t, "subject of the decision", d.By.Subject, "ada")
	wantEqual(t, "kind of the decision", d.Kind, "approve")
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		if a := fixture.do(method, path, ""); a.status != http.StatusGone || !strings.Contains(a.body, "has been used") || !strings.Contains(a.body, "The decision was already made") || !strings.Contains(a.body, "Recorded decision: approve") {
			t.Errorf("%s of a used link: got %d %s, want %d with the recorded decision", method, a.status, a.body, http.StatusGone)
		}
	}
	if a := fixture.do(http.MethodPost, other, ""); a.status != http.StatusConflict || !strings.Contains(a.body, "Recorded decision: approve") {
		t.Errorf("link for another decision: got %d %s, want %d with the recorded decision", a.status, a.body, http.StatusConflict)
	}
	if a := fixture.do(http.MethodPost, again, ""); a.status != http.StatusOK {
		t.Errorf("another link for the same decision: status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
	if len(fixture.updates) != 3 {
		t.Errorf("updates of the workflow: got %v, want 3", fixture.updates)
	}
}

func TestUnusableLinks(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	id := fixture.openApprovals("t1", "c1")[0]
	token := func(change func(*links.Link)) string {
		l := links.Link{Tenant: "default", Thread: "t1", Approval: id, Decision: "approve", Approver: "ada", Args: runs.DigestArgs(`{"to":"<b>Ada</b>"}`), Expires: time.Now().Add(time.Hour)}
		change(&l)
		text, err := fixture.links.Token(l)
		if err != nil {
			t.Fatal(err)
		}
		return "/v1/links/" + text
	}
	good := token(func(*links.Link) {})
	middle, other := (len("/v1/links/")+len(good))/2, "A" // the last character may have bits that are not decoded
	if good[middle] == 'A' {
		other = "B"
	}
	tampered := good[:middle] + other + good[middle+1:]
	for name, want := range map[string]struct {
		path       string
		wantStatus int
	}{
		"tampered":            {tampered, http.StatusNotFound},
		"nonsense":            {"/v1/links/nonsense", http.StatusNotFound},
		"expired":             {token(func(l *links.Link) { l.Expires = time.Now().Add(-time.Minute) }), http.StatusGone},
		"of another tenant":   {token(func(l *links.Link) { l.Tenant = "other" }), http.StatusForbidden},
		"of another thread":   {token(func(l *links.Link) { l.Thread = "t2" }), http.StatusNotFound},
		"of other arguments":  {token(func(l *links.Link) { l.Args = runs.DigestArgs(`{}`) }), http.StatusNotFound},
		"of nobody known":     {token(func(l *links.Link) { l.Approver = "carol" }), http.StatusForbidden},
		"of another approval": {token(func(l *links.Link) { l.Approval = "int_x" }), http.StatusNotFound},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			a := fixture.do(method, want.path, "")
			a.wantStatus(t, fmt.Sprintf("%s %s: status", method, name), want.wantStatus)
			if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
				t.Errorf("%s %s: header Content-Type = %q, want prefix %q", method, name, a.header.Get("Content-Type"), "text/html")
			}
			if !strings.Contains(a.body, "No decision was made") {
				t.Errorf("%s %s: body = %q, want text with %q", method, name, a.body, "No decision was made")
			}
		}
	}
	if len(fixture.updates) != 0 {
		t.Errorf("decisions: got %v, want none", fixture.updates)
	}
	if a := fixture.do(http.MethodGet, good, ""); a.status != http.StatusOK {
		t.Errorf("valid link: status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
}

// TestLinkIsRetried: a decision with an unknown result may be sent again.
func TestLinkIsRetried(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	path := fixture.link("t1", fixture.openApprovals("t1", "c1")[0], `{"decision":"approve"}`)
	take := fixture.temporal.decide
	fixture.temporal.decide = func(string, runs.DecideRequest) (out runs.DecideResult, err error) {
		return out, serviceerror.NewUnavailable("unavailable")
	}
	a := fixture.do(http.MethodPost, path, "")
	a.wantStatus(t, "status", http.StatusServiceUnavailable)
	if a.header.Get("Retry-After") == "" {
		t.Error("header Retry-After is empty, want a value")
	}
	if !strings.Contains(a.body, "Please try again") {
		t.Errorf("body = %q, want text with %q", a.body, "Please try again")
	}
	fixture.temporal.decide = take
	if a := fixture.do(http.MethodPost, path, ""); a.status != http.StatusOK {
		t.Errorf("second try: status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
}

func TestLinkLifetimeIsBounded(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	id := fixture.openApprovals("t1", "c1")[0]
	for body, want := range map[string]int{
		`{}`: 422, `{"decision":"edit"}`: 422, `{"decision":"approve","expiresIn":"8d"}`: 400, `{"decision":"approve","expiresIn":"1s"}`: 400,
		`{"decision":"approve","expiresIn":"169h"}`: 400, `{"decision":"approve","subject":"a\u0000"}`: 400, `[]`: 400,
		fmt.Sprintf(`{"decision":"approve","subject":%q}`, strings.Repeat("a", 1001)): 400,
		`{"decision":"approve","subject":"ada","roles":["finance"]}`:                  400,
		`{"decision":"approve","subject":"carol"}`:                                    403,
	} {
		if a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+id+"/links", body); a.status != want {
			t.Errorf("%s: status = %v, want %v; body: %s", body, a.status, want, a.body)
		}
	}
	if a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/none/links", `{"decision":"approve"}`); a.status != http.StatusNotFound {
		t.Errorf("status = %v, want %v; body: %s", a.status, http.StatusNotFound, a.body)
	}
}

// TestLinkAsksForSignIn: a link that names nobody shows its interrupt only to a person who has
// signed in, and decides as this person. It has no effect without credentials, or with those of
// another tenant.
func TestLinkAsksForSignIn(t *testing.T) {
	t.Parallel()
	fixture, ids := setupSignIn(t, "c1", "c2")
	bot, ada, eve := []string{"X-Tenant", "default", "X-User", "bot", "X-Roles", "links"}, []string{"X-Tenant", "default", "X-User", "ada"}, []string{"X-Tenant", "other", "X-User", "ada"}
	var made struct{ URL string }
	a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+ids[0]+"/links", `{"decision":"approve"}`, bot...)
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusCreated {
		t.Fatalf("link: got %d %s, want %d", a.status, a.body, http.StatusCreated)
	}
	path := strings.TrimPrefix(made.URL, "https://agents.example")
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if a := fixture.do(method, path, ""); a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") == "" || strings.Contains(a.body, "refund") {
			t.Errorf("%s without credentials: got %d %s, want %d without the call", method, a.status, a.body, http.StatusUnauthorized)
		}
		if a := fixture.do(method, path, "", eve...); a.status != http.StatusNotFound {
			t.Errorf("%s of another tenant: got %d %s, want %d", method, a.status, a.body, http.StatusNotFound)
		}
	}
	if a := fixture.do(http.MethodPost, path, "", append([]string{"Origin", "https://evil.example"}, ada...)...); a.status != http.StatusForbidden {
		t.Errorf("POST of a foreign page: got %d %s, want %d", a.status, a.body, http.StatusForbidden)
	}
	if len(fixture.updates) != 0 {
		t.Fatalf("decisions: got %v, want none", fixture.updates)
	}
	if a := fixture.do(http.MethodGet, path, "", ada...); a.status != http.StatusOK || !strings.Contains(a.body, "decide as ada") {
		t.Errorf("page for ada: got %d %s, want it to name ada", a.status, a.body)
	}
	for range 2 { // the second one repeats the decision
		if a := fixture.do(http.MethodPost, path, "", append([]string{"Origin", fixture.http.URL}, ada...)...); a.status != http.StatusOK || !strings.Contains(a.body, "recorded: approve") {
			t.Fatalf("decision of ada: got %d %s, want %d with the recorded approval", a.status, a.body, http.StatusOK)
		}
	}
	d := fixture.proposedDecision("thread/default/t1", "c1")
	if d.By == nil || d.By.Subject != "ada" || d.Issuer != "bot" || d.Channel != "link" {
		t.Errorf("decision = %+v, want one by ada, with a link of bot", d)
	}
	outsider := []string{"X-Tenant", "default", "X-User", "ann"}
	if a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+ids[1]+"/links", `{"decision":"approve","subject":"stranger"}`, bot...); a.status != http.StatusForbidden || a.problem.Code != "not_an_approver" || a.problem.Pointer != "/subject" {
		t.Errorf("link for a subject that is not configured = %d %s, want 403 not_an_approver at /subject", a.status, a.body)
	}
	if a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+ids[1]+"/links", `{"decision":"approve","subject":"bob"}`, outsider...); a.status != http.StatusForbidden || a.problem.Code != "forbidden" {
		t.Errorf("link of ann for bob: got %d %s, want a 403", a.status, a.body)
	}
}

// TestLinkForConfiguredStranger: a link for a configured person who may not decide is refused with
// the reason, when it is created and when it is used, and tells nothing about the call.
func TestLinkForConfiguredStranger(t *testing.T) {
	t.Parallel()
	fixture, ids := setupSignIn(t, "c1")
	bot, ada := []string{"X-Tenant", "default", "X-User", "bot", "X-Roles", "links"}, []string{"X-Tenant", "default", "X-User", "ada"}
	path := "/v1/threads/t1/approvals/" + ids[0] + "/links"
	var made struct{ URL string }
	a := fixture.do(http.MethodPost, path, `{"decision":"approve","subject":"ada"}`, bot...)
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusCreated {
		t.Fatalf("link: got %d %s, want %d", a.status, a.body, http.StatusCreated)
	}
	if _, err := fixture.log.Share(t.Context(), stream.Thread{Tenant: "default", ID: "t1"}, nil); err != nil {
		t.Fatal(err)
	}
	for name, caller := range map[string][]string{"a program": bot, "the person": ada} {
		a := fixture.do(http.MethodPost, path, `{"decision":"approve","subject":"ada"}`, caller...)
		a.wantStatus(t, name+": status", http.StatusForbidden)
		wantEqual(t, name+": problem code", a.problem.Code, "not_an_approver")
		wantEqual(t, name+": problem pointer", a.problem.Pointer, "/subject")
		if !strings.Contains(a.problem.Detail, `"ada" is not an approver of this interrupt`) || strings.Contains(a.body, "refund") {
			t.Errorf("%s: body = %q, want the reason without the call", name, a.body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		a := fixture.do(method, strings.TrimPrefix(made.URL, "https://agents.example"), "")
		a.wantStatus(t, method+": status", http.StatusForbidden)
		if !strings.Contains(a.body, "is not an approver of this interrupt") || strings.Contains(a.body, "refund") {
			t.Errorf("%s: body = %q, want the reason without the call", method, a.body)
		}
	}
	if len(fixture.updates) != 0 {
		t.Errorf("decisions: got %v, want none", fixture.updates)
	}
}

// TestLinkAndDirectDecisionAreOneVote: the decision of a person by links and a direct one have the
// same digest and the same voter, so a quorum counts them once.
func TestLinkAndDirectDecisionAreOneVote(t *testing.T) {
	t.Parallel()
	fixture, ids := setupSignIn(t, "c1")
	id := ids[0]
	ada := []string{"X-Tenant", "default", "X-User", "ada"}
	paths := []string{"/v1/threads/t1/approvals/" + id}
	for _, minter := range []string{"bot", "root", "ada"} {
		var made struct{ URL string }
		a := fixture.do(http.MethodPost, paths[0]+"/links", `{"decision":"approve","subject":"ada"}`, "X-Tenant", "default", "X-User", minter, "X-Roles", "links")
		if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusCreated {
			t.Fatalf("link of %s: got %d %s, want %d", minter, a.status, a.body, http.StatusCreated)
		}
		paths = append(paths, strings.TrimPrefix(made.URL, "https://agents.example"))
	}
	for _, path := range paths {
		if a := fixture.do(http.MethodPost, path, `{"decision":"approve"}`, ada...); a.status != http.StatusOK {
			t.Fatalf("decision at %s: got %d %s, want %d", path, a.status, a.body, http.StatusOK)
		}
	}
	if len(fixture.updates) != len(paths) {
		t.Fatalf("updates of the workflow: got %d, want %d", len(fixture.updates), len(paths))
	}
	for i, update := range fixture.updates {
		if first := fixture.updates[0][0]; update[0].By != first.By || update[0].Digest != first.Digest || update[0].Proposal != first.Proposal {
			t.Errorf("decision %d: got %+v, want the vote %+v", i+1, update[0], first)
		}
	}
}

// anonymousAtFirst authenticates by headers after the fixture of a test has used the API without
// credentials.
type anonymousAtFirst struct {
	auth.Authenticator
	byHeader atomic.Bool
}

func (a *anonymousAtFirst) Authenticate(r *http.Request) (auth.Identity, error) {
	if a.byHeader.Load() {
		return byHeader.Authenticate(r)
	}
	return a.Authenticator.Authenticate(r)
}

// setupSignIn returns a server with an inbox and interrupts of the thread t1, whose callers
// authenticate by headers.
func setupSignIn(t *testing.T, calls ...string) (fixture *inboxFixture, ids []string) {
	t.Helper()
	callers := &anonymousAtFirst{}
	fixture = setupInbox(t, func(c *api.Config) { callers.Authenticator, c.Auth = c.Auth, callers })
	ids = fixture.openApprovals("t1", calls...)
	callers.byHeader.Store(true)
	return fixture, ids
}
