package runs

// ModelAnswer is the output of ActivityCallModel: what the model decided, by reference.
type ModelAnswer struct {
	LocalAnswer
	Outcome   Outcome `json:"outcome"`
	Seq       uint64  `json:"seq"` // of the answer's last record
	MessageID string  `json:"messageId,omitempty"`
	// Finish is why the model ended the answer: FinishLength, FinishContentFilter, or another reason of
	// package llm.
	Finish string `json:"finish,omitempty"`
	// Calls are the tool calls of the message, in order, at most MaxCalls of them. CallCount is how
	// many there are if they are more. The arguments are in the log.
	Calls     []Call `json:"calls,omitempty"`
	CallCount int    `json:"callCount,omitempty"`
	// Questions are those with which a remote agent has ended its run.
	Questions []AskedQuestion `json:"questions,omitempty"`
	// InterruptCount is how many calls and questions are interrupts, QueuedOrSequencedCount how many have a Queue
	// or a Sequence. The run fails if Calls lacks one of them.
	InterruptCount         int `json:"interruptCount,omitempty"`
	QueuedOrSequencedCount int `json:"queuedOrSequencedCount,omitempty"`
	// Subagents are the agents that calls hand work to.
	Subagents []AgentRef `json:"subagents,omitempty"`
	// Handoff is the call that hands the thread over; nil = none does.
	Handoff *Handoff `json:"handoff,omitempty"`
	Usage   Usage    `json:"usage"`
	// OtherUsage is the usage of summaries and of attempts that did not finish.
	OtherUsage []Usage `json:"otherUsage,omitempty"`
	// Missed is how many of the last messages in ModelCall.Steered the call has not received, because an
	// attempt in a lost workflow task had begun before they arrived.
	Missed int `json:"missed,omitempty"`
	// Output tells whether a final answer fits the output that is required of it.
	Output OutputCheck `json:"output,omitempty"`
	// Exceeded means that the model was not called, because approvers have to decide about this
	// limit first. All other members but Seq are zero then.
	Exceeded *ExceededLimit `json:"exceeded,omitempty"`
}

// Values of ModelAnswer.Finish for an answer that is incomplete.
const (
	FinishLength        = "length"         // cut at the model's limit of output tokens
	FinishContentFilter = "content_filter" // refused by the model, or withheld by its provider
)

// IsIncomplete reports whether the answer was cut, refused or withheld.
func (a ModelAnswer) IsIncomplete() bool {
	return a.Finish == FinishLength || a.Finish == FinishContentFilter
}

// InvalidCode returns the code with which a run or step fails whose last answer is invalid.
func (a ModelAnswer) InvalidCode() string {
	if a.Finish == FinishContentFilter {
		return CodeContentFilter
	}
	return CodeInvalidOutput
}

// Count returns how many calls the answer makes.
func (a ModelAnswer) Count() int { return max(a.CallCount, len(a.Calls)) }

// CountQueuedOrSequenced returns how many of the named calls have a queue or a sequence.
func (a ModelAnswer) CountQueuedOrSequenced() (n int) {
	for _, c := range a.Calls {
		if c.HasQueueOrSequence() {
			n++
		}
	}
	return n
}

// OutputCheck tells whether an answer fits the output that its agent or step requires; "" = none is
// required, or the answer is not final.
type OutputCheck string

const (
	// OutputValid: the record of the answer keeps the value.
	OutputValid OutputCheck = "valid"
	// OutputRepair: the answer is invalid. Its record has the message with the errors, which the next
	// model call receives.
	OutputRepair OutputCheck = "repair"
	// OutputInvalid: the answer is invalid, and the agent has no repairs left.
	OutputInvalid OutputCheck = "invalid"
)

// IsInvalid reports whether the answer was checked and is invalid.
func (c OutputCheck) IsInvalid() bool { return c == OutputRepair || c == OutputInvalid }
