package runs

// ModelCall is the input of ActivityCallModel: one call of the agent's model.
type ModelCall struct {
	Step
	// Beginning is set in the run's first step.
	Beginning
	// Announces is set in a subagent's first step: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
	// Steered are the proposals with the steering since the last model call, by sequence.
	Steered []uint64 `json:"steered,omitempty"`
	// Handoffs is how often the run has handed its thread over.
	Handoffs int `json:"handoffs,omitempty"`
	// Repairs is how often invalid answers of the agent have been sent back.
	Repairs int `json:"repairs,omitempty"`
	// Priced tells that the model must have a price, since the run has a limit of cost.
	Priced bool `json:"priced,omitempty"`
	// Day is how much of the tenant's day approvers have allowed the run to use; nil = the run
	// cannot ask them.
	Day *DayAllowance `json:"day,omitempty"`
}

// AfterAttempts returns the input for an activity that continues after earlier attempts.
func (c ModelCall) AfterAttempts(earlier EarlierAttempts) ModelCall {
	c.Earlier = earlier
	return c
}

// Stopping returns the input for a run that stops (see Step.Stops).
func (c ModelCall) Stopping() ModelCall {
	c.Stops = true
	return c
}

// MaxCalls bounds ModelAnswer.Calls. Further calls are known by their index in the message.
const MaxCalls = 64
