package runs

// MaxDepth is how many agents may work for one another, the run's own agent among them. MaxSubagents is how
// many may work in a run.
const (
	MaxDepth     = 4
	MaxSubagents = 100
)

// AgentRef is an agent that work is handed to, as it is when the work is handed over.
type AgentRef struct {
	Agent    string `json:"agent"`
	Revision string `json:"revision"`
	Limits   Limits `json:"limits"`
	// Steps tells that it consists of steps, Program which program it is.
	Steps   bool   `json:"steps,omitempty"`
	Program string `json:"program,omitempty"`
}

// MaxSubagentsPerTurn bounds the agents that the calls of one turn hand work to.
const MaxSubagentsPerTurn = 16

// ChildInput starts TypeBranch.
type ChildInput struct {
	Input          // the run, and the subagent's name, revision, limits and progress
	Child Child    `json:"branch"`
	Call  ToolCall `json:"call"`
	// Subagents is how many there may still be.
	Subagents int `json:"subagents"`
}

// TraceParent returns "": a branch stays in the trace of the step that started it.
func (ChildInput) TraceParent() string { return "" }

// SubagentAnswer asks for the result of a call that a subagent has worked for.
type SubagentAnswer struct {
	// Step is the subagent's, Call what it worked for.
	Step
	Call    ToolCall `json:"call"`
	Outcome Outcome  `json:"outcome"`
	Code    string   `json:"code,omitempty"`
	Message string   `json:"message,omitempty"` // our own words
	// MessageID is the message that answers.
	MessageID string `json:"answer,omitempty"`
	// IsPipeline tells that the subagent's steps are told of already.
	IsPipeline bool `json:"walks,omitempty"`
	// Interrupts are the questions that the subagent waits for, with those below it.
	Interrupts []string `json:"asks,omitempty"`
	// Unfinished are those whose step did not finish.
	Unfinished []Lane  `json:"lanes,omitempty"`
	Usage      []Usage `json:"usage,omitempty"`
	Subagents  int     `json:"subagents,omitempty"`
}

// SignalInterrupt and SignalReply pass between a workflow and its children.
const (
	SignalInterrupt = "ask"
	SignalReply     = "reply"
)

// InterruptSignal is what SignalAsk carries.
type InterruptSignal struct {
	// Suspended is who asks, as it waits, and Waits what for; nil = only what is below is told.
	Suspended  SuspendedChild `json:"suspended,omitzero"`
	Interrupts *Interrupts    `json:"waits,omitempty"`
	// CallID names who asks. Stays tells that it cannot end and begin again, Between who else comes along in a payload if it does,
	// or how large they have become by now.
	CallID    string         `json:"by,omitempty"`
	MustStay  bool           `json:"stays,omitempty"`
	Ancestors []AncestorSize `json:"between,omitempty"`
	// From is the child that tells it. Idle tells that nothing is under way there but what waits for answers, as of so many
	// Replies that have come.
	From    string `json:"from,omitempty"`
	Idle    bool   `json:"idle,omitempty"`
	Replies int    `json:"replies,omitempty"`
	// Cancelled tells that who has asked is cancelled, and wants to hear what was decided by now.
	Cancelled bool `json:"ends,omitempty"`
}

// AncestorSize is a subagent between one that asks and the thread's workflow: with all who ask below it, it is one.
type AncestorSize struct {
	CallID string `json:"by"`
	Size   int    `json:"size"` // in bytes
}

// ReplySignal is what SignalReply carries.
type ReplySignal struct {
	// To is who has asked.
	To string `json:"to,omitempty"`
	// Calls are what was waited for, with the answers.
	Calls []Interrupt `json:"calls,omitempty"`
	// Suspends tells who has asked to end where it is.
	Suspends bool `json:"suspends,omitempty"`
	// Cancelled tells that it is cancelled, though that may come later.
	Cancelled bool `json:"ends,omitempty"`
}
