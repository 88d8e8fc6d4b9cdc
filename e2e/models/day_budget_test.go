package models

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// API keys of two tenants. One tenant has a soft budget of a hundred tokens a day.
const (
	shopKey = "key-of-a-frugal-shop"
	bankKey = "key-of-a-generous-bank"
)

// startWithDays starts a process with budgets of the day.
func startWithDays(t *testing.T) *kit.Perdure {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"keys.yaml":   fmt.Sprintf("keys: [{key: %s, tenant: shop, subject: ann}, {key: %s, tenant: bank, subject: bob}]\n", shopKey, bankKey),
		"prices.yaml": "currency: EUR\ntenants: {shop: {tokensPerDay: 100000, soft: {tokensPerDay: 100}}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := kit.NewPerdure(filepath.Join(dir, "data"), kit.SharedModel)
	p.Env = []string{
		"PERDURE_AUTH=apikey", "PERDURE_AUTH_KEYS=" + filepath.Join(dir, "keys.yaml"),
		"PERDURE_PRICES=" + filepath.Join(dir, "prices.yaml"), "PERDURE_PARK_AFTER=100ms",
	}
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// dayOf returns the day (UTC) whose usage a test reads. Near the end of a day it waits for the next
// one, since the budgets restart then.
func dayOf(t *testing.T) string {
	t.Helper()
	now := time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < 2*kit.WaitTimeout {
		select {
		case <-time.After(left):
		case <-t.Context().Done():
		}
	}
	return time.Now().UTC().Format(time.DateOnly)
}

// TestSoftBudgetOfDay: a run of a tenant that has exceeded its soft budget asks before it starts,
// and so does each further run. Runs of other tenants do not ask. The interrupt survives a kill. An
// approval that sets a higher limit asks again at that limit. A rejection ends the run with the
// budget's code.
func TestSoftBudgetOfDay(t *testing.T) {
	t.Parallel()
	today := dayOf(t)
	asked := func(used int) string {
		return fmt.Sprintf("The tenant has used %d tokens on %s, UTC. May the run continue up to %d tokens?", used, today, used+100)
	}
	p := startWithDays(t)
	hello, prompt := kit.Marked("Hello."), kit.Marked("Toil.")
	kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: hello}, Response: kit.Response{Content: kit.Marked("Hi."), Usage: &kit.Tokens{Input: 100, Output: 20, Total: 120}}})
	scriptTurns(t, prompt)
	if end := p.RunAs(t, shopKey, kit.NewInput(hello)); kit.Outcome(end[len(end)-1]) != "success" {
		t.Fatalf("end of the first run of the day = %s, want success", end[len(end)-1].Data)
	}
	in := kit.NewInput(prompt)
	events := p.RunAs(t, shopKey, in)
	first := kit.InterruptsOf(t, events)[0]
	wantTokenQuestion(t, first, asked(120))
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 0 {
		t.Errorf("number of model calls before the interrupt = %d, want 0", n)
	}
	for range 2 { // repeated on purpose
		if end := p.RunAs(t, bankKey, kit.NewInput(hello)); kit.Outcome(end[len(end)-1]) != "success" {
			t.Fatalf("end of a run of another tenant = %s, want success", end[len(end)-1].Data)
		}
	}
	p.Kill()
	p.Start(t)
	answer := func(in kit.Input, run string, q kit.Interrupt, payload map[string]any) []kit.Event {
		t.Helper()
		then := in
		then.RunID, then.Resume = run, []any{map[string]any{"interruptId": q.ID, "status": "resolved", "payload": payload}}
		return p.RunAs(t, shopKey, then)
	}
	second := kit.InterruptsOf(t, answer(in, "run-2", first, map[string]any{"approved": true, "editedArgs": map[string]any{"allowed": 170}}))[0]
	wantTokenQuestion(t, second, asked(180))
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 1 {
		t.Errorf("the model was called %d times, want one of 60 tokens for fifty", n)
	}
	end := answer(in, "run-3", second, map[string]any{"approved": false, "reason": "too dear"})
	if last := end[len(end)-1]; last.Type != "RUN_ERROR" || last.Member("code") != "budget_exceeded" {
		t.Errorf("end of the rejected run = %s, want budget_exceeded", last.Data)
	}
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 1 {
		t.Errorf("number of model calls = %d, want 1", n)
	}

	other := kit.NewInput(hello)
	question := kit.InterruptsOf(t, p.RunAs(t, shopKey, other))[0]
	wantTokenQuestion(t, question, asked(180))
	resp := p.RequestAs(t, shopKey, http.MethodPost, "/v1/threads/"+other.ThreadID+"/approvals/"+question.ID, map[string]any{"decision": "edit", "args": map[string]any{}})
	kit.WantProblem(t, resp, http.StatusUnprocessableEntity, "invalid_answer")
	if end = answer(other, "run-2", question, map[string]any{"approved": true}); kit.Outcome(end[len(end)-1]) != "success" {
		t.Errorf("end of the approved run = %s, want success", end[len(end)-1].Data)
	}
	if strings.Contains(p.Output.String(), "too dear") {
		t.Error("output of Perdure has message text, want none")
	}
}
