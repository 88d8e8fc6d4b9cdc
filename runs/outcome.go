package runs

// Outcome is how a run or a step ended.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeError     Outcome = "error"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeInterrupt Outcome = "interrupt"
	// OutcomeFenced is the outcome of an execution whose run another execution owns. It has no
	// effect.
	OutcomeFenced Outcome = "fenced"
)
