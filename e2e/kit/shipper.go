package kit

import (
	"net/http"
	"testing"
)

// ShipperPath is the path that starts runs of the agent shipper, whose tools ask for the city to
// ship to.
const ShipperPath = "/v1/agents/shipper/runs"

// runUntilAsked runs the agent shipper until its tool asks, and returns the input and the
// interrupt.
func (p *Perdure) runUntilAsked(t *testing.T, prompt string) (Input, Interrupt) {
	t.Helper()
	in := NewInput(prompt)
	f := p.FollowAgent(t, ShipperPath, in)
	f.Finish(t)
	return in, InterruptsOf(t, f.Events)[0]
}

// AskOverREST runs the agent shipper until its tool asks. The returned function answers over REST.
func (p *Perdure) AskOverREST(t *testing.T, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	in, asked := p.runUntilAsked(t, prompt)
	return asked, func(t *testing.T) {
		t.Helper()
		if status, a := Decide(t, p.Endpoint, in.ThreadID, asked.ID, `{"decision":"answer","content":{"city":7}}`); status != http.StatusUnprocessableEntity || a["pointer"] != "/content/city" {
			t.Errorf("invalid answer: got %d %v, want %d at /content/city", status, a, http.StatusUnprocessableEntity)
		}
		WantResult(t, p.Endpoint, in, ToolResultBody(asked.ToolCallID, "Ulm"), http.StatusNotFound, "unknown_tool_call")
		if status, a := Decide(t, p.Endpoint, in.ThreadID, asked.ID, `{"decision":"answer","content":{"city":"Ulm"}}`); status != http.StatusOK {
			t.Errorf("answer: got %d %v, want %d", status, a, http.StatusOK)
		}
		p.FollowThread(t, in).UntilSuccess(t)
	}
}

// AskStockClient runs the agent shipper until its tool asks. The returned function answers with a
// stock HttpAgent.
func (p *Perdure) AskStockClient(t *testing.T, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	in, asked := p.runUntilAsked(t, prompt)
	return asked, func(t *testing.T) {
		t.Helper()
		entry := map[string]any{"interruptId": asked.ID, "status": "resolved", "payload": map[string]any{"city": "Ulm"}}
		Generations[0].Drive(t, p, Script{URL: p.URL(ShipperPath), ThreadID: in.ThreadID, Messages: in.Messages, Runs: []ScriptedRun{
			{RunID: "run-2", Parameters: map[string]any{"resume": []any{entry}}},
		}}).Finish(t)
	}
}

// AskBrowserPage runs the agent shipper from a page with CopilotKit until its tool asks. The
// returned function answers in the page.
func (p *Perdure) AskBrowserPage(t *testing.T, kit CopilotKit, prompt string) (Interrupt, func(t *testing.T)) {
	t.Helper()
	thread := NewThread()
	p.Threads.Add(thread)
	page := kit.Open(t, "shipper", thread, "")
	asked := page.Do(t, map[string]any{"say": UserMessage(prompt)})
	if len(asked.Interrupts) != 1 {
		t.Fatalf("line of the page = %+v, want one interrupt", asked)
	}
	return asked.Interrupts[0], func(t *testing.T) {
		t.Helper()
		if end := page.Do(t, map[string]any{"decide": map[string]any{"city": "Ulm"}, "sameRun": true}); len(end.Interrupts) != 0 {
			t.Errorf("end of the page = %+v, want no interrupt", end)
		}
	}
}
