package runs

// MaxDepth bounds how deep agents hand work on, the run's own agent included. MaxSubagents bounds
// the subagents of a run.
const (
	MaxDepth     = 4
	MaxSubagents = 100
)

// MaxSubagentsPerTurn bounds the different agents to which the calls of one turn hand work.
const MaxSubagentsPerTurn = 16

// ChildInput starts TypeChild: a subagent, which works for a tool call, or a branch of a pipeline.
type ChildInput struct {
	Input          // the run, with the child's agent, limits and progress
	Child Child    `json:"child"`
	Call  ToolCall `json:"call"`
	// Subagents is how many further ones the child may start, with those below it.
	Subagents int `json:"subagents"`
}

// TraceParent returns "": a child stays in the trace of the step that started it.
func (ChildInput) TraceParent() string { return "" }

// SubagentAnswer is the input of ActivityAnswerSubagent, which writes the result of the call that a
// subagent worked for.
type SubagentAnswer struct {
	// Step is the subagent's, Call the call that it worked for.
	Step
	Call    ToolCall `json:"call"`
	Outcome Outcome  `json:"outcome"`
	Code    string   `json:"code,omitempty"`
	Message string   `json:"message,omitempty"` // never content
	// MessageID is the message with the answer.
	MessageID string `json:"messageId,omitempty"`
	// Result is the sequence of the record that keeps the result, which is the answer then; 0 = the
	// subagent's agent has no output.
	Result uint64 `json:"result,omitempty"`
	// IsPipeline tells that the subagent is a pipeline or a program, whose steps are in the log
	// already.
	IsPipeline bool `json:"isPipeline,omitempty"`
	// Interrupts are the open interrupts of the subagent and of those below it, by their names in
	// the run.
	Interrupts []string `json:"interrupts,omitempty"`
	// Unfinished are the lanes whose step did not finish.
	Unfinished []Lane  `json:"unfinished,omitempty"`
	Usage      []Usage `json:"usage,omitempty"`
	Subagents  int     `json:"subagents,omitempty"`
}

// The signals between a workflow and its children.
const (
	SignalInterrupt = "interrupt"
	SignalReply     = "reply"
)

// InterruptSignal is the payload of SignalInterrupt, from a child to its parent: the child, or one
// below it, waits for interrupts, is cancelled meanwhile, or has nothing else under way. Each
// parent forwards it to its own.
type InterruptSignal struct {
	// Suspended is the state of the child that waits, Interrupts what it waits for; nil = the
	// signal is about another matter.
	Suspended  SuspendedChild `json:"suspended,omitzero"`
	Interrupts *Interrupts    `json:"interrupts,omitempty"`
	// CallID names the child that waits. CannotContinueAsNew tells that it cannot end and begin
	// again. Ancestors are the subagents between it and the thread, which end with it, by their
	// present size.
	CallID              string         `json:"callId,omitempty"`
	CannotContinueAsNew bool           `json:"cannotContinueAsNew,omitempty"`
	Ancestors           []AncestorSize `json:"ancestors,omitempty"`
	// From is the workflow ID of the sender. Idle tells that nothing is under way there but
	// waiting, as of the number of Replies that it has received: a later reply makes this outdated.
	From    string `json:"from,omitempty"`
	Idle    bool   `json:"idle,omitempty"`
	Replies int    `json:"replies,omitempty"`
	// Cancelled tells that the child is cancelled. It expects a reply with what was decided until
	// now.
	Cancelled bool `json:"cancelled,omitempty"`
}

// AncestorSize is how many bytes a subagent's state takes in a payload. It counts once for all
// children below it.
type AncestorSize struct {
	CallID string `json:"callId"`
	Size   int    `json:"size"` // in bytes
}

// ReplySignal is the payload of SignalReply, from the thread's workflow to a child that waits. Each
// workflow between them forwards it.
type ReplySignal struct {
	// To is the CallID of the child that waits.
	To string `json:"to,omitempty"`
	// Items are the child's interrupts, with the decisions.
	Items []Interrupt `json:"items,omitempty"`
	// Suspends tells the child to end, so that the run can end with its interrupts.
	Suspends bool `json:"suspends,omitempty"`
	// Cancelled tells that the child is cancelled, also if it does not know yet.
	Cancelled bool `json:"cancelled,omitempty"`
}
