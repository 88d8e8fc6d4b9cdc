package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// desk is an agent whose calculations people of finance approve. Two people approve those of panel,
// who have not contributed. Those of brief escalate to bob and expire soon, and those of patient late.
const desk = `
name: desk
model: scripted/desk
tools: [calculate, ask_user]
approvals:
  - {tools: [calculate], approvers: [role:finance], expires: 2h}
---
name: panel
model: scripted/desk
tools: [calculate]
approvals:
  - {tools: [calculate], approvers: [role:finance], quorum: 2, notByRequester: true, expires: 2h}
---
name: brief
model: scripted/desk
tools: [calculate]
approvals:
  - {tools: [calculate], approvers: [alice], escalate: [{after: 4s, to: [bob]}], expires: 10s}
---
name: patient
model: scripted/desk
tools: [calculate]
approvals:
  - {tools: [calculate], approvers: [alice], escalate: [{after: 1h, to: [bob]}], expires: 2h}
---
kind: script
name: desk
turns:
  - when: Ask me
    steps: [{calls: [{tool: ask_user, arguments: {question: "Which color?"}}]}, {say: "{ask_user}"}]
  - when: Work out (?P<sum>\S+)
    steps: [{calls: [{tool: calculate, arguments: {expression: "{sum}"}}]}, {say: "It is {calculate}."}]
`

// office is a tenant of a process with the agents of desk. Its users are ada, who
// starts runs, and alice, bob and cora of finance. Only bob, who is an administrator too, may read the
// threads.
type office struct {
	*kit.Perdure
	t      *testing.T
	tenant string
	keys   string // the file of the keys
}

// openOffices starts the process. It returns the office of each tenant.
func openOffices(t *testing.T, tenants ...string) map[string]office {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	offices := map[string]office{}
	listed := "keys:\n"
	for _, tenant := range tenants {
		o := office{p, t, tenant, keys}
		offices[tenant] = o
		for subject, roles := range map[string]string{"ada": "", "alice": "finance", "bob": "finance, perdure-platform-admin", "cora": "finance"} {
			listed += fmt.Sprintf("  - {key: %s, tenant: %s, subject: %s, roles: [%s]}\n", o.keyOf(subject), tenant, subject, roles)
		}
	}
	for file, text := range map[string]string{keys: listed, filepath.Join(p.Agents, "desk.yaml"): desk} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Env = []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + keys}
	p.InspectAtEnd(t)
	p.Start(t)
	return offices
}

func (o office) keyOf(subject string) string {
	return "the-secret-key-of-" + subject + "-in-" + o.tenant
}

// request has ada ask the agent desk, and returns the path of the approval in the API, without /v1.
func (o office) request(thread, prompt string) string {
	o.t.Helper()
	return o.requestOf("ada", "desk", thread, prompt)
}

// requestOf is like request, for any user and any agent.
func (o office) requestOf(as, agent, thread, prompt string) string {
	o.t.Helper()
	in := kit.NewInput(prompt)
	in.ThreadID = thread
	o.Threads.Add(thread)
	//nolint:bodyclose // WantEvents closes it
	events := kit.WantEvents(o.t, o.RequestAs(o.t, o.keyOf(as), http.MethodPost, "/v1/agents/"+agent+"/runs", in))
	return "/threads/" + thread + "/approvals/" + kit.InterruptsOf(o.t, events)[0].ID
}

// decide decides an approval over the API.
func (o office) decide(as, approval, decision string) {
	o.t.Helper()
	//nolint:bodyclose // RequestAs closes it
	if resp := o.RequestAs(o.t, o.keyOf(as), http.MethodPost, "/v1"+approval, map[string]string{"decision": decision}); resp.StatusCode != http.StatusOK {
		o.t.Fatalf("%s decides %s: %s, want %d", as, approval, resp.Status, http.StatusOK)
	}
}

// wantDecision compares the decision in the audit of a thread.
func (o office) wantDecision(approval, want string) {
	o.t.Helper()
	thread, _, _ := strings.Cut(approval, "/approvals/")
	//nolint:bodyclose // RequestAs closes it
	resp := o.RequestAs(o.t, o.keyOf("bob"), http.MethodGet, "/v1"+thread+"/approvals", nil)
	var audit struct {
		Items []struct {
			Decisions []struct {
				Decision string
				Args     map[string]string
				Reason   string
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&audit); err != nil || len(audit.Items) != 1 || len(audit.Items[0].Decisions) != 1 {
		o.t.Fatalf("audit of %s: got %+v (%v), want one decision", thread, audit, err)
	}
	if d := audit.Items[0].Decisions[0]; fmt.Sprintf("%s %v %q", d.Decision, d.Args, d.Reason) != want {
		o.t.Errorf("decision of %s = %+v, want %s", thread, d, want)
	}
}

// page returns the path of an approval in the console.
func page(approval string) string {
	return "/console/inbox" + strings.Replace(strings.TrimPrefix(approval, "/threads"), "/approvals", "", 1)
}

// open opens a page of the console in a new profile, which asks for a token.
func (o office) open(path string) *kit.Tab {
	o.t.Helper()
	// 403 for a thread that the user may not read, 401 for a token.
	return kit.OpenTab(o.t, o.URL(path), "403 (Forbidden)", "401 (Unauthorized)", "WebSocket connection to")
}

// enter enters the key of a user.
func (o office) enter(tab *kit.Tab, as string) {
	o.t.Helper()
	tab.Type("input[type=password]", o.keyOf(as))
	tab.Press("Enter")
	tab.Await("nav", "Inbox")
}

// signIn opens a page of the console in a new profile, as a user.
func (o office) signIn(as, path string) *kit.Tab {
	o.t.Helper()
	tab := kit.OpenTab(o.t, o.URL(path), "403 (Forbidden)") // for a thread that the user may not read
	o.enter(tab, as)
	return tab
}

// wantNoOverflow fails the test if the page is wider than its window.
func (o office) wantNoOverflow(tab *kit.Tab) {
	o.t.Helper()
	var over []string
	tab.Evaluate(`[...document.querySelectorAll("main *")].filter((element) => {
		const { right, width } = element.getBoundingClientRect();
		return width > 1 && right > innerWidth + 1 && !element.closest("pre, nav, [class*=views]");
	}).map((element) => element.outerHTML.slice(0, 120))`, &over)
	if len(over) > 0 {
		o.t.Errorf("%d elements reach beyond the page, such as\n%s", len(over), over[0])
	}
}
