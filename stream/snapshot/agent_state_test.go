package snapshot

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// TestClientsDoNotWriteAgentState: whatever state a client sends, conditions read what agents have
// last written. A client that returns the state as it received it changes nothing.
func TestClientsDoNotWriteAgentState(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		steps           []string // a state that a client sends, or the operations of an agent
		want, wantState string
		wantNil         bool
	}{
		"a client adds a member":          {[]string{`{"trusted":true}`}, `{}`, `{"trusted":true}`, false},
		"an agent writes":                 {[]string{`[{"op":"add","path":"/risk","value":1}]`}, `{"risk":1}`, `{"risk":1}`, true},
		"a client returns the state":      {[]string{`[{"op":"add","path":"/risk","value":1}]`, `{ "risk": 1 }`}, `{"risk":1}`, `{"risk":1}`, true},
		"a client changes a member":       {[]string{`[{"op":"add","path":"/risk","value":1}]`, `{"risk":0}`}, `{"risk":1}`, `{"risk":0}`, false},
		"a client removes a member":       {[]string{`[{"op":"add","path":"/risk","value":1}]`, `{"x":0}`}, `{"risk":1}`, `{"x":0}`, false},
		"a client removes and returns it": {[]string{`[{"op":"add","path":"/risk","value":1}]`, `{"x":0}`, `{"risk":1}`}, `{"risk":1}`, `{"risk":1}`, true},
		"an agent replaces a member of a client": {
			[]string{`{"risk":0}`, `[{"op":"replace","path":"/risk","value":2}]`}, `{"risk":2}`, `{"risk":2}`, false,
		},
		"an agent writes into a member of a client": {
			[]string{`{"order":{"paid":true},"n":[]}`, `[{"op":"add","path":"/order/note","value":"x"},{"op":"add","path":"/n/-","value":1},{"op":"add","path":"/seen","value":true}]`},
			`{"seen":true}`, `{"order":{"paid":true,"note":"x"},"n":[1],"seen":true}`, false,
		},
		"an agent copies a member of a client": {
			[]string{`{"trusted":true}`, `[{"op":"copy","from":"/trusted","path":"/checked"}]`}, `{}`, `{"trusted":true,"checked":true}`, false,
		},
		"an empty state keeps the thread's": {[]string{`[{"op":"add","path":"/risk","value":1}]`, `{}`}, `{"risk":1}`, `{"risk":1}`, true},
	} {
		j := journal{Committed: EmptyState}
		for _, step := range tt.steps {
			if step[0] == '[' {
				j.Changes = append(j.Changes, change{Lane: stream.LaneMain, Writer: "w", Event: json.RawMessage(`{"type":"STATE_DELTA","delta":` + step + `}`)})
				j.commit(stream.LaneMain)
				continue
			}
			before := j.Committed
			j.Committed = initialState(&stream.Input{Input: agui.RunAgentInput{State: json.RawMessage(step)}}, before, "")
			j.ByAgents = afterInput(j.ByAgents, before, j.Committed)
		}
		s := &Snapshot{State: j.Committed, ByAgents: j.ByAgents}
		if !isSameValue(s.AgentState(), json.RawMessage(tt.want)) || !isSameValue(s.State, json.RawMessage(tt.wantState)) {
			t.Errorf("%s: the state is %s, that of agents %s, want %s and %s", name, s.State, s.AgentState(), tt.wantState, tt.want)
		}
		if (s.ByAgents == nil) != tt.wantNil {
			t.Errorf("%s: ByAgents = %s, want nil: %v", name, s.ByAgents, tt.wantNil)
		}
	}
}
