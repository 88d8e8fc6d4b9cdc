package agentroutes

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
)

func TestCapabilitiesFollowDefinition(t *testing.T) {
	t.Parallel()
	predict := []agents.Prediction{{Tool: "write", Argument: "text", Key: "text"}}
	for name, test := range map[string]struct {
		definition agents.Definition
		state      string
	}{
		"no tool can change the state":  {agents.Definition{Name: "a", Model: "p/m"}, `{"snapshots":true,"deltas":false,"persistentState":true}`},
		"a tool may change the state":   {agents.Definition{Name: "a", Model: "p/m", Tools: []string{"t"}}, `{"snapshots":true,"persistentState":true}`},
		"a remote agent may change it":  {agents.Definition{Name: "a", Remote: &agents.Remote{URL: "https://h"}}, `{"snapshots":true,"persistentState":true}`},
		"the state follows an argument": {agents.Definition{Name: "a", Model: "p/m", Tools: []string{"write"}, State: agents.State{Predict: predict}}, `{"snapshots":true,"deltas":true,"persistentState":true}`},
	} {
		got, err := json.Marshal(capabilities(catalog.Published{Definition: &test.definition}, nil, involvement{}).State)
		if err != nil || string(got) != test.state {
			t.Errorf("%s: state: got %s (%v), want %s", name, got, err, test.state)
		}
	}
}

// TestCapabilitiesListInterrupts: the capabilities derive from the agent's rules, limits, steps and
// tools, and from the agents that it runs. They leave out what only workers know. A run that waits
// ends with an interrupt, without an approval.
func TestCapabilitiesListInterrupts(t *testing.T) {
	t.Parallel()
	const none, interrupted, decides, unknown = `{"approvals":false,"feedback":false,"interrupts":false,"approveWithEdits":false}`,
		`{"approvals":false,"feedback":false,"interrupts":true,"approveWithEdits":false}`,
		`{"approvals":true,"feedback":false,"interrupts":true,"approveWithEdits":true}`,
		`{"approvals":false,"feedback":false,"approveWithEdits":false}`
	others := map[string]*agents.Definition{
		"asker":   {Name: "asker", Tools: []string{"ask_user", "agent:asker"}},
		"strict":  {Name: "strict", Approvals: []agents.Approval{{Tools: []string{"t"}}}},
		"patient": {Name: "patient", Steps: []agents.Step{{Tool: agents.EventTool}}},
		"soft":    {Name: "soft", Limits: agents.Limits{Soft: &agents.SoftLimits{}}},
	}
	for name, c := range map[string]struct {
		d    agents.Definition
		want string
	}{
		"no approver":              {agents.Definition{}, none},
		"tools that ask nothing":   {agents.Definition{Tools: []string{"calculate", "client:*"}}, none},
		"tools of workers":         {agents.Definition{Tools: []string{"lookup"}}, unknown},
		"a program":                {agents.Definition{Workflow: "w"}, unknown},
		"ask_user":                 {agents.Definition{Tools: []string{"ask_user"}}, interrupted},
		"a pattern":                {agents.Definition{Tools: []string{"conf*"}}, interrupted},
		"a rule":                   {agents.Definition{Approvals: []agents.Approval{{Tools: []string{"t"}}}}, decides},
		"a soft limit":             {agents.Definition{Limits: agents.Limits{Soft: &agents.SoftLimits{}}}, decides},
		"an approve step":          {agents.Definition{Steps: []agents.Step{{Parallel: &agents.ParallelStep{Steps: []agents.Step{{Approve: &agents.ApproveStep{}}}}}}}, decides},
		"a step that asks":         {agents.Definition{Steps: []agents.Step{{Tool: "confirm"}}}, interrupted},
		"a subagent that asks":     {agents.Definition{Tools: []string{"agent:asker", "agent:gone"}}, interrupted},
		"a subagent with a rule":   {agents.Definition{Steps: []agents.Step{{Agent: &agents.AgentStep{Name: "strict"}}}}, decides},
		"an inline agent":          {agents.Definition{Steps: []agents.Step{{Agent: &agents.AgentStep{Tools: []string{"agent:strict"}}}}}, decides},
		"a subagent's soft limits": {agents.Definition{Tools: []string{"agent:soft"}}, none},
		"a tool that waits":        {agents.Definition{Tools: []string{"wait"}}, interrupted},
		"a pattern of an event":    {agents.Definition{Tools: []string{"calculate", "ev*"}}, interrupted},
		"a step that waits":        {agents.Definition{Steps: []agents.Step{{Parallel: &agents.ParallelStep{Steps: []agents.Step{agents.WaitFor("w", time.Hour)}}}}}, interrupted},
		"a subagent that waits":    {agents.Definition{Tools: []string{"agent:patient"}}, interrupted},
		"a rule and a wait":        {agents.Definition{Tools: []string{"event"}, Approvals: []agents.Approval{{Tools: []string{"t"}}}}, decides},
		"a hand-off":               {agents.Definition{Tools: []string{"handoff:soft"}}, decides},
	} {
		h := involvementOf(&c.d, func(name string) *agents.Definition { return others[name] })
		got, err := json.Marshal(capabilities(catalog.Published{Definition: &c.d}, nil, h).HumanInTheLoop)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, c.want)
		}
	}
}
