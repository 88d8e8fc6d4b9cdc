package operations

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/internal/approvals/inbox"
)

// payer asks about calls that a person without the role finance has influenced, and lets none of
// those people decide.
const payer = "/v1/agents/payer/runs"

// startPayer starts a Perdure with the agent payer, whose users are ann and bot (with the role links),
// bob (with the role finance), cal and admin. env has further variables of the process.
func startPayer(t *testing.T, env ...string) *kit.Perdure {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	listed := "keys:\n"
	for name, role := range map[string]string{"ann": "links", "bob": "finance", "cal": "", "bot": "links", "admin": "perdure-platform-admin"} {
		listed += fmt.Sprintf("  - {key: %s, tenant: default, subject: %s, roles: [%s]}\n", keyOf(name), name, role)
	}
	if err := os.WriteFile(keys, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append([]string{"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + keys}, env...)
	p.InspectAtEnd(t)
	p.Start(t)
	definition := map[string]any{
		"name": "payer", "model": "openai/scripted-by-the-test", "tools": []string{"calculate"},
		"approvals": []any{map[string]any{"tools": []string{"calculate"}, "when": `!("finance" in caller.roles)`, "notByRequester": true}},
	}
	if resp := p.RequestAs(t, keyOf("admin"), http.MethodPut, "/v1/agents/payer", definition); resp.StatusCode != http.StatusCreated {
		t.Fatalf("publication: got %s, want %d", resp.Status, http.StatusCreated)
	}
	return p
}

// keyOf returns the API key of a user.
func keyOf(name string) string { return "the-secret-key-of-" + name }

// TestApprovalsJudgeEveryContributor: the condition of a rule is evaluated for everybody whose
// content the model has received, by a run, an earlier run or steering. None of them may decide.
func TestApprovalsJudgeEveryContributor(t *testing.T) {
	t.Parallel()
	p := startPayer(t)
	run := func(in kit.Input, as string) []kit.Event {
		t.Helper()
		p.Threads.Add(in.ThreadID)
		return kit.WantEvents(t, p.RequestAs(t, keyOf(as), http.MethodPost, payer, in))
	}

	alone := kit.NewInput(kit.Marked("Pay it."))
	kit.ScriptCalculations(t, alone.Messages[0].Content, kit.Marked("Paid."), "1+1")
	events := run(alone, "bob")
	if end := events[len(events)-1].Data; !strings.Contains(string(end), `"type":"success"`) {
		t.Errorf("run of bob alone ended with %s, want success", end)
	}

	earlier := kit.NewInput(kit.Marked("Listen to me."))
	kit.SharedModel.AnswerWith(t, earlier.Messages[0].Content, kit.Marked("I do."))
	run(earlier, "ann")
	shareToRun(t, p, earlier.ThreadID, "ann", "bob")
	pay := kit.UserMessage(kit.Marked("Pay it, too."))
	kit.ScriptCalculations(t, pay.Content, kit.Marked("Paid."), "2+2")
	earlier.RunID, earlier.Messages = "run-2", append(earlier.Messages, pay)
	wantDecidedByCal(t, p, earlier, run(earlier, "bob"))

	steered, aside := kit.NewInput(kit.Marked("Slowly, please.")), kit.UserMessage(kit.Marked("Pay ann."))
	kit.SharedModel.AnswerInOrder(t, steered.Messages[0].Content, kit.SlowAnswer(kit.LongText(400)))
	kit.ScriptCalculations(t, aside.Content, kit.Marked("Paid."), "3+3")
	p.Threads.Add(steered.ThreadID)
	began := p.RequestAs(t, keyOf("bob"), http.MethodPost, payer, steered)
	shareToRun(t, p, steered.ThreadID, "bob", "ann")
	if resp := p.RequestAs(t, keyOf("ann"), http.MethodPost, "/v1/threads/"+steered.ThreadID+"/messages", map[string]any{"message": aside}); resp.StatusCode != http.StatusAccepted {
		t.Fatalf("steering: got %s, want %d", resp.Status, http.StatusAccepted)
	}
	wantDecidedByCal(t, p, steered, kit.WantEvents(t, began))
}

// TestShareTakesEffectAtOnce: a share whose request was answered holds for the next request, although
// processes learn of shares by a watch.
func TestShareTakesEffectAtOnce(t *testing.T) {
	t.Parallel()
	p := startPayer(t)
	in := kit.NewInput(kit.Marked("Listen to me."))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("I do."))
	p.Threads.Add(in.ThreadID)
	kit.WantEvents(t, p.RequestAs(t, keyOf("ann"), http.MethodPost, payer, in))
	thread := "/v1/threads/" + in.ThreadID
	read := func() int { return p.RequestAs(t, keyOf("bob"), http.MethodGet, thread, nil).StatusCode }
	for range 30 {
		shareToRun(t, p, in.ThreadID, "ann", "bob")
		if status := read(); status != http.StatusOK {
			t.Fatalf("the thread, right after it was shared: got %d, want %d", status, http.StatusOK)
		}
		if resp := p.RequestAs(t, keyOf("ann"), http.MethodPut, thread+"/shares", map[string]any{"shares": []any{}}); resp.StatusCode != http.StatusOK {
			t.Fatalf("end of the share: got %s, want %d", resp.Status, http.StatusOK)
		}
		for read() == http.StatusOK {
			if t.Context().Err() != nil {
				t.Fatal("the share does not end")
			}
		}
	}
}

// shareToRun lets a user send input to a thread of another user.
func shareToRun(t *testing.T, p *kit.Perdure, threadID, owner, with string) {
	t.Helper()
	shares := map[string]any{"shares": []any{map[string]string{"subject": with, "access": "run"}}}
	resp := p.RequestAs(t, keyOf(owner), http.MethodPut, "/v1/threads/"+threadID+"/shares", shares)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("share of %s with %s: got %s, want %d", owner, with, resp.Status, http.StatusOK)
	}
}

// wantDecidedByCal checks that a run has ended with an interrupt that shows ann and bob as
// contributors, and that only cal may decide.
func wantDecidedByCal(t *testing.T, p *kit.Perdure, in kit.Input, events []kit.Event) {
	t.Helper()
	interrupts := kit.InterruptsOf(t, events)
	if len(interrupts) != 1 {
		t.Fatalf("interrupts = %+v, want 1", interrupts)
	}
	contributors := awaitContributors(t, p, in.ThreadID)
	path := "/v1/threads/" + in.ThreadID + "/approvals/" + interrupts[0].ID
	for _, name := range []string{"ann", "bob"} {
		kit.WantProblem(t, p.RequestAs(t, keyOf(name), http.MethodPost, path, map[string]string{"decision": "approve"}), http.StatusForbidden, "not_by_requester")
	}
	resp := p.RequestAs(t, keyOf("cal"), http.MethodPost, path, map[string]string{"decision": "approve"})
	if resp.StatusCode != http.StatusOK {
		t.Errorf("approval of cal: got %s, want %d", resp.Status, http.StatusOK)
	}
	if got, want := contributors, []string{"ann", "bob"}; !slices.Equal(got, want) {
		t.Errorf("contributors of the inbox = %q, want %q", got, want)
	}
}

// awaitContributors waits until the inbox has the interrupt of a thread, and returns its
// contributors, sorted.
func awaitContributors(t *testing.T, p *kit.Perdure, threadID string) []string {
	t.Helper()
	for {
		var page struct{ Items []inbox.Approval }
		resp := p.RequestAs(t, keyOf("cal"), http.MethodGet, "/v1/approvals?thread="+threadID, nil)
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > 0 {
			return slices.Sorted(slices.Values(page.Items[0].Contributors))
		}
		if t.Context().Err() != nil {
			t.Fatal("the inbox has no interrupt, want one")
		}
	}
}
