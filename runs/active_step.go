package runs

import "time"

// ActiveStep is a step that has an agent, a tool call or an approval.
type ActiveStep struct {
	AgentRef             // the agent; of a call, the agent whose approval rules apply
	PipelineStep StepRef `json:"place"`
	// CallID is the tool call; "" = the step is an agent. OutlastsCancel tells that the step has a
	// compensation: whether the call took effect must be known, so a cancel does not stop it.
	CallID         string    `json:"callId,omitempty"`
	OutlastsCancel bool      `json:"outlastsCancel,omitempty"`
	Deadline       time.Time `json:"deadline,omitzero"`
	// Turns counts the agent's model calls, Repairs its invalid answers that were sent back. Tokens and
	// Cost are what it has used, with its subagents.
	Turns   int   `json:"turns,omitempty"`
	Repairs int   `json:"repairs,omitempty"`
	Tokens  int64 `json:"tokens,omitempty"`
	Cost    int64 `json:"cost,omitempty"`
	// Structured tells that the answer of the subagent that the call runs is JSON.
	Structured bool `json:"structured,omitempty"`
}

// ActiveRun is the detail of ErrorBusy, ErrorInterrupted and ErrorMissingResults.
type ActiveRun struct {
	RunID string `json:"run"`
	// Waiting are the calls that the run waits for.
	Waiting []string `json:"waiting,omitempty"`
}
