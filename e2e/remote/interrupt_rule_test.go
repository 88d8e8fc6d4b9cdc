package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// ruled are agents whose interrupts have a rule: two people of finance give the answer, dora may
// answer late, and nobody answers in time.
const ruled = `name: careful
remote:
  url: URL
  interrupts: {approvers: [role:finance], quorum: 2, notByRequester: true, remind: 1h}
---
name: late
remote:
  url: URL
  interrupts: {approvers: [cora], escalate: [{after: 1s, to: [dora]}], expires: 1h}
---
name: brief
remote:
  url: URL
  interrupts: {approvers: [cora], expires: 1s, onExpiry: fail}
`

// people is a process with agents, and the API keys of ada, who is nobody's approver, of
// bob and cora of finance, and of dora.
type people struct{ *kit.Perdure }

// startPeople starts the process with agents. URL in their definitions is that of a remote agent.
func startPeople(t *testing.T, url, agents string) people {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	keys := "keys:\n"
	for subject, role := range map[string]string{"ada": "", "bob": "finance", "cora": "finance", "dora": ""} {
		keys += fmt.Sprintf("  - {key: %s, tenant: shop, subject: %s, roles: [%s]}\n", keyOf(subject), subject, role)
	}
	file := filepath.Join(t.TempDir(), "keys.yaml")
	for name, text := range map[string]string{file: keys, filepath.Join(p.Agents, "all.yaml"): strings.ReplaceAll(agents, "URL", url)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Env = []string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + file, "PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	return people{p}
}

func keyOf(subject string) string { return "the-long-secret-key-of-" + subject }

// ask has ada run an agent, and returns the thread and the path of its first interrupt.
func (p people) ask(t *testing.T, agent string) (thread, approval string) {
	t.Helper()
	in := kit.NewInput("Pay the bill.")
	return in.ThreadID, p.askWith(t, agent, in)[0]
}

// askWith has ada run an agent with an input, and returns the paths of the run's interrupts.
func (p people) askWith(t *testing.T, agent string, in kit.Input) (approvals []string) {
	t.Helper()
	p.Threads.Add(in.ThreadID)
	//nolint:bodyclose // WantEvents closes it
	events := kit.WantEvents(t, p.RequestAs(t, keyOf("ada"), http.MethodPost, "/v1/agents/"+agent+"/runs", in))
	for _, i := range kit.InterruptsOf(t, events) {
		approvals = append(approvals, "/v1/threads/"+in.ThreadID+"/approvals/"+i.ID)
	}
	return approvals
}

// wantAnswer has a person decide, and compares the status and the code of the response, or the number of
// missing votes.
func (p people) wantAnswer(t *testing.T, as, approval, decision, want string) {
	t.Helper()
	//nolint:bodyclose // RequestAs closes it
	resp := p.RequestAs(t, keyOf(as), http.MethodPost, approval, json.RawMessage(decision))
	var answer struct {
		Code    string `json:"code"`
		Missing int    `json:"missing"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(resp.StatusCode, " ", answer.Code, answer.Missing); got != want {
		t.Errorf("%s decides %s: got %s, want %s", as, decision, got, want)
	}
}

// inbox returns the open interrupts of an agent that a person sees.
func (p people) inbox(t *testing.T, as, agent string) (items []map[string]any) {
	t.Helper()
	//nolint:bodyclose // RequestAs closes it
	resp := p.RequestAs(t, keyOf(as), http.MethodGet, "/v1/approvals?agent="+agent, nil)
	var page struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// TestRuleOfInterrupts: a rule in the definition says who answers the interrupts of a remote agent. A
// quorum must give the same answer, also over kills; escalation adds people; an expiry can fail the run.
func TestRuleOfInterrupts(t *testing.T) {
	t.Parallel()
	url, inputs := asker(t, func(_ func(string), end func(string)) {
		end(`,"outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"input","message":"Pay?"}]}`)
	})
	p := startPeople(t, url, ruled)
	yes := `{"decision":"answer","content":{"pay":true}}`

	thread, approval := p.ask(t, "careful")
	p.wantAnswer(t, "ada", approval, yes, "403 not_an_approver0")
	p.wantAnswer(t, "dora", approval, yes, "403 not_an_approver0")
	p.wantAnswer(t, "bob", approval, `{"decision":"approve"}`, "422 invalid_answer0")
	p.wantAnswer(t, "bob", approval, yes, "200 1")
	p.Kill()
	p.Start(t)
	p.wantAnswer(t, "bob", approval, yes, "200 1")
	p.wantAnswer(t, "cora", approval, `{"decision":"answer","content":{"pay":false}}`, "409 other_edit0")
	until(t, "the vote of bob in the inbox of cora", func() bool {
		items := p.inbox(t, "cora", "careful")
		if len(items) != 1 || items[0]["quorum"] != 2.0 {
			return false
		}
		tallies, _ := items[0]["tallies"].([]any)
		if len(tallies) != 1 {
			return false
		}
		tally, _ := tallies[0].(map[string]any)
		return tally["decision"] == "answer" && tally["votes"] == 1.0 && tally["missing"] == 1.0
	})
	if items := p.inbox(t, "dora", "careful"); len(items) > 0 {
		t.Errorf("dora, who is no approver, sees %v", items)
	}
	p.wantAnswer(t, "cora", approval, `{"decision":"answer", "content":{ "pay" : true }}`, "200 0")
	p.awaitRuns(t, thread, 2)
	p.wantAnswer(t, "bob", approval, yes, "200 0") // his vote counted
	<-inputs
	wantResume(t, <-inputs, `[{"interruptId":"i1","status":"resolved","payload":{"pay":true}}]`)

	thread, approval = p.ask(t, "late")
	p.wantAnswer(t, "bob", approval, yes, "403 not_an_approver0")
	until(t, "the escalation to dora", func() bool { return len(p.inbox(t, "dora", "late")) == 1 })
	p.wantAnswer(t, "dora", approval, yes, "200 0")
	p.awaitRuns(t, thread, 2)
	<-inputs
	wantResume(t, <-inputs, `[{"interruptId":"i1","status":"resolved","payload":{"pay":true}}]`)

	thread, _ = p.ask(t, "brief")
	if runs := p.awaitRuns(t, thread, 2); runs[0]["code"] != "approval_expired" && runs[1]["code"] != "approval_expired" {
		t.Errorf("runs after the expiry = %v, want one that failed with approval_expired", runs)
	}
}

// awaitRuns waits until a thread has a number of runs, and none is active. It returns them.
func (p people) awaitRuns(t *testing.T, thread string, n int) (runs []map[string]any) {
	t.Helper()
	until(t, fmt.Sprintf("%d runs of the thread", n), func() bool {
		//nolint:bodyclose // RequestAs closes it
		resp := p.RequestAs(t, keyOf("ada"), http.MethodGet, "/v1/threads/"+thread+"/runs", nil)
		var page struct {
			Items []map[string]any `json:"items"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
			t.Fatal(err)
		}
		runs = page.Items
		return len(runs) == n && runs[0]["status"] != "running"
	})
	return runs
}

// until waits until holds reports true. It asks ten times a second, because callers have a rate.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for overdue := time.After(kit.WaitTimeout); !holds(); {
		select {
		case <-pace.C:
		case <-overdue:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
