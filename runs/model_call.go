package runs

// ModelCall asks for one call of the agent's model.
type ModelCall struct {
	Step
	// Beginning is set in a run's first step.
	Beginning
	// Announces is set in a subagent's first step: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
	// Steered are the proposals, by sequence, of what people have said since the last call.
	Steered []uint64 `json:"steered,omitempty"`
	// Handoffs is how often the run has handed its thread over.
	Handoffs int `json:"handoffs,omitempty"`
	// Priced tells that only models may be called that have a price.
	Priced bool `json:"priced,omitempty"`
	// Day is set in calls of a run that asks people when its tenant has used up the soft budget of a day: how far they
	// have let it go. nil = nobody is asked.
	Day *DayAllowance `json:"day,omitempty"`
}

// ModelAnswer tells what the model decided, by reference.
type ModelAnswer struct {
	Outcome   Outcome `json:"outcome"`
	Seq       uint64  `json:"seq"`
	MessageID string  `json:"messageId,omitempty"`
	Finish    string  `json:"finish,omitempty"`
	// Calls are the tool calls of the message, in order, up to MaxCalls of them; CallCount is how many
	// there are if they are more. Their arguments are in the log.
	Calls     []Call `json:"calls,omitempty"`
	CallCount int    `json:"callCount,omitempty"`
	// WaitCount is how many calls wait, for the client or a person. All of those have to be named.
	WaitCount int `json:"waitCount,omitempty"`
	// OrderedCount is how many calls have a Queue or a Sequence. All of those have to be named, too.
	OrderedCount int `json:"placeCount,omitempty"`
	// Subagents are the agents that calls hand work to.
	Subagents []AgentRef `json:"delegates,omitempty"`
	// Handoff is the call that hands the thread over.
	Handoff *Handoff `json:"handoff,omitempty"`
	Usage   Usage    `json:"usage"`
	// OtherUsage is what other model calls of the step have used: summaries, and attempts that did not finish.
	OtherUsage []Usage `json:"more,omitempty"`
	// Exceeded is set, and nothing of the above, if the model was not called: people are to be asked about it first.
	Exceeded *ExceededLimit `json:"excess,omitempty"`
}

// MaxCalls bounds the calls that an answer names; the others are known by their place in the message.
const MaxCalls = 64

// Count is how many calls the answer makes.
func (a ModelAnswer) Count() int { return max(a.CallCount, len(a.Calls)) }

// Call is one tool call. Tool is empty if the name is not one of ours: the client's, or made up.
type Call struct {
	ID   string `json:"id"`
	Tool string `json:"tool,omitempty"`
	// Client: the client runs the tool, when the AG-UI run has ended.
	Client bool `json:"client,omitempty"`
	// Subagent is the agent that the call hands work to, counted from 1; 0 = the call is a tool's.
	Subagent int `json:"delegate,omitempty"`
	// Approval: a person decides before the call is made.
	Approval *Approval `json:"approval,omitempty"`
	// Queue is the task queue that the call goes to; empty = TaskQueue.
	Queue string `json:"queue,omitempty"`
	// Sequence is the same in calls of the message that are made one after another; 0 = the call waits for
	// none.
	Sequence int `json:"sequence,omitempty"`
}

func (c Call) IsInterrupt() bool { return c.Client || c.Approval != nil }

// Ordered is how many of the calls that are named have a queue or a sequence.
func (a ModelAnswer) Ordered() (n int) {
	for _, c := range a.Calls {
		if c.Placed() {
			n++
		}
	}
	return n
}

// Placed tells whether it matters where or when the call is made.
func (c Call) Placed() bool { return c.Queue != "" || c.Sequence > 0 }

// Agent is the agent that the call hands work to; nil = it is a tool's.
func (c Call) Agent(delegates []AgentRef) *AgentRef {
	if c.Subagent < 1 || c.Subagent > len(delegates) {
		return nil
	}
	return &delegates[c.Subagent-1]
}
