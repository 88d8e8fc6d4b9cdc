package operations

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/internal/approvals/inbox"
)

// TestLinksDecideAsConfiguredApprovers: a call needs two people of finance, and ann, who has asked
// for it, may not decide. Links count once for each configured approver, with the roles that the
// operator's file has at that time, and the audit has their issuer.
func TestLinksDecideAsConfiguredApprovers(t *testing.T) {
	t.Parallel()
	principals := filepath.Join(t.TempDir(), "principals.yaml")
	configure := func(dees string) {
		t.Helper()
		text := "approvers:\n  - {subject: cal, roles: [finance]}\n  - {subject: dee, roles: [" + dees + "]}\n"
		if err := os.WriteFile(principals, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("sales")
	p := startPayer(t, "PERDURE_PRINCIPALS="+principals)
	definition := map[string]any{
		"name": "treasury", "model": "openai/scripted-by-the-test", "tools": []string{"calculate"},
		"approvals": []any{map[string]any{"tools": []string{"calculate"}, "approvers": []string{"role:finance"}, "quorum": 2, "notByRequester": true}},
	}
	if resp := p.RequestAs(t, keyOf("admin"), http.MethodPut, "/v1/agents/treasury", definition); resp.StatusCode != http.StatusCreated {
		t.Fatalf("publication: got %s, want %d", resp.Status, http.StatusCreated)
	}
	in := kit.NewInput(kit.Marked("Pay it."))
	p.Threads.Add(in.ThreadID)
	kit.ScriptCalculations(t, in.Messages[0].Content, kit.Marked("Paid."), "5+5")
	interrupts := kit.InterruptsOf(t, kit.WantEvents(t, p.RequestAs(t, keyOf("ann"), http.MethodPost, "/v1/agents/treasury/runs", in)))
	if len(interrupts) != 1 {
		t.Fatalf("interrupts = %+v, want 1", interrupts)
	}
	approval := "/v1/threads/" + in.ThreadID + "/approvals/" + interrupts[0].ID
	link := func(issuer, subject string) string {
		t.Helper()
		var made struct{ URL string }
		resp := p.RequestAs(t, keyOf(issuer), http.MethodPost, approval+"/links", map[string]string{"decision": "approve", "subject": subject})
		if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("link of %s for %s: got %s, %v, want %d", issuer, subject, resp.Status, err, http.StatusCreated)
		}
		return strings.TrimPrefix(made.URL, p.URL(""))
	}
	status := func(method, path string) int {
		t.Helper()
		return p.RequestAs(t, "", method, path, nil).StatusCode
	}
	// awaitPage waits until the API has read the file of principals, as the page of a link shows.
	awaitPage := func(path string, want int) {
		t.Helper()
		for status(http.MethodGet, path) != want {
		}
	}

	kit.WantProblem(t, p.RequestAs(t, keyOf("bot"), http.MethodPost, approval+"/links", map[string]string{"decision": "approve", "subject": "cfo"}), http.StatusForbidden, "not_an_approver")
	kit.WantProblem(t, p.RequestAs(t, keyOf("ann"), http.MethodPost, approval+"/links", map[string]string{"decision": "approve", "subject": "cal"}), http.StatusForbidden, "not_by_requester")
	cals, dees := []string{link("bot", "cal"), link("bot", "cal")}, ""
	kit.WantProblem(t, p.RequestAs(t, keyOf("bot"), http.MethodPost, approval+"/links", map[string]string{"decision": "approve", "subject": "dee"}), http.StatusForbidden, "not_an_approver")
	configure("finance")
	for dees == "" { // until the API has read the file
		var made struct{ URL string }
		resp := p.RequestAs(t, keyOf("bot"), http.MethodPost, approval+"/links", map[string]string{"decision": "approve", "subject": "dee"})
		if err := json.NewDecoder(resp.Body).Decode(&made); err != nil {
			t.Fatal(err)
		}
		dees = strings.TrimPrefix(made.URL, p.URL(""))
	}
	for _, path := range cals {
		if got := status(http.MethodPost, path); got != http.StatusOK {
			t.Errorf("vote of cal: status %d, want %d", got, http.StatusOK)
		}
	}
	if resp := p.RequestAs(t, keyOf("cal"), http.MethodPost, approval, map[string]string{"decision": "approve"}); resp.StatusCode != http.StatusForbidden {
		t.Errorf("vote of cal with the roles of the API key: got %s, want %d, because only the file gives cal the role finance", resp.Status, http.StatusForbidden)
	}
	var page struct{ Items []inbox.Approval }
	resp := p.RequestAs(t, keyOf("ann"), http.MethodGet, "/v1/threads/"+in.ThreadID+"/approvals?status=open", nil)
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || len(page.Items) != 1 {
		t.Fatalf("open approvals after two links of cal: got %+v, %v, want 1: it is one vote", page.Items, err)
	}
	configure("sales")
	awaitPage(dees, http.StatusForbidden)
	if got := status(http.MethodPost, dees); got != http.StatusForbidden {
		t.Errorf("vote of dee without the role finance: status %d, want %d", got, http.StatusForbidden)
	}
	configure("finance")
	awaitPage(dees, http.StatusOK)
	if got := status(http.MethodPost, dees); got != http.StatusOK {
		t.Errorf("vote of dee: status %d, want %d", got, http.StatusOK)
	}
	wantIssuers(t, p, in.ThreadID)
}

// wantIssuers checks that the audit of a thread has the decisions of cal and dee, by links of bot.
func wantIssuers(t *testing.T, p *kit.Perdure, threadID string) {
	t.Helper()
	deadline := time.Now().Add(kit.WaitTimeout)
	for {
		var page struct{ Items []inbox.Approval }
		resp := p.RequestAs(t, keyOf("ann"), http.MethodGet, "/v1/threads/"+threadID+"/approvals?status=decided", nil)
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
			t.Fatal(err)
		}
		if len(page.Items) == 1 {
			decisions := page.Items[0].Decisions
			if len(decisions) != 2 {
				t.Fatalf("decisions = %+v, want 2", decisions)
			}
			for i, want := range []string{"cal", "dee"} {
				if d := decisions[i]; d.By != want || d.Issuer != "bot" || d.Channel != "link" {
					t.Errorf("decision %d = %+v, want one of %s, by a link of bot", i, d, want)
				}
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the audit has no decided approval, want one")
		}
	}
}
