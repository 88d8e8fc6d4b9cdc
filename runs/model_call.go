package runs

// ModelCall is the input of ActivityCallModel: one call of the agent's model.
type ModelCall struct {
	Step
	// Beginning is set in the run's first step.
	Beginning
	// Announces is set in a subagent's first step: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
	// Steered are the proposals with what people have said since the last model call, by sequence.
	Steered []uint64 `json:"steered,omitempty"`
	// Handoffs is how often the run has handed its thread over.
	Handoffs int `json:"handoffs,omitempty"`
	// Priced tells that the model must have a price, since the run has a limit of cost.
	Priced bool `json:"priced,omitempty"`
	// Day is how far people have let the run go on its tenant's day; nil = the run cannot ask them.
	Day *DayAllowance `json:"day,omitempty"`
}

// ModelAnswer is the output of ActivityCallModel: what the model decided, by reference.
type ModelAnswer struct {
	Outcome   Outcome `json:"outcome"`
	Seq       uint64  `json:"seq"` // of the answer's last record
	MessageID string  `json:"messageId,omitempty"`
	Finish    string  `json:"finish,omitempty"`
	// Calls are the tool calls of the message, in order, at most MaxCalls of them. CallCount is how many there are if they are
	// more. The arguments are in the log.
	Calls     []Call `json:"calls,omitempty"`
	CallCount int    `json:"callCount,omitempty"`
	// WaitCount is how many calls are interrupts, OrderedCount how many have a Queue or a Sequence. The run fails if Calls
	// lacks one of them.
	WaitCount    int `json:"waitCount,omitempty"`
	OrderedCount int `json:"orderedCount,omitempty"`
	// Subagents are the agents that calls hand work to.
	Subagents []AgentRef `json:"subagents,omitempty"`
	// Handoff is the call that hands the thread over; nil = none does.
	Handoff *Handoff `json:"handoff,omitempty"`
	Usage   Usage    `json:"usage"`
	// OtherUsage is the usage of summaries and of attempts that did not finish.
	OtherUsage []Usage `json:"otherUsage,omitempty"`
	// Exceeded tells that the model was not called, because people are to be asked first. All other members but Seq are zero
	// then.
	Exceeded *ExceededLimit `json:"exceeded,omitempty"`
}

// MaxCalls bounds ModelAnswer.Calls. Further calls are known by their index in the message.
const MaxCalls = 64

// Count returns how many calls the answer makes.
func (a ModelAnswer) Count() int { return max(a.CallCount, len(a.Calls)) }

// Ordered returns how many of the named calls have a queue or a sequence.
func (a ModelAnswer) Ordered() (n int) {
	for _, c := range a.Calls {
		if c.Placed() {
			n++
		}
	}
	return n
}

// Call is one tool call of an answer.
type Call struct {
	ID string `json:"id"`
	// Tool is the tool's name; "" = it is none of the agent's tools, but the client's or made up by the model.
	Tool string `json:"tool,omitempty"`
	// Client tells that the client executes the tool: the call is an interrupt.
	Client bool `json:"client,omitempty"`
	// Subagent is the agent that the call hands work to, as an index into the answer's Subagents from 1; 0 = none.
	Subagent int `json:"subagent,omitempty"`
	// Approval is set if people decide about the call before it is made: the call is an interrupt.
	Approval *Approval `json:"approval,omitempty"`
	// Queue is the Temporal task queue of the tool's workers; "" means TaskQueue.
	Queue string `json:"queue,omitempty"`
	// Sequence is the same in calls of the message that are made one after the other; 0 = the call waits for none.
	Sequence int `json:"sequence,omitempty"`
}

// IsInterrupt reports whether the call waits for the client or for people.
func (c Call) IsInterrupt() bool { return c.Client || c.Approval != nil }

// Placed reports whether the call has a queue or a sequence.
func (c Call) Placed() bool { return c.Queue != "" || c.Sequence > 0 }

// Agent returns the agent that the call hands work to; nil = none.
func (c Call) Agent(subagents []AgentRef) *AgentRef {
	if c.Subagent < 1 || c.Subagent > len(subagents) {
		return nil
	}
	return &subagents[c.Subagent-1]
}
