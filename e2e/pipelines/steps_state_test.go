package pipelines

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestInputsKeepOutputs: a decision with a state replaces the state, but not the outputs of
// earlier steps. The client gets the outputs that it lacks.
func TestInputsKeepOutputs(t *testing.T) {
	t.Parallel()
	const keeper = `name: keeper
model: openai/scripted-by-the-test
tools: [calculate]
steps:
  - {name: one, tool: calculate, args: {expression: "40+2"}}
  - {name: ask, approve: {message: "Go on?"}}
  - {name: two, tool: calculate, args: {expression: "${string(steps.one)}+${string(state.mine)}"}}
`
	p := kit.SetupWith(t, keeper)
	in := kit.NewInput(kit.Marked("this."))
	asked := p.FollowAgent(t, "/v1/agents/keeper/runs", in)
	asked.Finish(t)
	question := kit.InterruptsOf(t, asked.Events)[0]
	in.RunID, in.State = "run-2", map[string]any{"mine": 8, "perdure.steps": map[string]any{"one": 1000}}
	in.Resume = []any{map[string]any{"interruptId": question.ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	then := p.FollowAgent(t, "/v1/agents/keeper/runs", in)
	first := then.Until(t, kit.OfType("STATE_SNAPSHOT"))
	var event struct {
		Snapshot struct {
			Mine  int
			Steps map[string]json.RawMessage `json:"perdure.steps"`
		}
	}
	if err := json.Unmarshal(first.Data, &event); err != nil {
		t.Fatal(err)
	}
	if event.Snapshot.Mine != 8 || string(event.Snapshot.Steps["one"]) != "42" {
		t.Errorf("first state of the client = %s, want 8 and the output 42", first.Data)
	}
	then.UntilSuccess(t)
	messages := kit.ShownMessages(t, in.Messages, append(asked.Events, then.Events...), kit.RetractWarning)
	if last := messages[len(messages)-1]; last.Content != "50" {
		t.Errorf("last message of the client = %q, want %q", last.Content, "50")
	}
}
