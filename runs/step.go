package runs

// Step tells an activity where in the run it is.
type Step struct {
	Run Ref `json:"run"`
	// Execution is the Temporal run ID of the execution that began the run: the log fences by it.
	Execution string `json:"execution"`
	Agent     string `json:"agent"`
	Revision  string `json:"revision"`
	// ID is the same for every attempt of the step, and unique in the run.
	ID   string `json:"step"`
	Turn int    `json:"turn"`
	// Name is the stepName of STEP_STARTED; "" = clients see no step. Closes is the step that is
	// still open: its STEP_FINISHED comes first.
	Name   string `json:"name"`
	Closes string `json:"closes,omitempty"`
	// After is the last record of the agent's lane that the workflow knows. The activity must see
	// it in the log, and late attempts of earlier steps are fenced by it.
	After uint64 `json:"after"`
	// Child is set in the steps of subagents and branches, PipelineStep in those of an agent or
	// call of a pipeline.
	Child        *Child   `json:"child,omitempty"`
	PipelineStep *StepRef `json:"place,omitempty"`
	// Compensates tells that the step undoes another one: a cancel of the run does not stop it.
	Compensates bool `json:"compensates,omitempty"`
	// Stops tells that the run or child stops, and only wants to know whether the step was done: an
	// attempt that is made nevertheless ends as cancelled.
	Stops bool `json:"stops,omitempty"`
	// Earlier are the attempts of the step in other activities.
	Earlier EarlierAttempts `json:"earlier,omitzero"`
}

// LogCheck is the input of ActivityIsLogAhead: whether the log has records after Step.After in the
// agent's lane, or in that of a tool call. With Done it is whether the step is done.
type LogCheck struct {
	Step
	Call *CallLane `json:"call,omitempty"`
	Done bool      `json:"done,omitempty"`
}

// CallLane is the lane of a tool call. After is its last record that the workflow knows; 0 = none.
type CallLane struct {
	Lane  int    `json:"lane"`
	After uint64 `json:"after,omitempty"`
}

// EarlierAttempts counts the attempts of a step that were made before its present activity was
// scheduled, and how many of them failed by themselves. Temporal counts those of one activity.
type EarlierAttempts struct {
	Count    int `json:"count"`
	Failures int `json:"failures,omitempty"`
}

// LocalAnswer is part of the output of every activity that is executed as a local activity first.
type LocalAnswer struct {
	// ContinuesOn means that the step has left its workflow task: an activity on this task queue has
	// its answer. All other members of the output are zero then.
	ContinuesOn string `json:"continuesOn,omitempty"`
}

// ContinueOn sets ContinuesOn.
func (a *LocalAnswer) ContinueOn(queue string) { a.ContinuesOn = queue }

// NextQueue returns ContinuesOn, of every output that embeds a LocalAnswer.
func (a LocalAnswer) NextQueue() string { return a.ContinuesOn }

// Base returns the step, of every input that embeds one.
func (s Step) Base() Step { return s }

// Child tells the steps of a subagent or branch from those of the others.
type Child struct {
	// Lanes are the lanes of the calls and branches that led here, from the run's own agent on.
	// Together they name the child's lane.
	Lanes []int `json:"lanes"`
	// Depth is how many agents have handed on the work that arrived here, the run's own included.
	// Branches do not count.
	Depth int `json:"depth,omitempty"`
	// Since is the record after which the lane belongs to this child: lanes are used again.
	Since uint64 `json:"since"`
	// CallID is the tool call that a subagent works for, MessageID the message that has it, Index
	// its index there. A branch has an ID of the same form, and its index among the branches.
	CallID    string `json:"callId"`
	MessageID string `json:"messageId"`
	Index     int    `json:"index,omitempty"`
	// Args is the digest of the approved arguments, if the call needed approval. Edit is the
	// proposal with the arguments, if they are not the model's.
	Args string `json:"args,omitempty"`
	Edit uint64 `json:"edit,omitempty"`
	// Prefix begins the IDs of the child's steps.
	Prefix string `json:"prefix"`
	// BranchPath is the path of the branch; "" = the child is a subagent. ParentCallID is the
	// CallID of the subagent in whose pipeline the branch is; "" = the run's own.
	BranchPath   string `json:"branchPath,omitempty"`
	ParentCallID string `json:"parentCallId,omitempty"`
	// Compensates tells that the child undoes something: a cancel of the run does not stop it.
	Compensates bool `json:"compensates,omitempty"`
	// Name is the name that clients see.
	Name string `json:"name,omitempty"`
	// Hidden tells that a hidden step has called the subagent: clients do not see its messages.
	Hidden bool `json:"hidden,omitempty"`
}

// IsHidden reports whether clients do not see the messages of the step.
func (s Step) IsHidden() bool {
	return s.PipelineStep != nil && s.PipelineStep.Hidden || s.Child != nil && s.Child.Hidden
}

// StepRef is a step of a pipeline in which an agent works or a call is made.
type StepRef struct {
	Path string `json:"path"`
	Name string `json:"name"`
	// Inline tells that the step defines the agent, as opposed to naming one.
	Inline bool `json:"inline,omitempty"`
	// Scope marks the messages of the step. Isolated tells that the agent receives no other
	// messages.
	Scope    string `json:"scope"`
	Isolated bool   `json:"isolated,omitempty"`
	// Hidden tells that neither clients nor other steps see the messages of the step.
	Hidden bool `json:"hidden,omitempty"`
	// Tree is the record with the steps of a program; 0 = they are the agent's.
	Tree uint64 `json:"tree,omitempty"`
	// Prompts are the records with the agent's prompts, besides the conversation.
	Prompts []uint64 `json:"prompts,omitempty"`
}

// Beginning is what a run's first record is made of.
type Beginning struct {
	// Input and Digest are those of the accepted input. A run without an input continues the run
	// Continues.
	Input     uint64 `json:"input,omitempty"`
	Digest    string `json:"digest,omitempty"`
	Continues string `json:"continues,omitempty"`
	// Edits tells that calls are made with other arguments than clients have seen.
	Edits bool `json:"edits,omitempty"`
}

// FailedStep is a step that failed on the agent's lane. The workflow does not
// know whether it began, and a late attempt may still write: the next activity takes its place in
// the log before it writes.
type FailedStep struct {
	ID           string   `json:"step"`
	Name         string   `json:"name"`
	Closes       string   `json:"closes,omitempty"`
	After        uint64   `json:"after"`
	PipelineStep *StepRef `json:"place,omitempty"`
	Steered      []uint64 `json:"steered,omitempty"`
}

// MaxLanes is how many tool calls of a turn run at a time, each on a lane of its own.
const MaxLanes = 8

// Lane is a lane of tool calls or branches, with the last record that the workflow knows of it.
type Lane struct {
	Index int    `json:"lane"`
	After uint64 `json:"after"`
	// Subagent tells that a subagent or branch worked on the lane, Branch that it was a branch.
	Subagent bool `json:"subagent,omitempty"`
	Branch   bool `json:"branch,omitempty"`
}
