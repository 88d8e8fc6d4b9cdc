package runs

// InterruptSource tells which agent made the call of an interrupt.
type InterruptSource struct {
	Agent, Revision string
	// MessageID is the message with the call.
	MessageID string
	// CallID is the call that the agent works for; "" = it is the run's own agent.
	CallID string
	// Step is the path of the pipeline step that defines the agent inline, Tree the record with the
	// step.
	Step string
	Tree uint64
	// QuestionRecord is the record with what an approve step asks; 0 = none.
	QuestionRecord uint64
}

// SuspendedChild is the state of a subagent or branch that ended with interrupts. The run that has
// the decisions begins it again.
type SuspendedChild struct {
	AgentRef
	// CallID, MessageID and Index are those of its [Child], and so are Args and Edit.
	CallID    string `json:"callId"`
	MessageID string `json:"messageId"`
	Index     int    `json:"index"`
	Args      string `json:"args,omitempty"`
	Edit      uint64 `json:"edit,omitempty"`
	// Turn is the turn that it is in, AnswerID the message with the calls that wait.
	Turn     int    `json:"turn"`
	AnswerID string `json:"answerId"`
	// Subagents are the agents to which these calls hand work.
	Subagents []AgentRef `json:"subagents,omitempty"`
	// Branch is the index of a branch; nil = the child is a subagent. Position is set in a
	// pipeline. Step and Tree are those of [InterruptSource].
	Branch   *int              `json:"branch,omitempty"`
	Position *PipelinePosition `json:"position,omitempty"`
	Step     string            `json:"step,omitempty"`
	Tree     uint64            `json:"tree,omitempty"`
	// Parent is the suspended child that started it, as an index from 1; 0 = the run's own agent
	// did.
	Parent int `json:"parent,omitempty"`
}
