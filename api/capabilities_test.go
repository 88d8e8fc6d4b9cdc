package api

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
)

func TestCapabilitiesSayWhatTheDefinitionAllows(t *testing.T) {
	t.Parallel()
	predict := []agents.Prediction{{Tool: "write", Argument: "text", Key: "text"}}
	for name, test := range map[string]struct {
		definition agents.Definition
		state      string
	}{
		"no tool can change the state":  {agents.Definition{Name: "a", Model: "p/m"}, `{"snapshots":true,"deltas":false,"persistentState":true}`},
		"some tool may, or may not":     {agents.Definition{Name: "a", Model: "p/m", Tools: []string{"t"}}, `{"snapshots":true,"persistentState":true}`},
		"the state follows an argument": {agents.Definition{Name: "a", Model: "p/m", Tools: []string{"write"}, State: agents.State{Predict: predict}}, `{"snapshots":true,"deltas":true,"persistentState":true}`},
	} {
		got, err := json.Marshal(capabilities(catalog.Published{Definition: &test.definition}, nil).State)
		if err != nil || string(got) != test.state {
			t.Errorf("%s: state is %s (%v), want %s", name, got, err, test.state)
		}
	}
}
