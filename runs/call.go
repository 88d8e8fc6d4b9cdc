package runs

// Call is one tool call of an answer.
type Call struct {
	ID string `json:"id"`
	// Tool is the tool's name; "" = it is not one of the agent's tools, but the client's or made up
	// by the model.
	Tool string `json:"tool,omitempty"`
	// Client tells that the client executes the tool: the call is an interrupt.
	Client bool `json:"client,omitempty"`
	// ForClient tells that the client executes the tool once approvers have allowed the call: it is an
	// interrupt with an Approval first, and one for the client afterwards.
	ForClient bool `json:"forClient,omitempty"`
	// ChangesState tells that the result of a client tool call changes the state: an activity
	// writes the change, also if the result came with an input.
	ChangesState bool `json:"changesState,omitempty"`
	// Subagent is the agent that the call hands work to, as an index into the answer's Subagents
	// from 1; 0 = none.
	Subagent int `json:"subagent,omitempty"`
	// Approval is set if approvers decide about the call before it is made: the call is an
	// interrupt.
	Approval *Approval `json:"approval,omitempty"`
	// Queue is the Temporal task queue of the tool's workers; "" means TaskQueue.
	Queue string `json:"queue,omitempty"`
	// Sequence is the same in calls of the message that are made one after the other; 0 = the call
	// waits for none.
	Sequence int `json:"sequence,omitempty"`
}

// IsInterrupt reports whether the call waits for the client or for people.
func (c Call) IsInterrupt() bool { return c.Client || c.Approval != nil }

// HasQueueOrSequence reports whether the call has a queue or a sequence.
func (c Call) HasQueueOrSequence() bool { return c.Queue != "" || c.Sequence > 0 }

// Agent returns the agent that the call hands work to; nil = none.
func (c Call) Agent(subagents []AgentRef) *AgentRef {
	if c.Subagent < 1 || c.Subagent > len(subagents) {
		return nil
	}
	return &subagents[c.Subagent-1]
}
