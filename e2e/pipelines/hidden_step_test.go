package pipelines

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestKillHiddenStep: the process is killed while a hidden step writes, and while a call of the
// step waits for an approval. No reader receives a message of the step, except for that call.
func TestKillHiddenStep(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, `name: clerk
model: scripted/clerk
tools: [calculate]
approvals: [{tools: [calculate]}]
steps:
  - name: prepare
    visible: false
    steps:
      - {name: draft, agent: {tools: [calculate], state: {write: [{path: /title}]}}}
  - {name: answer, agent: {model: scripted/answer}, input: "${steps.draft}"}
---
kind: script
name: clerk
turns:
  - steps:
      - {think: SECRET, say: SECRET, calls: [{tool: update_state, arguments: {title: Fees}}]}
      - {say: `+strings.Repeat("SECRET ", 80)+`, calls: [{tool: calculate, arguments: {expression: 40+2}}]}
      - {say: "SECRET {calculate}"}
---
kind: script
name: answer
turns:
  - {when: 'SECRET (?P<n>\d+)', steps: [{say: "It is {n}."}]}
`)
	in := kit.NewInput(kit.Marked("this."))
	f := p.FollowAgent(t, "/v1/agents/clerk/runs", in)
	// The second model call follows the change of the state.
	f.Until(t, func(e kit.Event) bool { return strings.Contains(string(e.Data), "Fees") })
	f.Until(t, kit.OfType("STEP_STARTED"))
	p.Kill()
	p.Start(t)
	f.Finish(t)
	interrupts := kit.InterruptsOf(t, f.Events)
	if len(interrupts) != 1 {
		t.Fatalf("the interrupts are %+v", interrupts)
	}
	shown := kit.ShownMessages(t, in.Messages, f.Events)
	if call := shown[len(shown)-1]; len(shown) != 2 || call.Content != "" || len(call.ToolCalls) != 1 || call.ToolCalls[0].ID != interrupts[0].ToolCallID {
		t.Errorf("before the approval the client has %+v", shown)
	}
	kit.WantMessages(t, p.MessagesOf(t, in.ThreadID), shown)
	p.Kill()
	p.Start(t)
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, interrupts[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	whole := p.FollowThread(t, in)
	whole.UntilSuccess(t)
	shown = kit.ShownMessages(t, in.Messages, whole.Events)
	kit.WantMessages(t, p.MessagesOf(t, in.ThreadID), shown)
	var texts []string
	for _, m := range shown[1:] {
		texts = append(texts, m.Content)
	}
	if got := strings.Join(texts, ","); got != ",42,It is 42." {
		t.Errorf("the client has the texts %q", got)
	}
	for _, e := range append(f.Events, whole.Events...) {
		var state struct{ Type string }
		if err := json.Unmarshal(e.Data, &state); err != nil {
			t.Fatal(err)
		}
		// The output of the step is in the state.
		if !strings.HasPrefix(state.Type, "STATE_") && strings.Contains(string(e.Data), "SECRET") || state.Type == "CUSTOM" {
			t.Errorf("a reader receives %s", e.Data)
		}
	}
}
