package runs

// AgentRef is an agent to which work is handed, as its definition is at that moment.
type AgentRef struct {
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	Limits   Limits `json:"limits"`
	// Steps tells that the agent is a pipeline. Program is the name of its program; "" = it is
	// none.
	Steps   bool   `json:"steps,omitempty"`
	Program string `json:"program,omitempty"`
	// HasResult tells that the program has an output: its result is evaluated when it has ended.
	HasResult bool `json:"hasResult,omitempty"`
}
